"""A cut text fits, is the beginning of the text, and breaks no formula."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saber_dagster.errors import SaberError
from saber_dagster.formulas import formulas
from saber_dagster.long_inputs import CUT, fit
from saber_dagster.tokens import estimate_tokens

pytestmark = pytest.mark.property

INSIDE = st.lists(
    st.sampled_from(["x", "+ 1", " ", r"\frac{a}{b}", r"\$", r"\\[2pt]", r"\{", "{y}", ". ", "\n"])
    | st.sampled_from([r"\text{if $n$ is odd}", r"\mbox{\(k\)}", r"\begin{cases} a \end{cases}"]),
    max_size=8,
).map("".join)
FORMULA = st.tuples(
    st.sampled_from(
        [("$", "$"), ("$$", "$$"), (r"\(", r"\)"), (r"\[", r"\]")]
        + [(rf"\begin{{{name}}}", rf"\end{{{name}}}") for name in ("align*", "equation", "tikzcd")]
    ),
    # a blank line ends a formula, as TeX has it
    INSIDE.filter(lambda inside: inside.strip() and not re.search(r"\n\s*\n", inside)),
).map(lambda parts: f"{parts[0][0]} {parts[1]} {parts[0][1]}")
PROSE = st.sampled_from(
    [
        "word ",
        "Sentence. ",
        "long" * 8,
        "\n\n",
        "\n",
        "证明。",
        r"\$5 ",
        r"\begin{proof} ",
        "}",
        "{",
    ]
)
PIECES = st.lists(st.tuples(st.just(True), FORMULA) | st.tuples(st.just(False), PROSE), max_size=30)
SCRAPS = st.lists(
    st.sampled_from(["$", "$$", r"\(", r"\)", r"\[", r"\]", "{", "}", "\\", "\n\n", " ", "x", ". "])
    | st.sampled_from([r"\begin{align}", r"\end{align}", r"\begin{cases}", r"\end{cases}", "word"]),
    max_size=60,
).map("".join)


@given(PIECES, st.integers(16, 120))
def test_a_formula_is_kept_whole_or_not_at_all(pieces, limit):
    text = "".join(f" {piece} " if formula else piece for formula, piece in pieces)
    fitted, cut = fit({"text": text}, limit, estimate_tokens)
    kept = fitted["text"]
    assert estimate_tokens(kept) <= limit
    if not cut:
        assert kept == text
        return
    kept = kept.removesuffix(CUT)
    assert text.startswith(kept)
    place = 0
    for formula, piece in pieces:
        start = place + (1 if formula else 0)
        end = start + len(piece)
        if formula:
            assert not start < len(kept) < end, f"{piece!r} is cut"
        place = end + (1 if formula else 0)


@given(st.dictionaries(st.sampled_from("abcd"), SCRAPS, min_size=1), st.integers(0, 150))
def test_whatever_the_texts_they_fit_or_it_is_said(texts, limit):
    for count in (estimate_tokens, len, lambda text: len(text.encode())):
        try:
            fitted, cut = fit(texts, limit, count)
        except SaberError:
            assert limit < 16 * len(texts)
            continue
        assert sum(count(text) for text in fitted.values()) <= limit
        assert fitted.keys() == texts.keys()
        assert fit(texts, limit, count) == (fitted, cut)
        for name, text in texts.items():
            if name not in cut:
                assert fitted[name] == text
                continue
            kept = fitted[name].removesuffix(CUT)
            assert text.startswith(kept)
            assert not any(start < len(kept) < end for start, end in formulas(text))


@given(SCRAPS)
def test_formulas_lie_in_order_and_apart(text):
    spans = formulas(text)
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))
    places = [0, *(place for span in spans for place in span), len(text)]
    outside = [text[start:end] for start, end in zip(places[::2], places[1::2], strict=True)]
    assert "$" not in re.sub(r"\\.", "", "\n".join(outside), flags=re.DOTALL)
