import math
from collections import Counter

import numpy as np
import pytest

from saber_dagster.errors import SaberError
from saber_dagster.retrieval.base import checked_scores
from saber_dagster.retrieval.lexical import BM25, Jaccard, TfIdf
from saber_dagster.text import words

DOCS = {
    "a": r"Find all $n$ with $\frac{n}{2}$ even, even and even.",
    "b": r"A triangle has area $\frac{1}{2}$.",
    "c": "",
    "d": "even triangle 2",
    "e": r"$$ \_ {} $$",
}
QUERY = r"even even $\frac{x}{2}$ triangle unseen"


def bm25_twin(query, docs, k1=1.5, b=0.75):
    """The formula of the docstring, word by word."""
    tokens = {doc: words(text) for doc, text in docs.items()}
    mean = sum(map(len, tokens.values())) / len(tokens)
    scores = []
    for ws in tokens.values():
        score = 0.0
        for word in words(query):
            df = sum(word in other for other in tokens.values())
            tf = ws.count(word)
            if tf:
                idf = math.log(1 + (len(docs) - df + 0.5) / (df + 0.5))
                score += idf * tf / (tf + k1 * (1 - b + b * len(ws) / mean))
        scores.append(score)
    return scores


def tfidf_twin(query, docs):
    tokens = [words(text) for text in docs.values()]

    def vector(ws):
        raw = {}
        for word, tf in Counter(ws).items():
            df = sum(word in other for other in tokens)
            if df:
                raw[word] = tf * (math.log((1 + len(docs)) / (1 + df)) + 1)
        norm = math.sqrt(sum(x * x for x in raw.values())) or 1.0
        return {word: x / norm for word, x in raw.items()}

    q = vector(words(query))
    return [sum(x * q.get(word, 0.0) for word, x in vector(ws).items()) for ws in tokens]


def scores_of(retriever, query, docs):
    retriever.fit(docs)
    return checked_scores(retriever, "q", query, list(docs.items()))


@pytest.mark.parametrize(("k1", "b"), [(1.5, 0.75), (0.9, 0.4), (0.0, 0.0)])
def test_bm25_follows_the_formula(k1, b):
    expected = bm25_twin(QUERY, DOCS, k1, b)
    np.testing.assert_allclose(scores_of(BM25(k1, b), QUERY, DOCS), expected, atol=1e-9)
    assert expected[0] > 0


def test_tfidf_follows_the_formula():
    np.testing.assert_allclose(scores_of(TfIdf(), QUERY, DOCS), tfidf_twin(QUERY, DOCS), atol=1e-9)


def test_jaccard_compares_word_sets():
    scores = Jaccard().score("a b B c", [("1", "c d a"), ("2", ""), ("3", "A, b; c")])
    assert scores == [0.5, 0.0, 1.0]
    assert Jaccard().score("$$", [("1", ""), ("2", "x")]) == [0.0, 0.0]


def test_tfidf_of_equal_texts_is_one():
    assert scores_of(TfIdf(), DOCS["a"], DOCS)[0] == 1.0


@pytest.mark.parametrize("make", [BM25, TfIdf, Jaccard])
@pytest.mark.parametrize("query", ["", "$$", "the of and", r"\frac", "unseen", "even"])
@pytest.mark.parametrize(
    "docs",
    [
        {"a": ""},
        {"a": "", "b": "$$", "c": "\x00 \t"},
        {"a": "even"},
        {"a": "", "b": "even"},
        {"a": "the of and", "b": "the of and"},
        {"a": r"\frac \frac", "b": r"\theta"},
    ],
)
def test_empty_and_odd_texts_have_finite_scores(make, query, docs):
    scores = scores_of(make(), query, docs)
    shared = [bool(set(words(query)) & set(words(text))) for text in docs.values()]
    assert (scores > 0).tolist() == shared


@pytest.mark.parametrize("make", [BM25, TfIdf, Jaccard])
def test_scores_do_not_depend_on_the_order_or_company_of_documents(make):
    retriever = make()
    retriever.fit(DOCS)
    items = list(DOCS.items())
    together = dict(zip(DOCS, retriever.score(QUERY, items), strict=True))
    backwards = retriever.score(QUERY, items[::-1])
    assert backwards == [together[doc] for doc, _ in items[::-1]]
    assert [retriever.score(QUERY, [item])[0] for item in items] == list(together.values())
    assert list(retriever.score(QUERY, [])) == []


def test_tfidf_of_words_outside_the_statistics_is_zero():
    retriever = TfIdf()
    for documents in ({"a": "triangle"}, {"a": ""}):
        retriever.fit(documents)
        assert retriever.score("even", [("new", "even")]) == [0.0]
        assert retriever.score("triangle", [("new", "triangle")]) == [float("a" in documents["a"])]


@pytest.mark.parametrize("make", [BM25, TfIdf])
def test_fitting_again_forgets_the_first_documents(make):
    retriever = make()
    retriever.fit({"z": "even " * 50, "y": "triangle"})
    np.testing.assert_array_equal(scores_of(retriever, QUERY, DOCS), scores_of(make(), QUERY, DOCS))
    assert scores_of(retriever, QUERY, {"a": ""}).tolist() == [0.0]


def test_bm25_refuses_a_document_that_it_has_not_indexed():
    retriever = BM25()
    retriever.fit(DOCS)
    with pytest.raises(SaberError, match="not indexed document new"):
        retriever.score("even", [("a", DOCS["a"]), ("new", "even")])


def test_revisions_name_library_and_parameters():
    assert BM25().revision != BM25(k1=1.2).revision
    assert BM25().revision.startswith("bm25s-")
    assert TfIdf().revision.startswith("scikit-learn-")
