"""Parsers of engine replies. They run after the ledger, so a better one re-reads and pays nothing.

Grammar, the same for every engine:

* ``topic_scores``: one line per candidate, ``<score n="2">0.7</score>``, numbered from 1.
* ``solution_summary``: ``<core_idea>…</core_idea>`` or ``<no_core_idea/>``, then any of
  ``<supporting_idea>…</supporting_idea>``, ``<keyword>…</keyword>``, ``<confidence>0.8</confidence>``.
* ``pairwise_judgment``: ``<verdict>1</verdict>``, ``<verdict>2</verdict>``, or ``<verdict>=</verdict>``
  from an engine that finds no difference. The last ``<verdict>`` decides, so quoted text cannot.

Tagged text, not JSON, because a LaTeX command in a JSON string decodes to a control character.
"""

import re
from dataclasses import dataclass

_SCORE = re.compile(r'<score\s+n="([0-9]{1,6})"\s*>\s*([^<\s]+)\s*</score>')
_VERDICT_OPENS = re.compile(r"<verdict>", re.IGNORECASE)
_VERDICT_REST = re.compile(r"\s*([12=])\s*</verdict>", re.IGNORECASE)
_NO_CORE_IDEA = re.compile(r"<no_core_idea\s*/>")
_TAG = re.compile(r"</?(?:core_idea|no_core_idea|supporting_idea|keyword|confidence)\s*/?>")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)")
MAX_SUPPORTING_IDEAS = 3


class ParseError(ValueError):
    """A complete reply that does not follow the grammar. It never becomes a score or a vote."""


@dataclass(frozen=True, slots=True)
class Summary:
    """A parsed solution summary; ``core_idea`` is None if the engine found none."""

    core_idea: str | None
    supporting_ideas: tuple[str, ...]
    keywords: tuple[str, ...]
    confidence: float | None


def parse_topic_scores(text: str, n_candidates: int) -> list[float]:
    """Scores in [0, 1] of candidates 1..n, in order.

    Raises:
        ParseError: if a candidate has no score or two different ones, a score is not in [0, 1], or
            there is a score for a number that no candidate has.
    """
    scores: dict[int, float] = {}
    for number, raw in _SCORE.findall(text):
        try:
            value = float(raw)
        except ValueError:
            raise ParseError(f"score of candidate {number} is not a number: {raw!r}") from None
        if not 0.0 <= value <= 1.0:
            raise ParseError(f"score of candidate {number} is outside [0, 1]: {raw}")
        if scores.setdefault(int(number), value) != value:
            raise ParseError(f"two scores for candidate {number}: {scores[int(number)]} and {raw}")
    unknown = sorted(n for n in scores if not 1 <= n <= n_candidates)
    if unknown:
        raise ParseError(f"scores for number(s) {unknown[:5]}, but there are {n_candidates}")
    missing = [n for n in range(1, n_candidates + 1) if n not in scores]
    if missing:
        raise ParseError(f"no score for candidate(s) {missing[:5]} of {n_candidates}")
    return [scores[n] for n in range(1, n_candidates + 1)]


def parse_summary(text: str, max_words: int) -> Summary:
    """A solution summary.

    Raises:
        ParseError: if there is neither a core idea nor the tag that says so, the core idea is longer
            than ``max_words``, the confidence is not in [0, 1], a tag lies inside another, or there
            are control characters.
    """
    if _CONTROL.search(text):
        raise ParseError("control characters in the reply (a LaTeX command that was unescaped?)")
    ideas = _tagged(text, "core_idea")
    core: str | None = ideas[-1] if ideas else None
    if core is None and not _NO_CORE_IDEA.search(text):
        raise ParseError("neither <core_idea> nor <no_core_idea/>")
    if core is not None and len(core.split()) > max_words:
        raise ParseError(
            f"core idea has {len(core.split())} words, at most {max_words} are allowed"
        )
    confidence: float | None = None
    if raw := _tagged(text, "confidence"):
        try:
            confidence = float(raw[-1])
        except ValueError:
            raise ParseError(f"confidence is not a number: {raw[-1]!r}") from None
        if not 0.0 <= confidence <= 1.0:
            raise ParseError(f"confidence is outside [0, 1]: {raw[-1]}")
    return Summary(
        core_idea=core,
        supporting_ideas=tuple(_tagged(text, "supporting_idea")[:MAX_SUPPORTING_IDEAS]),
        keywords=tuple(_tagged(text, "keyword")),
        confidence=confidence,
    )


def parse_verdict(text: str) -> float:
    """Preference for the first document: 1.0, 0.0, or 0.5 where the engine finds no difference.

    Raises:
        ParseError: if there is no verdict, or the last one is none of the three.
    """
    _, *opened = _VERDICT_OPENS.split(text)
    verdict = _VERDICT_REST.match(opened[-1]) if opened else None
    if not verdict:
        raise ParseError("the reply does not end with <verdict>1</verdict> or <verdict>2</verdict>")
    return {"1": 1.0, "2": 0.0, "=": 0.5}[verdict[1]]


def _tagged(text: str, tag: str) -> list[str]:
    found = re.findall(rf"<{tag}>((?:(?!<{tag}>).)*?)</{tag}>", text, re.DOTALL)
    texts = [clean for raw in found if (clean := " ".join(raw.split()))]
    for clean in texts:
        if inside := _TAG.search(clean):
            raise ParseError(f"{inside[0]} inside <{tag}>")
    return texts
