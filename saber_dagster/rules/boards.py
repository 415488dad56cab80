"""Rules of runs, metrics and boards."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence

import polars as pl

from saber_dagster.leaderboard import OVERALL
from saber_dagster.metrics import expected_random_ndcg
from saber_dagster.rules.base import Violation, unlike, violations
from saber_dagster.settings import ORACLE

_SCORED = ("setting", "query_id", "doc_id")
_BOARD = ("judge", "setting", "metric", "domain")
_CONSTANT = 0.5
"""More queries than this share without any difference in scores: the scorer sees nothing."""
_ERRORS, _LEAST_QUERIES = 5.0, 10
"""Standard errors within which the mean of a random ranking lies from theory; of fewer, who knows."""
_TOLERANCE = 1e-9


def every_pair_is_scored(
    run: pl.DataFrame, candidates: pl.DataFrame, settings: Sequence[str], names: pl.DataFrame
) -> list[Violation]:
    """A run has every candidate of every query once in each setting, and nothing else."""
    pairs = candidates.select("query_id", "doc_id")
    expected = pl.concat(
        pairs.select(pl.lit(s).alias("setting"), "query_id", "doc_id") for s in settings
    )
    return unlike(run.select(*_SCORED), expected, _SCORED, "scores", names)


def scores_tell_documents_apart(run: pl.DataFrame) -> list[Violation]:
    """In most queries of each setting the scores are not all equal."""
    spread = run.group_by("setting", "query_id").agg(
        (pl.max("score") == pl.min("score")).alias("constant"), pl.len().alias("documents")
    )
    shares = (
        spread.filter(pl.col("documents") > 1)
        .group_by("setting")
        .agg(pl.sum("constant").alias("n"), pl.len().alias("queries"))
        .filter(pl.col("n") > _CONSTANT * pl.col("queries"))
        .sort("setting")
    )
    return [
        Violation(f"of {queries:,} queries have equal scores for all documents in {setting}", n)
        for setting, n, queries in shares.iter_rows()
    ]


def every_query_is_measured(
    metrics: pl.DataFrame,
    benchmarks: Mapping[str, pl.DataFrame],
    retrievers: Iterable[str],
    settings: Sequence[str],
) -> list[Violation]:
    """Each query of a benchmark has one value by retriever and setting; one that lacks it has 0.

    Args:
        metrics: table ``query_metrics``.
        benchmarks: table ``benchmark`` by judge.
        retrievers: slugs, the oracle's included.
        settings: which texts the retrievers saw.
    """
    shown = pl.DataFrame({"setting": list(settings)}, schema={"setting": pl.String})
    ranked = pl.DataFrame({"retriever": list(retrievers)}, schema={"retriever": pl.String})
    queries = pl.concat(
        benchmark.select(pl.lit(judge).alias("judge"), "query_id").unique()
        for judge, benchmark in benchmarks.items()
    )
    key = ("judge", "retriever", "setting", "query_id")
    expected = queries.join(ranked, how="cross").join(shown, how="cross")
    scored = metrics.filter("missing").filter(pl.col("value") != 0)
    return [
        *unlike(metrics.select(key), expected.select(key), key, "values"),
        *violations(scored, "values are not 0, of queries that the run lacks", key),
    ]


def random_is_random(
    metrics: pl.DataFrame,
    benchmarks: Mapping[str, pl.DataFrame],
    random: Collection[str],
    cutoff: int,
) -> list[Violation]:
    """What ranks at random has the mean that theory gives it, within five standard errors.

    Args:
        metrics: table ``query_metrics``.
        benchmarks: table ``benchmark`` by judge.
        random: slugs of the retrievers that rank at random.
        cutoff: of the metric.
    """
    found = []
    for judge, benchmark in benchmarks.items():
        ratings = benchmark.group_by("query_id").agg("rating").sort("query_id")
        theory = ratings.select(
            "query_id",
            pl.Series(
                "expected",
                [expected_random_ndcg(values.to_list(), cutoff) for values in ratings["rating"]],
                dtype=pl.Float64,
            ),
        )
        mine = metrics.filter(
            (pl.col("judge") == judge)
            & pl.col("retriever").is_in(list(random))
            & ~pl.col("missing")
        ).join(theory, on="query_id")
        means = mine.group_by("retriever", "setting").agg(
            pl.len().alias("n"),
            pl.mean("value"),
            pl.mean("expected"),
            (pl.col("value") - pl.col("expected")).std().fill_null(0.0).alias("deviation"),
        )
        for name, setting, n, value, expected, deviation in means.sort(
            "retriever", "setting"
        ).rows():
            if (
                n >= _LEAST_QUERIES
                and abs(value - expected) > _ERRORS * deviation / math.sqrt(n) + _TOLERANCE
            ):
                what = f"queries give {name} a mean of {value:.3f} in {setting} by judge {judge}"
                found.append(Violation(f"{what}, theory {expected:.3f}", n))
    return found


def board_agrees_with_metrics(
    board: pl.DataFrame, metrics: pl.DataFrame, domains: Sequence[str]
) -> list[Violation]:
    """A cell is the mean over the queries of its domain, and says how many there are.

    Args:
        board: table ``leaderboard``.
        metrics: table ``query_metrics``.
        domains: the configured domains.
    """
    key = ("judge", "retriever", "setting", "metric", "domain")
    by_domain = metrics.explode("domains", empty_as_null=True).rename({"domains": "domain"})
    everything = pl.concat(
        [
            metrics.drop("domains").with_columns(pl.lit(OVERALL).alias("domain")),
            by_domain.filter(pl.col("domain").is_in(list(domains))).select(
                *metrics.drop("domains").columns, "domain"
            ),
        ]
    )
    recount = everything.group_by(key).agg(
        pl.mean("value").alias("mean"),
        pl.len().cast(pl.Int64).alias("queries"),
        pl.sum("missing").cast(pl.Int64).alias("lacking"),
    )
    rows = board.join(recount, on=key)
    faults = {
        "cells are not the mean over their queries": (pl.col("value") - pl.col("mean")).abs()
        > _TOLERANCE,
        "cells have another number of queries": (pl.col("n_queries") != pl.col("queries"))
        | (pl.col("n_missing") != pl.col("lacking")),
    }
    return [
        *unlike(board.select(key), recount.select(key), key, "cells"),
        *(v for what, bad in faults.items() for v in violations(rows.filter(bad), what, key)),
    ]


def intervals_hold_their_values(board: pl.DataFrame) -> list[Violation]:
    """Low ≤ value ≤ high in every cell."""
    inside = (pl.col("low") <= pl.col("value") + _TOLERANCE) & (
        pl.col("value") <= pl.col("high") + _TOLERANCE
    )
    what = "cells have a value outside their interval"
    return violations(board.filter(~inside), what, (*_BOARD, "retriever"))


def tied_groups_start_at_one(board: pl.DataFrame) -> list[Violation]:
    """The rivals of every board are in groups from 1 on; the oracle is in none."""
    oracle, group = pl.col("retriever") == ORACLE, pl.col("tied_group")
    odd = board.filter(pl.when(oracle).then(group.is_not_null()).otherwise(group.is_null()))
    first = board.filter(~oracle).group_by(_BOARD).agg(pl.min("tied_group"))
    return [
        *violations(odd, "cells have no tied group, or are the oracle's", (*_BOARD, "retriever")),
        *violations(first.filter(group != 1), "boards have no first tied group", _BOARD),
    ]
