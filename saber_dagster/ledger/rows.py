"""What the ledger keeps of one call: a row, its columns, and the faults that stop the ledger."""

import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, Literal

import polars as pl

from saber_dagster.engines import FINAL
from saber_dagster.errors import SaberError

Mode = Literal["live", "replay", "dry_run"]
"""What becomes of a call that the ledger has no reply to: made, an error, or counted and priced."""


class LedgerError(SaberError):
    """A call has no usable reply, or a file of the ledger cannot be used."""


@dataclass(frozen=True, slots=True)
class Row:
    """One reply as stored.

    Attributes:
        params: sampling parameters as canonical JSON; part of the key, as are model, revision, sample
            and the messages.
        inputs: inputs of the call as canonical JSON. A string longer than 64 characters stands as
            ``{"$": sha256}``, a long list of shorter ones as ``{"$list": sha256}``; both lie in the
            archive of texts.
        messages: the messages as sent, in the same form, if they cannot be rendered from prompt and
            inputs alone, since the inputs were cut; empty otherwise.
        truncated_input: the inputs were cut to fit into the model's context.
        created: seconds since 1970.
    """

    key: str
    item: str
    status: str
    text: str
    reasoning: str
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    reasoning_tokens: int
    cached_tokens: int
    price: float
    latency: float
    created: float
    run_id: str
    stage: str
    task: str
    model: str
    revision: str
    prompt: str
    prompt_sha256: str
    error: str
    params: str = ""
    sample: int = 0
    attempt: int = 0
    inputs: str = ""
    messages: str = ""
    truncated_input: bool = False

    @property
    def final(self) -> bool:
        """Whether the call is not asked again."""
        return self.status in FINAL


_TYPES: Mapping[Any, pl.DataType] = {
    str: pl.String(),
    int: pl.Int64(),
    float: pl.Float64(),
    bool: pl.Boolean(),
}
COLUMNS = tuple(field.name for field in fields(Row))
SCHEMA: dict[str, pl.DataType] = {field.name: _TYPES[field.type] for field in fields(Row)}
DEFAULTS: dict[str, Any] = {
    field.name: field.default for field in fields(Row) if field.default is not MISSING
}
"""Values of the columns that rows of version 0.1 do not have."""


FOLDERS = ("texts", "prompts")
"""Folders of a ledger that are no stage."""


def slug(name: str) -> str:
    """A name as the name of a folder."""
    return re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-.") or "unnamed"


def utf8(text: str) -> str:
    """The text without lone surrogates, which JSON can carry and Parquet cannot."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
