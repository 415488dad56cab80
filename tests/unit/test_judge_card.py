"""Every statistic of the judge card against a plain twin, and cases that can be counted by hand."""

import math
from itertools import combinations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saber_dagster import judge_card as card
from saber_dagster.contracts import TABLES
from saber_dagster.game_costs import COST_COLUMNS, game_costs
from saber_dagster.rating_prior import RatingPrior
from saber_dagster.rules import judging as rules
from saber_dagster.schema import ContractError

PRIOR = RatingPrior(0.5, 0.3, 0.1, -1.0, 3, True, 1, 9)
TEXTS = pl.DataFrame(
    {"doc_id": list("abcdef"), "problem": ["p", "pp", "pp", "p", "ppp", "p"], "solution": list("ssssss")}
)  # fmt: skip
LENGTH = {"a": 2, "b": 3, "c": 3, "d": 2, "e": 4, "f": 2}

PREFERENCES = st.sampled_from([0.0, 0.2, 0.5, 0.9, 1.0])


def table(rows):
    """Rows of (query, doc_a, doc_b, a is shown first, as shown, swapped, number of calls)."""
    full = []
    for n, (query, a, b, a_first, shown, swapped, calls) in enumerate(rows, 1):
        outcome = shown if shown is None or swapped is None else (shown + swapped) / 2
        status = "ok" if outcome is not None else "refused"
        keys = [f"{n}-{i}" for i in range(calls)]
        first = a if a_first else b
        full.append((query, n, a, b, first, outcome, 1.0, status, keys, shown, swapped))
    contract = TABLES["judgments"]
    return contract.check(pl.DataFrame(full, schema=contract.schema, orient="row"))


@st.composite
def games(draw):
    pairs = [(q, a, b) for q in "xy" for a, b in combinations("abcdef", 2)]
    rows = []
    for pair in draw(st.lists(st.sampled_from(pairs), unique=True)):
        shown = draw(st.none() | PREFERENCES)
        swapped = None if shown is None else draw(st.none() | PREFERENCES)
        rows.append((*pair, draw(st.booleans()), shown, swapped, draw(st.integers(1, 3))))
    return rows


def vote(preference):
    return 0.5 if preference == 0.5 else float(preference > 0.5)


def average(values):
    values = list(values)
    return (math.fsum(values) / len(values) if values else None), len(values)


def outcome(row):
    _, _, _, _, shown, swapped, _ = row
    return shown if shown is None or swapped is None else (shown + swapped) / 2


def logit(p):
    return math.log(p / (1 - p))


def twins(rows):
    """(value, n) of each statistic, by loops over the rows."""
    judged = [(*row[:3], outcome(row)) for row in rows if outcome(row) is not None]
    both = [row for row in rows if row[5] is not None]
    first = [
        vote(p if a_first == in_order else 1 - p)
        for _, _, _, a_first, *orders, _ in rows
        for in_order, p in zip((True, False), orders, strict=True)
        if p is not None
    ]
    beats = {(q, *((a, b) if o > 0.5 else (b, a))) for q, a, b, o in judged if o != 0.5}
    triads = [
        {(q, *pair) in beats for pair in ((x, y), (y, z), (z, x))}
        for q in "xy"
        for x, y, z in combinations("abcdef", 3)
        if all((q, *p) in beats or (q, *p[::-1]) in beats for p in ((x, y), (y, z), (z, x)))
    ]
    return {
        "games": (float(len(rows)), len({row[0] for row in rows})),
        "coverage": average(float(outcome(row) is not None) for row in rows),
        "refused": average(float(outcome(row) is None) for row in rows),
        "first_shown_preferred": average(first),
        "flip_rate": average(float({p > 0.5 for p in r[4:6]} == {True, False} and 0.5 not in r[4:6])
                             for r in both),
        "order_log_odds": average(
            (1 if r[3] else -1) * (logit(r[4]) - logit(r[5])) / 2
            for r in both if 0 < r[4] < 1 and 0 < r[5] < 1
        ),
        "tie_rate": average(float(o == 0.5) for *_, o in judged),
        "decisiveness": average(abs(o - 0.5) for *_, o in judged),
        "longer_preferred": average(
            vote(o if LENGTH[a] > LENGTH[b] else 1 - o)
            for _, a, b, o in judged if LENGTH[a] != LENGTH[b]
        ),
        "cyclic_triads": average(float(len(kinds) == 1) for kinds in triads),
        "calls_per_game": (sum(r[6] for r in rows) / len(rows) if rows else None, len(rows)),
        "reasked": average(float(r[6] > 1) for r in rows),
    }  # fmt: skip


@settings(deadline=None, max_examples=60)
@given(games(), st.randoms(use_true_random=False))
def test_every_statistic_equals_its_twin_in_any_order_of_the_rows(rows, shuffle):
    made = card.judge_card(table(rows), PRIOR, TEXTS, 1)
    for name, (value, n) in twins(rows).items():
        row = made.row(by_predicate=pl.col("statistic") == name, named=True)
        assert row["n"] == n, name
        assert row["value"] == (None if value is None else pytest.approx(value, abs=1e-9)), name
        if row["low"] is not None:
            assert row["low"] - 1e-9 <= row["value"] <= row["high"] + 1e-9, name
    assert set(made["statistic"]) == set(card.STATISTICS)
    shuffle.shuffle(rows)
    again = card.judge_card(table(rows).sample(fraction=1, shuffle=True, seed=1), PRIOR, TEXTS, 1)
    assert TABLES["judge_card"].version(again) == TABLES["judge_card"].version(made)


def one(made, statistic):
    row = made.row(by_predicate=pl.col("statistic") == statistic, named=True)
    return row["value"], row["n"]


def test_a_judge_that_always_names_the_first_place():
    asked = [("x", a, b, n % 2 == 0, *((1.0, 0.0) if n % 2 == 0 else (0.0, 1.0)), 2)
             for n, (a, b) in enumerate(combinations("abcd", 2))]  # fmt: skip
    made = card.judge_card(table(asked), PRIOR, TEXTS, 2)
    assert one(made, "first_shown_preferred") == (1.0, 12)
    assert one(made, "flip_rate") == (1.0, 6)
    assert one(made, "tie_rate") == (1.0, 6)
    assert one(made, "decisiveness") == (0.0, 6)
    assert one(made, "cyclic_triads") == (None, 0)
    assert one(made, "order_log_odds") == (None, 0), "certain answers have no log-odds"
    assert one(made, "reasked") == (0.0, 6)
    assert one(made, "calls_per_game") == (2.0, 6)


def test_a_circle_of_three_is_one_cyclic_triad():
    circle = [("x", "a", "b", True, 0.9, None, 1), ("x", "b", "c", False, 0.8, None, 1),
              ("x", "a", "c", True, 0.3, None, 1)]  # fmt: skip
    assert one(card.judge_card(table(circle), PRIOR, TEXTS, 1), "cyclic_triads") == (1.0, 1)
    chain = [*circle[:2], ("x", "a", "c", True, 0.7, None, 1)]
    assert one(card.judge_card(table(chain), PRIOR, TEXTS, 1), "cyclic_triads") == (0.0, 1)


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [(0, 10, 0.0, 0.2775), (5, 10, 0.2366, 0.7634), (10, 10, 0.7225, 1.0), (81, 263, 0.2553, 0.3662)],
)  # fmt: skip
def test_wilson_intervals_are_those_of_the_textbook(successes, n, low, high):
    """Newcombe, 1998, table I, has the last row."""
    assert card.wilson(successes, n) == (
        pytest.approx(low, abs=1e-4),
        pytest.approx(high, abs=1e-4),
    )


def test_the_position_effect_has_an_interval_unless_it_is_at_its_bound():
    assert card.position_log_odds(PRIOR).low == pytest.approx(0.3 - 1.96 * 0.1)
    at_bound = RatingPrior(0.5, 10.0, 0.1, -1.0, 3, True, 1, 9)
    assert card.position_log_odds(at_bound) == card.Statistic(10.0, 9)
    no_order = RatingPrior(0.5, 0.0, 0.0, -1.0, 3, True, 1, 9)
    assert card.position_log_odds(no_order) == card.Statistic(None, 0)


def test_the_lines_are_a_markdown_table_with_a_dash_for_what_nothing_tells():
    made = card.judge_card(table([("x", "a", "b", True, 0.9, None, 1)]), PRIOR, TEXTS, 1)
    lines = card.card_lines(made)
    assert len(lines) == 2 + len(card.STATISTICS)
    assert {line.count("|") for line in lines} == {6}
    assert "| coverage | 100.0 % | 20.7 % to 100.0 % | 1 | games that have a verdict |" in lines
    assert "| flip rate | – |  | 0 | of pairs asked in both orders |" in lines


def test_a_card_with_nan_is_refused():
    made = card.judge_card(table([("x", "a", "b", True, 0.9, None, 1)]), PRIOR, TEXTS, 1)
    with pytest.raises(ContractError, match="NaN"):
        TABLES["judge_card"].check(made.with_columns(value=pl.lit(math.nan)))


def test_costs_are_of_each_call_once_and_of_no_other():
    games = table([("x", "a", "b", True, 0.9, 0.8, 2), ("x", "a", "c", True, 0.9, None, 1)])
    first = games["call_keys"][0].to_list()
    replies = pl.DataFrame(
        [(first[0], 100, 1, 0.5, 2.0, False), (first[1], 50, 1, 0.25, 1.0, True),
         ("other", 9000, 9000, 90.0, 90.0, True)],
        schema=COST_COLUMNS, orient="row",
    )  # fmt: skip
    assert game_costs(games, replies) == {
        "calls": 2,
        "truncated_inputs": 1,
        "tokens_per_1000_games": 76_000,
        "usd_per_1000_games": 375,
        "seconds_per_1000_games": 1500,
    }
    assert game_costs(games, replies.tail(1)) == {}


def made_of(**values):
    """A card of these statistics (value, low, high, n) and nothing else."""
    rows = [(name, *figures, "") for name, figures in values.items()]
    schema = TABLES["judge_card"].schema
    return pl.DataFrame(rows, schema=schema, orient="row")


@pytest.mark.parametrize(
    ("share", "low", "high", "fair"),
    [(0.9, 0.85, 0.94, False), (0.1, 0.05, 0.2, False), (0.9, 0.55, 0.98, True),
     (0.55, 0.5, 0.6, True), (0.3, 0.2, 0.41, True), (None, None, None, True)],
)  # fmt: skip
def test_a_preference_for_the_first_place_is_found_where_it_is_sure(share, low, high, fair):
    n = 0 if share is None else 200
    found = rules.first_place_is_fair(made_of(first_shown_preferred=(share, low, high, n)))
    assert (found == []) == fair
    if share == 0.9 and not fair:
        assert str(found[0]) == "180 of 200 answers name the document shown first (90.0%)"


@pytest.mark.parametrize(
    ("rate", "n", "count"), [(0.26, 100, 26), (0.25, 100, 0), (1.0, 3, 3), (None, 0, 0)]
)
def test_more_flips_than_a_quarter_are_found(rate, n, count):
    found = rules.orders_agree(made_of(flip_rate=(rate, None, None, n)))
    assert sum(violation.count for violation in found) == count
