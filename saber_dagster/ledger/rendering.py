"""The messages of a stored reply, made again from what was archived, and its key checked by them."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from saber_dagster.engines import Call
from saber_dagster.errors import SaberError
from saber_dagster.hashing import canonical_json, sha256_hex
from saber_dagster.ledger.rows import LedgerError
from saber_dagster.ledger.texts import Archive, references, unpacked

Form = Literal["tagged", "json"]
FORMS: tuple[Form, ...] = ("tagged", "json")
Messages = Sequence[Mapping[str, str]]
Render = Callable[[str, Call, Form], Messages]
"""Makes the messages of a call by the text of a prompt file, in one of its forms of reply."""


@dataclass(frozen=True)
class Rendering:
    """What was sent, as far as it is known.

    Attributes:
        messages: as sent; None if they cannot be made again.
        verified: whether they give the key of the row; None if there are none.
        problem: why they cannot be made, or do not give the key; empty if all is well.
    """

    messages: Messages | None
    verified: bool | None
    problem: str = ""


def row_key(row: Mapping[str, Any], messages: Messages) -> str:
    """The key that a row has by its content; see :func:`saber_dagster.engines.call_key`."""
    parts = [
        row["model"],
        row["revision"],
        json.loads(row["params"]),
        [dict(message) for message in messages],
        row["sample"],
    ]
    return sha256_hex(canonical_json(parts))


def text_references(row: Mapping[str, Any]) -> list[str]:
    """The SHA-256 of every text that a row refers to."""
    stored = [row[name] for name in ("inputs", "messages") if row[name]]
    return [sha for text in stored for sha in references(json.loads(text))]


def rendering(row: Mapping[str, Any], archive: Archive, render: Render) -> Rendering:
    """Make the messages of a stored reply again and check its key.

    A missing text is a problem of the rendering, not an error.
    """
    try:
        texts = archive.read(text_references(row))
    except LedgerError as error:
        return Rendering(None, None, str(error))
    return rendered(row, texts, archive.prompt_text(row["prompt_sha256"]), render)


def rendered(
    row: Mapping[str, Any], texts: Mapping[str, str], prompt_text: str | None, render: Render
) -> Rendering:
    """The same with texts and prompt at hand."""
    if not row["params"]:
        return Rendering(None, None, "the reply was stored by version 0.1, without its inputs")
    if row["messages"]:
        sent: Messages = unpacked(json.loads(row["messages"]), texts)
        return _checked(row, [sent])
    if prompt_text is None:
        return Rendering(
            None,
            None,
            "its engine has no prompt file; only the engine itself can make its messages",
        )
    inputs = unpacked(json.loads(row["inputs"]), texts)
    call = Call(row["task"], inputs, row["item"], row["sample"], row["attempt"])
    found, problem = [], ""
    for form in FORMS:
        try:
            found.append(render(prompt_text, call, form))
        except SaberError as error:
            problem = str(error)
    return _checked(row, found) if found else Rendering(None, None, problem)


def _checked(row: Mapping[str, Any], candidates: Sequence[Messages]) -> Rendering:
    for messages in candidates:
        if row_key(row, messages) == row["key"]:
            return Rendering(messages, True)
    return Rendering(candidates[0], False, "these messages do not give the key of the row")
