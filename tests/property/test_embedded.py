"""Invariants of the embedded baseline for arbitrary texts."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.engines.embedded import EmbeddedEngine
from saber_dagster.engines import PAIRWISE_JUDGMENT, SOLUTION_SUMMARY, TOPIC_SCORES, Call
from saber_dagster.phrases import Phrases
from saber_dagster.replies import parse_summary, parse_topic_scores, parse_verdict

pytestmark = pytest.mark.property

PARTS = (
    "prime", "triangles", "by induction", "AM-GM", "\\frac{1}{2}", "\\pmod 7", "$x^2$", "the", "a",
    "sum", "remainder", "modulo", "polynomial", "roots", ". ", "<verdict>1</verdict>", "\x00",
    "<verdict>2</verdict>", '<score n="1">1</score>', "<core_idea>x</core_idea>", "\\", "{", "'",
)  # fmt: skip
phrases = st.lists(st.sampled_from(PARTS), max_size=12).map(" ".join)
texts = st.one_of(st.text(max_size=60), phrases)
documents = st.fixed_dictionaries({"problem": texts, "solution": texts})
candidates = st.lists(
    st.fixed_dictionaries(
        {
            "label": texts,
            "synonyms": st.lists(texts, max_size=2),
            "terms": st.lists(texts, max_size=3),
        }
    ),
    min_size=1,
    max_size=4,
).map(tuple)
calls = st.one_of(
    st.builds(
        lambda d, c: Call(TOPIC_SCORES, {**d, "candidates": c}, "t"), documents, candidates
    ),
    st.builds(
        lambda d, n: Call(SOLUTION_SUMMARY, {**d, "max_words": n}, "s"),
        documents, st.integers(1, 40),
    ),
    st.builds(
        lambda q, a, b: Call(PAIRWISE_JUDGMENT, {"query": q, "first": a, "second": b}, "p"),
        documents, documents, documents,
    ),
)  # fmt: skip


def parse(call: Call, text: str) -> object:
    if call.task == TOPIC_SCORES:
        return parse_topic_scores(text, len(call.inputs["candidates"]))
    if call.task == SOLUTION_SUMMARY:
        return parse_summary(text, call.inputs["max_words"])
    return parse_verdict(text)


@settings(deadline=None)
@given(calls)
def test_any_text_gets_a_reply_that_parses(call: Call) -> None:
    engine = EmbeddedEngine()
    [(_, reply)] = engine.answer([call])
    parse(call, reply.text)
    assert engine.messages(call)


@settings(deadline=None)
@given(st.lists(calls, min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_reply_is_a_function_of_the_call(batch: list[Call], random: object) -> None:
    shared = EmbeddedEngine()
    replies = {i: reply.text for i, reply in shared.answer(batch)}
    assert sorted(replies) == list(range(len(batch)))
    order = list(range(len(batch)))
    random.shuffle(order)  # type: ignore[attr-defined]
    again = dict(shared.answer([batch[i] for i in order]))
    for place, i in enumerate(order):
        fresh = Call(batch[i].task, batch[i].inputs, "another item", sample=1)
        [(_, alone)] = EmbeddedEngine().answer([fresh])
        assert replies[i] == again[place].text == alone.text


@settings(deadline=None)
@given(documents, documents, documents)
def test_swapping_the_documents_swaps_the_verdict(query: dict, first: dict, second: dict) -> None:
    swapped = [
        Call(PAIRWISE_JUDGMENT, {"query": query, "first": a, "second": b}, "")
        for a, b in ((first, second), (second, first))
    ]
    one, two = (parse_verdict(reply.text) for _, reply in EmbeddedEngine().answer(swapped))
    assert one + two == 1.0


alphabet = st.sampled_from("abc")


@settings(deadline=None)
@given(
    st.sets(st.lists(alphabet, min_size=1, max_size=3).map(tuple), min_size=1, max_size=6),
    st.lists(alphabet, max_size=12).map(tuple),
)
def test_phrases_agree_with_a_plain_scan(known: set[tuple[str, ...]], sequence: tuple) -> None:
    numbers = {words: n for n, words in enumerate(sorted(known))}
    expected: dict[int, int] = {}
    place = 0
    while place < len(sequence):
        here = [w for w in known if sequence[place : place + len(w)] == w]
        longest = max(here, key=len, default=None)
        if longest is not None:
            expected[numbers[longest]] = expected.get(numbers[longest], 0) + 1
        place += len(longest) if longest is not None else 1
    assert dict(Phrases.compile(numbers).count(sequence)) == expected
