"""The exact distribution of each signal above the floor, by domain."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from saber_dagster.query_parts import Floats, Ints, Members, QueryPart, query_parts
from saber_dagster.signals.pairs import SIGNALS
from saber_dagster.signals.statistics import population
from saber_dagster.similarity.blocks import in_blocks
from saber_dagster.similarity.value_counts import count_values

QUERIES_PER_BLOCK = 4096
_MERGE = 1 << 20


@dataclass(frozen=True, eq=False)
class SignalTail:
    """The upper tail of a signal in the population of a domain, complete from the floor on.

    Args:
        values: (n_values,) distinct positive values from the floor on, ascending.
        counts: (n_values,) how many pairs have each.
        floor: values below it are not known; if it is 0, the others are all 0.
        n_pairs: the population: pairs of which both have the feature, with any value.
    """

    values: Floats
    counts: Ints
    floor: float
    n_pairs: int

    @cached_property
    def shares(self) -> Floats:
        """(n_values,) the share of the population that is at least as large as each value."""
        above = np.cumsum(self.counts[::-1])[::-1]
        shares: Floats = np.divide(above, max(self.n_pairs, 1))
        return shares

    def n_high(self, share: float) -> int:
        """How many of the values are high at a share: no more of the population is as large."""
        return int(np.searchsorted(self.shares[::-1], share, side="right"))

    def threshold(self, share: float) -> float:
        """The largest value that is not high at a share; 0 if there is none."""
        rest = self.values.size - self.n_high(share)
        return float(self.values[rest - 1]) if rest else 0.0


def signal_tails(
    shards: Iterable[pl.DataFrame],
    index: pl.DataFrame,
    domains: Sequence[str],
    floors: Mapping[str, float],
) -> dict[str, dict[str, SignalTail]]:
    """Count the values of both signals from the floors on, in one pass.

    A domain's population is its queries, by membership, with every document outside the query's
    near-duplicate cluster.

    Args:
        shards: frames of numbered pairs, each with all pairs of its queries.
        index: table ``problem_index``; the rows with ``is_query`` are the queries.
        domains: the configured domains.
        floors: of each signal the value from which on all pairs are stored.

    Returns:
        domain → signal → its tail. It takes 16 bytes per domain and distinct value.
    """
    members = Members.of(index, domains)
    found = {signal: [_Counter() for _ in domains] for signal in SIGNALS}
    for part in query_parts(shards):
        for signal, counters in found.items():
            for values, counts in _part_counts(part, signal, members, floors[signal]):
                for number, counter in enumerate(counters):
                    here = counts[:, number] > 0
                    counter.add(values[here], counts[here, number])
    queries, documents = index.filter("is_query"), index.filter("is_document")
    sizes = {row["domain"]: row for row in population(queries, documents).to_dicts()}
    return {
        domain: {
            signal: SignalTail(
                *found[signal][number].total(),
                floors[signal],
                sizes.get(domain, {}).get(f"{signal}_pairs", 0),
            )
            for signal in SIGNALS
        }
        for number, domain in enumerate(domains)
    }


def _part_counts(
    part: QueryPart, signal: str, members: Members, floor: float
) -> list[tuple[Floats, Ints]]:
    values: Floats = np.ascontiguousarray(getattr(part, signal))

    def task(first: int, last: int) -> tuple[Floats, Ints]:
        bits, counts = count_values(
            first, last, part.queries, part.indptr, values, values.view(np.uint64), floor,
            members.indptr, members.numbers, len(members.domains),
        )  # fmt: skip
        return bits.view(np.float64), counts

    return in_blocks(part.queries.size, QUERIES_PER_BLOCK, task)


class _Counter:
    """Counts of values that are merged when there are as many new ones as old ones."""

    def __init__(self) -> None:
        self._values: list[Floats] = [np.zeros(0)]
        self._counts: list[Ints] = [np.zeros(0, dtype=np.int64)]
        self._new = 0

    def add(self, values: Floats, counts: Ints) -> None:
        self._values.append(values)
        self._counts.append(counts)
        self._new += values.size
        if self._new > max(self._values[0].size, _MERGE):
            self.total()

    def total(self) -> tuple[Floats, Ints]:
        """The distinct values, ascending, and their counts."""
        values, counts = np.concatenate(self._values), np.concatenate(self._counts)
        order = np.argsort(values)
        values, counts = values[order], counts[order]
        starts = np.flatnonzero(np.diff(values, prepend=-1.0) > 0)
        values = values[starts]
        counts = np.add.reduceat(counts, starts) if starts.size else counts
        self._values, self._counts, self._new = [values], [counts], 0
        return values, counts
