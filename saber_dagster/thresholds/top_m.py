"""The top-M rule: high are the M = ceil(c K) largest signals of each query, ties included."""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from saber_dagster.query_parts import Ints, QueryPart, query_parts
from saber_dagster.signals.tails import QUERIES_PER_BLOCK
from saber_dagster.similarity.blocks import in_blocks
from saber_dagster.similarity.group_sizes import top_m_sizes
from saber_dagster.thresholds.rule import Fitting, Limits


class TopMSearch:
    """The pairs are read once; of each query and M it is kept whether the query is eligible.

    Args:
        fitting: what they are fitted to.
    """

    tails = None

    def __init__(self, fitting: Fitting) -> None:
        self._shards, self._members, self._rule = fitting.shards, fitting.members, fitting.rule
        index, members, rule = fitting.index, fitting.members, fitting.rule
        self._n_documents = int(index["is_document"].sum())
        self._positions = {domain: members.positions(domain) for domain in members.domains}
        number = {domain: i for i, domain in enumerate(members.domains)}
        primary = index.select(pl.when("is_query").then("primary_domain")).to_series()
        primary = primary.replace_strict(number, default=0, return_dtype=pl.Int64)
        self._primary: Ints = primary.to_numpy()
        self._steps = rule.steps(self._n_documents, rule.per_group)
        ms = np.unique([rule.m(c, rule.per_group) for c in self._steps])
        full = np.zeros((ms.size, index.height), dtype=np.bool_)
        for queries, sizes in self._sizes(ms):
            full[:, queries] = (sizes >= rule.per_group).T
        at = np.searchsorted(ms, [rule.m(c, rule.per_group) for c in self._steps])
        self._full: npt.NDArray[np.bool_] = full[at]
        self.binding: dict[str, str] = {}

    def limits(self) -> dict[str, Limits]:
        """The c and M of each domain."""
        rule, domains = self._rule, self._members.domains
        step = np.zeros(len(domains), dtype=np.int64)
        while True:
            eligible = self._full[step[self._primary], np.arange(self._primary.size)]
            raised = [
                i
                for i, domain in enumerate(domains)
                if step[i] + 1 < len(self._steps)
                and np.sum(eligible[self._positions[domain]]) < rule.queries_required
            ]
            if not raised:
                break
            step[raised] += 1
        if domains:
            fewest = [-int(np.sum(eligible[self._positions[domain]])) for domain in domains]
            self.binding["c"] = domains[
                max(range(len(domains)), key=lambda i: (step[i], fewest[i]))
            ]
        floors = {"topic": rule.topic_floor, "summary": rule.summary_floor}
        return {
            domain: {"c": c, "m": rule.m(c, rule.per_group), **floors}
            for domain, c in zip(domains, (self._steps[i] for i in step), strict=True)
        }

    def largest_k(self, domains: Sequence[str]) -> dict[str, int]:
        """The largest K with which a domain by itself has enough queries with some c, or 0."""
        rule = self._rule
        tried = [
            (rule.m(c, k), k)
            for k in range(1, rule.per_group + 1)
            for c in rule.steps(self._n_documents, k)
        ]
        ms = np.unique([m for m, _ in tried])
        column, k = np.searchsorted(ms, [m for m, _ in tried]), np.array([k for _, k in tried])
        mine = {domain: np.zeros(self._primary.size, dtype=np.bool_) for domain in domains}
        for domain, member in mine.items():
            member[self._positions[domain]] = True
        eligible = {domain: np.zeros(k.size, dtype=np.int64) for domain in domains}
        for queries, sizes in self._sizes(ms):
            for domain, member in mine.items():
                eligible[domain] += (sizes[member[queries]][:, column] >= k).sum(axis=0)
        return {
            domain: int(np.max(k[counts >= rule.queries_required], initial=0))
            for domain, counts in eligible.items()
        }

    def curve(self) -> pl.DataFrame:
        """Columns domain, c, eligible: eligible queries if all domains had this c."""
        rows = [
            (domain, c, int(np.sum(full[self._positions[domain]])))
            for domain in self._members.domains
            for c, full in zip(self._steps, self._full, strict=True)
        ]
        schema = {"domain": pl.String, "c": pl.Float64, "eligible": pl.Int64}
        return pl.DataFrame(rows, schema=schema, orient="row")

    def _sizes(self, ms: Ints) -> Iterator[tuple[Ints, Ints]]:
        """Positions of queries, and the size of the smallest group of each with each M."""
        rule = self._rule
        for part in query_parts(self._shards):

            def task(first: int, last: int, part: QueryPart = part) -> Ints:
                found: Ints = top_m_sizes(
                    first, last, part.indptr, part.topic, part.summary, ms,
                    rule.topic_floor, rule.summary_floor,
                )  # fmt: skip
                return found

            sizes = in_blocks(part.queries.size, QUERIES_PER_BLOCK, task)
            if sizes:
                yield part.queries, np.concatenate(sizes)
