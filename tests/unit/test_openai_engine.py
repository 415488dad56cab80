"""The openai engine against a server that plays a script: failures, replies, secrets."""

import asyncio
import json
import logging
import re
import threading
import time
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import polars as pl
import pytest

from resources.engines import load_engine
from resources.engines.background import in_background
from resources.engines.openai import GIVE_UP_AFTER, OpenAIEngine
from resources.engines.openai_replies import read_completion
from saber_dagster.engines import PAIRWISE_JUDGMENT, SOLUTION_SUMMARY, TASKS, Call, call_key
from saber_dagster.errors import SaberError
from saber_dagster.ledger import Ledger, LedgerError
from saber_dagster.replies import parse_verdict

KEY = "sk-marked-3f9c"
GOOD = "because …\n<verdict>2</verdict>"


def completion(content=GOOD, finish="stop", usage=None, **message):
    message = {"role": "assistant", "content": content, **message}
    choices = [{"index": 0, "finish_reason": finish, "message": message}]
    return 200, {}, json.dumps({"choices": choices, "usage": usage})


def failure(status, message="no", headers=None, **fields):
    return status, headers or {}, json.dumps({"error": {"message": message, **fields}})


class Script:
    """A server on a loopback port; ``steps`` are its next answers, then ``default`` for ever."""

    def __init__(self):
        self.steps = deque()
        self.default = completion()
        self.requests = []
        self.times = []
        self.active = self.most_active = 0
        self.release = threading.Event()
        script = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                headers = {name.lower(): value for name, value in self.headers.items()}
                script.requests.append((self.path, headers, body))
                script.times.append(time.monotonic())
                script.active += 1
                script.most_active = max(script.active, script.most_active)
                try:
                    script.reply(self, body)
                finally:
                    script.active -= 1

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"

    def reply(self, handler, body):
        step = self.steps.popleft() if self.steps else self.default
        if callable(step):
            step = step(body)
        if step == "hang":
            self.release.wait(10)
            handler.close_connection = True
            return
        if step == "reset":
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{")
            handler.close_connection = True
            return
        status, headers, text = step
        handler.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(text.encode())))
        handler.end_headers()
        handler.wfile.write(text.encode())

    def close(self):
        self.release.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def script(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("MARKED_KEY", KEY)
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.01)
    script = Script()
    yield script
    script.close()


def make(script, **options):
    options = {"base_url": script.url, "api_key_env": "MARKED_KEY", "retries": 2, **options}
    return OpenAIEngine("judge", "r1", **options)


def make_calls(n, sample=0):
    document = {"problem": "p", "solution": "s"}
    return [
        Call(
            PAIRWISE_JUDGMENT,
            {"query": {"problem": f"p{i}", "solution": "s"}, "first": document, "second": document},
            f"item {i}",
            sample,
        )
        for i in range(n)
    ]


def ask(script, n=1, **options):
    """All replies, by position; every call must have exactly one."""
    found = list(make(script, **options).answer(make_calls(n)))
    assert sorted(position for position, _ in found) == list(range(n))
    return [reply for _, reply in sorted(found, key=lambda pair: pair[0])]


def gather(items):
    """What came before the end, and the error that ended it."""
    found = []
    try:
        for item in items:
            found.append(item)
    except (SaberError, KeyError) as error:
        return found, error
    return found, None


def loops():
    return [t for t in threading.enumerate() if t.name == "in_background"]


# What is sent


def test_request_holds_the_rendered_call_and_its_parameters(script):
    engine = make(script, temperature=0.5, seed=3, max_tokens=77, extra_body={"min_p": 0.1})
    calls = make_calls(1, sample=2)
    list(engine.answer(calls))
    path, headers, body = script.requests[0]
    assert path == "/v1/chat/completions"
    assert headers["authorization"] == f"Bearer {KEY}"
    assert body == {
        "model": "judge",
        "messages": engine.messages(calls[0]),
        "temperature": 0.5,
        "seed": 5,
        "max_tokens": 77,
        "min_p": 0.1,
    }


def test_options_left_to_the_server_are_not_sent(script):
    ask(script, temperature=None, max_tokens=None)
    assert set(script.requests[0][2]) == {"model", "messages"}


def test_openai_itself_gets_the_new_name_of_the_limit():
    engine = OpenAIEngine("gpt-4.1-2025-04-14")
    body = engine._body(make_calls(1)[0])
    assert body["max_completion_tokens"] == 4096
    assert "max_tokens" not in body
    assert engine.params(PAIRWISE_JUDGMENT)["max_tokens"] == 4096


def test_params_hold_what_changes_an_answer_and_nothing_else():
    base = {"model": "m", "revision": "r"}
    call = make_calls(1)[0]
    key = call_key(OpenAIEngine(**base), call)
    same = {
        "base_url": "http://elsewhere:1/v1",
        "api_key_env": "OTHER",
        "concurrency": 99,
        "timeout_s": 1.0,
        "retries": 0,
        "skip_too_long": True,
        "price_per_million": {"prompt": 1, "completion": 2},
    }
    assert call_key(OpenAIEngine(**base, **same), call) == key
    for option, value in {
        "temperature": 0.7,
        "seed": 1,
        "max_tokens": {PAIRWISE_JUDGMENT: 5},
        "extra_body": {"top_k": 1},
    }.items():
        assert call_key(OpenAIEngine(**base, **{option: value}), call) != key, option
    assert set(OpenAIEngine(**base).params(SOLUTION_SUMMARY)) == {"temperature", "max_tokens"}


# What comes back


def test_concurrency_is_bounded_and_replies_come_as_they_finish(script):
    slow = threading.Event()

    def answer(body):
        if "p0" in body["messages"][1]["content"]:
            slow.wait(5)
        else:
            time.sleep(0.01)
        return completion()

    script.default = answer
    order = []
    for position, reply in make(script, concurrency=3).answer(make_calls(9)):
        order.append(position)
        assert reply.status == "ok"
        assert reply.latency > 0
        if len(order) == 8:
            slow.set()
    assert order[-1] == 0
    assert sorted(order) == list(range(9))
    assert script.most_active == 3


@pytest.mark.parametrize(
    ("answer", "status", "finish"),
    [
        (completion(), "ok", "stop"),
        (completion(finish="length"), "truncated", "length"),
        (completion("", finish="length", reasoning_content="hm"), "truncated", "length"),
        (completion(finish="content_filter"), "refused", "content_filter"),
        (completion(None, refusal="I cannot"), "refused", "stop"),
        (completion(""), "refused", "stop"),
        (completion(" \n"), "refused", "stop"),
        (completion("<think>hm"), "truncated", "stop"),
        (completion(finish="error"), "transport_error", "error"),
        (completion(finish=None), "ok", "stop"),
        ((200, {}, '{"choices": []}'), "refused", "no choice"),
        ((200, {}, '{"choices": [{"message": "?"}]}'), "refused", "stop"),
        ((200, {}, '{"error": {"message": "upstream"}}'), "transport_error", "error"),
        ((200, {}, '{"choices": [{"mess'), "transport_error", "error"),
        ((200, {"Content-Type": "text/html"}, "<html>Hi</html>"), "transport_error", "error"),
        ((200, {}, "[]"), "transport_error", "error"),
        (completion([{"type": "text"}]), "transport_error", "error"),
    ],
)
def test_status_of_an_answer(script, answer, status, finish):
    script.steps.append(answer)
    (reply,) = ask(script)
    assert (reply.status, reply.finish_reason) == (status, finish)
    assert (reply.error == "") == (status == "ok")


@pytest.mark.parametrize(
    ("message", "text", "reasoning"),
    [
        ({"content": "<think>a <verdict>1</verdict></think>\n\nb"}, "b", "a <verdict>1</verdict>"),
        ({"content": "opened by the template</think>b"}, "b", "opened by the template"),
        ({"content": "<think>says </think> twice</think>b"}, "b", "says </think> twice"),
        ({"content": "<think>\n\n</think>\n\nb"}, "b", ""),
        ({"content": "<think>no end <verdict>1</verdict>"}, "", "no end <verdict>1</verdict>"),
        ({"content": "b", "reasoning_content": "a"}, "b", "a"),
        ({"content": "b", "reasoning": "a"}, "b", "a"),
        ({"content": "no tags, a < b"}, "no tags, a < b", ""),
    ],
)
def test_reasoning_is_kept_apart(message, text, reasoning):
    reply = read_completion(completion(**message)[2])
    assert (reply.text, reply.reasoning) == (text, reasoning)


def test_lone_surrogates_are_replaced():
    body = (
        r'{"choices": [{"message": {"content": "a\ud800b \ud835\udd38", "reasoning": "\udc00"}}]}'
    )
    reply = read_completion(body)
    assert (reply.text, reply.reasoning) == ("a?b 𝔸", "?")


def test_usage_and_price(script):
    usage = {
        "prompt_tokens": 1000,
        "completion_tokens": 200,
        "prompt_tokens_details": {"cached_tokens": 400},
        "completion_tokens_details": {"reasoning_tokens": 150},
    }
    script.default = completion(usage=usage)
    prices = {"prompt": 2.0, "completion": 10.0}
    (reply,) = ask(script, price_per_million=prices)
    (cheaper,) = ask(script, price_per_million={**prices, "cached": 0.5})
    (free,) = ask(script)
    found = reply.usage
    assert (found.prompt, found.completion, found.reasoning, found.cached) == (1000, 200, 150, 400)
    assert reply.price == pytest.approx((1000 * 2 + 200 * 10) / 1e6)
    assert cheaper.price == pytest.approx((600 * 2 + 400 * 0.5 + 200 * 10) / 1e6)
    assert free.price == 0
    script.default = completion(usage={"prompt_tokens": None, "prompt_tokens_details": None})
    assert ask(script)[0].usage.prompt == 0


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


# Options


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, 'revision: "2026-05-01"'),
        ({"revision": ""}, "has no revision"),
        ({"revision": 20260501}, "quote it"),
        ({"revision": "r", "base_url": "localhost:8000"}, "http://"),
        ({"revision": "r", "concurrency": 0}, "concurrency"),
        ({"revision": "r", "retries": -1}, "retries"),
        ({"revision": "r", "timeout_s": 0}, "timeout_s"),
        ({"revision": "r", "max_tokens": 0}, "max_tokens"),
        ({"revision": "r", "max_tokens": {"poem": 9}}, "pairwise_judgment"),
        ({"revision": "r", "extra_body": {"stream": True}}, "stream"),
        ({"revision": "r", "price_per_million": {"prompt": 1}}, "completion"),
        ({"revision": "r", "temprature": 1}, "temprature"),
        ({"revision": "r", "extra_body": {"a": {1, 2}}}, "extra_body"),
    ],
)
def test_wrong_options(options, text):
    with pytest.raises(SaberError, match=re.escape(text)):
        load_engine("openai", {"model": "judge", **options})


@pytest.mark.parametrize(
    ("model", "revision"),
    [("gpt-4.1-2025-04-14", "2025-04-14"), ("claude-sonnet-4-5-20250929", "20250929")],
)
def test_a_dated_name_is_its_own_revision(model, revision):
    assert OpenAIEngine(model).revision == revision
    assert OpenAIEngine(model, "other").revision == "other"


# Secrets


def test_the_key_stays_in_its_variable(script, caplog):
    caplog.set_level(logging.DEBUG)
    engine = make(script, retries=0)
    shown = [repr(engine), str(vars(engine)), *(str(engine.params(task)) for task in TASKS)]
    for step in (
        failure(401, f"wrong: {KEY}"),
        failure(403, f"wrong: {KEY}"),
        failure(400, KEY),
        failure(500, f"saw {KEY}"),
        (200, {}, f"not JSON: {KEY}"),
    ):
        script.default = step
        replies, error = gather(engine.answer(make_calls(1)))
        shown += [str(replies), str(error), repr(error)]
        assert error is None or (error.__context__, error.__cause__) == (None, None)
    shown.append(caplog.text)
    assert "".join(shown).count("***") >= 5
    assert KEY not in "".join(shown)
    assert script.requests[0][1]["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(("value", "text"), [(None, "not set"), (" \n", "not set"), ("ké", "anew")])
def test_a_missing_or_broken_key_stops_before_the_first_call(script, monkeypatch, value, text):
    monkeypatch.delenv("MARKED_KEY")
    if value is not None:
        monkeypatch.setenv("MARKED_KEY", value)
    with pytest.raises(SaberError, match=f"MARKED_KEY.*{text}"):
        list(make(script).answer(make_calls(1)))
    assert not script.requests


def test_the_key_of_openai_goes_to_no_other_server(script, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_ADMIN_KEY", KEY)
    ask(script, api_key_env=None)
    assert KEY not in str(script.requests[0][1])


# Threads


def test_closing_early_cancels_what_is_left(script):
    script.steps.append(completion())
    script.default = "hang"
    replies = make(script, concurrency=4).answer(make_calls(50))
    assert next(replies)[1].status == "ok"
    assert len(loops()) == 1
    start = time.monotonic()
    replies.close()
    assert time.monotonic() - start < 2
    assert not loops()
    assert len(script.requests) <= 5


def test_nothing_starts_without_calls_or_before_the_first_reply_is_wanted(script):
    assert list(make(script).answer([])) == []
    make(script).answer(make_calls(3))
    assert not loops()
    assert not script.requests


def test_works_inside_a_running_loop(script):
    async def notebook():
        return [reply.status for _, reply in make(script).answer(make_calls(3))]

    assert asyncio.run(notebook()) == ["ok"] * 3


def test_in_background_passes_items_then_the_error():
    async def work(put):
        put(1)
        await asyncio.sleep(0)
        put(2)
        raise KeyError("three")

    found, error = gather(in_background(work))
    assert found == [1, 2]
    assert isinstance(error, KeyError)
    assert not loops()


# With the ledger


def test_lost_calls_are_asked_again_and_answered_ones_are_not(script, tmp_path):
    verdict = lambda _, text: parse_verdict(text)  # noqa: E731
    script.steps.extend([completion(), failure(503), completion("no verdict"), completion()])
    engine = make(script, retries=0, concurrency=1)
    ledger = Ledger(tmp_path)
    with pytest.raises(LedgerError, match="1 of 4"), ledger.session(engine, "j", "p") as session:
        session.ask(make_calls(4), verdict)
    with ledger.session(engine, "j", "p") as session:
        outcomes = session.ask(make_calls(4), verdict)
    assert [o.value for o in outcomes] == [0.0, 0.0, None, 0.0]
    assert session.counts.made == 1
    frame = ledger.frame()
    statuses = frame.filter(pl.col("item") == "item 1")["status"].to_list()
    assert statuses == ["transport_error", "ok"]
    assert frame.height == 5
