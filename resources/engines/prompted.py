"""The part that all engines with prompts share: a call as the chat messages of its template."""

from collections.abc import Mapping, Sequence
from typing import Any

from prompts import load_prompt
from saber_dagster.engines import (
    PAIRWISE_JUDGMENT,
    SOLUTION_SUMMARY,
    TOPIC_SCORES,
    Call,
    Message,
    PromptRef,
)
from saber_dagster.errors import SaberError


class PromptedEngine:
    """Half an :class:`saber_dagster.engines.Engine`: renders ``prompts/<task>.md``.

    A subclass adds ``model``, ``revision``, ``params`` and ``answer``.
    """

    def prompt(self, task: str) -> PromptRef:
        """The template of a task.

        Raises:
            SaberError: if there is none.
        """
        return load_prompt(task).ref

    def messages(self, call: Call) -> Sequence[Message]:
        """The template with the call's texts in it, letter by letter as they are.

        Raises:
            SaberError: if there is no such task.
        """
        return load_prompt(call.task).render(_values(call.task, call.inputs))


def _values(task: str, inputs: Mapping[str, Any]) -> dict[str, str]:
    if task == PAIRWISE_JUDGMENT:
        return {
            f"{name}_{part}": inputs[name][part]
            for name in ("query", "first", "second")
            for part in ("problem", "solution")
        }
    texts = {"problem": inputs["problem"], "solution": inputs["solution"]}
    if task == TOPIC_SCORES:
        lines = (_numbered(n, c) for n, c in enumerate(inputs["candidates"], 1))
        return {**texts, "candidates": "\n".join(lines)}
    if task == SOLUTION_SUMMARY:
        return {**texts, "max_words": str(inputs["max_words"])}
    raise SaberError(f"no inputs are known for a prompt of task {task!r}")


def _numbered(number: int, candidate: Mapping[str, Any]) -> str:
    label, *others = (" ".join(n.split()) for n in (candidate["label"], *candidate["synonyms"]))
    also = f" (also: {', '.join(others)})" if others else ""
    return f"{number}. {label}{also}"
