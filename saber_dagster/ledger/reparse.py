"""Reads stored replies again with today's parsers. Nothing is asked and nothing is paid."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from saber_dagster.ledger.ledger import Ledger, names_below, stage_files
from saber_dagster.ledger.rows import SCHEMA
from saber_dagster.ledger.segments import parquet_bytes, read_checked, read_segment
from saber_dagster.ledger.texts import Archive, references, unpacked
from saber_dagster.replies import ParseError, parse_reply
from saber_dagster.storage import write_atomic

ParseTask = Callable[[str, Mapping[str, Any], str], Any]
"""Parses a reply by its task and inputs, or raises :class:`ParseError`."""


@dataclass
class Reparsing:
    """What today's parsers make of the replies of one partition of a stage and model.

    ``unread`` replies could not be parsed again: they were stored without inputs, by version 0.1, or
    are of a task that only their own engine knows.
    """

    stage: str
    model: str
    partition: str
    read: int = 0
    unread: int = 0
    changes: dict[str, int] = field(default_factory=dict)
    """By ``ok → parse_error`` and ``parse_error → ok``."""


class _Inputs(Mapping[str, Any]):
    """Packed inputs that read a text from the archive only if it is looked at."""

    def __init__(self, packed_json: str, archive: Archive) -> None:
        self._packed = json.loads(packed_json)
        self._archive = archive

    def __getitem__(self, name: str) -> Any:
        value = self._packed[name]
        return unpacked(value, self._archive.read(references(value)))

    def __iter__(self) -> Iterator[str]:
        return iter(self._packed)

    def __len__(self) -> int:
        return len(self._packed)


def reparse(ledger: Ledger, write: bool = False, parse: ParseTask = parse_reply) -> list[Reparsing]:
    """Parse every complete reply again.

    Args:
        ledger: whose replies; those of running steps are left out.
        write: correct statuses and errors, segment by segment.
        parse: the parsers.

    Returns:
        One result for each partition, sorted.

    Raises:
        LedgerError: if a segment is damaged, or a text that a parser looks at is missing.
    """
    ledger.recover()
    results: dict[tuple[str, str, str], Reparsing] = {}
    for path in stage_files(ledger.root, ledger.root):
        stage, model, partition = names_below(path, ledger.root)[:3]
        result = results.setdefault((stage, model, partition), Reparsing(stage, model, partition))
        frame = read_segment(path, ["status", "text", "error", "inputs", "task"], check=True)
        now = [_now(row, result, ledger.archive, parse) for row in frame.iter_rows(named=True)]
        if write and now != list(frame.select("status", "error").iter_rows()):
            whole = read_checked(path)
            whole = read_segment(path).with_columns(
                pl.Series("status", [status for status, _ in now]),
                pl.Series("error", [error for _, error in now]),
                *(whole[name] for name in whole.columns if name not in SCHEMA),
            )
            write_atomic(path, parquet_bytes(whole))
    return [results[key] for key in sorted(results)]


def _now(
    row: Mapping[str, Any], result: Reparsing, archive: Archive, parse: ParseTask
) -> tuple[str, str]:
    """Status and error of a reply by today's parsers."""
    before = (row["status"], row["error"])
    if row["status"] not in ("ok", "parse_error"):
        return before
    if not row["inputs"]:
        result.unread += 1
        return before
    try:
        parse(row["task"], _Inputs(row["inputs"], archive), row["text"])
    except ParseError as problem:
        now = ("parse_error", str(problem))
    except KeyError:
        result.unread += 1
        return before
    else:
        now = ("ok", "")
    result.read += 1
    if now[0] != before[0]:
        change = f"{before[0]} → {now[0]}"
        result.changes[change] = result.changes.get(change, 0) + 1
    return now
