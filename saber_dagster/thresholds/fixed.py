"""Thresholds that the settings fix: the paper's, or those of an earlier corpus."""

from collections.abc import Sequence

import polars as pl

from saber_dagster.thresholds.rule import Fitting, Limits


class FixedThresholds:
    """Nothing is searched: a signal is high if it exceeds its threshold.

    Args:
        fitting: what they are fitted to.
    """

    tails = None

    def __init__(self, fitting: Fitting) -> None:
        self._rule, self._domains = fitting.rule, fitting.members.domains
        self.binding: dict[str, str] = {}

    def limits(self) -> dict[str, Limits]:
        """Both thresholds, the same in each domain."""
        own = {"topic": self._rule.topic_floor, "summary": self._rule.summary_floor}
        return {domain: {**own} for domain in self._domains}

    def largest_k(self, domains: Sequence[str]) -> dict[str, int]:
        """No other thresholds could be chosen with which a domain has enough queries."""
        return {}

    def curve(self) -> pl.DataFrame:
        """Columns domain, share, eligible: there is nothing to choose."""
        schema = {"domain": pl.String, "share": pl.Float64, "eligible": pl.Int64}
        return pl.DataFrame(schema=schema)
