"""Replies that are texts."""

import pytest

from saber_dagster.replies import ParseError
from saber_dagster.replies_text import (
    Segment,
    parse_cleaned,
    parse_latex,
    parse_segments,
    parse_translation,
)

PARSERS = {"latex": parse_latex, "cleaned": parse_cleaned, "translation": parse_translation}
each = pytest.mark.parametrize(("tag", "parse"), PARSERS.items())


@each
def test_the_text_comes_back_letter_by_letter(tag, parse):
    text = (
        "Let $a < b$ and\r\n\t\\frac{1}{2} > 0.\n\nThen <b>x</b> & \\boxed{1} <verdict>1</verdict>"
    )
    assert parse(f"Here it is:\n<{tag}>\n{text}\n</{tag}>\nDone.") == text


@each
def test_the_last_text_counts(tag, parse):
    assert parse(f"<{tag}>first try</{tag}> Better:\n<{tag}>second</{tag}>") == "second"


@each
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no <TAG>"),
        ("Let $x$.", "has no <TAG>"),
        ("<TAG></TAG>", "<TAG> is empty"),
        ("<TAG> \n</TAG>", "<TAG> is empty"),
        ("<TAG>x", "<TAG> is not closed"),
        ("<TAG>x</TAG> <TAG>", "<TAG> is not closed"),
        ("x</TAG>", "</TAG> at 2 does not fit"),
        ("<TAG>a <TAG>b</TAG></TAG>", "<TAG> at .* does not fit: tags are not balanced"),
        ("<TAG>x</TAG></TAG>", "</TAG> at .* does not fit"),
        ("<TAG>Bound \frac{a}{b}.</TAG>", "control characters.*U\\+000C"),
        ("<TAG>a\rb</TAG>", "control characters"),
        ('{"TAG": "x"}', "has no <TAG>"),
    ],
)
def test_texts_that_do_not_follow_the_grammar(tag, parse, text, message):
    with pytest.raises(ParseError, match=message.replace("TAG", tag)):
        parse(text.replace("TAG", tag))


SOURCE = "Problem 1.  Find $x$\nwith $x < 2$. Problem 2. Is 7 prime? Solution. Yes."


def test_segments_in_order_with_their_solutions():
    reply = (
        "<problem>Find $x$ with $x < 2$.</problem>\n"
        "<problem>\nIs 7 prime?\n</problem>\n<solution>Yes.</solution>"
    )
    assert parse_segments(reply, SOURCE) == (
        Segment("Find $x$ with $x < 2$.", None),
        Segment("Is 7 prime?", "Yes."),
    )


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ("", "no <problem>"),
        ("<solution>Yes.</solution>", "<solution> that follows no <problem>"),
        (
            "<problem>Is 7 prime?</problem><solution>Yes.</solution><solution>Yes.</solution>",
            "<solution> that follows no <problem>",
        ),
        ("<problem>Is 7 prime?<solution>Yes.</solution></problem>", "not balanced"),
        ("<problem>Is 7 prime?</solution>", "not balanced"),
        ("<problem>Is 7 prime?</problem><solution></solution>", "<solution> is empty"),
        ("<problem>Is 7 a prime?</problem>", "not in the document: 'Is 7 a prime"),
        ("<problem>Is 7 prime?</problem><solution>No.</solution>", "<solution> is not in the doc"),
        ("<problem>Is 7 \x00prime?</problem>", "control characters"),
    ],
)
def test_segments_that_do_not_follow_the_grammar(reply, message):
    with pytest.raises(ParseError, match=message):
        parse_segments(reply, SOURCE)
