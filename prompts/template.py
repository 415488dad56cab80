"""Prompts: chat messages with places for values, filled in literally."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from saber_dagster.engines import PromptRef
from saber_dagster.errors import SaberError

Form = Literal["tagged", "json"]
"""How a reply is written down: tagged text, or one JSON object."""

_PLACE = re.compile(r"\{\{([a-z_]+)\}\}")


@dataclass(frozen=True, slots=True)
class Pieces:
    """A text cut at its placeholders: one more literal than there are names."""

    literals: tuple[str, ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> "Pieces":
        """A text with ``{{name}}`` where a value goes."""
        parts = _PLACE.split(text)
        return cls(tuple(parts[::2]), tuple(parts[1::2]))

    def filled(self, values: Mapping[str, str]) -> str:
        """The text with the values in it.

        Raises:
            KeyError: if a value is missing.
        """
        parts = [""] * (len(self.literals) + len(self.names))
        parts[::2] = self.literals
        parts[1::2] = [values[name] for name in self.names]
        return "".join(parts)


@dataclass(frozen=True, slots=True)
class Prompt:
    """A template: its chat messages with ``{{name}}`` where a value goes.

    Attributes:
        ref: its name and the SHA-256 of its file.
        task: the task that it asks.
        version: raised by hand whenever the file changes.
        schema: JSON schema of the reply's JSON form; None if the reply has none.
        choices: the reply is one of these tokens; empty if it is free text.
        stop: texts at which a server ends the reply.
        reminder: what is appended when the question is asked again.
        text: the whole file.
    """

    ref: PromptRef
    task: str
    version: int
    schema: Mapping[str, Any] | None
    choices: tuple[str, ...]
    stop: tuple[str, ...]
    reminder: str
    text: str = field(repr=False)
    _messages: Mapping[str, tuple[tuple[str, Pieces], ...]] = field(repr=False, compare=False)

    @property
    def forms(self) -> tuple[str, ...]:
        """``("tagged",)`` or ``("tagged", "json")``."""
        return tuple(self._messages)

    def render(
        self, values: Mapping[str, str], form: Form = "tagged", attempt: int = 0
    ) -> list[dict[str, str]]:
        """Put values in literally, in one pass: braces and ``{{…}}`` inside a value stay as they are.

        Args:
            values: by placeholder, see :func:`prompts.prompt_values`; more than are used may be there.
            form: the form of the reply that is asked for.
            attempt: 0, or n for the n-th time of asking again, which appends the reminder.

        Raises:
            SaberError: if a value is missing, or the prompt has no such form.
        """
        if form not in self._messages:
            raise SaberError(f"prompt {self.ref.name} has no section '# form {form}'")
        try:
            messages = [
                {"role": role, "content": pieces.filled(values)}
                for role, pieces in self._messages[form]
            ]
        except KeyError as error:
            raise SaberError(f"prompt {self.ref.name}: there is no value for {error}") from None
        if attempt:
            again = Pieces.of(self.reminder).filled(values)
            messages[-1]["content"] += f"\n\n{again}" + (f" ({attempt})" if attempt > 1 else "")
        return messages
