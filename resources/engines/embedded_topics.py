"""Topic scores of the embedded baseline: names of topics that the texts mention."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from resources.engines.embedded_vectors import Vector, cosine, text_vector, unit
from resources.engines.embedded_words import weight
from saber_dagster.phrases import Phrases, phrase, read_text

BELOW = 0.6
"""What a mention of something below a candidate counts, against one of its own names."""
HALF = 3.0
"""Evidence at which a score is one half."""
SOLUTION = 0.5
"""What a mention or vector of the solution counts, against one of the problem."""
VECTORS = 2.0
"""How much the vectors decide: evidence is multiplied by exp(VECTORS * (c - c_max))."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Candidates of a call, ready for many texts.

    ``evidence[p]`` lists for phrase p the candidates that it speaks for, and how much. ``vectors``,
    of shape (size, 256), are of their names and the terms below them.
    """

    size: int
    phrases: Phrases
    evidence: tuple[tuple[tuple[int, float], ...], ...]
    vectors: Vector


def compile_candidates(candidates: Sequence[Mapping[str, Any]]) -> Candidates:
    """Index the names of candidates and of what is below them.

    If all other candidates are below the first, it is their parent: a reference, for which only its
    own names speak, so that a descent stops where the children are mentioned much less.
    """
    has_parent = len(candidates) > 1 and {c["label"] for c in candidates[1:]} <= set(
        candidates[0]["terms"]
    )
    speaks: dict[tuple[str, ...], dict[int, float]] = {}
    for number, candidate in enumerate(candidates):
        own = (candidate["label"], *candidate["synonyms"])
        below = () if has_parent and number == 0 else candidate["terms"]
        for names, share in ((own, 1.0), (below, BELOW)):
            for name in names:
                if words := phrase(name):
                    speaks.setdefault(words, {}).setdefault(number, share)
    evidence = []
    for words, shares in speaks.items():
        worth = math.fsum(map(weight, words)) / len(shares)
        evidence.append(tuple((number, share * worth) for number, share in shares.items()))
    numbers = {words: number for number, words in enumerate(speaks)}
    vectors = np.array([_vector(candidate) for candidate in candidates])
    return Candidates(len(candidates), Phrases.compile(numbers), tuple(evidence), vectors)


def topic_scores(
    problem: str, solution: str, candidates: Candidates, vectors: float = VECTORS
) -> list[float]:
    """Scores in [0, 1] of the candidates; all 0 where no name occurs.

    A mention counts the sum of its words' weights, shared among the candidates that it speaks for;
    n mentions count as sqrt(n). The sum is multiplied by exp(vectors * (c - c_max)), c being the cosine
    of text and candidate. Evidence e gives the score e / (e + HALF).
    """
    mentions: dict[int, float] = {}
    for text, share in ((problem, 1.0), (solution, SOLUTION)):
        for number, times in candidates.phrases.count(read_text(text)).items():
            mentions[number] = mentions.get(number, 0.0) + share * times
    found: list[list[float]] = [[] for _ in range(candidates.size)]
    for number, count in mentions.items():
        for candidate, worth in candidates.evidence[number]:
            found[candidate].append(worth * math.sqrt(count))
    near = nearness(problem, solution, candidates)
    best = max(near, default=0.0)
    totals = [
        math.fsum(worths) * math.exp(vectors * (c - best))
        for worths, c in zip(found, near, strict=True)
    ]
    return [round(total / (total + HALF), 4) for total in totals]


def nearness(problem: str, solution: str, candidates: Candidates) -> list[float]:
    """Cosines of the texts and each candidate, to 9 decimals."""
    text = unit(text_vector(problem) + SOLUTION * text_vector(solution))
    return [round(cosine(vector, text), 9) for vector in candidates.vectors]


def _vector(candidate: Mapping[str, Any]) -> Vector:
    names = [text_vector(name) for name in (candidate["label"], *candidate["synonyms"])]
    own = np.mean(names, axis=0)
    if candidate["terms"]:
        own = own + np.mean([text_vector(name) for name in candidate["terms"]], axis=0)
    return unit(own)
