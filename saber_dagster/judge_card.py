"""The judge card: what a judge's own games say of the judge. ``docs/judges.md`` explains each line.

Intervals are Wilson's for shares and normal for means, at 95 %, as if cases were independent. A judge
sees a document again and again, so they are rather too narrow.

Source: Wilson, "Probable inference, the law of succession, and statistical inference", 1927, for the
interval of a share; Kendall and Babington Smith, "On the method of paired comparisons", 1940, for
cyclic triads.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl

from saber_dagster.contracts import TABLES
from saber_dagster.rating_prior import RatingPrior

Z = 1.96
DECIMALS = 9

_FAILED = ("parse_error", "refused", "truncated")


@dataclass(frozen=True)
class Statistic:
    """A figure; ``value`` is None where ``n`` cases tell nothing, and so are ends that it lacks."""

    value: float | None
    n: int
    low: float | None = None
    high: float | None = None


def judge_card(
    judgments: pl.DataFrame, prior: RatingPrior, texts: pl.DataFrame, calls_of_a_game: int
) -> pl.DataFrame:
    """All statistics of a judge.

    Args:
        judgments: table ``judgments``, all queries of the judge, rows in any order.
        prior: estimated from the same games.
        texts: columns doc_id, problem, solution, of every document that played.
        calls_of_a_game: how many calls a game has when every reply parses at once.

    Returns:
        A frame of the table ``judge_card``.
    """
    made = {
        "games": Statistic(float(judgments.height), judgments["query_id"].n_unique()),
        "coverage": share(judgments["outcome"].is_not_null()),
        **{status: share(judgments["status"] == status) for status in _FAILED},
        "first_shown_preferred": first_shown_preferred(judgments),
        "flip_rate": flip_rate(judgments),
        "order_log_odds": order_log_odds(judgments),
        "position_log_odds": position_log_odds(prior),
        "tie_rate": share(_judged(judgments)["outcome"] == 0.5),
        "decisiveness": mean((_judged(judgments)["outcome"] - 0.5).abs()),
        "longer_preferred": longer_preferred(judgments, texts),
        "cyclic_triads": cyclic_triads(judgments),
        "calls_per_game": calls_per_game(judgments),
        "reasked": share(judgments["call_keys"].list.len() > calls_of_a_game),
    }
    table = TABLES["judge_card"]
    rows = [
        (name, *(_rounded(x) for x in (s.value, s.low, s.high)), s.n, STATISTICS[name].note)
        for name, s in made.items()
    ]
    return table.check(pl.DataFrame(rows, schema=table.schema, orient="row"))


def wilson(successes: float, n: int) -> tuple[float, float]:
    """The 95 % interval of a share; ``n`` must be above 0, half a success is allowed."""
    p, z2 = successes / n, Z * Z
    centre = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = Z * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    return max(0.0, centre - half), min(1.0, centre + half)


def share(cases: pl.Series) -> Statistic:
    """The mean of cases that count 0, ½ or 1, with Wilson's interval."""
    n = len(cases)
    if not n:
        return Statistic(None, 0)
    successes = math.fsum(cases.cast(pl.Float64))
    return Statistic(successes / n, n, *wilson(successes, n))


def mean(values: pl.Series) -> Statistic:
    """The mean of numbers; its interval needs two."""
    n = len(values)
    if not n:
        return Statistic(None, 0)
    centre = math.fsum(values) / n
    if n == 1:
        return Statistic(centre, 1)
    deviation = math.sqrt(math.fsum((x - centre) ** 2 for x in values) / (n - 1))
    half = Z * deviation / math.sqrt(n)
    return Statistic(centre, n, centre - half, centre + half)


def first_shown_preferred(judgments: pl.DataFrame) -> Statistic:
    """How often an answer names the document shown first; ties count one half."""
    answers = _by_order(judgments).drop_nulls("as_shown")
    first = pl.concat([answers["first_as_shown"], answers["first_swapped"].drop_nulls()])
    return share(_votes(first))


def flip_rate(judgments: pl.DataFrame) -> Statistic:
    """The share of pairs asked in both orders whose two answers name different documents."""
    both = judgments.drop_nulls(["as_shown", "swapped"])
    return share((both["as_shown"] - 0.5) * (both["swapped"] - 0.5) < 0)


def order_log_odds(judgments: pl.DataFrame) -> Statistic:
    """Half of what swapping the two documents changes, in log-odds for the place shown first.

    It is of pairs asked in both orders with answers strictly between 0 and 1.
    """
    inside = pl.all_horizontal(
        pl.col(name).is_between(0, 1, closed="none") for name in ("as_shown", "swapped")
    )
    pairs = _by_order(judgments).filter(inside)
    odds = [(pairs[name] / (1 - pairs[name])).log() for name in ("first_as_shown", "first_swapped")]
    return mean((odds[0] + odds[1]) / 2)


def position_log_odds(prior: RatingPrior) -> Statistic:
    """The position effect that the ratings allow for; without an interval where it is at its bound."""
    if not prior.position_error:
        return Statistic(None, 0)
    if "position" in prior.at_bound:
        return Statistic(prior.position, prior.n_games)
    half = Z * prior.position_error
    return Statistic(prior.position, prior.n_games, prior.position - half, prior.position + half)


def longer_preferred(judgments: pl.DataFrame, texts: pl.DataFrame) -> Statistic:
    """How often the longer one of two documents is preferred; ties count one half.

    Length is that of problem and solution in characters; games of equal length do not count.
    """
    length = pl.col("problem").str.len_chars() + pl.col("solution").str.len_chars()
    a, b = (
        texts.select(pl.col("doc_id").alias(side), length.alias(f"{side}_length"))
        for side in ("doc_a", "doc_b")
    )
    longer = (
        _judged(judgments)
        .join(a, on="doc_a")
        .join(b, on="doc_b")
        .filter(pl.col("doc_a_length") != pl.col("doc_b_length"))
        .select(
            pl.when(pl.col("doc_a_length") > pl.col("doc_b_length"))
            .then("outcome")
            .otherwise(1 - pl.col("outcome"))
        )
    )
    return share(_votes(longer.to_series()))


def cyclic_triads(judgments: pl.DataFrame) -> Statistic:
    """The share of a > b > c > a among triples of a query whose three games have a preference."""
    cyclic = triads = 0
    for _, games in _judged(judgments).filter(pl.col("outcome") != 0.5).group_by("query_id"):
        docs = pl.concat([games["doc_a"], games["doc_b"]]).unique()
        index = {doc: number for number, doc in enumerate(docs)}
        beats = np.zeros((len(index), len(index)), np.int64)
        for a, b, outcome in games.select("doc_a", "doc_b", "outcome").iter_rows():
            winner, loser = (a, b) if outcome > 0.5 else (b, a)
            beats[index[winner], index[loser]] = 1
        met = beats + beats.T
        cyclic += int(np.trace(beats @ beats @ beats)) // 3
        triads += int(np.trace(met @ met @ met)) // 6
    return Statistic(cyclic / triads if triads else None, triads)


def calls_per_game(judgments: pl.DataFrame) -> Statistic:
    """Distinct calls over games."""
    calls = judgments["call_keys"].explode().drop_nulls().n_unique()
    games = judgments.height
    return Statistic(calls / games if games else None, games)


@dataclass(frozen=True)
class Line:
    """How a statistic is shown."""

    label: str
    note: str
    show: Callable[[float], str]


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def _number(value: float) -> str:
    return f"{value:,.0f}"


def _decimals(value: float) -> str:
    return f"{round(value, 2) + 0.0:.2f}"


STATISTICS = {
    "games": Line("games", "of so many queries", _number),
    "coverage": Line("coverage", "games that have a verdict", _percent),
    "parse_error": Line("parse errors", "of games", _percent),
    "refused": Line("refusals", "of games", _percent),
    "truncated": Line("cut replies", "of games", _percent),
    "first_shown_preferred": Line(
        "first shown preferred", "of answers about two documents; one half is fair", _percent
    ),
    "flip_rate": Line("flip rate", "of pairs asked in both orders", _percent),
    "order_log_odds": Line(
        "position, both orders", "mean log-odds for the place, of pairs in both orders", _decimals
    ),
    "position_log_odds": Line(
        "position, fitted", "log-odds that the first shown wins, of games in one order", _decimals
    ),
    "tie_rate": Line("ties", "of judged games", _percent),
    "decisiveness": Line("decisiveness", "mean distance from one half, at most 0.5", _decimals),
    "longer_preferred": Line(
        "longer preferred", "of judged games of unequal length; one half is fair", _percent
    ),
    "cyclic_triads": Line(
        "cyclic triads", "of triples with three verdicts; 25 % is chance", _percent
    ),
    "calls_per_game": Line("calls per game", "distinct calls over games", _decimals),
    "reasked": Line("asked again", "of games, after a reply that did not parse", _percent),
}
"""Every statistic by name, in the order of the card."""


def card_lines(card: pl.DataFrame) -> list[str]:
    """A frame of the table ``judge_card`` as the lines of a Markdown table."""
    rows = {row["statistic"]: row for row in card.iter_rows(named=True)}
    lines = ["| statistic | value | 95 % interval | n | |", "| --- | ---: | ---: | ---: | --- |"]
    for name, line in STATISTICS.items():
        row = rows[name]
        value = "–" if row["value"] is None else line.show(row["value"])
        ends = (row["low"], row["high"])
        interval = "" if None in ends else " to ".join(map(line.show, ends))
        lines.append(f"| {line.label} | {value} | {interval} | {row['n']:,} | {row['note']} |")
    return lines


def _votes(preferences: pl.Series) -> pl.Series:
    """1 above one half, 0 below, ½ at it."""
    return ((preferences - 0.5).sign() + 1) / 2


def _judged(judgments: pl.DataFrame) -> pl.DataFrame:
    return judgments.drop_nulls("outcome")


def _by_order(judgments: pl.DataFrame) -> pl.DataFrame:
    """With the preference for the document shown first, as shown and swapped."""
    a_first = pl.col("shown_first") == pl.col("doc_a")
    shown, swapped = pl.col("as_shown"), pl.col("swapped")
    return judgments.with_columns(
        first_as_shown=pl.when(a_first).then(shown).otherwise(1 - shown),
        first_swapped=pl.when(a_first).then(1 - swapped).otherwise(swapped),
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, DECIMALS) + 0.0
