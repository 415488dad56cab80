"""Long texts: what is cut, how far, and where."""

import time

import pytest

from saber_dagster.engines import CLEANING, SOLUTION_SELECTION, TOPIC_SCORES
from saber_dagster.errors import SaberError
from saber_dagster.long_inputs import CUT, fit, input_texts, with_texts
from saber_dagster.tokens import estimate_tokens


def characters(text):
    return len(text)


def cut_to(text, limit, count=characters):
    """What is left of a single text, without the mark."""
    texts, cut = fit({"text": text}, limit, count)
    assert count(texts["text"]) <= limit
    assert (cut == ("text",)) == texts["text"].endswith(CUT)
    return texts["text"].removesuffix(CUT)


def test_nothing_is_cut_that_fits():
    texts = {"a": "x" * 10, "b": "", "c": "y" * 20}
    assert fit(texts, 30, characters) == (texts, ())
    assert fit({}, 0, characters) == ({}, ())


def test_short_texts_stay_whole_and_long_ones_get_the_same():
    texts = {"a": "x" * 1000, "b": "s" * 15, "c": "y" * 300, "d": "z" * 40}
    fitted, cut = fit(texts, 255, characters)
    assert cut == ("a", "c")
    assert (fitted["b"], fitted["d"]) == (texts["b"], texts["d"])
    assert {name: len(fitted[name]) for name in cut} == {"a": 100, "c": 100}
    assert fit(dict(reversed(texts.items())), 255, characters)[0] == fitted, "in any order"


def test_the_cut_is_at_a_paragraph_else_a_sentence_else_a_word():
    line = "One two three four. Five six seven eight nine ten."
    text = f"{line}\n\n{line}"
    assert cut_to(text, 70) == line, "a paragraph ends in the last quarter of what fits"
    assert cut_to(line, 30) == "One two three four."
    assert cut_to("one two three four five six seven", 31) == "one two three four five"
    assert cut_to("x" * 100, 30) == "x" * 22, "no white space: between characters"
    assert cut_to("设 p 是素数。" + "证" * 50, 24) == "设 p 是素数。" + "证" * 8


def test_the_cut_goes_before_a_formula():
    assert cut_to("Let us say that $x + 1 = y + 2 + 3 + 4$ holds here.", 40) == "Let us say that"
    assert cut_to(r"Let us say that \[ a \begin{cases} b \\ c \end{cases} \] holds.", 50) == (
        "Let us say that"
    )
    assert cut_to("Let us say $x + 1 + 2 + 3 + 4 + 5 + 6", 30) == "Let us say", "never closed"
    assert cut_to("$x + 1 + 2 + 3 + 4 + 5 + 6 + 7$", 30) == "", "a formula that is all of it"
    assert cut_to("Cost: $5. Buy it.\n\nThe rest of this is of no interest.", 40) == (
        "Cost: $5. Buy it.\n\nThe rest of"
    ), "a dollar that is none reaches to the end of its paragraph only"


def test_a_full_stop_in_a_formula_ends_no_sentence():
    text = "So we have it here $a. b. c. d$ and then more words follow."
    assert cut_to(text, 52) == "So we have it here $a. b. c. d$ and then"


def test_most_of_the_room_is_used():
    text = "We have $x + 1 = 2$ and so on and on. " * 3000
    for limit in (100, 1000, 10_000):
        kept = cut_to(text, limit, estimate_tokens)
        assert estimate_tokens(kept + CUT) > 0.7 * limit


def test_a_limit_too_small_names_the_call_the_limit_and_the_remedy():
    with pytest.raises(
        SaberError, match=r"q1: 2 texts of 200 tokens do not fit into the 31 that .*"
    ):
        fit({"a": "x" * 100, "b": "y" * 100}, 31, characters, "q1")
    assert fit({"a": "x" * 100, "b": "y" * 100}, 32, characters, "q1")[1] == ("a", "b")
    with pytest.raises(SaberError, match="into the 0 that"):
        fit({"a": "x"}, -5, characters)


def test_a_megabyte_is_cut_in_a_second():
    text = "We have $x + 1 = 2$ and so on. " * 33_000
    start = time.perf_counter()
    assert len(cut_to(text, 1000, estimate_tokens)) > 1000
    assert time.perf_counter() - start < 5


def test_the_texts_of_a_call():
    document = {"problem": "p", "solution": "s"}
    nested = {"query": document, "first": {**document, "problem": "f"}, "second": document}
    texts = input_texts("pairwise_judgment", nested)
    assert texts == {
        "query.problem": "p",
        "query.solution": "s",
        "first.problem": "f",
        "first.solution": "s",
        "second.problem": "p",
        "second.solution": "s",
    }
    assert with_texts(nested, texts) == nested
    assert with_texts(nested, {**texts, "second.solution": "x"})["second"]["solution"] == "x"
    assert document["solution"] == "s", "the call itself does not change"
    several = {"problem": "p", "solutions": ("a", "b")}
    texts = input_texts(SOLUTION_SELECTION, several)
    assert texts == {"problem": "p", "solutions.0": "a", "solutions.1": "b"}
    assert with_texts(several, texts) == several
    headings = {**document, "candidates": ({"label": "A", "synonyms": (), "terms": ()},)}
    assert input_texts(TOPIC_SCORES, headings) == document
    assert with_texts(headings, document) == headings
    assert input_texts(CLEANING, {"text": "t"}) == {}
