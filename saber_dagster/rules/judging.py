"""Rules of a judge's lane: games, ratings, benchmark."""

import math
from typing import Any

import polars as pl

from saber_dagster.rules.base import Violation, unlike, violations

_PAIR = ("query_id", "doc_id")
_GAME = ("query_id", "doc_a", "doc_b")
_DEVIATIONS = 4.0
"""A share this many standard deviations from one half is no chance: 1 in 16,000."""
FAIR = 0.1
"""How far from one half the share of answers for the document shown first may surely be."""
MOST_FLIPS = 0.25
"""Share of the pairs whose two orders may disagree."""


def rounds_are_complete(
    judgments: pl.DataFrame, candidates: pl.DataFrame, rounds: int, names: pl.DataFrame
) -> list[Violation]:
    """Every query plays rounds 1 to R, or until its candidates have all met."""
    played = judgments.group_by("query_id").agg(
        pl.max("round").alias("last"),
        pl.n_unique("round").alias("rounds"),
        pl.len().cast(pl.Int64).alias("games"),
    )
    size = pl.len().cast(pl.Int64)
    rows = (
        candidates.group_by("query_id")
        .agg((size * (size - 1) // 2).alias("possible"))
        .join(played, on="query_id", how="left")
    )
    last = pl.col("last")
    faults = {
        "queries have no game": last.is_null(),
        "queries lack a round between others": pl.col("rounds") != last,
        f"queries have fewer than {rounds} rounds, and pairs that never met": (last < rounds)
        & (pl.col("games") < pl.col("possible")),
        f"queries have more than {rounds} rounds": last > rounds,
    }
    return [
        v for w, bad in faults.items() for v in violations(rows.filter(bad), w, "query_id", names)
    ]


def games_are_sound(
    judgments: pl.DataFrame, candidates: pl.DataFrame, names: pl.DataFrame
) -> list[Violation]:
    """Games are between two candidates of their query, which meet once, one game each a round."""
    a, b, first = pl.col("doc_a"), pl.col("doc_b"), pl.col("shown_first")
    known = candidates.select(*_PAIR)
    strangers = [
        judgments.join(known, left_on=("query_id", side), right_on=_PAIR, how="anti")
        for side in ("doc_a", "doc_b")
    ]
    sides = pl.concat(
        judgments.select("query_id", "round", pl.col(side).alias("doc_id"))
        for side in ("doc_a", "doc_b")
    )
    twice = sides.filter(pl.struct("query_id", "round", "doc_id").is_duplicated())
    again = judgments.filter(pl.struct(*_GAME).is_duplicated())
    return [
        *violations(
            pl.concat(strangers).unique(("query_id", "round", "doc_a", "doc_b")),
            "games have a document that is no candidate of the query",
            _GAME,
            names,
        ),
        *violations(again, "games are of a pair that met before or after", _GAME, names),
        *violations(twice, "documents play twice in a round", (*_PAIR, "round"), names),
        *violations(
            judgments.filter((a >= b) | ((first != a) & (first != b))),
            "games have their documents in the wrong order, or showed another one first",
            _GAME,
            names,
        ),
    ]


def failures_have_no_outcome(judgments: pl.DataFrame, names: pl.DataFrame) -> list[Violation]:
    """A game has an outcome if its status is ok, and none otherwise."""
    empty, ok = pl.col("outcome").is_null(), pl.col("status") == "ok"
    return [
        *violations(judgments.filter(empty & ok), "games are ok and have no outcome", _GAME, names),
        *violations(judgments.filter(~empty & ~ok), "failed games have an outcome", _GAME, names),
    ]


def order_shown_is_balanced(judgments: pl.DataFrame) -> list[Violation]:
    """The smaller id is shown first about as often as the larger, as a fair coin would have it."""
    n = judgments.height
    first = int((judgments["shown_first"] == judgments["doc_a"]).sum())
    if abs(first - n / 2) <= _DEVIATIONS * math.sqrt(n) / 2:
        return []
    what = f"of {n:,} games showed the smaller id first ({first / n:.1%}, about half is expected)"
    return [Violation(what, first)]


def first_place_is_fair(card: pl.DataFrame) -> list[Violation]:
    """Answers name the document shown first about as often as the other.

    It fails where the whole interval of the share lies more than :data:`FAIR` from one half.
    """
    share = _statistic(card, "first_shown_preferred")
    if share["low"] is None or not (share["low"] > 0.5 + FAIR or share["high"] < 0.5 - FAIR):
        return []
    count = round(share["value"] * share["n"])
    what = f"of {share['n']:,} answers name the document shown first ({share['value']:.1%})"
    return [Violation(what, count)]


def orders_agree(card: pl.DataFrame) -> list[Violation]:
    """Pairs asked in both orders are mostly answered alike."""
    flips = _statistic(card, "flip_rate")
    if flips["value"] is None or flips["value"] <= MOST_FLIPS:
        return []
    count = round(flips["value"] * flips["n"])
    return [Violation(f"of {flips['n']:,} pairs have another winner in the other order", count)]


def _statistic(card: pl.DataFrame, name: str) -> dict[str, Any]:
    return card.row(by_predicate=pl.col("statistic") == name, named=True)


def every_candidate_is_rated(ratings: pl.DataFrame, candidates: pl.DataFrame) -> list[Violation]:
    """The ratings are of the candidates, all of them and nothing else."""
    return unlike(ratings.select(*_PAIR), candidates.select(*_PAIR), _PAIR, "ratings of candidates")


def ratings_span_the_scale(ratings: pl.DataFrame, scale_max: float = 5.0) -> list[Violation]:
    """The lowest rating of a query is 0 and the highest 5; or all are 2.5, where all are equal."""
    ends = ratings.group_by("query_id").agg(
        pl.min("rating").alias("low"), pl.max("rating").alias("high")
    )
    spread = (pl.col("low") == 0) & (pl.col("high") == scale_max)
    equal = (pl.col("low") == scale_max / 2) & (pl.col("high") == scale_max / 2)
    what = f"queries have ratings that do not reach from 0 to {scale_max:g}"
    return violations(ends.filter(~(spread | equal)), what, "query_id")


def ranks_follow(table: pl.DataFrame, by: tuple[str, ...], value: str) -> list[Violation]:
    """Ranks are 1 to n by value descending, then document id, in each ranking.

    Args:
        table: columns ``by``, doc_id, ``value``, rank.
        by: the columns that make one ranking.
        value: what is ranked.
    """
    ordered = table.sort(*by, value, "doc_id", descending=[False] * len(by) + [True, False])
    expected = pl.int_range(1, pl.len() + 1).over(by)
    bad = ordered.filter(pl.col("rank") != expected)
    return violations(bad, f"ranks do not follow the {value}, then the id", (*by, "doc_id"))


def benchmark_is_complete(
    benchmark: pl.DataFrame, ratings: pl.DataFrame, query_set: pl.DataFrame
) -> list[Violation]:
    """The benchmark has every query of the release, and every rating once."""
    asked = benchmark.select("query_id").unique()
    return [
        *unlike(asked, query_set.select("query_id"), ("query_id",), "queries"),
        *unlike(benchmark.select(*_PAIR), ratings.select(*_PAIR), _PAIR, "rows"),
    ]


def own_ids_are_there(benchmark: pl.DataFrame) -> list[Violation]:
    """Every query and document has the user's own id."""
    blank = pl.any_horizontal(
        pl.col(f"{what}_source_id").str.strip_chars() == "" for what in ("query", "doc")
    )
    return violations(benchmark.filter(blank), "rows lack the user's own id", _PAIR)
