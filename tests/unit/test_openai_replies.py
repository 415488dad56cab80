"""Reading answers of OpenAI-compatible servers."""

import json

import pytest
from llm_script import ask, completion

from resources.engines.openai_replies import read_completion
from saber_dagster.engines import Usage
from saber_dagster.replies import parse_choice


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
        (completion(None, reasoning_content="hm"), "truncated", "stop"),
        (completion(None, tool_calls=[{"id": "1"}]), "refused", "stop"),
        (completion(finish="error"), "transport_error", "error"),
        (completion(finish=None), "ok", "stop"),
        ((200, {}, '{"choices": []}'), "transport_error", "error"),
        (
            (200, {}, '{"choices": [], "promptFeedback": {"blockReason": "SAFETY"}}'),
            "refused",
            "content_filter",
        ),
        ((200, {}, '{"choices": [{"message": "?"}]}'), "refused", "stop"),
        ((200, {}, '{"error": {"message": "upstream"}}'), "transport_error", "error"),
        ((200, {}, '{"choices": [{"mess'), "transport_error", "error"),
        ((200, {"Content-Type": "text/html"}, "<html>Hi</html>"), "transport_error", "error"),
        ((200, {}, "[]"), "transport_error", "error"),
        (completion([{"type": "text"}]), "transport_error", "error"),
        (completion([{"type": "image_url", "image_url": "x"}]), "transport_error", "error"),
    ],
)
def test_status_of_an_answer(script, answer, status, finish):
    script.steps.append(answer)
    (reply,) = ask(script, retries=0)
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
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "ab", ""),
    ],
)
def test_reasoning_is_kept_apart(message, text, reasoning):
    reply = read_completion(completion(**message)[2])
    assert (reply.text, reply.reasoning) == (text, reasoning)


def test_of_several_choices_the_first_by_index_counts():
    choices = [
        {"index": index, "message": {"content": str(index)}, "finish_reason": "stop"}
        for index in (2, 0, 1)
    ]
    assert read_completion(json.dumps({"choices": choices})).text == "0"


def test_lone_surrogates_are_replaced():
    body = (
        r'{"choices": [{"message": {"content": "a\ud800b \ud835\udd38", "reasoning": "\udc00"}}]}'
    )
    reply = read_completion(body)
    assert (reply.text, reply.reasoning) == ("a?b 𝔸", "?")


# The Responses API


def response(*items, status="completed", **fields):
    usage = {
        "input_tokens": 100,
        "output_tokens": 50,
        "input_tokens_details": {"cached_tokens": 40},
        "output_tokens_details": {"reasoning_tokens": 30},
    }
    return json.dumps({"output": list(items), "status": status, "usage": usage, **fields})


def said(text, **fields):
    part = {"type": "output_text", "text": text, **fields}
    return {"type": "message", "content": [part]}


THOUGHT = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}


def test_a_response_has_text_reasoning_and_usage():
    reply = read_completion(response(THOUGHT, said("a"), said("b")))
    assert (reply.status, reply.text, reply.reasoning) == ("ok", "ab", "hm")
    assert reply.usage == Usage(prompt=100, completion=50, reasoning=30, cached=40)


@pytest.mark.parametrize(
    ("body", "status", "finish"),
    [
        (
            response(
                said("a"),
                status="incomplete",
                incomplete_details={"reason": "max_output_tokens"},
            ),
            "truncated",
            "max_output_tokens",
        ),
        (
            response(status="incomplete", incomplete_details={"reason": "content_filter"}),
            "refused",
            "content_filter",
        ),
        (response(status="failed", error={"message": "x"}), "transport_error", "failed"),
        (response(THOUGHT), "truncated", "stop"),
        (
            response({"type": "message", "content": [{"type": "refusal", "refusal": "no"}]}),
            "refused",
            "stop",
        ),
        (response(said(7)), "transport_error", "error"),
        ('{"output": "none"}', "refused", "stop"),
    ],
)
def test_status_of_a_response(body, status, finish):
    reply = read_completion(body)
    assert (reply.status, reply.finish_reason) == (status, finish)


def test_a_response_has_log_probabilities():
    top = [{"token": "1", "logprob": -0.1}, {"token": "2", "logprob": -2.5}]
    body = response(said("1", logprobs=[{"token": "1", "logprob": -0.1, "top_logprobs": top}]))
    reply = read_completion(body, ("1", "2"))
    assert parse_choice(reply.text, ("1", "2")) == pytest.approx(2.4)


@pytest.mark.parametrize("usage", [{"prompt_tokens": -1}, {"prompt_tokens": 10**30}, [], "many"])
def test_senseless_usage_counts_as_none(usage):
    assert read_completion(completion(usage=usage)[2]).usage == Usage()


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 905}, (100, 805)),
        ({"input_tokens": 100, "output_tokens": 5, "total_tokens": 905}, (100, 805)),
        ({"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105}, (100, 5)),
        ({"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 7}, (100, 5)),
        ({"completion_tokens": 5, "total_tokens": 105}, (0, 5)),
    ],
)
def test_thinking_that_is_counted_in_the_total_alone_is_completion(usage, tokens):
    found = read_completion(completion(usage=usage)[2]).usage
    assert (found.prompt, found.completion) == tokens


def test_reasoning_is_where_the_provider_says():
    body = completion("b", thoughts="a", reasoning="other")[2]
    assert read_completion(body, (), ("thoughts",)).reasoning == "a"
