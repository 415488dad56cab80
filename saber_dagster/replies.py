"""Parsers of engine replies. They run after the ledger, so a better one re-reads and pays nothing.

Grammar, the same for every engine:

=====================  ==========================================================  ==================
task                   tagged form                                                 JSON form
=====================  ==========================================================  ==================
topic_scores           a line per candidate: ``<score n="2">0.7</score>``,         ``{"scores":
                       numbered from 1, in [0, 1]                                  [0.2, 0.7]}``
solution_summary       ``<core_idea>…</core_idea>`` or ``<no_core_idea/>``, then
                       any of ``<supporting_idea>…</supporting_idea>``,
                       ``<keyword>…</keyword>``, ``<confidence>0.8</confidence>``
pairwise_judgment      ``<verdict>1</verdict>``, ``<verdict>2</verdict>``, or      ``{"reason": "…",
                       ``<verdict>=</verdict>`` from an engine that finds no       "verdict": 1}``
                       difference
pairwise_choice,       a line per choice, written by the engine:
relevance_choice       ``<logprob choice="1">-0.3</logprob>``; a choice that the
                       server did not report has none, and then
                       ``<logprob floor="true">-9</logprob>`` is the lowest that
                       was reported; together the choices must have
                       :data:`LEAST_CHOICE_SHARE` of the probability
ordinal_judgment       ``<score>70</score>``, in [0, 100]                          ``{"score": 70}``
solution_selection     ``<choice>2</choice>``, numbered from 1                     ``{"choice": 2}``
latex_formatting       ``<latex>…</latex>``
cleaning               ``<cleaned>…</cleaned>``
translation            ``<translation>…</translation>``
segmentation           ``<problem>…</problem>`` for each problem, each followed
                       by ``<solution>…</solution>`` where there is one
=====================  ==========================================================  ==================

Whatever a model says before it: the last tag decides, so that a quoted one cannot. In JSON ``reason``
is never read. Texts come tagged only, because a LaTeX command in a JSON string decodes to a control
character; control characters in a text are an error.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from saber_dagster.engines import (
    CLEANING,
    LATEX_FORMATTING,
    ORDINAL_JUDGMENT,
    PAIRWISE_CHOICE,
    PAIRWISE_JUDGMENT,
    RELEVANCE_CHOICE,
    SEGMENTATION,
    SOLUTION_SELECTION,
    SOLUTION_SUMMARY,
    TOPIC_SCORES,
    TRANSLATION,
)
from saber_dagster.replies_text import (
    Segment,
    parse_cleaned,
    parse_latex,
    parse_segments,
    parse_translation,
)
from saber_dagster.reply_grammar import (
    ParseError,
    json_form,
    last_tag,
    number_in,
    refuse_control,
    whole_number_in,
)

__all__ = [
    "CHOICES",
    "JSON_TASKS",
    "LEAST_CHOICE_SHARE",
    "MAX_SUPPORTING_IDEAS",
    "ParseError",
    "Segment",
    "Summary",
    "parse_choice",
    "parse_cleaned",
    "parse_latex",
    "parse_ordinal",
    "parse_reply",
    "parse_segments",
    "parse_selection",
    "parse_summary",
    "parse_topic_scores",
    "parse_translation",
    "parse_verdict",
]

JSON_TASKS = frozenset({TOPIC_SCORES, PAIRWISE_JUDGMENT, ORDINAL_JUDGMENT, SOLUTION_SELECTION})
"""Tasks that have a JSON form: scores and enums."""
CHOICES: Mapping[str, tuple[str, ...]] = {
    PAIRWISE_CHOICE: ("1", "2"),
    RELEVANCE_CHOICE: ("yes", "no"),
}
"""Tasks that are answered by one token, and the tokens."""
MAX_SUPPORTING_IDEAS = 3
LEAST_CHOICE_SHARE = 0.01
"""Probability that the reported choices of a forced choice must have together.

Below it the model was about to say something else, and the odds are those of noise.
"""

_SCORE = re.compile(r'<score\s+n="([0-9]{1,6})"\s*>\s*([^<\s]+)\s*</score>')
_NO_CORE_IDEA = re.compile(r"<no_core_idea\s*/>")
_TAG = re.compile(r"</?(?:core_idea|no_core_idea|supporting_idea|keyword|confidence)\s*/?>")
_LOGPROB = re.compile(r'<logprob (?:choice="([^"]+)"|floor="true")>([^<\s]+)</logprob>')
_ROUNDING = 1e-3
"""By how much a summed log-probability may pass 0."""


@dataclass(frozen=True, slots=True)
class Summary:
    """A parsed solution summary; ``core_idea`` is None if the engine found none."""

    core_idea: str | None
    supporting_ideas: tuple[str, ...]
    keywords: tuple[str, ...]
    confidence: float | None


def parse_reply(task: str, inputs: Mapping[str, Any], text: str) -> Any:
    """The value of a reply to a call, by its task.

    Raises:
        ParseError: if the reply does not follow the grammar.
        KeyError: if there is no such task, or an input is missing.
    """
    return _PARSERS[task](inputs, text)


def parse_topic_scores(text: str, n_candidates: int) -> list[float]:
    """Scores in [0, 1] of candidates 1..n, in order.

    Raises:
        ParseError: if a candidate has no score or two different ones, a score is not in [0, 1], or
            there is a score for a number that no candidate has.
    """
    if (listed := json_form(text, "scores")) is not None:
        if not isinstance(listed, list) or len(listed) != n_candidates:
            raise ParseError(f"scores is not a list of {n_candidates}: {str(listed)[:80]}")
        return [_score(number, value) for number, value in enumerate(listed, 1)]
    scores: dict[int, float] = {}
    for number, raw in _SCORE.findall(text):
        value = _score(number, raw)
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
    refuse_control(text)
    ideas = _tagged(text, "core_idea")
    core: str | None = ideas[-1] if ideas else None
    if core is None and not _NO_CORE_IDEA.search(text):
        raise ParseError("neither <core_idea> nor <no_core_idea/>")
    if core is not None and len(core.split()) > max_words:
        raise ParseError(
            f"core idea has {len(core.split())} words, at most {max_words} are allowed"
        )
    stated = _tagged(text, "confidence")
    return Summary(
        core_idea=core,
        supporting_ideas=tuple(_tagged(text, "supporting_idea")[:MAX_SUPPORTING_IDEAS]),
        keywords=tuple(_tagged(text, "keyword")),
        confidence=number_in(stated[-1], "confidence", 0, 1) if stated else None,
    )


def parse_verdict(text: str) -> float:
    """Preference for the first document: 1.0, 0.0, or 0.5 where the engine finds no difference.

    Raises:
        ParseError: if there is no verdict, or the last one is none of the three.
    """
    if (listed := json_form(text, "verdict", "reason")) is not None:
        return 2.0 - whole_number_in(listed, "verdict", 1, 2)
    try:
        return {"1": 1.0, "2": 0.0, "=": 0.5}[last_tag(text, "verdict")]
    except (KeyError, ParseError):
        raise ParseError(
            "the reply does not end with <verdict>1</verdict> or <verdict>2</verdict>"
        ) from None


def parse_choice(text: str, choices: tuple[str, ...]) -> float:
    """Log-odds of the first choice against the second, natural logarithm, finite.

    A choice without a log-probability gets the floor, which is an upper bound of its own.

    Raises:
        ParseError: if no choice is reported, one is reported twice or is unknown, one lacks and there
            is no floor, the floor is above a choice, a value is no finite log-probability, or the
            choices have less than :data:`LEAST_CHOICE_SHARE` of the probability together.
    """
    found: dict[str, float] = {}
    for choice, raw in _LOGPROB.findall(text):
        if choice and choice not in choices:
            raise ParseError(f"a log-probability of {choice!r}; choices are {', '.join(choices)}")
        if choice in found:
            raise ParseError(f"two log-probabilities of {choice or 'the floor'}")
        value = number_in(raw, f"log-probability of {choice or 'the floor'}", -math.inf, _ROUNDING)
        found[choice] = value
    floor = found.pop("", None)
    if not found:
        raise ParseError(f"none of the choices {', '.join(choices)} is among the likely tokens")
    if floor is None and len(found) < len(choices):
        raise ParseError("a choice has no log-probability, and there is no floor")
    if floor is not None and floor > min(found.values()):
        raise ParseError(f"the floor {floor} is above the log-probability of a choice")
    if (share := sum(map(math.exp, found.values()))) < LEAST_CHOICE_SHARE:
        raise ParseError(
            f"the choices {', '.join(choices)} have {share:.2g} of the probability together, less than"
            f" {LEAST_CHOICE_SHARE:g}: the model was about to say something else"
        )
    first, second = (found.get(choice, floor) for choice in choices)
    assert first is not None
    assert second is not None
    return first - second


def parse_ordinal(text: str) -> float:
    """A relevance from 0 to 100.

    Raises:
        ParseError: if there is none, or the last one is outside.
    """
    stated = json_form(text, "score", "reason")
    return number_in(last_tag(text, "score") if stated is None else stated, "score", 0, 100)


def parse_selection(text: str, n: int) -> int:
    """The number, from 1 to n, of the solution that was chosen.

    Raises:
        ParseError: if there is none, or the last one is outside.
    """
    stated = json_form(text, "choice", "reason")
    return whole_number_in(last_tag(text, "choice") if stated is None else stated, "choice", 1, n)


def _score(number: str | int, value: object) -> float:
    return number_in(value, f"score of candidate {number}", 0, 1)


def _tagged(text: str, tag: str) -> list[str]:
    found = re.findall(rf"<{tag}>((?:(?!<{tag}>).)*?)</{tag}>", text, re.DOTALL)
    texts = [clean for raw in found if (clean := " ".join(raw.split()))]
    for clean in texts:
        if inside := _TAG.search(clean):
            raise ParseError(f"{inside[0]} inside <{tag}>")
    return texts


_PARSERS: Mapping[str, Callable[[Mapping[str, Any], str], Any]] = {
    TOPIC_SCORES: lambda inputs, text: parse_topic_scores(text, len(inputs["candidates"])),
    SOLUTION_SUMMARY: lambda inputs, text: parse_summary(text, inputs["max_words"]),
    PAIRWISE_JUDGMENT: lambda _, text: parse_verdict(text),
    PAIRWISE_CHOICE: lambda _, text: parse_choice(text, CHOICES[PAIRWISE_CHOICE]),
    RELEVANCE_CHOICE: lambda _, text: parse_choice(text, CHOICES[RELEVANCE_CHOICE]),
    ORDINAL_JUDGMENT: lambda _, text: parse_ordinal(text),
    LATEX_FORMATTING: lambda _, text: parse_latex(text),
    SOLUTION_SELECTION: lambda inputs, text: parse_selection(text, len(inputs["solutions"])),
    SEGMENTATION: lambda inputs, text: parse_segments(text, inputs["text"]),
    CLEANING: lambda _, text: parse_cleaned(text),
    TRANSLATION: lambda _, text: parse_translation(text),
}
