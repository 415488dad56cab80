"""The table of providers, and the requests that it makes."""

import re

import pytest
from llm_script import make_calls

from resources.engines import load_engine
from resources.engines.openai import OpenAIEngine
from resources.engines.providers import PROVIDERS, provider_of
from saber_dagster.engines import (
    ORDINAL_JUDGMENT,
    PAIRWISE_CHOICE,
    PAIRWISE_JUDGMENT,
    Call,
    call_key,
)

CHOICE = Call(PAIRWISE_CHOICE, make_calls(1)[0].inputs, "item")


def engine(provider="vllm", model="m", **options):
    return OpenAIEngine(model, "r", **{"provider": provider, **options})


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://api.openai.com/v1", "openai"),
        ("https://generativelanguage.googleapis.com/v1beta/openai/", "gemini"),
        ("http://localhost:8000/v1", "generic"),
        ("https://api.openai.com.evil.example/v1", "generic"),
    ],
)
def test_the_address_names_the_provider(url, name):
    assert provider_of(None, url) == PROVIDERS[name]


def test_an_entry_can_be_changed():
    changed = provider_of({"like": "vllm", "top_logprobs": 5}, "http://a")
    assert (changed.top_logprobs, changed.choice) == (5, "structured_outputs")
    assert provider_of({"limit_field": "n"}, "https://api.openai.com/v1").json_schema != "none"


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("vlm", "vllm, llama.cpp"),
        ({"like": "x"}, "'x' is not known"),
        ({"top_logprob": 5}, "did you mean top_logprobs"),
        ({"top_logprobs": True}, "wrong type"),
        ({"json_schema": "guided"}, "response_format"),
        ({"choice": "regex"}, "grammar"),
        ({"too_long": "("}, "no regular expression"),
    ],
)
def test_a_wrong_entry_is_named(option, text):
    with pytest.raises(Exception, match=re.escape(text)):
        load_engine("openai", {"model": "m", "revision": "r", "provider": option})


def test_the_limit_has_the_name_that_the_provider_knows():
    call = make_calls(1)[0]
    assert engine("vllm").body(call)["max_tokens"] == 4096
    body = engine("openai").body(call)
    assert body["max_completion_tokens"] == 4096
    assert "max_tokens" not in body
    assert engine("openai").params(PAIRWISE_JUDGMENT)["max_tokens"] == 4096


def test_reasoning_models_of_openai_get_no_temperature():
    assert "temperature" not in engine("openai", "gpt-5-2025-08-07").body(make_calls(1)[0])
    assert "temperature" not in engine("openai", "o3-2025-04-16").params(PAIRWISE_JUDGMENT)
    for name in ("gpt-5-chat-latest", "gpt-4.1", "foo3"):
        assert engine("openai", name).body(CHOICE)["temperature"] == 0
    assert engine("vllm", "o3").body(CHOICE)["temperature"] == 0


def test_a_schema_is_demanded_where_the_provider_can():
    document = make_calls(1)[0].inputs["query"]
    call = Call(ORDINAL_JUDGMENT, {"query": document, "document": document}, "item")
    body = engine("vllm").body(call)
    form = body["response_format"]["json_schema"]
    assert form["schema"] == engine().params(ORDINAL_JUDGMENT)["schema"]
    assert "score" in form["schema"]["properties"]
    tagged = engine("vllm", structured="off")
    assert "response_format" not in tagged.body(call)
    assert "<score>" in tagged.messages(call)[-1]["content"]
    assert "response_format" not in engine("generic").body(call)
    assert "response_format" in engine("generic", structured="json_schema").body(call)
    other = engine({"like": "vllm", "json_schema": "structured_outputs"}).body(call)
    assert other["structured_outputs"] == {"json": form["schema"]}
    assert call_key(engine(), call) != call_key(tagged, call)


def test_a_choice_is_one_token_with_log_probabilities():
    body = engine("vllm").body(CHOICE)
    assert (body["max_tokens"], body["logprobs"], body["top_logprobs"]) == (1, True, 20)
    assert body["structured_outputs"] == {"choice": ["1", "2"]}
    assert "response_format" not in body
    plain = engine("llama.cpp", max_tokens=500).body(CHOICE)
    assert plain["max_tokens"] == 1
    assert not {"structured_outputs", "grammar"} & plain.keys()
    grammar = engine({"like": "llama.cpp", "choice": "grammar"}).body(CHOICE)["grammar"]
    assert grammar == 'root ::= "1" | "2"'
    assert engine(max_tokens={PAIRWISE_CHOICE: 3}).body(CHOICE)["max_tokens"] == 3
    keys = {call_key(engine(name), CHOICE) for name in ("vllm", "llama.cpp")}
    assert len(keys) == 2


def test_no_log_probabilities_are_an_error_before_any_call():
    with pytest.raises(Exception, match="gives no log-probabilities; ask the judge m by `ask: gen"):
        engine("gemini").params(PAIRWISE_CHOICE)
    assert engine({"like": "gemini", "top_logprobs": 5}).body(CHOICE)["top_logprobs"] == 5
    with pytest.raises(Exception, match="o3, a reasoning model, gives no log-probabilities"):
        engine("openai", "o3").params(PAIRWISE_CHOICE)
    trusted = engine({"like": "openai", "reasoning_models": ""}, "o3")
    assert trusted.body(CHOICE)["top_logprobs"] == 20


def test_the_responses_api():
    options = {"api": "responses", "reasoning_effort": "low", "extra_body": {"top_p": 1}}
    judge = engine("openai", **options)
    call = Call(
        ORDINAL_JUDGMENT, {"query": CHOICE.inputs["query"], "document": CHOICE.inputs["first"]}, "i"
    )
    body = judge.body(call)
    assert body["input"] == judge.messages(call)
    assert body["reasoning"] == {"effort": "low"}
    assert (body["max_output_tokens"], body["top_p"], body["store"]) == (8192, 1, False)
    assert body["text"]["format"]["schema"] == judge.params(ORDINAL_JUDGMENT)["schema"]
    assert not {"messages", "reasoning_effort", "max_tokens"} & body.keys()
    one = judge.body(CHOICE)
    assert (one["max_output_tokens"], one["top_logprobs"]) == (16, 20)
    assert one["include"] == ["message.output_text.logprobs"]
    chat = engine("openai", reasoning_effort="low").body(call)
    assert chat["reasoning_effort"] == "low"
    keys = {call_key(engine("openai", api=api), call) for api in ("chat", "responses")}
    assert len(keys) == 2
    for wrong in ({"seed": 1}, {"provider": "llama.cpp"}):
        with pytest.raises(Exception, match="Responses API"):
            engine(**{"provider": "openai", "api": "responses", **wrong})
