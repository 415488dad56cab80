import json
import math
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompts import example_inputs
from saber_dagster.engines import TASKS
from saber_dagster.replies import (
    ParseError,
    parse_choice,
    parse_latex,
    parse_ordinal,
    parse_reply,
    parse_segments,
    parse_summary,
    parse_topic_scores,
    parse_verdict,
)

pytestmark = pytest.mark.property

SCORES = st.lists(st.floats(0, 1), max_size=6)
SCRAPS = st.lists(
    st.sampled_from(["<verdict>", "</verdict>", "1", "2", "=", " ", "text", '<score n="1">', "0.5"])
    | st.sampled_from(["</score>", "<core_idea>", "</core_idea>", "<no_core_idea/>", "\n", "nan"])
    | st.sampled_from(
        ["{", "}", '"verdict"', '"score"', ":", "[", "]", ",", "true", "1e400", "```"]
    )
    | st.sampled_from(
        ["<latex>", "</latex>", "<problem>", "</problem>", "<solution>", "\\", "\x0c"]
    )
    | st.sampled_from(['<logprob choice="1">-1</logprob>', '<logprob floor="true">-2</logprob>'])
)


@given(SCORES, st.data())
def test_scores_come_back_whatever_their_order_of_lines(scores, data):
    lines = [f'<score n="{n}">{s!r}</score>' for n, s in enumerate(scores, 1)]
    text = "\n".join(data.draw(st.permutations(lines)))
    assert parse_topic_scores(text, len(scores)) == scores


@given(SCRAPS, st.sampled_from("12="))
def test_what_comes_before_the_last_verdict_does_not_matter(scraps, verdict):
    text = "".join(scraps) + f"<verdict>{verdict}</verdict>"
    assert parse_verdict(text) == {"1": 1.0, "2": 0.0, "=": 0.5}[verdict]


@given(SCRAPS)
def test_scraps_are_a_value_in_bounds_or_a_parse_error(scraps):
    text = "".join(scraps)
    for parse, low, high in (
        (parse_verdict, 0.0, 1.0),
        (lambda text: parse_topic_scores(text, 1)[0], 0.0, 1.0),
        (lambda text: parse_summary(text, 30).confidence or 0.0, 0.0, 1.0),
        (parse_ordinal, 0.0, 100.0),
        (lambda text: parse_choice(text, ("1", "2")), -9.0, 9.0),
    ):
        try:
            value = parse(text)
        except ParseError:
            continue
        assert math.isfinite(value)
        assert low <= value <= high


@given(st.sampled_from(TASKS), SCRAPS.map("".join) | st.text())
def test_no_reply_breaks_a_parser(task, text):
    with suppress(ParseError):
        parse_reply(task, example_inputs(task), text)


@given(st.lists(st.floats(0, 1), max_size=6), st.floats(0, 100), st.text())
def test_both_forms_say_the_same(scores, score, reason):
    tagged = "".join(f'<score n="{n}">{s!r}</score>' for n, s in enumerate(scores, 1))
    listed = json.dumps({"scores": scores})
    assert parse_topic_scores(listed, len(scores)) == parse_topic_scores(tagged, len(scores))
    assert parse_ordinal(json.dumps({"score": score})) == parse_ordinal(f"<score>{score!r}</score>")
    assert parse_verdict(json.dumps({"reason": reason, "verdict": 2})) == 0.0


@given(st.floats(-4.6, 0), st.floats(-50, 0))
def test_log_odds_of_the_other_choice_are_the_opposite(first, second):
    text = "".join(
        f'<logprob choice="{choice}">{value!r}</logprob>'
        for choice, value in (("1", first), ("2", second))
    )
    assert parse_choice(text, ("1", "2")) == first - second == -parse_choice(text, ("2", "1"))


PLAIN = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1).filter(str.strip)


@given(PLAIN.filter(lambda text: "latex>" not in text), SCRAPS.map("".join))
def test_a_text_comes_back_as_it_was(text, chatter):
    chatter = chatter.replace("latex>", "").replace("\x0c", "")
    assert parse_latex(f"{chatter}<latex>{text}</latex>") == text.strip()


@given(st.lists(PLAIN.filter(lambda text: "<" not in text), min_size=1, max_size=4))
def test_segments_come_back_as_they_were(problems):
    reply = "".join(f"<problem>{problem}</problem>" for problem in problems)
    segments = parse_segments(reply, " 1. ".join(problems))
    assert [segment.problem for segment in segments] == [problem.strip() for problem in problems]


@given(st.text(st.characters(exclude_characters="<>", exclude_categories=["Cs", "Cc"])))
def test_a_core_idea_comes_back_with_its_words(idea):
    text = f"<core_idea>{idea}</core_idea><no_core_idea/>"
    expected = " ".join(idea.split()) or None
    assert parse_summary(text, max_words=1000).core_idea == expected
