"""Builds in which something fails, or the money runs out: everything else is finished."""

import json

import polars as pl
import pytest
import yaml
from homes import SHARDS
from priced import CALL_USD

from saber_dagster.build_failures import BudgetError, BuildError
from saber_dagster.definitions import load
from saber_dagster.dry_run import plan
from saber_dagster.home import Home
from saber_dagster.ledger import Ledger

pytestmark = pytest.mark.definitions

PRICED = {"slug": "priced", "engine": "python:priced:PricedEngine"}
GAMES = "judge/priced/tournament_rounds"


def judges(home, *entries):
    (home.root / "judges.yaml").write_text(yaml.safe_dump({"judges": list(entries)}))


def conditions(home, *assets):
    status = home.status()
    return [
        next(c for c in ("fresh", "stale", "missing", "failed") if status[asset][c])
        for asset in assets
    ]


def spent(home):
    frame = Ledger(home.root / "ledger").frame()
    return frame.filter(pl.col("model") == "priced")["price"].sum()


def test_a_judge_that_fails_does_not_hold_up_the_others(home):
    lost = {"failure": "transport_error", "percent": 100}
    deaf = {"slug": "deaf", "engine": "python:clumsy:ClumsyEngine", "options": lost}
    judges(home, {"slug": "embedded"}, deaf)
    home.change(tournament={"rounds": 5})
    with pytest.raises(BuildError) as caught:
        home.build()
    assert not isinstance(caught.value, BudgetError)
    lines = str(caught.value).splitlines()
    for line, shard in zip(lines, SHARDS, strict=False):
        assert line.startswith(f"judge/deaf/tournament_rounds {shard}: ")
        assert "the line is dead" in line
    assert "waiting for the above" in lines[2]
    for name in ("judge/deaf/rating_prior", "judge/deaf/ratings (2×)", "leaderboard"):
        assert name in lines[2]
    assert "embedded" not in lines[2]
    assert "needs the games of every judge" in lines[3]
    ran = {asset for asset, _ in home.ran}
    assert "judge/embedded/benchmark" in ran
    assert not {"judge/deaf/rating_prior", "query_metrics", "leaderboard"} & ran
    made = conditions(home, "judge/embedded/benchmark", "judge/deaf/benchmark")
    assert made == ["fresh", "missing"]


@pytest.fixture(scope="module")
def priced(finished, tmp_path_factory):
    """A finished home with a second judge in its file, whose games cost money; only to be copied."""
    home = finished.copy(tmp_path_factory.mktemp("priced") / "home")
    judges(home, PRICED, {"slug": "embedded"})
    return home


def test_a_dry_run_foretells_what_the_build_then_pays_and_writes_nothing(priced, tmp_path):
    home = priced.copy(tmp_path / "home")
    before = {path: path.stat().st_mtime_ns for path in home.root.rglob("*")}
    found = plan(Home(home.root), load(Home(home.root)))
    assert {path: path.stat().st_mtime_ns for path in home.root.rglob("*")} == before
    assert [(item.asset, item.partition) for item in found.planned] == [(GAMES, s) for s in SHARDS]
    assert found.unknown == ()
    tokens = found.total["prompt_tokens"] + found.total["completion_tokens"]
    assert found.total["price"] == pytest.approx(tokens * CALL_USD / 120)
    home.build(GAMES)
    made = spent(home) / CALL_USD
    assert 0 < made <= found.total["calls"], "a pair that meets again is guessed to be another"
    assert found.total["calls"] <= 1.5 * made

    again = plan(Home(home.root), load(Home(home.root)))
    assert again.planned == ()
    home.change(tournament={"rounds": 5})
    more = plan(Home(home.root), load(Home(home.root))).total
    assert 0 < more["calls"] < more["replayed"]


def test_a_dry_run_says_what_cannot_be_known_yet(priced, tmp_path):
    home = priced.copy(tmp_path / "home")
    home.change(release="r2", summaries={"max_words": 20})
    result = home.saber("build", "--dry-run", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["planned"] == [], "the annotator is free"
    unknown = {item["asset"]: item for item in found["unknown"]}
    assert unknown[GAMES]["partitions"] == 2
    assert unknown[GAMES]["at_most"] == 4 * 4 * 4, "queries × rounds × ⌊9 / 2⌋"
    text = home.saber("build", "--dry-run").output
    assert "not known yet: judge/priced/tournament_rounds, 2 partition(s)" in text
    assert "at most 64 calls" in text


def test_a_spent_budget_stops_what_is_paid_and_nothing_else(priced, tmp_path):
    home = priced.copy(tmp_path / "home")
    home.change(tournament={"rounds": 5})
    result = home.saber("build", "--budget-usd", str(5 * CALL_USD))
    assert isinstance(result.exception, BudgetError)
    assert result.exception.exit_code == 3
    lines = str(result.exception).splitlines()
    assert f"the budget is spent (${5 * CALL_USD:.4f} of ${5 * CALL_USD}, 5 calls)" in lines[0]
    assert f"calls are missing in {GAMES} (2×)" in lines[0]
    assert "waiting for the above" in lines[1]
    assert spent(home) == 5 * CALL_USD, "the second partition asked nothing"
    made = conditions(home, "judge/embedded/benchmark", "judge/priced/ratings")
    assert made == ["fresh", "missing"]

    home.change(ledger={"budget_calls": 7})
    with pytest.raises(BudgetError):
        home.build(GAMES)
    assert spent(home) == 12 * CALL_USD, "a budget of the settings is for the whole build"
