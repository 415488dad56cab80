"""Log-probabilities of a forced choice, as servers report them."""

import json
import math

import pytest
from llm_script import ask, completion, make

from resources.engines.choices import NoLogprobs, choice_text
from resources.engines.openai_replies import read_completion
from saber_dagster.engines import PAIRWISE_CHOICE, Call
from saber_dagster.replies import ParseError, parse_choice

ONE, TWO = math.log(0.6), math.log(0.3)
TOP = [("1", ONE), ("2", TWO), ("The", -4.0)]


def chat(*places, content="1", finish="length"):
    """A chat completion whose tokens are given with what might have stood in their places."""
    tokens = [
        {
            "token": token,
            "logprob": -1.0,
            "top_logprobs": [{"token": t, "logprob": p} for t, p in top],
        }
        for token, top in places
    ]
    message = {"role": "assistant", "content": content}
    choice = {"finish_reason": finish, "message": message, "logprobs": {"content": tokens}}
    return json.dumps({"choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": 1}})


def test_the_log_odds_are_those_of_the_two_choices():
    reply = read_completion(chat(("1", TOP)), ("1", "2"))
    assert (reply.status, reply.finish_reason, reply.usage.completion) == ("ok", "length", 1)
    assert parse_choice(reply.text, ("1", "2")) == pytest.approx(math.log(2), abs=1e-4)


def test_variants_of_a_token_are_added_up():
    top = [(" 1", math.log(0.2)), ("1", math.log(0.1)), ("１", math.log(0.3)), ("▁2", TWO)]
    assert parse_choice(choice_text(top, ("1", "2")), ("1", "2")) == pytest.approx(
        math.log(2), abs=1e-4
    )
    words = [("Yes", math.log(0.3)), (" yes", math.log(0.1)), ("no", math.log(0.1))]
    assert parse_choice(choice_text(words, ("yes", "no")), ("yes", "no")) == pytest.approx(
        math.log(4), abs=1e-4
    )
    cases = [("a", math.log(0.5)), ("A", math.log(0.25))]
    assert parse_choice(choice_text(cases, ("a", "A")), ("a", "A")) == pytest.approx(
        math.log(2), abs=1e-4
    )


def test_a_choice_that_was_not_reported_is_below_the_lowest():
    text = choice_text([("1", -0.1), ("One", -3.0), ("The", -7.5)], ("1", "2"))
    assert text.splitlines() == [
        '<logprob choice="1">-0.1</logprob>',
        '<logprob floor="true">-7.5</logprob>',
    ]
    assert parse_choice(text, ("1", "2")) == pytest.approx(7.4)
    with pytest.raises(ParseError):
        parse_choice(choice_text([("The", -0.1)], ("1", "2")), ("1", "2"))


def test_choices_in_the_tail_of_the_likely_tokens_are_no_verdict():
    text = choice_text([("The", math.log(0.9999)), ("1", -14.0), ("One", -16.0)], ("1", "2"))
    with pytest.raises(ParseError, match="about to say something else"):
        parse_choice(text, ("1", "2"))


def test_space_before_the_choice_is_passed_over():
    reply = read_completion(chat(("▁", [("▁", -0.1)]), ("2", TOP)), ("1", "2"))
    assert parse_choice(reply.text, ("1", "2")) == pytest.approx(math.log(2), abs=1e-4)


@pytest.mark.parametrize(
    "top",
    [
        [],
        [("1", -9999.0), ("2", -9999.0)],
        [("1", None)],
        [("1", "high")],
        [("1", float("nan")), ("2", float("-inf"))],
    ],
)
def test_a_server_without_log_probabilities_is_an_error(top):
    with pytest.raises(NoLogprobs, match="ask: generate"):
        read_completion(chat(("1", top)), ("1", "2"))


def test_a_model_that_begins_to_reason_is_an_error():
    with pytest.raises(NoLogprobs, match=r"'<think>'.*enable_thinking"):
        read_completion(chat(("<think>", [("<think>", -0.01), ("1", -9.0)])), ("1", "2"))
    ordinary = [("1", -0.1), ("2", -3.0), ("<think>", -5.0)]
    assert read_completion(chat(("1", ordinary)), ("1", "2")).status == "ok"


def test_a_refusal_stays_one():
    filtered = json.dumps({"choices": [{"finish_reason": "content_filter", "message": {}}]})
    assert read_completion(filtered, ("1", "2")).status == "refused"
    blocked = '{"choices": [], "promptFeedback": {"blockReason": "SAFETY"}}'
    assert read_completion(blocked, ("1", "2")).status == "refused"
    assert read_completion('{"choices": []}', ("1", "2")).status == "transport_error"
    assert read_completion('{"choices": [', ("1", "2")).status == "transport_error"


def test_the_engine_stops_at_the_first_reply_without_log_probabilities(script):
    problem = {"problem": "p", "solution": "s"}
    inputs = {"query": problem, "first": problem, "second": problem}
    calls = [Call(PAIRWISE_CHOICE, inputs, f"item {n}", n) for n in range(50)]
    script.default = completion("1")
    with pytest.raises(NoLogprobs):
        list(make(script, concurrency=2).answer(calls))
    assert len(script.requests) <= 4
    script.default = (200, {}, chat(("1", TOP)))
    assert {reply.status for _, reply in make(script).answer(calls[:3])} == {"ok"}
    assert ask(script)[0].text == "1"  # no prompt with choices
