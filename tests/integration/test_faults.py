"""Faults of servers and of what stands before them: every call is accounted for, none stored twice."""

import json
from collections import Counter

import polars as pl
import pytest
from fault_proxy import HARMLESS, PASSING, STOPPING, FaultProxy
from model_server import ModelServer

from resources.engines.openai import OpenAIEngine
from saber_dagster.engines import FINAL, PAIRWISE_JUDGMENT, Call
from saber_dagster.errors import SaberError
from saber_dagster.hashing import canonical_json, sha256_hex
from saber_dagster.ledger import Ledger
from saber_dagster.replies import parse_verdict

pytestmark = pytest.mark.integration

DOCUMENT = {"problem": "p", "solution": "s"}
CALLS = [
    Call(
        PAIRWISE_JUDGMENT,
        {"query": {"problem": f"p{n}", "solution": "s"}, "first": DOCUMENT, "second": DOCUMENT},
        f"item {n}",
    )
    for n in range(60)
]


@pytest.fixture(scope="module")
def model():
    server = ModelServer()
    yield server
    server.close()


@pytest.fixture
def proxy(model, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr("resources.engines.asking.FIRST_PAUSE_S", 0.02)
    proxy = FaultProxy(model.url)
    yield proxy
    proxy.close()


def make(proxy, **options):
    return OpenAIEngine(
        "judge", "r1", base_url=proxy.url, **{"concurrency": 4, "timeout_s": 30, **options}
    )


def ask(ledger, engine, calls):
    """The outcomes, what it counted and the error, if there was one."""
    outcomes, error = None, None
    session = ledger.session(engine, "judge", "p")
    try:
        with session:
            outcomes = session.ask(calls, lambda _, text: parse_verdict(text))
    except SaberError as caught:
        error = caught
    return outcomes, session.counts, error


def verdict(engine, call):
    """What the model behind the proxy says of a call."""
    asked = sha256_hex(canonical_json(list(engine.messages(call))))
    return 1.0 - int(asked[:8], 16) % 2


def delivered(proxy):
    """How often each question's answer went back whole."""
    return Counter(seen.asked for seen in proxy.log if seen.whole)


def stored(ledger, engine, calls):
    """Final rows by call, each of which says what the model says; none twice."""
    frame = ledger.frame()
    final = frame.filter(pl.col("status").is_in(FINAL))
    assert final["key"].is_unique().all(), "a reply was stored twice"
    by_item = {call.item: call for call in calls}
    for item, text in final.select("item", "text").iter_rows():
        assert parse_verdict(text) == verdict(engine, by_item[item]), item
    return frame, {by_item[item].item: by_item[item] for item in final["item"]}


@pytest.mark.parametrize("fault", [*PASSING, *STOPPING, *HARMLESS])
def test_a_fault_that_stays_and_then_is_mended(fault, proxy, tmp_path):
    silent = fault in ("hang", "hang in body", "drip")
    engine = make(proxy, **({"timeout_s": 1.0, "retries": 0} if silent else {"retries": 1}))
    calls, ledger = CALLS[:8], Ledger(tmp_path)
    proxy.play(["pass"] * 3, then=fault)
    outcomes, counts, error = ask(ledger, engine, calls)
    frame, have = stored(ledger, engine, calls)
    questions = {call.item: json.dumps(list(engine.messages(call))) for call in calls}
    assert {questions[item] for item in have} == delivered(proxy).keys()
    if fault != "twice":  # an answer is lost with the connection that is out of step
        assert max(delivered(proxy).values()) == 1
    assert frame.height == counts.made
    assert len(proxy.log) >= len(have)
    if fault in HARMLESS:
        assert error is None
        assert len(have) == len(calls)
    else:
        assert outcomes is None
        lost = set(frame.filter(pl.col("status") == "transport_error")["item"])
        assert not lost & have.keys()
        if fault in STOPPING:
            assert "127.0.0.1" in str(error)
        else:  # all were tried, and those without a reply are counted in the message
            assert lost | have.keys() == questions.keys()
            assert f"{len(lost)} of {len(calls)} calls did not get through" in str(error)
    begun = len(proxy.log)
    proxy.play()
    outcomes, counts, error = ask(ledger, make(proxy, retries=9), calls)
    assert error is None
    assert [outcome.value for outcome in outcomes] == [verdict(engine, call) for call in calls]
    assert counts.replayed == len(have)
    assert counts.made == len(calls) - len(have)
    assert len(proxy.log) - begun >= counts.made
    _, have = stored(ledger, engine, calls)
    assert len(have) == len(calls)


def test_all_faults_at_once_lose_nothing(proxy, tmp_path):
    script = [name for fault in [*PASSING, *HARMLESS] for name in (fault, "pass", fault)]
    proxy.play(script)
    engine, ledger = make(proxy, retries=9, concurrency=12, timeout_s=2.0), Ledger(tmp_path)
    outcomes, counts, error = ask(ledger, engine, CALLS)
    assert error is None
    assert [outcome.value for outcome in outcomes] == [verdict(engine, call) for call in CALLS]
    frame = ledger.frame()
    assert counts.made == len(CALLS) == frame.height
    paid = len(CALLS) + sum(seen.fault == "broken off" for seen in proxy.log)
    assert (frame["prompt_tokens"].sum(), frame["completion_tokens"].sum()) == (
        100 * paid,
        5 * paid,
    )
    assert paid == len(CALLS) + 2
    assert delivered(proxy).keys() == {json.dumps(list(engine.messages(c))) for c in CALLS}
    spoiled = sum(seen.fault in PASSING for seen in proxy.log)
    assert spoiled >= 2 * len(PASSING)
    assert len(proxy.log) >= spoiled + len(CALLS)
