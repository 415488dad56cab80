"""The vllm engine without vLLM: what it would ask, in which order, and how it reads an output.

tests/vllm has the tests with a real vLLM.
"""

import importlib.util
import json
import math
from itertools import pairwise
from types import SimpleNamespace

import pytest

from resources.engines import engine_identity, load_engine
from resources.engines.openai import OpenAIEngine
from resources.engines.openai_replies import read_completion
from resources.engines.vllm import TEMPLATE_TOKENS, VLLMEngine
from resources.engines.vllm_model import ask, completion, prefix_order
from saber_dagster.engines import (
    ORDINAL_JUDGMENT,
    PAIRWISE_CHOICE,
    PAIRWISE_JUDGMENT,
    SOLUTION_SUMMARY,
    TOPIC_SCORES,
    Call,
    call_key,
)
from saber_dagster.errors import SaberError
from saber_dagster.hashing import canonical_json
from saber_dagster.replies import parse_choice

INSTALLED = importlib.util.find_spec("vllm") is not None


def engine(**options):
    return load_engine("vllm", {"model": "org/name", "revision": "c0ffee", **options})


def document(name):
    return {"problem": f"problem {name}", "solution": f"solution {name}"}


def pair(query, first, second, task=PAIRWISE_CHOICE, **fields):
    inputs = {"query": document(query), "first": document(first), "second": document(second)}
    return Call(task, inputs, f"{query}: {first} {second}", **fields)


def grade(query, name, **fields):
    inputs = {"query": document(query), "document": document(name)}
    return Call(ORDINAL_JUDGMENT, inputs, f"{query}: {name}", **fields)


def output(text="", tokens=(1,), finish="stop", logprobs=None, prompt=10, cached=None):
    """What ``vllm.LLM.chat`` returns for a prompt (vLLM 0.32: ``vllm/outputs.py``)."""
    places = logprobs and [
        {n: SimpleNamespace(decoded_token=t, logprob=p) for n, (t, p) in enumerate(place, 1)}
        for place in logprobs
    ]
    reply = SimpleNamespace(text=text, token_ids=tokens, finish_reason=finish, logprobs=places)
    return SimpleNamespace(outputs=[reply], prompt_token_ids=[0] * prompt, num_cached_tokens=cached)


def test_pairs_of_a_query_follow_each_other_in_the_order_of_their_texts():
    asked = [pair(q, a, b) for a, b in (("a", "b"), ("b", "c"), ("a", "c")) for q in "xyz"]
    messages = [engine().messages(call) for call in asked]
    order = prefix_order(messages)
    assert sorted(order) == list(range(9))
    assert [asked[i].item for i in order] == sorted(call.item for call in asked)
    texts = [messages[i][-1]["content"] for i in order]

    def shared(one, two):
        return next((i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), 0)

    query_ends = len("Target problem:\nproblem x\n\nTarget solution:\nsolution x")
    neighbours = [shared(one, two) for one, two in pairwise(texts)]
    assert sum(length >= query_ends for length in neighbours) == 6  # two in each of three queries
    assert prefix_order([]) == []
    assert prefix_order([messages[0]] * 3) == [0, 1, 2]


def test_what_a_call_asks_of_the_sampler():
    greedy = engine(temperature=0.5, seed=3, sampling={"top_p": 0.9}, max_tokens=77)
    assert greedy.sampling(grade("x", "a", sample=2)) == {
        "temperature": 0.5,
        "seed": 5,
        "top_p": 0.9,
        "max_tokens": 77,
        "structured_outputs": {"json": dict(greedy.template(ORDINAL_JUDGMENT).schema)},
    }
    assert engine().sampling(pair("x", "a", "b")) == {
        "temperature": 0.0,
        "seed": None,
        "max_tokens": 1,
        "logprobs": 20,
        "structured_outputs": {"choice": ["1", "2"]},
    }
    tagged = engine(structured="off")
    assert "structured_outputs" not in tagged.sampling(grade("x", "a"))
    assert "<score>" in tagged.messages(grade("x", "a"))[-1]["content"]


def test_params_hold_what_changes_an_answer_and_nothing_else(tmp_path):
    call = grade("x", "a")
    key = call_key(engine(), call)
    same = {
        "path": str(tmp_path),
        "tensor_parallel_size": 2,
        "gpu_memory_utilization": 0.5,
        "runtime_args": {"max_num_seqs": 4},
        "max_model_len": 32768,
        "chunk": 7,
        "skip_too_long": True,
        "tokenizer": "elsewhere.json",
    }
    assert call_key(engine(**same), call) == key
    for option, value in {
        "temperature": 0.7,
        "seed": 1,
        "max_tokens": {ORDINAL_JUDGMENT: 5},
        "sampling": {"top_k": 1},
        "dtype": "bfloat16",
        "engine_args": {"quantization": "fp8"},
        "chat_template_kwargs": {"enable_thinking": False},
        "structured": "off",
    }.items():
        assert call_key(engine(**{option: value}), call) != key, option


def test_outputs_are_read_like_a_servers_answers():
    def reply(*args, choices=(), **kwargs):
        return read_completion(json.dumps(completion(output(*args, **kwargs))), choices)

    plain = reply("<verdict>1</verdict>", tokens=(5, 6, 7), prompt=30, cached=16)
    assert (plain.status, plain.text) == ("ok", "<verdict>1</verdict>")
    assert (plain.usage.prompt, plain.usage.completion, plain.usage.cached) == (30, 3, 16)
    thinking = reply("<think>first</think>\n<verdict>2</verdict>")
    assert (thinking.reasoning, thinking.text) == ("first", "<verdict>2</verdict>")
    statuses = {"length": "truncated", "repetition": "truncated", "abort": "transport_error"}
    for finish, status in {**statuses, "error": "transport_error", "stop": "ok"}.items():
        assert reply("text", finish=finish).status == status, finish
    assert reply("").status == "refused"


def test_log_probabilities_of_a_choice():
    place = [("1", math.log(0.8)), ("2", math.log(0.2)), ('"', -math.inf), (None, -math.inf)]
    body = completion(output("1", finish="length", logprobs=[place]))
    text = json.dumps(body, allow_nan=False)
    reply = read_completion(text, ("1", "2"))
    assert reply.status == "ok"
    assert parse_choice(reply.text, ("1", "2")) == pytest.approx(math.log(4), abs=1e-4)


class Refusing:
    """Stands in for ``vllm.LLM``, which refuses a whole batch for one prompt that is too long."""

    def __init__(self, limit, error="The decoder prompt is longer than the maximum model length"):
        self.limit, self.error, self.batches = limit, error, []

    def chat(self, messages, params, **_):
        self.batches.append(len(messages))
        if any(len(one[0]["content"]) > self.limit for one in messages):
            raise ValueError(self.error)
        return [one[0]["content"] for one in messages]


def test_the_prompt_that_is_too_long_is_found_and_the_others_are_asked():
    questions = [([{"role": "user", "content": "x" * n}], None) for n in (1, 9, 2, 3, 9)]
    found = ask(Refusing(5), questions, {})
    assert [type(one) for one in found] == [str, ValueError, str, str, ValueError]
    assert found[0] == "x"
    assert found[3] == "xxx"
    whole = Refusing(9)
    ask(whole, questions, {})
    assert whole.batches == [5]
    with pytest.raises(SaberError, match=r"vLLM failed \(ValueError: out of memory\)"):
        ask(Refusing(5, "out of memory"), questions, {})


def test_what_decides_which_calls_are_cut_is_part_of_code_versions(tmp_path):
    file = tmp_path / "tokenizer.json"
    file.write_text("{}")
    options = [
        {},
        {"max_model_len": 9000},
        {"max_model_len": 8000},
        {"max_model_len": 8000, "tokenizer": str(file)},
    ]
    found = [engine_identity(engine(**each), PAIRWISE_JUDGMENT) for each in options]
    assert len({canonical_json(each) for each in found}) == 4
    assert set(found[0]) == {"model", "revision", "params", "prompt"}
    assert engine_identity(engine(tokenizer=str(file)), PAIRWISE_JUDGMENT) == found[0]


def test_long_texts_are_cut_by_the_models_own_tokenizer(tmp_path):
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    words.save(str(tmp_path / "tokenizer.json"))
    short = engine(path=str(tmp_path), max_model_len=1000, max_tokens=500)
    call = Call(
        SOLUTION_SUMMARY, {"problem": "word " * 900, "solution": "s", "max_words": 5}, "item"
    )
    rendered = short.render(call)
    assert rendered.truncated
    count = sum(len(message["content"].split()) for message in rendered.messages)
    assert 1000 - 500 - TEMPLATE_TOKENS - 60 < count <= 1000 - 500 - TEMPLATE_TOKENS
    assert not engine(path=str(tmp_path)).render(call).truncated
    with pytest.raises(SaberError, match="nothing is left for the call"):
        engine(path=str(tmp_path), max_model_len=500, max_tokens=500).render(call)
    with pytest.raises(SaberError, match="no such file"):
        engine(path=str(tmp_path / "empty"), max_model_len=1000, max_tokens=500).render(call)


@pytest.mark.skipif(INSTALLED, reason="vLLM is installed here")
def test_without_vllm_the_message_says_what_to_install(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(SaberError, match=r"pip install 'saber-dagster\[vllm\]'.*vllm serve"):
        list(engine(path=str(tmp_path)).answer([pair("x", "a", "b")]))
    with pytest.raises(SaberError, match="holds no config"):
        list(engine(path=str(tmp_path / "empty")).answer([pair("x", "a", "b")]))
    assert list(engine().answer([])) == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"revision": None}, "has no revision"),
        ({"chunk": 0}, "chunk"),
        ({"gpu_memory_utilization": 1.5}, "gpu_memory_utilization"),
        ({"max_tokens": {"nonsense": 3}}, "max_tokens"),
        ({"structured": "xml"}, "structured is 'xml'"),
        ({"engine_args": {"dtype": "half"}}, "engine_args may not hold dtype"),
        ({"sampling": {"n": 3}}, "sampling may not hold n"),
        ({"dtyp": "half"}, "did you mean 'dtype'"),
    ],
)
def test_a_wrong_option_is_named(options, words):
    with pytest.raises(SaberError, match=words):
        engine(**options)


def test_the_same_engine_as_a_servers_but_for_the_model_itself():
    """Tasks and prompts are those of the openai engine."""
    server = OpenAIEngine("org/name", "c0ffee", provider="vllm", base_url="http://x/v1")
    for task in (PAIRWISE_CHOICE, PAIRWISE_JUDGMENT):
        call = pair("x", "a", "b", task)
        assert VLLMEngine("org/name", "c0ffee").messages(call) == server.messages(call)
    assert VLLMEngine("m", "r").prompt(TOPIC_SCORES) == server.prompt(TOPIC_SCORES)
