"""The embedded baseline: answers every task by words and static vectors. It is not an LLM.

It needs no GPU, no key and no download, and its answer is a function of the call and of data files
in the package. It shows the whole pipeline at work and is a baseline for judges; its benchmarks say
nothing about the mathematical judgment of a model.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from threading import Lock
from typing import Any

from resources.engines.embedded_judgments import pairwise_judgment
from resources.engines.embedded_summaries import solution_summary
from resources.engines.embedded_topics import Candidates, compile_candidates, topic_scores
from resources.engines.embedded_vectors import vectors_version
from resources.engines.embedded_words import DATA_FILES
from saber_dagster.engines import (
    PAIRWISE_JUDGMENT,
    SOLUTION_SUMMARY,
    TOPIC_SCORES,
    Call,
    Message,
    PromptRef,
    Reply,
)
from saber_dagster.errors import SaberError
from saber_dagster.hashing import canonical_json, digest, sha256_hex
from saber_dagster.text import stop_words_version

VERSION = 2
"""Raised by hand when code changes an answer; the data files are part of the revision anyway."""

_DESCRIPTIONS = {
    TOPIC_SCORES: "Mentions of each candidate's names and of terms below it, times nearness of vectors.",
    SOLUTION_SUMMARY: "Techniques named in the solution, then the mathematical words nearest to it.",
    PAIRWISE_JUDGMENT: "The document whose words, techniques and vector are more like the query's.",
}
_MEMOS = 4096


class EmbeddedEngine:
    """An :class:`saber_dagster.engines.Engine` of words and vectors: a baseline, not an LLM."""

    free = True

    def __init__(self) -> None:
        self._compiled = _ByIdentity(compile_candidates)
        self._hashed = _ByIdentity(lambda value: sha256_hex(canonical_json(value)))

    @property
    def model(self) -> str:
        """``embedded-baseline``."""
        return "embedded-baseline"

    @property
    def revision(self) -> str:
        """Version of the code and digest of the data files."""
        return _revision()

    def params(self, task: str) -> Mapping[str, Any]:
        """None: nothing is sampled."""
        return {}

    def prompt(self, task: str) -> PromptRef:
        """What the baseline does for a task, in place of a prompt.

        Raises:
            SaberError: if there is no such task.
        """
        return PromptRef(f"embedded/{task}", sha256_hex(_description(task)))

    def messages(self, call: Call) -> Sequence[Message]:
        """Task and inputs as one message; candidates, which many calls share, as their SHA-256."""
        inputs = dict(call.inputs)
        if "candidates" in inputs:
            inputs["candidates"] = self._hashed(inputs["candidates"])
        content = canonical_json({"task": call.task, "inputs": inputs}).decode("utf-8")
        return [{"role": "user", "content": content}]

    def answer(self, calls: Sequence[Call]) -> Iterator[tuple[int, Reply]]:
        """Yield (position, reply), in order. Every reply is ``ok`` and free.

        Raises:
            SaberError: if there is no such task.
        """
        for position, call in enumerate(calls):
            start = time.perf_counter()
            text = self._text(call)
            yield position, Reply(status="ok", text=text, latency=time.perf_counter() - start)

    def _text(self, call: Call) -> str:
        _description(call.task)
        inputs = call.inputs
        if call.task == TOPIC_SCORES:
            candidates: Candidates = self._compiled(inputs["candidates"])
            scores = topic_scores(inputs["problem"], inputs["solution"], candidates)
            return "\n".join(f'<score n="{n}">{s:.4f}</score>' for n, s in enumerate(scores, 1))
        if call.task == SOLUTION_SUMMARY:
            limit = inputs.get("max_words", 30)
            return solution_summary(inputs["problem"], inputs["solution"], limit)
        documents = (inputs[name] for name in ("query", "first", "second"))
        return pairwise_judgment(*((d["problem"], d["solution"]) for d in documents))


class _ByIdentity:
    """Remembers a function's values for tuples that many calls share, by identity.

    An entry holds its tuple, so that no other object can take its identity meanwhile. The oldest
    entry goes first. Other types, which may change, are computed each time.
    """

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function
        self._known: dict[int, tuple[Any, Any]] = {}
        self._lock = Lock()

    def __call__(self, argument: Any) -> Any:
        if not isinstance(argument, tuple):
            return self._function(argument)
        entry = self._known.get(id(argument))
        if entry is None:
            entry = (argument, self._function(argument))
            with self._lock:
                if len(self._known) >= _MEMOS:
                    del self._known[next(iter(self._known))]
                self._known[id(argument)] = entry
        return entry[1]


def _description(task: str) -> str:
    if task not in _DESCRIPTIONS:
        raise SaberError(
            f"The embedded baseline has no task {task!r}; it has {list(_DESCRIPTIONS)}"
        )
    return _DESCRIPTIONS[task]


@cache
def _revision() -> str:
    data = files("saber_dagster").joinpath("data")
    shas = {name: sha256_hex(data.joinpath(name).read_bytes()) for name in DATA_FILES}
    return f"{VERSION}-{digest([shas, stop_words_version(), vectors_version()])}"
