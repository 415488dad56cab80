"""Topic scores of the embedded baseline: names of topics that the texts mention."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from resources.engines.embedded_words import Phrases, phrase, read_text, weight

BELOW = 0.6
"""What a mention of something below a candidate counts, against one of its own names."""
HALF = 3.0
"""Evidence at which a score is one half."""
SOLUTION = 0.5
"""What a mention in the solution counts, against one in the problem."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Candidates of a call, ready for many texts.

    ``evidence[p]`` lists for phrase p the candidates that it speaks for, and how much.
    """

    size: int
    phrases: Phrases
    evidence: tuple[tuple[tuple[int, float], ...], ...]


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
    return Candidates(len(candidates), Phrases.compile(numbers), tuple(evidence))


def topic_scores(problem: str, solution: str, candidates: Candidates) -> list[float]:
    """Scores in [0, 1] of the candidates; all 0 where no name occurs.

    A mention counts the sum of its words' weights, shared among the candidates that it speaks for;
    n mentions count as sqrt(n). Evidence e gives the score e / (e + HALF).
    """
    mentions: dict[int, float] = {}
    for text, share in ((problem, 1.0), (solution, SOLUTION)):
        for number, times in candidates.phrases.count(read_text(text)).items():
            mentions[number] = mentions.get(number, 0.0) + share * times
    found: list[list[float]] = [[] for _ in range(candidates.size)]
    for number, count in mentions.items():
        for candidate, worth in candidates.evidence[number]:
            found[candidate].append(worth * math.sqrt(count))
    totals = map(math.fsum, found)
    return [round(total / (total + HALF), 4) for total in totals]
