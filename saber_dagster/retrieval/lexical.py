"""Lexical retrievers: BM25, TF-IDF and Jaccard.

All three read a text as :func:`saber_dagster.text.words`: lower-cased alphanumeric sequences, so
that numbers and the names of LaTeX commands are words. Stop words stay: BM25 and TF-IDF weigh them
down themselves.
"""

import math
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np

from saber_dagster.errors import SaberError
from saber_dagster.text import words

_DECIMALS = 9


class BM25:
    """Okapi BM25 as in Lucene, by the library bm25s.

    With N documents of mean length L, a document of length l that has a word tf times, and the word
    in df documents, the word adds, each time the query has it,
    ``ln(1 + (N - df + 0.5) / (df + 0.5)) * tf / (tf + k1 (1 - b + b l / L))``.
    A word that no document has adds nothing, and a document without words scores 0. The defaults of
    k1 and b are those of bm25s.

    Args:
        k1: from 0 (how often a word occurs does not matter) on.
        b: from 0 (length does not matter) to 1.

    Raises:
        SaberError: if k1 or b is out of range.
    """

    name = "bm25"
    decimals = _DECIMALS

    def __init__(self, k1: float = 1.5, b: float = 0.75) -> None:
        if not (math.isfinite(k1) and k1 >= 0):
            raise SaberError(f"k1 is {k1}; it must be a finite number of at least 0")
        if not 0 <= b <= 1:
            raise SaberError(f"b is {b}; it must be from 0 (length does not matter) to 1")
        self.k1 = k1
        self.b = b
        self._rows: dict[str, int] = {}
        self._vocabulary: dict[str, int] = {}
        self._weights: Any = None

    @property
    def revision(self) -> str:
        """Version of bm25s, and the parameters."""
        return f"bm25s-{version('bm25s')}-k1={self.k1:g}-b={self.b:g}"

    def fit(self, documents: Mapping[str, str]) -> None:
        """Index documents: their words' weights as a sparse matrix (documents, words)."""
        import bm25s
        from scipy.sparse import csc_array

        tokens = [words(text) for text in documents.values()]
        self._rows = {doc_id: row for row, doc_id in enumerate(documents)}
        self._vocabulary = {
            word: column for column, word in enumerate(sorted({w for ws in tokens for w in ws}))
        }
        self._weights = None
        if not self._vocabulary:  # bm25s divides by the mean length, and has no empty index
            return
        index = bm25s.BM25(k1=self.k1, b=self.b, method="lucene", dtype="float64")
        weights = index.build_index_from_ids(
            unique_token_ids=list(range(len(self._vocabulary))),
            corpus_token_ids=[[self._vocabulary[word] for word in ws] for ws in tokens],
            show_progress=False,
        )
        self._weights = csc_array(
            (weights["data"], weights["indices"], weights["indptr"]),
            shape=(len(self._rows), len(self._vocabulary)),
        ).tocsr()

    def score(self, query_text: str, documents: Sequence[tuple[str, str]]) -> Sequence[float]:
        """BM25 of documents that :meth:`fit` indexed, found by id.

        Raises:
            SaberError: if a document was not indexed.
        """
        unknown = [doc_id for doc_id, _ in documents if doc_id not in self._rows]
        if unknown:
            raise SaberError(
                f"BM25 has not indexed document {unknown[0]} ({len(unknown)} in all): fit the "
                "retriever on documents that include every candidate."
            )
        if self._weights is None or not documents:
            return [0.0] * len(documents)
        query = np.zeros(len(self._vocabulary))
        for word in words(query_text):
            if word in self._vocabulary:
                query[self._vocabulary[word]] += 1.0
        rows = self._weights[[self._rows[doc_id] for doc_id, _ in documents]]
        scores: list[float] = (rows @ query).tolist()
        return scores


class TfIdf:
    """Cosine of TF-IDF vectors, by scikit-learn: raw counts, smoothed idf, L2 norm.

    The idf of a word in df of N documents is ``ln((1 + N) / (1 + df)) + 1``. Words that no fitted
    document has are left out of both vectors; an empty vector has cosine 0 with anything.
    """

    name = "tfidf"
    decimals = _DECIMALS

    def __init__(self) -> None:
        self._vectorizer: Any = None

    @property
    def revision(self) -> str:
        """Version of scikit-learn."""
        return f"scikit-learn-{version('scikit-learn')}"

    def fit(self, documents: Mapping[str, str]) -> None:
        """Count in how many documents each word is."""
        from sklearn.feature_extraction.text import TfidfVectorizer

        self._vectorizer = None
        if any(words(text) for text in documents.values()):  # there is no empty vocabulary
            self._vectorizer = TfidfVectorizer(analyzer=words).fit(documents.values())

    def score(self, query_text: str, documents: Sequence[tuple[str, str]]) -> Sequence[float]:
        """Cosines in [0, 1]."""
        if self._vectorizer is None or not documents:
            return [0.0] * len(documents)
        query = self._vectorizer.transform([query_text])
        vectors = self._vectorizer.transform([text for _, text in documents])
        cosines: list[float] = (vectors @ query.T).toarray().ravel().tolist()
        return cosines


class Jaccard:
    """Jaccard similarity of the sets of words; 0 where both are empty."""

    name = "jaccard"
    revision = "1"
    decimals = _DECIMALS

    def fit(self, documents: Mapping[str, str]) -> None:
        """Nothing: it has no statistics."""

    def score(self, query_text: str, documents: Sequence[tuple[str, str]]) -> Sequence[float]:
        """Similarities in [0, 1]."""
        query = set(words(query_text))
        sets = [set(words(text)) for _, text in documents]
        return [len(query & other) / (len(query | other) or 1) for other in sets]
