"""Rankings and nDCG, the one metric of the benchmark."""

import math
from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from saber_dagster.contracts import TABLES
from saber_dagster.errors import SaberError

CUTOFF = 10
DECIMALS = 12
"""Metric values are rounded to this many decimals before they enter a table."""


def rank_documents(scored: pl.DataFrame, by: Sequence[str] = ("query_id",)) -> pl.DataFrame:
    """Add ``rank``, 1 for the best: score descending, then document id ascending.

    This is the only place that breaks ties. Rows come out sorted by ``by`` and rank.

    Args:
        scored: columns ``by``, ``doc_id``, ``score``.
        by: the columns that make one ranking.

    Raises:
        SaberError: if a document is in a ranking twice, or a score is empty, NaN or infinite.
    """
    duplicated = scored.select(*by, "doc_id").is_duplicated()
    if duplicated.any():
        row = scored.filter(duplicated).row(0, named=True)
        place = ", ".join(f"{column} {row[column]}" for column in by)
        raise SaberError(f"{place}: document {row['doc_id']} is ranked twice; list it once.")
    _check_finite(scored, "score")
    ordered = scored.sort(*by, "score", "doc_id", descending=[False] * len(by) + [True, False])
    return ordered.with_columns(
        pl.int_range(1, pl.len() + 1, dtype=pl.Int32).over(by).alias("rank")
    )


def gain(rating: float) -> float:
    """The exponential gain 2^rating - 1."""
    return math.pow(2.0, rating) - 1.0


def ndcg(ranked: Sequence[float], ratings: Sequence[float], cutoff: int = CUTOFF) -> float:
    """NDCG with exponential gain, plainly: DCG / IDCG, DCG = Σ_i (2^rating_i - 1) / log2(i + 1).

    Source: SABER-Math, section "Results". :func:`query_metrics` computes the same for whole tables.

    Args:
        ranked: ratings of the retrieved documents, best rank first.
        ratings: ratings of all candidates, in any order; the ideal ranking comes from them.
        cutoff: how many ranks count.

    Returns:
        A value in [0, 1]; 0 where no candidate has a positive rating.
    """
    ideal = _dcg(sorted(ratings, reverse=True), cutoff)
    return min(_dcg(ranked, cutoff) / ideal, 1.0) if ideal > 0 else 0.0


def expected_random_ndcg(ratings: Sequence[float], cutoff: int = CUTOFF) -> float:
    """The expected nDCG of a uniformly random order of all candidates.

    Every rank expects the mean gain: mean gain × Σ_{i ≤ min(cutoff, n)} 1 / log2(i + 1) / IDCG.
    """
    ideal = _dcg(sorted(ratings, reverse=True), cutoff)
    if ideal <= 0:
        return 0.0
    mean = math.fsum(gain(rating) for rating in ratings) / len(ratings)
    discounts = math.fsum(1 / math.log2(i + 1) for i in range(1, min(cutoff, len(ratings)) + 1))
    return min(mean * discounts / ideal, 1.0)


def query_metrics(
    run: pl.DataFrame,
    benchmark: pl.DataFrame,
    judge: str,
    retriever: str,
    cutoff: int = CUTOFF,
    settings: Sequence[str] | None = None,
) -> pl.DataFrame:
    """NDCG of a run by the ratings of a judge, for every query of the benchmark.

    The ideal ranking comes from all candidates of the benchmark. The run is ranked here, by its
    scores; candidates that it lacks are not retrieved and gain nothing. A query that the run lacks
    scores 0 and is marked as missing. Queries that the benchmark lacks are not looked at.

    Args:
        run: a ``run`` frame (``rank`` is not read).
        benchmark: a ``benchmark`` frame.
        judge: slug of the judge.
        retriever: slug of the retriever.
        cutoff: how many ranks count.
        settings: settings to report; by default those in the run.

    Returns:
        A ``query_metrics`` frame, values rounded to :data:`DECIMALS` decimals.

    Raises:
        SaberError: if the run ranks a document that is not a candidate, or one twice, or a score or
            rating is not a finite number.
    """
    _check_finite(benchmark, "rating")
    shown = run["setting"].unique() if settings is None else pl.Series(settings, dtype=pl.String)
    queries = benchmark.group_by("query_id").agg(pl.col("domains").first())
    cells = (
        shown.unique()
        .to_frame("setting")
        .join(queries, how="cross")
        .sort("setting", "query_id")
        .with_row_index("cell")
    )
    by = ("setting", "query_id")
    rated = benchmark.select("query_id", "doc_id", "rating").join(cells, on="query_id")
    ideal = rank_documents(rated.rename({"rating": "score"}), by)
    ranked = rank_documents(run.join(cells, on=by, how="semi"), by)
    ranked = ranked.join(cells.select(*by, "cell"), on=by).join(
        rated.select(*by, "doc_id", "rating"), on=(*by, "doc_id"), how="left"
    )
    strangers = ranked.filter(pl.col("rating").is_null()).sort(*by, "doc_id")
    if strangers.height:
        row = strangers.row(0, named=True)
        raise SaberError(
            f"Run of {retriever}, setting {row['setting']}, query {row['query_id']}: document "
            f"{row['doc_id']} is not a candidate ({strangers.height} such rows). Rank the "
            "candidates of the release that the benchmark belongs to."
        )
    found = _dcg_cells(ranked["cell"], ranked["rank"], ranked["rating"], cells.height, cutoff)
    best = _dcg_cells(ideal["cell"], ideal["rank"], ideal["score"], cells.height, cutoff)
    values = np.divide(found, best, out=np.zeros(cells.height), where=best > 0)
    frame = cells.select(
        pl.lit(judge).alias("judge"),
        pl.lit(retriever).alias("retriever"),
        "setting",
        "query_id",
        "domains",
        pl.lit(f"nDCG@{cutoff}").alias("metric"),
        pl.Series("value", np.minimum(values, 1.0).round(DECIMALS)),
        (~pl.col("cell").is_in(ranked["cell"].implode())).alias("missing"),
    )
    return TABLES["query_metrics"].check(frame, f"{judge}, {retriever}")


def _dcg(ranked: Sequence[float], cutoff: int) -> float:
    return math.fsum(gain(r) / math.log2(i + 2) for i, r in enumerate(ranked[:cutoff]))


def _dcg_cells(
    cells: pl.Series, ranks: pl.Series, ratings: pl.Series, n_cells: int, cutoff: int
) -> NDArray[np.float64]:
    """DCG of each cell; one fixed order of addition, whatever the order of the input."""
    gains = np.zeros((n_cells, cutoff))
    top = (ranks <= cutoff).to_numpy()
    gains[cells.to_numpy()[top], ranks.to_numpy()[top] - 1] = np.exp2(ratings.to_numpy()[top]) - 1.0
    total: NDArray[np.float64] = (gains / np.log2(np.arange(cutoff) + 2.0)).sum(axis=1)
    return total


def _check_finite(frame: pl.DataFrame, column: str) -> None:
    bad = frame.filter(pl.col(column).is_null() | ~pl.col(column).is_finite())
    if bad.height:
        row = bad.row(0, named=True)
        raise SaberError(
            f"Query {row.get('query_id')}, document {row['doc_id']}: {column} is {row[column]} "
            f"({bad.height} such rows). It must be a finite number."
        )
