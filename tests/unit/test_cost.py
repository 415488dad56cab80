"""Sums over a ledger."""

from datetime import UTC, datetime

import pytest

from saber_dagster.cli import app
from saber_dagster.cost import run_ids, since_time, speed, sums
from saber_dagster.engines import Call, Reply, Usage
from saber_dagster.errors import SaberError
from saber_dagster.ledger import Ledger, LedgerError
from saber_dagster.replies import ParseError

USAGE = Usage(prompt=10, completion=4, reasoning=3, cached=2)


def parse(call, text):
    if text == "?":
        raise ParseError("unreadable")
    return text


def script(call):
    text = call.inputs["text"]
    if text == "lost":
        return Reply("transport_error", error="dead")
    if text == "refused":
        return Reply("refused", usage=USAGE, price=0.5)
    return Reply("ok", "?" if text == "odd" else text, usage=USAGE, price=0.5, latency=2.0)


@pytest.fixture
def ledger(tmp_path, scripted_engine):
    ledger = Ledger(tmp_path / "ledger")

    def ask(texts, stage, run_id, **options):
        with ledger.session(scripted_engine(script, **options), stage, "p", run_id) as session:
            session.ask([Call("task", {"text": text}, text) for text in texts], parse)

    ask(["a", "b", "odd", "refused"], "tags", "run-1")
    with pytest.raises(LedgerError):
        ask(["a", "lost"], "tags", "run-2")
    ask(["a", "b", "c"], "games", "run-3", model="judge")
    return ledger


def rows(frame, *names):
    return [tuple(row[name] for name in names) for row in frame.iter_rows(named=True)]


def test_replies_are_summed_by_status_tokens_and_money(ledger):
    found = sums(ledger, "stage")
    assert rows(found, "stage", "calls", "ok", "parse_error", "refused", "transport_error") == [
        ("games", 3, 3, 0, 0, 0),
        ("tags", 5, 2, 1, 1, 1),
    ]
    assert rows(found, "price_usd", "prompt_tokens", "reasoning_tokens", "cached_tokens") == [
        (1.5, 30, 9, 6),
        (2.0, 40, 12, 8),
    ]
    assert rows(found, "mean_latency_s")[0] == (2.0,)
    assert found["duplicates"].sum() == 0, "a lost call that is asked again is none"


@pytest.mark.parametrize(
    ("by", "names"),
    [
        ("model", [("Scripted/Model-1", "r1", 5), ("judge", "r1", 3)]),
        ("run", [("run-1", "tags", 4), ("run-2", "tags", 1), ("run-3", "games", 3)]),
        ("judge", [("", "Scripted/Model-1", 5), ("mine", "judge", 3)]),
        ("day", [(f"{datetime.now(UTC):%Y-%m-%d}", 8, 5)]),
    ],
)
def test_every_grouping_adds_up_to_the_same(ledger, by, names):
    found = sums(ledger, by, judge_of={"run-3": "mine"})
    columns = {
        "model": ("model", "revision", "calls"),
        "run": ("run_id", "stage", "calls"),
        "judge": ("judge", "model", "calls"),
        "day": ("day", "calls", "ok"),
    }
    assert rows(found, *columns[by]) == names
    assert (found["calls"].sum(), found["price_usd"].sum()) == (8, 3.5)


def test_a_call_that_two_steps_paid_is_a_duplicate_of_the_second(ledger, scripted_engine):
    call = [Call("task", {"text": "twice"}, "twice")]
    first = ledger.session(scripted_engine(script), "tags", "p", "run-4")
    second = ledger.session(scripted_engine(script), "tags", "q", "run-5")
    with second, first:  # both open before either has stored anything; the first ends first
        first.ask(call, parse)
        second.ask(call, parse)
    found = sums(ledger, "run")
    assert rows(found.filter(duplicates=1), "run_id") == [("run-5",)]
    assert found["duplicates"].sum() == 1


def test_only_what_was_paid_since_then_counts_and_an_empty_ledger_is_no_error(ledger, tmp_path):
    middle = ledger.frame(columns=["created"])["created"].sort()[4]
    found = sums(ledger, "stage", since=middle)
    assert found["calls"].sum() == 4
    assert sums(ledger, "day", since=datetime(2999, 1, 1, tzinfo=UTC).timestamp()).is_empty()
    for by in ("stage", "judge", "model", "run", "day"):
        assert sums(Ledger(tmp_path / "none"), by).is_empty()
    assert run_ids(Ledger(tmp_path / "none")) == []
    assert run_ids(ledger) == ["run-1", "run-2", "run-3"]


def test_calls_without_a_price_are_counted_and_shown_as_unknown(
    ledger, scripted_engine, monkeypatch, tmp_path, capsys
):
    free = scripted_engine(lambda call: Reply("ok", "x"), model="free")
    unpriced = scripted_engine(lambda call: Reply("ok", "x", usage=USAGE), model="unpriced")
    for engine in (free, unpriced):
        with ledger.session(engine, "games", "p", "run-6") as session:
            session.ask([Call("task", {"text": "a"}, "a")], parse)
    found = sums(ledger, "model")
    assert rows(found, "model", "counted", "unpriced") == [
        ("Scripted/Model-1", 4, 0),
        ("free", 0, 0),
        ("judge", 3, 0),
        ("unpriced", 1, 1),
    ]
    monkeypatch.setenv("SABER_HOME", str(tmp_path))
    with pytest.raises(SystemExit) as end:
        app(["cost", "--by", "model"])
    out = capsys.readouterr().out
    assert end.value.code in (0, None)
    assert "1 of 8 paid calls have no price" in out
    assert [line.count("?") for line in out.splitlines() if "unpriced" in line] == [1]
    assert [line.count("?") for line in out.splitlines() if "free" in line] == [0]


def test_speed_is_that_of_earlier_runs(ledger):
    assert speed(ledger, "games", "judge") == pytest.approx(3 / 2.0, rel=0.05)
    assert speed(ledger, "games", "other") is None
    assert speed(ledger, "games", "judge", ["task"]) == speed(ledger, "games", "judge")
    assert speed(ledger, "games", "judge", ["another"]) is None


def test_since_is_a_time_ago_or_a_date():
    now = datetime(2026, 5, 2, 12, tzinfo=UTC)
    assert since_time("12h", now) == datetime(2026, 5, 2, tzinfo=UTC).timestamp()
    assert since_time("1d", now) == datetime(2026, 5, 1, 12, tzinfo=UTC).timestamp()
    assert since_time("2026-05-01") == datetime(2026, 5, 1, tzinfo=UTC).timestamp()
    assert since_time("2026-05-01T02:00+02:00") == datetime(2026, 5, 1, tzinfo=UTC).timestamp()
    for text in ("yesterday", "", "d", "2026-13-01", "-3d"):
        with pytest.raises(SaberError, match="--since"):
            since_time(text)
