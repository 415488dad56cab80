"""The openai engine against a server that plays a script: requests, options, threads, the ledger."""

import asyncio
import inspect
import re
import threading
import time
from pathlib import Path

import polars as pl
import pytest
from llm_script import KEY, ask, completion, failure, gather, loops, make, make_calls

from resources.engines import engine_identity, load_engine
from resources.engines.background import in_background
from resources.engines.openai import CONTEXT_MARGIN, OpenAIEngine
from saber_dagster.engines import PAIRWISE_JUDGMENT, SOLUTION_SUMMARY, Call, Usage, call_key
from saber_dagster.errors import SaberError
from saber_dagster.hashing import canonical_json
from saber_dagster.ledger import Ledger, LedgerError
from saber_dagster.replies import parse_verdict

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
    body = engine.body(make_calls(1)[0])
    assert body["max_completion_tokens"] == 4096
    assert "max_tokens" not in body
    assert engine.params(PAIRWISE_JUDGMENT)["max_tokens"] == 4096


def test_params_hold_what_changes_an_answer_and_nothing_else():
    base = {"model": "m", "revision": "r", "provider": "vllm"}
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
    engine = make(script, price_per_million={**prices, "cached": 0.5})
    more = engine.price(Usage(prompt=100, completion=0, cached=5000))  # no part of the prompt
    assert more == pytest.approx(5000 * 0.5 / 1e6)


# Long inputs


def long_call(words=3000):
    problem = {"problem": "p", "solution": "word " * words}
    inputs = {"query": {"problem": "q", "solution": "s"}, "first": problem, "second": problem}
    return Call(PAIRWISE_JUDGMENT, inputs, "long")


def test_a_long_call_is_cut_to_the_context_less_the_reply(script):
    options = {"context_tokens": 2000, "max_tokens": 500, "structured": "off"}
    engine = make(script, **options)
    short, cut = make_calls(1)[0], long_call()
    replies = dict(engine.answer([short, cut]))
    assert [replies[n].truncated_input for n in (0, 1)] == [False, True]
    sent = {
        len(body["messages"][-1]["content"]): body["messages"] for _, _, body in script.requests
    }
    tokens = sum(engine.count_tokens(message["content"]) for message in sent[max(sent)])
    assert 1200 < tokens <= 2000 - 500 - CONTEXT_MARGIN
    assert engine.messages(short) == make(script, structured="off").messages(short)
    longer = make(script, **{**options, "context_tokens": 50_000})
    assert call_key(longer, short) == call_key(engine, short)
    assert call_key(longer, cut) != call_key(engine, cut)


def test_what_decides_which_calls_are_cut_is_part_of_code_versions(script, tmp_path):
    def identity(**options):
        return engine_identity(make(script, max_tokens=500, **options), PAIRWISE_JUDGMENT)

    file = tmp_path / "tokenizer.json"
    file.write_text("{}")
    uncut = identity()
    assert set(uncut) == {"model", "revision", "params", "prompt"}
    assert identity(tokenizer=str(file)) == uncut
    cut, shorter = identity(context_tokens=2000), identity(context_tokens=1000)
    counted = identity(context_tokens=2000, tokenizer=str(file))
    file.write_text("{ }")
    recounted = identity(context_tokens=2000, tokenizer=str(file))
    moved = file.rename(tmp_path / "other.json")
    assert identity(context_tokens=2000, tokenizer=str(moved)) == recounted
    found = [uncut, cut, shorter, counted, recounted]
    assert len({canonical_json(each) for each in found}) == len(found)
    with pytest.raises(SaberError, match=re.escape(f"tokenizer {file}: there is no such file")):
        identity(context_tokens=2000, tokenizer=str(file))


def test_a_context_that_leaves_no_room_names_the_options():
    engine = OpenAIEngine("m", "r", context_tokens=4000)
    with pytest.raises(
        SaberError, match=r"context_tokens is 4000.*max_tokens of pairwise_judgment"
    ):
        engine.messages(make_calls(1)[0])


def test_a_tokenizer_that_is_missing_is_named_when_it_is_needed(tmp_path):
    missing = str(tmp_path / "tokenizer.json")
    engine = OpenAIEngine("m", "r", context_tokens=6000, tokenizer=missing)
    with pytest.raises(SaberError, match=re.escape(missing)):
        engine.messages(long_call())


# Limits of the account


def test_tokens_a_minute_are_estimated_and_then_corrected(script):
    script.default = completion(usage={"prompt_tokens": 2500, "completion_tokens": 500})
    engine = make(script, tokens_per_minute=60 * 3000, max_tokens=1000)
    start = time.monotonic()
    ask_all = list(engine.answer(make_calls(5)))
    assert len(ask_all) == 5
    assert time.monotonic() - start > 1.5  # 15,000 tokens at 3,000 a second, of which 3,000 at once
    call = make_calls(1)[0]
    prompt = sum(engine.count_tokens(message["content"]) for message in engine.messages(call))
    assert engine.request(call).tokens == prompt + 500


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
        ({"revision": "r", "price_per_million": {"prompt": -1, "completion": 1}}, "prompt is -1"),
        ({"revision": "r", "requests_per_minute": 0}, "requests_per_minute"),
        ({"revision": "r", "context_tokens": -5}, "context_tokens"),
        ({"revision": "r", "api": "completions"}, "chat, responses"),
        ({"revision": "r", "structured": "yes"}, "json_schema"),
        ({"revision": "r", "provider": "azure"}, "llama.cpp"),
        ({"revision": "r", "extra_body": {"a": {1, 2}}}, "extra_body"),
    ],
)
def test_wrong_options(options, text):
    with pytest.raises(SaberError, match=re.escape(text)):
        load_engine("openai", {"model": "judge", **options})


def test_every_option_is_in_the_docs():
    text = (Path(__file__).parents[2] / "docs" / "engines.md").read_text(encoding="utf-8")
    options = set(inspect.signature(OpenAIEngine).parameters)
    assert {name for name in options if f"`{name}`" not in text} == set()


@pytest.mark.parametrize(
    ("model", "revision"),
    [("gpt-4.1-2025-04-14", "2025-04-14"), ("claude-sonnet-4-5-20250929", "20250929")],
)
def test_a_dated_name_is_its_own_revision(model, revision):
    assert OpenAIEngine(model).revision == revision
    assert OpenAIEngine(model, "other").revision == "other"


# Threads


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
