"""What the checks of a judge's games say."""

import polars as pl
import pytest

from assets.judges import game_checks
from saber_dagster.contracts import TABLES
from saber_dagster.ratings import connectivity

DOCS = ["a", "b", "c", "d"]


def checks(*games, docs=DOCS):
    """Checks of games (doc_a, doc_b, outcome or the status of a failure)."""
    rows = []
    for n, (a, b, got) in enumerate(games, 1):
        judged = (None, 1.0, got) if isinstance(got, str) else (got, 1.0, "ok")
        rows.append(("q", n, a, b, a, *judged, ["k"], None, None))
    judgments = pl.DataFrame(rows, schema=TABLES["judgments"].schema, orient="row")
    made = game_checks(judgments, connectivity(judgments, {"q": docs}))
    return {check.name: check for check in made}


def test_coverage_counts_failures_by_status():
    coverage = checks(
        ("a", "b", 1.0), ("b", "c", "truncated"), ("c", "d", "parse_error"), ("a", "c", "truncated")
    )["coverage"]
    assert not coverage.passed
    assert coverage.description.endswith("; without one: 1 parse_error, 2 truncated")
    assert coverage.metadata == {"answered": 1, "expected": 4, "parse_error": 1, "truncated": 2}
    assert "without" not in checks(("a", "b", 1.0))["coverage"].description


def test_failed_games_are_the_reason_for_groups_that_never_met():
    split = checks(("a", "b", 1.0), ("c", "d", 1.0), ("b", "c", "refused"))["connected"]
    assert not split.passed
    assert "1 of 1 queries" in split.description
    assert "1 of their games failed" in split.description
    assert "rounds" not in split.description


def test_more_rounds_are_advised_where_no_game_failed():
    split = checks(("a", "b", 1.0), ("c", "d", 1.0))["connected"]
    assert not split.passed
    assert "tournament.rounds" in split.description
    whole = checks(("a", "b", 1.0), ("b", "c", 1.0), ("c", "d", "refused"), ("a", "d", 0.5))
    assert whole["connected"].passed
    assert "rounds" not in whole["connected"].description


@pytest.mark.parametrize(
    ("outcomes", "passed"),
    [
        ([0.5], False),
        ([0.5, 0.5, "refused"], False),
        ([0.5, 0.5, 0.75], True),
        ([0.0], True),
        (["refused"], True),
        ([], True),
    ],
)
def test_a_judge_that_ties_every_game_prefers_nothing(outcomes, passed):
    games = [("a", doc, outcome) for doc, outcome in zip("bcd", outcomes, strict=False)]
    assert checks(*games)["prefers"].passed is passed
