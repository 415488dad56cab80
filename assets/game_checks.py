"""What the games of a partition are good for."""

import polars as pl

from assets.annotation import coverage
from assets.stage import Check


def game_checks(judgments: pl.DataFrame, graph: pl.DataFrame) -> list[Check]:
    """The checks of a partition's games; ``graph`` is their :func:`connectivity`."""
    judged = judgments.filter(pl.col("outcome").is_not_null())
    failures = judgments.filter(pl.col("outcome").is_null()).group_by("status").len()
    split = graph.filter(pl.col("components") > 1)
    failed = int(split["failed"].sum())
    return [
        coverage(judged.height, judgments.height, "games", dict(failures.iter_rows())),
        Check(
            "connected",
            split.height == 0,
            f"{split.height} of {graph.height} queries fall apart into groups that never met"
            + (
                f", as {failed} of their games failed; see the check coverage for the reasons"
                if failed
                else "; play more rounds (tournament.rounds)"
                if split.height
                else ""
            ),
        ),
        Check(
            "prefers",
            judged.height == 0 or not (judged["outcome"] == 0.5).all(),
            f"{judged.filter(pl.col('outcome') != 0.5).height} of {judged.height} judged games have a"
            " preferred document; with ties alone every retriever would have an nDCG of 1. Look at"
            " the judge's prompt and replies (with both_orders, a judge that always prefers the first"
            " document ties every game)",
        ),
    ]
