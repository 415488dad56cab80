"""Preferences of the embedded baseline: which of two documents shares more with the query."""

import math
from functools import lru_cache

from resources.engines.embedded_words import formula_groups, read_text, techniques, weight
from saber_dagster.text import stop_words

TECHNIQUE_WEIGHT = 20.0
"""What a shared technique counts; a rare word counts about 5."""


@lru_cache(maxsize=8192)
def features(problem: str, solution: str) -> tuple[frozenset[str], float]:
    """Words, formula parts and techniques of a document, and the sum of their weights."""
    found: set[str] = set()
    for sequence in map(read_text, (problem, solution)):
        found.update(part for part in sequence if len(part) > 1)
        found |= formula_groups(sequence)
        names, phrases = techniques().names, techniques().phrases
        found.update(_technique(names[number]) for number in phrases.count(sequence))
    found -= stop_words()
    return frozenset(found), math.fsum(map(_weight, found))


@lru_cache(maxsize=65_536)
def similarity(query: tuple[str, str], document: tuple[str, str]) -> float:
    """Weighted Jaccard similarity in [0, 1] of two (problem, solution), to 9 decimals.

    Sums are exactly rounded, so that no order of summation can decide between two documents.
    """
    (left, left_sum), (right, right_sum) = features(*query), features(*document)
    shared = math.fsum(map(_weight, left & right))
    total = left_sum + right_sum - shared
    return round(shared / total, 9) if total > 0.0 else 0.0


def pairwise_judgment(
    query: tuple[str, str], first: tuple[str, str], second: tuple[str, str]
) -> str:
    """A verdict in the grammar of :mod:`saber_dagster.replies`; "=" if the similarities are equal.

    Swapping the two documents swaps the verdict.
    """
    one, two = similarity(query, first), similarity(query, second)
    verdict = "1" if one > two else "2" if two > one else "="
    return (
        f"Similarity of document 1 to the query: {one:.9f}; of document 2: {two:.9f}.\n"
        f"<verdict>{verdict}</verdict>"
    )


def _technique(name: str) -> str:
    return "technique: " + name


def _weight(feature: str) -> float:
    return TECHNIQUE_WEIGHT if feature.startswith("technique: ") else weight(feature)
