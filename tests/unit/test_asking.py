"""Batches of calls: what is tried again, what is lost, what stops, what is logged."""

import logging
import re
import threading
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from llm_script import KEY, ask, completion, failure, gather, loops, make, make_calls

from resources.engines.asking import GIVE_UP_AFTER
from resources.engines.openai import OpenAIEngine
from resources.engines.openai_failures import retry_after
from saber_dagster.engines import Usage
from saber_dagster.errors import SaberError

# What may pass


def test_retry_after_is_waited_for(script):
    script.steps.append(failure(429, headers={"Retry-After": "0.6"}))
    (reply,) = ask(script)
    assert reply.status == "ok"
    assert script.times[1] - script.times[0] >= 0.6


@pytest.mark.parametrize("step", [failure(500), failure(408), failure(409), failure(503), "reset"])
def test_a_failure_that_passes_is_not_seen(script, step):
    script.steps.extend([step, step])
    assert [r.status for r in ask(script)] == ["ok"]
    assert len(script.requests) == 3


def test_a_burst_of_failures_loses_no_call(script):
    script.steps.extend([failure(500), "reset", failure(429, headers={"Retry-After": "0.02"})] * 3)
    replies = ask(script, n=20, retries=9, concurrency=6)
    assert {r.status for r in replies} == {"ok"}
    assert len(script.requests) == 29


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (failure(503, "overloaded"), "overloaded"),
        ("reset", "RemoteProtocolError"),
        ("hang", "timed out"),
    ],
)
def test_a_failure_that_stays_is_a_transport_error(script, step, text):
    script.default = step
    (reply,) = ask(script, timeout_s=0.1)
    assert (reply.status, reply.finish_reason, reply.text) == ("transport_error", "error", "")
    assert text in reply.error
    assert len(script.requests) == 3


def test_nobody_listens():
    engine = OpenAIEngine("m", "r", base_url="http://127.0.0.1:9/v1", retries=0)
    ((_, reply),) = engine.answer(make_calls(1))
    assert reply.status == "transport_error"
    assert "ConnectError" in reply.error


def test_a_dead_server_stops_the_batch_early(script):
    script.default = failure(503)
    found, error = gather(make(script, retries=0, concurrency=2).answer(make_calls(500)))
    assert isinstance(error, SaberError)
    assert re.search(
        "calls in a row did not get through .* See whether the server is up", str(error)
    )
    assert GIVE_UP_AFTER <= len(found) <= GIVE_UP_AFTER + 2
    assert {reply.status for _, reply in found} == {"transport_error"}


# What stops


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (failure(401, f"bad key {KEY}"), ["MARKED_KEY"]),
        (failure(403, "your region"), ["MARKED_KEY", "judge", "your region"]),
        (failure(404, "no such model"), ["'judge'", "http://127.0.0.1", "base_url", "/v1"]),
        (failure(402, "pay"), ["no credit"]),
        (failure(429, "quota", {"Retry-After": "0.01"}, code="insufficient_quota"), ["no credit"]),
        (
            failure(400, "temperature not supported"),
            ["temperature not supported", "temperature: null"],
        ),
        (failure(400, "9031 tokens", type="exceed_context_size_error"), ["item", "skip_too_long"]),
        (failure(400, "This model's maximum context length is 8192 tokens."), ["--max-model-len"]),
    ],
)
def test_what_no_retry_mends_stops_the_batch(script, step, words):
    script.default = step
    with pytest.raises(SaberError) as caught:
        list(make(script, concurrency=2).answer(make_calls(30)))
    for word in words:
        assert word in str(caught.value)
    assert len(script.requests) <= 2 * 3
    assert not loops()


def test_calls_in_flight_are_kept_when_another_stops_the_batch(script):
    stopped = threading.Event()

    def answer(body):
        if "p1\n" in body["messages"][1]["content"]:
            stopped.set()
            return failure(404)
        stopped.wait(5)
        time.sleep(0.1)
        return completion()

    script.default = answer
    found, error = gather(make(script, concurrency=2).answer(make_calls(10)))
    assert "does not know model" in str(error)
    assert [position for position, _ in found] == [0]


def test_a_call_that_is_too_long_can_be_left_unanswered(script):
    script.steps.append(failure(400, "maximum context length is 8 tokens"))
    replies = ask(script, n=2, concurrency=1, skip_too_long=True)
    assert [(r.status, r.finish_reason) for r in replies] == [
        ("truncated", "context_length"),
        ("ok", "stop"),
    ]


def test_a_filtered_call_is_refused(script):
    script.steps.append(failure(400, "The prompt was filtered", code="content_filter"))
    assert [r.status for r in ask(script, n=2, concurrency=1)] == ["refused", "ok"]


def test_retry_after_may_be_a_date(script):
    moment = format_datetime(datetime.now(UTC) + timedelta(seconds=1.5), usegmt=True)
    script.steps.append(failure(503, headers={"Retry-After": moment}))
    start = time.time()
    assert ask(script)[0].status == "ok"
    assert 0.4 < time.time() - start < 3


def test_one_call_that_is_asked_to_wait_makes_all_wait(script):
    def late(body):
        time.sleep(0.2)  # the other call has been told to wait by then
        return completion()

    script.steps += [failure(429, headers={"Retry-After": "0.5"}), late]
    ask(script, n=6, concurrency=2)
    early = [t for t in script.times if t - script.times[0] < 0.4]
    assert len(early) <= 2


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"retry-after": "0"}, 0.0),
        ({}, None),
    ],
)
def test_retry_after_in_either_unit(headers, seconds):
    assert retry_after(headers) == seconds


@pytest.mark.parametrize("value", ["nan", "-5", "soon", "1e999", ""])
def test_a_senseless_retry_after_is_passed_over(value):
    found = retry_after({"retry-after": value})
    assert found is None


def test_a_long_retry_after_is_cut_and_said(script, caplog, monkeypatch):
    monkeypatch.setattr("resources.engines.asking.PAUSE_AT_MOST_S", 0.2)
    monkeypatch.setattr("resources.engines.rate_limit.PAUSE_AT_MOST_S", 0.2)
    script.steps.append(failure(429, "slow down", {"Retry-After": "3600"}))
    start = time.monotonic()
    assert ask(script)[0].status == "ok"
    assert 0.2 <= time.monotonic() - start < 2
    assert re.search(r"slow down; trying again in 0\.2 s, of the 3600 s asked for", caplog.text)


def test_what_the_server_calls_hopeless_is_not_tried_again(script):
    script.default = failure(500, headers={"x-should-retry": "false"})
    assert ask(script)[0].status == "transport_error"
    assert len(script.requests) == 1


def test_an_answer_that_is_none_is_tried_again(script):
    script.steps.extend([(200, {}, "{"), (200, {"Content-Type": "text/html"}, "<html>")])
    assert [reply.status for reply in ask(script)] == ["ok"]
    assert len(script.requests) == 3


@pytest.mark.parametrize(("end", "status"), [("stop", "ok"), ("abort", "transport_error")])
def test_what_was_paid_for_tries_that_were_broken_off_is_counted(script, end, status):
    usage = {
        "prompt_tokens": 1000,
        "completion_tokens": 200,
        "completion_tokens_details": {"reasoning_tokens": 50},
        "prompt_tokens_details": {"cached_tokens": 400},
    }
    broken = completion(finish="abort", usage=usage)
    script.steps.extend([broken, failure(500), completion(finish=end, usage=usage)])
    (reply,) = ask(script, price_per_million={"prompt": 1.0, "completion": 10.0})
    assert reply.status == status
    assert len(script.requests) == 3
    assert reply.usage == Usage(prompt=2000, completion=400, reasoning=100, cached=800)
    assert reply.price == pytest.approx((2000 + 400 * 10) / 1e6)


def test_a_server_that_is_not_there_is_noticed_at_once_and_given_up_soon(caplog, monkeypatch):
    monkeypatch.setattr("resources.engines.asking.UNREACHABLE_S", 1.0)
    engine = OpenAIEngine("m", "r", base_url="http://127.0.0.1:9/v1", concurrency=50)
    start, said = time.monotonic(), []

    class Watch(logging.Handler):
        def emit(self, record):
            said.append((time.monotonic() - start, record.getMessage()))

    watch = Watch()
    logging.getLogger("saber_dagster.engines").addHandler(watch)
    try:
        found, error = gather(engine.answer(make_calls(500)))
    finally:
        logging.getLogger("saber_dagster.engines").removeHandler(watch)
    assert time.monotonic() - start < 20
    assert said[0][0] < 5
    assert "127.0.0.1:9" in said[0][1]
    assert "ConnectError" in said[0][1]
    assert len(said) <= 3
    assert "could not be reached for 1 s" in str(error)
    assert "Start the server" in str(error)
    assert len(found) <= 51
    assert {reply.status for _, reply in found} == {"transport_error"}


def test_a_slow_drip_is_no_answer(script):
    script.default = "drip"
    start = time.monotonic()
    (reply,) = ask(script, timeout_s=0.3, retries=0)
    assert reply.status == "transport_error"
    assert "timed out after 0.3 s" in reply.error
    assert time.monotonic() - start < 2


# Stopping


def test_stop_ends_the_batch_after_the_calls_in_flight(script):
    script.default = lambda body: time.sleep(0.05) or completion()
    engine = make(script, concurrency=3)
    found = []
    for item in engine.answer(make_calls(100)):
        found.append(item)
        if len(found) == 4:
            engine.stop()
    assert len(found) == len(script.requests)
    assert 4 <= len(found) <= 4 + 3
    assert {reply.status for _, reply in found} == {"ok"}
    assert not loops()
    assert len(list(engine.answer(make_calls(3)))) == 3  # the next batch is another one


def test_stop_ends_pauses(script):
    script.default = failure(429, headers={"Retry-After": "60"})
    engine = make(script, concurrency=2)
    threading.Timer(0.4, engine.stop).start()
    start = time.monotonic()
    found = list(engine.answer(make_calls(10)))
    assert time.monotonic() - start < 5
    assert {reply.status for _, reply in found} <= {"transport_error"}
    assert len(found) == len(script.requests)


def test_no_more_than_concurrency_is_sent_and_not_taken_care_of(script):
    """What a kill can lose: a caller that is slow holds back the rest."""
    engine = make(script, concurrency=4)
    for number, _ in enumerate(engine.answer(make_calls(40)), 1):
        time.sleep(0.01)
        assert len(script.requests) - number <= 4
