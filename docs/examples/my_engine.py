"""An engine of your own: a judge that counts words. See docs/extending.md."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from saber_dagster.engines import PAIRWISE_JUDGMENT, Call, Message, PromptRef, Reply
from saber_dagster.errors import SaberError
from saber_dagster.hashing import canonical_json, sha256_hex
from saber_dagster.text import words

INSTRUCTIONS = "Prefer the sample that has more of the query's distinct words."


class SharedWords:
    """Prefers the sample that has more of the query's words; finds no difference if both have as many.

    Args:
        min_length: shorter words do not count.
    """

    model = "shared-words"
    revision = "1"  # raise it whenever an answer can change

    def __init__(self, min_length: int = 4) -> None:
        self.min_length = min_length

    def params(self, task: str) -> Mapping[str, Any]:
        """The options that can change an answer: they are part of the ledger's key."""
        return {"min_length": self.min_length}

    def prompt(self, task: str) -> PromptRef:
        """What the engine is told; its SHA-256 is the prompt's version."""
        return PromptRef("shared-words", sha256_hex(INSTRUCTIONS))

    def messages(self, call: Call) -> Sequence[Message]:
        """Everything that the answer depends on. A model would be sent this; we only hash it."""
        inputs = canonical_json(dict(call.inputs)).decode("utf-8")
        return [
            {"role": "system", "content": INSTRUCTIONS},
            {"role": "user", "content": inputs},
        ]

    def answer(self, calls: Sequence[Call]) -> Iterator[tuple[int, Reply]]:
        """Yield each call's position and reply, in any order, as soon as it is there."""
        for position, call in enumerate(calls):
            if call.task != PAIRWISE_JUDGMENT:
                raise SaberError(f"{self.model} is a judge only; it cannot do {call.task}")
            query, first, second = (
                self._words(call.inputs[n]) for n in ("query", "first", "second")
            )
            one, two = len(query & first), len(query & second)
            verdict = "1" if one > two else "2" if two > one else "="
            yield position, Reply("ok", f"{one} and {two} words. <verdict>{verdict}</verdict>")

    def _words(self, text: Mapping[str, str]) -> set[str]:
        found = words(f"{text['problem']} {text['solution']}")
        return {word for word in found if len(word) >= self.min_length}
