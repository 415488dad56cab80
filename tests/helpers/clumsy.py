"""An engine for tests that counts words as the embedded one does, and fails as it is told."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from resources.engines.embedded import EmbeddedEngine
from saber_dagster.engines import PAIRWISE_JUDGMENT, Call, Reply
from saber_dagster.hashing import hash64

FAILURES = {
    "parse_error": Reply("ok", "I would rather not say."),
    "transport_error": Reply("transport_error", error="the line is dead"),
}


class ClumsyEngine(EmbeddedEngine):
    """Fails on a share of the documents (of the pairs, as a judge), in one task or in all."""

    model = "clumsy"
    revision = "1"

    def __init__(
        self, failure: str, percent: int = 10, task: str = "", revision: str = "1"
    ) -> None:
        super().__init__()
        self.revision = revision
        self._failure = failure
        self._percent = percent
        self._task = task

    def params(self, task: str) -> Mapping[str, Any]:
        return {"failure": self._failure, "percent": self._percent, "task": self._task}

    def answer(self, calls: Sequence[Call]) -> Iterator[tuple[int, Reply]]:
        replies = dict(super().answer(calls))
        for position, call in enumerate(calls):
            fails = self._task in ("", call.task) and _number(call) % 100 < self._percent
            yield position, FAILURES[self._failure] if fails else replies[position]


def _number(call: Call) -> int:
    """The same for all calls about a document."""
    about = call.inputs
    texts = [about["first"], about["second"]] if call.task == PAIRWISE_JUDGMENT else [about]
    return hash64("clumsy", *(text["problem"] for text in texts))
