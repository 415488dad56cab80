"""Journals: files of JSON lines on local disk to which each reply goes at once.

A journal becomes a segment when it is full or the step ends. It takes a new name then, which the
segment has, too: what was settled first has the smallest name and stays canonical. Its writer holds a
file lock, so the journal of a process that was killed is known by its released lock, and becomes a
segment the next time anybody on the machine opens the stage. If the segment of its name is there
already, the kill came after that was written, and the same files are written again.

Two kinds of lines: a row, and a text that rows refer to, which goes to the archive.
"""

import errno
import fcntl
import io
import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from operator import attrgetter
from pathlib import Path
from typing import IO, Any

import polars as pl

from saber_dagster.errors import SaberError
from saber_dagster.hashing import sha256_hex
from saber_dagster.ledger.rows import COLUMNS, SCHEMA, LedgerError, Row
from saber_dagster.ledger.segments import Keys, key_halves, new_name, write_segment
from saber_dagster.ledger.texts import Archive
from saber_dagster.storage import AnyPath

_values = attrgetter(*COLUMNS)
_ROW, _TEXT = b'{"key"', b'{"sha256"'


@dataclass(frozen=True)
class Place:
    """Where the files of a ledger, or of one folder of it, lie."""

    root: AnyPath
    journals: Path
    """The same folder as ``root`` on local disk; for an object store one that mirrors it."""

    def __truediv__(self, name: str) -> "Place":
        return Place(self.root / name, self.journals / name)


class Journal:
    """The open journal of one step; it holds a file lock for as long as the process lives."""

    def __init__(self, place: Place, archive: Archive) -> None:
        self._place, self._archive = place, archive
        place.journals.mkdir(parents=True, exist_ok=True)
        self._path = place.journals / new_name(".journal")
        unlocked = self._path.with_suffix(".new")
        self._file = unlocked.open("xb", buffering=0)
        fcntl.flock(self._file, fcntl.LOCK_EX)
        unlocked.rename(self._path)  # nobody sees a journal that is not locked
        self._reader = self._path.open("rb")
        self._size = 0
        self.rows = 0

    def note(self, sha256: str, text: str) -> None:
        """Write a text that later rows refer to."""
        self._write(json.dumps({"sha256": sha256, "content": text}))

    def append(self, row: Row) -> int:
        """Write a row to the operating system: a kill of this process cannot lose it.

        Returns:
            Its place in the journal.
        """
        self.rows += 1
        return self._write(json.dumps(dict(zip(COLUMNS, _values(row), strict=True))))

    def read(self, place: int) -> Row:
        """The row at a place."""
        self._reader.seek(place)
        return Row(**json.loads(self._reader.readline()))

    def close(self) -> tuple[AnyPath, Keys] | None:
        """Turn the journal into its segment; None if there is no row in it.

        Call it within :func:`settling`.
        """
        self._path = _renamed(self._path, self._place.root)
        with self._path.open("rb") as lines:
            made = _settle(self._path, self._place.root, lines, self._archive)
        self._reader.close()
        self._file.close()
        return made

    def _write(self, line: str) -> int:
        data = line.encode() + b"\n"
        place = self._size
        if self._file.write(data) != len(data):
            self._file.truncate(place)  # half a line, or a gap, would spoil the next one
            self._file.seek(place)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))
        self._size += len(data)
        return place


def recover(place: Place, archive: Archive) -> int:
    """Turn the journals of dead processes into segments.

    Of a journal with a line that this version cannot read, a copy stays as ``.damaged``.

    Returns:
        The number of replies saved.
    """
    saved = 0
    for path, lines in dead_journals(place.journals):
        read = [readable_line(line) for line in lines]
        target = place.root
        for name in path.parent.relative_to(place.journals).parts:
            target = target / name
        if any(row is None and line.endswith(b"\n") for row, line in zip(read, lines, strict=True)):
            # not a kill in the last line: keep what cannot be read
            path.with_suffix(".damaged").write_bytes(b"".join(lines))
        with settling(path.parent.parent):
            path = _renamed(path, target)
            if made := _settle(path, target, [line for line in read if line], archive):
                saved += len(made[1].final)
    return saved


@contextmanager
def settling(folder: Path) -> Iterator[None]:
    """Name and write segments of a model within this context.

    Of this machine one process at a time is in it, so whoever is in it sees every segment that will
    ever have a smaller name than the one it writes.

    Args:
        folder: of the model's journals at a stage.
    """
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _renamed(journal: Path, folder: AnyPath) -> Path:
    """The journal under a new name, unless its segment was written before."""
    if (folder / journal.with_suffix(".parquet").name).exists():
        return journal
    return journal.rename(journal.with_name(new_name(".journal")))


def dead_journals(folder: Path) -> Iterator[tuple[Path, list[bytes]]]:
    """The journals that no living process writes, with their lines; each is locked meanwhile."""
    for path in sorted(folder.rglob("*.journal")):
        try:
            file = path.open("rb")
        except FileNotFoundError:
            continue
        with file:
            if _lock(file) and path.exists():  # else somebody saved it between the two
                yield path, file.readlines()


def live_journals(folder: Path) -> list[Path]:
    """The journals of a folder itself that processes at work hold."""
    live = []
    for path in folder.glob("*.journal"):
        try:
            with path.open("rb") as file:
                if not _lock(file):
                    live.append(path)
        except FileNotFoundError:
            continue
    return live


def _lock(file: IO[bytes]) -> bool:
    """Lock a journal; False if its writer is alive."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def readable_line(line: bytes) -> bytes | None:
    """A line of a journal with all columns that this version has; None if it cannot be read."""
    try:
        value = json.loads(line)
        if line.startswith(_TEXT):
            return line if sha256_hex(value["content"]) == value["sha256"] else None
        row = Row(**value)
        key_halves([row.key])
        if not all(map(_fits, _values(row), SCHEMA.values())):
            return None
    except (ValueError, TypeError, KeyError):
        return None
    return json.dumps(asdict(row)).encode() + b"\n"


def _fits(value: Any, type_: pl.DataType) -> bool:
    """Whether a column of this type can hold a value.

    Raises:
        ValueError: if it is a text with a lone surrogate.
    """
    if type_ == pl.String():
        return isinstance(value, str) and value.encode() is not None
    if type_ == pl.Boolean():
        return isinstance(value, bool)
    if isinstance(value, bool):
        return False
    if type_ == pl.Int64():
        return isinstance(value, int) and -(2**63) <= value < 2**63
    return isinstance(value, int | float) and abs(value) <= sys.float_info.max


def _settle(
    journal: Path, folder: AnyPath, lines: Iterable[bytes], archive: Archive
) -> tuple[AnyPath, Keys] | None:
    """Write what the lines of a journal say to archive and segment, then remove the journal.

    Raises:
        LedgerError: if they cannot be turned into a segment.
        OSError: if it cannot be written.
    """
    try:
        return _settled(journal, folder, lines, archive)
    except (OSError, SaberError):
        raise
    except (Exception, pl.exceptions.PanicException) as error:
        what = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise LedgerError(
            f"{journal} cannot be turned into a segment ({what}); its replies are in it, so keep a"
            " copy, move it away and report this"
        ) from error


def _settled(
    journal: Path, folder: AnyPath, lines: Iterable[bytes], archive: Archive
) -> tuple[AnyPath, Keys] | None:
    name = journal.with_suffix(".parquet").name
    rows, texts = io.BytesIO(), {}
    for line in lines:
        if line.startswith(_ROW):
            rows.write(line)
        elif line.startswith(_TEXT):
            noted = json.loads(line)
            texts[noted["sha256"]] = noted["content"]
    if texts:
        archive.add(texts)
    made = None
    if rows.tell():
        rows.seek(0)
        frame = pl.read_ndjson(rows, schema=SCHEMA)
        made = folder / name, write_segment(folder / name, frame)
    journal.unlink(missing_ok=True)
    return made
