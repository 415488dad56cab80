"""Thresholds that the settings fix: the paper's, or those of an earlier corpus."""

from collections.abc import Sequence

import polars as pl

from saber_dagster.contracts import GROUPS, TABLES
from saber_dagster.pair_groups import group_counts
from saber_dagster.thresholds.rule import Limits, Task


class FixedThresholds:
    """Nothing is searched: a signal is high if it exceeds its threshold.

    Args:
        task: what they are fitted to.
    """

    tails = None

    def __init__(self, task: Task) -> None:
        self._task, self._rule, self._domains = task, task.rule, task.members.domains
        self.binding: dict[str, str] = {}

    def limits(self) -> dict[str, Limits]:
        """Both thresholds, the same in each domain."""
        own = {"topic": self._rule.topic_floor, "summary": self._rule.summary_floor}
        return {domain: {**own} for domain in self._domains}

    def largest_k(self, domains: Sequence[str]) -> dict[str, int]:
        """The largest K with which a domain has enough queries, or 0."""
        rows = [
            {"domain": domain, "rule": self._rule.rule, **own}
            for domain, own in self.limits().items()
        ]
        applied = pl.DataFrame(rows, schema=TABLES["thresholds"].schema)
        counts = group_counts(self._task.shards, self._task.index, applied)
        found = {}
        for domain in domains:
            own = counts.filter(pl.col("domains").list.contains(domain))
            sizes = own.select(pl.min_horizontal(GROUPS)).to_series().sort(descending=True)
            enough = sizes.len() >= self._rule.queries_required
            found[domain] = int(sizes[self._rule.queries_required - 1]) if enough else 0
        return found

    def curve(self) -> pl.DataFrame:
        """Columns domain, share, eligible: there is nothing to choose."""
        schema = {"domain": pl.String, "share": pl.Float64, "eligible": pl.Int64}
        return pl.DataFrame(schema=schema)
