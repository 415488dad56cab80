"""The paper's percentile rule, found exactly among all shares at which a threshold changes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from saber_dagster.query_parts import Floats, Ints, QueryPart, query_parts
from saber_dagster.signals.pairs import SIGNALS
from saber_dagster.signals.tails import QUERIES_PER_BLOCK, SignalTail, signal_tails
from saber_dagster.similarity.blocks import in_blocks
from saber_dagster.similarity.group_changes import group_changes
from saber_dagster.similarity.group_sizes import domain_sizes
from saber_dagster.thresholds.rule import Fitting, Limits

GRID = 32
"""Shares at which all domains are counted before single queries are followed."""


class PercentileSearch:
    """The level of a pair is the share of the population that is as large or larger.

    The pairs are read three times. First both tails are counted, which gives the levels. Then group
    sizes are counted at a few levels: the first at which enough queries are eligible bounds the level
    that is sought, which is the first of all. Last, each query that can be eligible up to that bound
    is followed from level to level.

    Args:
        fitting: what they are fitted to.
    """

    def __init__(self, fitting: Fitting) -> None:
        self._shards, self._members, self._rule = fitting.shards, fitting.members, fitting.rule
        rule, domains = fitting.rule, fitting.members.domains
        floors = {"topic": rule.topic_floor, "summary": rule.summary_floor}
        self.tails = signal_tails(fitting.shards, fitting.index, domains, floors)
        levels = {domain: _levels(tails) for domain, tails in self.tails.items()}
        self._shares = self._grid(levels)
        self._eligible = self._count_on_grid()
        self._done: list[str] = []
        self.binding: dict[str, str] = {}

    def limits(self) -> dict[str, Limits]:
        """The percentile of each domain, and the thresholds of all."""
        rule = self._rule
        bounds: dict[str, float] = {}
        for domain, grid in self._shares.items():
            enough = np.flatnonzero(self._eligible[domain][-1] >= rule.queries_required)
            bounds[domain] = float(grid[enough[0] if enough.size else -1])
        found = self._follow(dict.fromkeys(bounds, rule.per_group), bounds)
        shares: dict[str, float] = {}
        for domain, curve in found.items():
            enough = np.flatnonzero(curve.eligible >= rule.queries_required)
            if enough.size:
                self._done.append(domain)
                shares[domain] = float(curve.shares[enough[0]])
            elif curve.shares.size:  # the share with the most eligible queries
                shares[domain] = float(curve.shares[np.argmax(curve.eligible)])
            else:
                shares[domain] = bounds[domain]
        lowest = dict.fromkeys(SIGNALS, 1.0)
        for signal in SIGNALS:
            own = {d: self.tails[d][signal].threshold(shares[d]) for d in self._done or shares}
            if own:
                self.binding[signal] = min(own, key=own.__getitem__)
                lowest[signal] = own[self.binding[signal]]
        percentiles = {domain: 1.0 - share for domain, share in shares.items()}
        return {
            domain: {"percentile": percentiles.get(domain), **lowest}
            for domain in self._members.domains
        }

    def largest_k(self, domains: Sequence[str]) -> dict[str, int]:
        """The largest K with which a domain by itself has enough queries at some share, or 0.

        To be called after :meth:`limits`, which finds the domains that have enough with K itself. At
        any share, fewer documents per group are easier to have. The counts on the grid bound K from
        below; each further K needs the pairs once.
        """
        required, most = self._rule.queries_required, self._rule.per_group
        found = dict.fromkeys(domains, 0)
        for domain in set(domains) & set(self._shares):
            enough = (self._eligible[domain] >= required).any(axis=1)
            found[domain] = most if domain in self._done else int(np.count_nonzero(enough))
        open_ = [d for d in domains if d in self._shares and found[d] < most - 1]
        while open_:
            bounds = {domain: float(self._shares[domain][-1]) for domain in open_}
            curves = self._follow({domain: found[domain] + 1 for domain in open_}, bounds)
            open_ = [d for d in open_ if (curves[d].eligible >= required).any()]
            for domain in open_:
                found[domain] += 1
            open_ = [domain for domain in open_ if found[domain] < most - 1]
        return found

    def curve(self) -> pl.DataFrame:
        """Columns domain, share, eligible: eligible queries at some shares, by each domain's tails."""
        rows = [
            pl.DataFrame(
                {"domain": domain, "share": shares, "eligible": self._eligible[domain][-1]}
            )
            for domain, shares in self._shares.items()
        ]
        schema = {"domain": pl.String, "share": pl.Float64, "eligible": pl.Int64}
        return pl.concat([pl.DataFrame(schema=schema), *rows])

    def _grid(self, levels: Mapping[str, Floats]) -> dict[str, Floats]:
        """Of each domain some levels, the last among them."""
        pairs = 2 * self._rule.per_group * self._rule.queries_required
        grid = {}
        for domain, own in levels.items():
            if not own.size:
                continue
            population = max(tail.n_pairs for tail in self.tails[domain].values())
            lowest = min(max(pairs / population, own[0]), own[-1])
            at = np.searchsorted(own, np.geomspace(lowest, own[-1], GRID), side="right") - 1
            grid[domain] = own[np.unique(np.append(np.maximum(at, 0), own.size - 1))]
        return grid

    def _count_on_grid(self) -> dict[str, Ints]:
        """Of each domain the eligible queries, (per_group, n_shares), with K = 1, 2, …, per_group."""
        members, most = self._members, self._rule.per_group
        width = max((shares.size for shares in self._shares.values()), default=1)
        cuts = np.full((len(members.domains), len(SIGNALS), width), np.inf)
        for number, domain in enumerate(members.domains):
            for i, signal in enumerate(SIGNALS):
                tail = self.tails[domain][signal]
                for step in range(width if domain in self._shares else 0):
                    share = self._shares[domain][min(step, self._shares[domain].size - 1)]
                    if high := tail.n_high(share):
                        cuts[number, i, step] = tail.values[-high]
        total = np.zeros((len(members.domains), width, most + 1), dtype=np.int64)
        for part in query_parts(self._shards) if self._shares else ():

            def task(first: int, last: int, part: QueryPart = part) -> Ints:
                found: Ints = domain_sizes(
                    first, last, part.queries, part.indptr, part.topic, part.summary, cuts,
                    members.indptr, members.numbers, most,
                )  # fmt: skip
                return found

            for counts in in_blocks(part.queries.size, QUERIES_PER_BLOCK, task):
                total += counts
        at_least = np.cumsum(total[:, :, :0:-1], axis=2)[:, :, ::-1]
        return {
            domain: at_least[number, : self._shares[domain].size].T
            for number, domain in enumerate(members.domains)
            if domain in self._shares
        }

    def _follow(
        self, per_group: Mapping[str, int], bounds: Mapping[str, float]
    ) -> dict[str, "_Curve"]:
        """The eligible queries of some domains at all levels up to a bound.

        Args:
            per_group: domain → K.
            bounds: domain → the last share that is looked at.
        """
        members = self._members
        needed = np.array([per_group.get(domain, 0) for domain in members.domains])
        levels: dict[str, Floats] = {}
        tables = []
        for signal in SIGNALS:
            values, ranks, ends = [np.zeros(0)], [np.zeros(0, dtype=np.int64)], [0]
            for domain in members.domains:
                high = 0
                if domain in per_group:
                    tail = self.tails[domain][signal]
                    if domain not in levels:
                        levels[domain] = _levels(self.tails[domain], bounds[domain])
                    high = tail.n_high(bounds[domain])
                    values.append(tail.values[tail.values.size - high :])
                    shares = tail.shares[tail.values.size - high :]
                    ranks.append(np.searchsorted(levels[domain], shares))
                ends.append(ends[-1] + high)
            tables += [np.array(ends), np.concatenate(values), np.concatenate(ranks)]
        found: list[list[Ints]] = [[np.zeros(0, dtype=np.int64)] for _ in members.domains]
        for part in query_parts(self._shards) if per_group else ():

            def task(first: int, last: int, part: QueryPart = part) -> tuple[Ints, Ints]:
                return group_changes(
                    first, last, part.queries, part.indptr, part.topic, part.summary,
                    members.indptr, members.numbers, needed, *tables,
                )  # fmt: skip

            for numbers, changes in in_blocks(part.queries.size, QUERIES_PER_BLOCK, task):
                for number, own in enumerate(found):
                    own.append(changes[numbers == number])
        return {
            domain: _Curve.of(np.concatenate(found[number]), levels[domain])
            for number, domain in enumerate(members.domains)
            if domain in per_group
        }


@dataclass(frozen=True, eq=False)
class _Curve:
    """Eligible queries from each share on, until the next; before the first there is none."""

    shares: Floats
    eligible: Ints

    @classmethod
    def of(cls, changes: Ints, levels: Floats) -> "_Curve":
        changes = np.sort(changes)
        level = changes >> 1
        eligible = np.cumsum(2 * (changes & 1) - 1)
        last = np.ones(level.size, dtype=np.bool_)
        np.not_equal(level[1:], level[:-1], out=last[:-1])
        return cls(levels[level[last]], eligible[last])


def _levels(tails: Mapping[str, SignalTail], bound: float = np.inf) -> Floats:
    """All shares at which a threshold changes, ascending, up to a bound.

    From the whole tail on, the threshold is below a floor that is not 0: those are not available.
    """
    end = min(
        (float(tail.shares.max(initial=0.0)) for tail in tails.values() if tail.floor > 0),
        default=np.inf,
    )
    shares = np.concatenate([tail.shares for tail in tails.values()])
    shares = np.sort(shares[(shares < end) & (shares <= bound)])
    distinct: npt.NDArray[np.float64] = shares[np.diff(shares, prepend=-1.0) > 0]
    return distinct
