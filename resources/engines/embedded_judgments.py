"""Preferences of the embedded baseline: which of two documents shares more with the query."""

import math
from dataclasses import dataclass
from functools import lru_cache

from resources.engines.embedded_vectors import cosine, text_vector
from resources.engines.embedded_words import techniques, vocabulary, weight
from saber_dagster.phrases import formula_groups, read_text

SHARES = {"words": 1.0, "techniques": 0.2, "vectors": 0.05}
"""What each part counts in a similarity; chosen by ``benchmarks/engine_search.py``."""
MATHEMATICAL = 4.0
"""What a mathematical word counts, against another of the same rarity."""

Document = tuple[str, str]
"""Problem and solution."""


@dataclass(frozen=True, slots=True)
class Features:
    """Sets of features, with the sums of their weights."""

    words: frozenset[str]
    words_sum: float
    techniques: frozenset[int]
    techniques_sum: float


@lru_cache(maxsize=8192)
def features(problem: str, solution: str) -> Features:
    """Words and formula parts of the solution, and the techniques that both texts name.

    The problem stands in where there is no solution.
    """
    main = read_text(solution if solution.strip() else problem)
    words = frozenset(part for part in main if len(part) > 1) | formula_groups(main)
    named: set[int] = set()
    for sequence in (read_text(problem), read_text(solution)):
        named.update(techniques().phrases.count(sequence))
    numbers = frozenset(named)
    return Features(words, math.fsum(map(token_worth, words)), numbers, _technique_sum(numbers))


def word_overlap(query: Document, document: Document) -> float:
    """Weighted Jaccard similarity of words and formula parts."""
    left, right = features(*query), features(*document)
    shared = math.fsum(map(token_worth, left.words & right.words))
    return _jaccard(shared, left.words_sum, right.words_sum)


def technique_overlap(query: Document, document: Document) -> float:
    """Weighted Jaccard similarity of the techniques that are named; 0 if none is."""
    left, right = features(*query), features(*document)
    shared = _technique_sum(left.techniques & right.techniques)
    return _jaccard(shared, left.techniques_sum, right.techniques_sum)


def vector_similarity(query: Document, document: Document) -> float:
    """Cosine of the vectors of the solutions; of the problems where there is no solution."""
    left, right = (
        solution if solution.strip() else problem for problem, solution in (query, document)
    )
    return cosine(text_vector(left), text_vector(right))


@lru_cache(maxsize=65_536)
def similarity(query: Document, document: Document) -> float:
    """Weighted mean of the three, to 9 decimals.

    Sums are exactly rounded, so that no order of summation can decide between two documents.
    """
    parts = (
        SHARES["words"] * word_overlap(query, document),
        SHARES["techniques"] * technique_overlap(query, document),
        SHARES["vectors"] * vector_similarity(query, document),
    )
    return round(math.fsum(parts) / math.fsum(SHARES.values()), 9)


def pairwise_judgment(query: Document, first: Document, second: Document) -> str:
    """A verdict in the grammar of :mod:`saber_dagster.replies`; "=" if the similarities are equal.

    Swapping the two documents swaps the verdict.
    """
    one, two = similarity(query, first), similarity(query, second)
    verdict = "1" if one > two else "2" if two > one else "="
    return (
        f"Similarity of document 1 to the query: {one:.9f}; of document 2: {two:.9f}.\n"
        f"<verdict>{verdict}</verdict>"
    )


def _jaccard(shared: float, left: float, right: float) -> float:
    total = left + right - shared
    return shared / total if total > 0.0 else 0.0


@lru_cache(maxsize=65_536)
def token_worth(token: str) -> float:
    """The square root of a token's weight, times :data:`MATHEMATICAL` for mathematical words."""
    return math.sqrt(weight(token)) * (MATHEMATICAL if token in vocabulary() else 1.0)


def _technique_sum(numbers: frozenset[int]) -> float:
    weights = techniques().weights
    return math.fsum(weights[number] for number in numbers)
