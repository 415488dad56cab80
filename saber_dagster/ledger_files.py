"""The files of the call ledger: immutable segments, and the journals that become them."""

import fcntl
import io
import json
import os
import time
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import IO

import polars as pl

from saber_dagster.errors import SaberError
from saber_dagster.storage import write_atomic


class LedgerError(SaberError):
    """A call has no usable reply."""


@dataclass(frozen=True, slots=True)
class Row:
    """One reply as stored."""

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


_TYPES: dict[type, pl.DataType] = {str: pl.String(), int: pl.Int64(), float: pl.Float64()}
SCHEMA: dict[str, pl.DataType] = {f.name: _TYPES[f.type] for f in fields(Row)}  # type: ignore[index]


def read_segment(path: Path, columns: list[str] | None = None) -> pl.DataFrame:
    """Read a segment, or some of its columns.

    Raises:
        LedgerError: if it is damaged.
    """
    try:
        return pl.read_parquet(path, columns=columns, hive_partitioning=False)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise LedgerError(
            f"{path} is damaged ({error}); restore it from a copy, or move it away and pay its calls"
            " again"
        ) from None


def write_segment(path: Path, rows: Sequence[Row]) -> None:
    """Write a segment, all of it or nothing."""
    buffer = io.BytesIO()
    frame = pl.DataFrame([asdict(row) for row in rows], schema=SCHEMA, orient="row")
    frame.write_parquet(buffer)
    write_atomic(path, buffer.getvalue())


class Journal:
    """The open journal of one step; it holds a file lock for as long as the process lives."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        stem = f"{time.time_ns():020d}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self.path = folder / f"{stem}.journal"
        self.rows: list[Row] = []
        unlocked = self.path.with_suffix(".new")
        self._file: IO[bytes] = unlocked.open("xb")
        fcntl.flock(self._file, fcntl.LOCK_EX)
        unlocked.rename(self.path)  # nobody sees a journal that is not locked

    def append(self, row: Row) -> None:
        """Write one line to the operating system: a kill of this process cannot lose it."""
        self._file.write(json.dumps(asdict(row)).encode() + b"\n")
        self._file.flush()
        self.rows.append(row)

    def close(self) -> None:
        """Turn the journal into its segment."""
        if self.rows:
            write_segment(self.path.with_suffix(".parquet"), self.rows)
        self.path.unlink(missing_ok=True)
        self._file.close()


def recover(folder: Path) -> int:
    """Turn the journals of dead processes into segments.

    Of a journal with a line that this version cannot read, a copy stays as ``.damaged``.

    Returns:
        The number of replies saved.
    """
    saved = 0
    for path in sorted(folder.rglob("*.journal")):
        try:
            file = path.open("rb")
        except FileNotFoundError:
            continue
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue  # its writer is alive
            lines = file.readlines()
            rows = [row for line in lines if (row := _journal_row(line))]
            if rows:
                write_segment(path.with_suffix(".parquet"), rows)
            whole = sum(line.endswith(b"\n") for line in lines)
            if whole > len(rows):  # not a kill in the last line: keep what cannot be read
                path.rename(path.with_suffix(".damaged"))
            path.unlink(missing_ok=True)
            saved += len(rows)
    return saved


def _journal_row(line: bytes) -> Row | None:
    try:
        return Row(**json.loads(line))
    except (ValueError, TypeError):
        return None
