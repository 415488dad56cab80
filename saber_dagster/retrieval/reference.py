"""The two ends of the scale: a random order, and the ratings themselves."""

from collections.abc import Mapping, Sequence

import polars as pl

from saber_dagster.contracts import TABLES
from saber_dagster.hashing import hash64
from saber_dagster.metrics import rank_documents


class Random:
    """A uniform score in [0, 1) that is a function of seed, query text and document id."""

    name = "random"
    decimals = 9

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    @property
    def revision(self) -> str:
        """The seed."""
        return f"seed-{self.seed}"

    def fit(self, documents: Mapping[str, str]) -> None:
        """Nothing: it has no statistics."""

    def score(self, query_text: str, documents: Sequence[tuple[str, str]]) -> Sequence[float]:
        """Pseudo-random numbers in [0, 1]."""
        return [
            hash64("random retriever", self.seed, query_text, doc_id) / 2.0**64
            for doc_id, _ in documents
        ]


def oracle_run(benchmark: pl.DataFrame, setting: str) -> pl.DataFrame:
    """The run whose scores are a judge's ratings: its nDCG is 1 unless all ratings are 0.

    Args:
        benchmark: a ``benchmark`` frame.
        setting: the setting to label the run with.

    Returns:
        A ``run`` frame, by the same ranking code as any other.
    """
    scored = benchmark.select(
        pl.lit(setting).alias("setting"), "query_id", "doc_id", pl.col("rating").alias("score")
    )
    return TABLES["run"].check(rank_documents(scored, by=("setting", "query_id")), "oracle")
