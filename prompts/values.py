"""What goes into a prompt: the values of its placeholders, from the inputs of a call."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
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
from saber_dagster.errors import SaberError

Inputs = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Placeholders:
    """The placeholders of a task's prompts: those that must stand in one, and those that may."""

    needed: frozenset[str]
    optional: frozenset[str] = frozenset()


def _names(*names: str) -> Placeholders:
    return Placeholders(frozenset(names))


_PROBLEM = ("problem", "solution")
_PAIR = tuple(f"{name}_{part}" for name in ("query", "first", "second") for part in _PROBLEM)
_DOCUMENT = tuple(f"{name}_{part}" for name in ("query", "document") for part in _PROBLEM)
_COUNT = frozenset({"count"})

PLACEHOLDERS: Mapping[str, Placeholders] = {
    TOPIC_SCORES: Placeholders(frozenset({*_PROBLEM, "candidates"}), _COUNT),
    SOLUTION_SUMMARY: _names(*_PROBLEM, "max_words"),
    PAIRWISE_JUDGMENT: _names(*_PAIR),
    PAIRWISE_CHOICE: _names(*_PAIR),
    RELEVANCE_CHOICE: _names(*_DOCUMENT),
    ORDINAL_JUDGMENT: _names(*_DOCUMENT),
    LATEX_FORMATTING: _names("text"),
    SOLUTION_SELECTION: Placeholders(frozenset({"problem", "solutions"}), _COUNT),
    SEGMENTATION: _names("text"),
    CLEANING: _names("text"),
    TRANSLATION: _names("text", "language"),
}
"""By task. ``count`` is the number of candidates, or of solutions."""


def prompt_values(task: str, inputs: Inputs) -> dict[str, str]:
    """The values of a task's placeholders.

    Args:
        task: one of :data:`saber_dagster.engines.TASKS`.
        inputs: what the task takes, by the table in :mod:`saber_dagster.engines`.

    Raises:
        SaberError: if there is no such task, or an input is missing or of another type.
    """
    if task not in _VALUES:
        raise SaberError(f"there is no task {task!r}; tasks are {', '.join(_VALUES)}")
    try:
        values = _VALUES[task](inputs)
    except (KeyError, TypeError, AttributeError) as error:
        problem = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise SaberError(
            f"inputs of task {task}: {problem} (see saber_dagster/engines.py)"
        ) from error
    for name, value in values.items():
        if type(value) is not str:
            raise SaberError(f"inputs of task {task}: {name} is {value!r}; it must be a text")
    return values


def example_inputs(task: str) -> dict[str, Any]:
    """Inputs that a task may have, to look at a prompt with."""
    text = files("prompts").joinpath("examples.json").read_text(encoding="utf-8")
    examples: dict[str, dict[str, Any]] = json.loads(text)
    return examples[task]


def _topic_scores(inputs: Inputs) -> dict[str, str]:
    candidates: Sequence[Inputs] = inputs["candidates"]
    return {
        "problem": inputs["problem"],
        "solution": inputs["solution"],
        "candidates": "\n".join(_heading(n, c) for n, c in enumerate(candidates, 1)),
        "count": str(len(candidates)),
    }


def _heading(number: int, candidate: Inputs) -> str:
    label, *others = (" ".join(n.split()) for n in (candidate["label"], *candidate["synonyms"]))
    also = f" (also: {', '.join(others)})" if others else ""
    return f"{number}. {label}{also}"


def _summary(inputs: Inputs) -> dict[str, str]:
    return {
        "problem": inputs["problem"],
        "solution": inputs["solution"],
        "max_words": str(inputs["max_words"]),
    }


def _pair(inputs: Inputs) -> dict[str, str]:
    query, first, second = inputs["query"], inputs["first"], inputs["second"]
    return {
        "query_problem": query["problem"],
        "query_solution": query["solution"],
        "first_problem": first["problem"],
        "first_solution": first["solution"],
        "second_problem": second["problem"],
        "second_solution": second["solution"],
    }


def _document(inputs: Inputs) -> dict[str, str]:
    query, document = inputs["query"], inputs["document"]
    return {
        "query_problem": query["problem"],
        "query_solution": query["solution"],
        "document_problem": document["problem"],
        "document_solution": document["solution"],
    }


def _selection(inputs: Inputs) -> dict[str, str]:
    solutions: Sequence[str] = inputs["solutions"]
    parts = (f"Solution {number}:\n{text}" for number, text in enumerate(solutions, 1))
    return {
        "problem": inputs["problem"],
        "solutions": "\n\n".join(parts),
        "count": str(len(solutions)),
    }


def _text(inputs: Inputs) -> dict[str, str]:
    return {"text": inputs["text"]}


def _translation(inputs: Inputs) -> dict[str, str]:
    return {"text": inputs["text"], "language": inputs["language"]}


_VALUES: Mapping[str, Callable[[Inputs], dict[str, str]]] = {
    TOPIC_SCORES: _topic_scores,
    SOLUTION_SUMMARY: _summary,
    PAIRWISE_JUDGMENT: _pair,
    PAIRWISE_CHOICE: _pair,
    RELEVANCE_CHOICE: _document,
    ORDINAL_JUDGMENT: _document,
    LATEX_FORMATTING: _text,
    SOLUTION_SELECTION: _selection,
    SEGMENTATION: _text,
    CLEANING: _text,
    TRANSLATION: _translation,
}
