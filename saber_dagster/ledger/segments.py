"""Segments: immutable Parquet files of rows, and beside each a small file of its keys.

A segment is named by the time at which it is written, so names sort by age. Compaction joins
several into one file, in which a column ``segment`` says where each row was; everything that orders or
counts rows goes by that name, so it does not matter in which file a row lies, or in how many.

The ``.keys`` file beside a segment holds 17 bytes a row, which is all that opening the ledger reads. It
is written after the segment, and made again from it if it is missing or not as it was written.
"""

import io
import json
import os
import time
import uuid
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from saber_dagster.engines import FINAL
from saber_dagster.errors import SaberError
from saber_dagster.ledger.rows import DEFAULTS, SCHEMA, LedgerError
from saber_dagster.sealed import is_whole, sealed_parquet
from saber_dagster.storage import AnyPath, files_below, is_local, read_many, write_atomic

_Made = TypeVar("_Made")


@dataclass(frozen=True, eq=False)
class Keys:
    """Keys of a file in the order of its rows: two halves of 64 bits, and which rows are final."""

    parts: tuple[tuple[str, int], ...]
    """Segments that the file holds, with their numbers of rows, in order."""
    high: NDArray[np.uint64]
    low: NDArray[np.uint64]
    final: NDArray[np.bool_]


def new_name(suffix: str) -> str:
    """A name for a new file that nobody else takes; names sort by time."""
    return f"{time.time_ns():020d}-{os.getpid()}-{uuid.uuid4().hex[:8]}{suffix}"


def segment_files(folder: AnyPath) -> list[AnyPath]:
    """The segment files of a folder and those in it, the oldest first."""
    return sorted(files_below(folder, ".parquet"), key=lambda path: path.name)


def read_segment(
    path: AnyPath, columns: Sequence[str] | None = None, check: bool = False
) -> pl.DataFrame:
    """Read a segment, or some of its columns; ``segment`` may be one of them.

    Columns that rows of an older version lack have their defaults.

    Args:
        path: of the segment.
        columns: all but ``segment`` by default.
        check: read the whole file and compare its SHA-256 first; else a damage is noticed only where
            the columns cannot be read.

    Raises:
        LedgerError: if it is damaged or no segment.
        FileNotFoundError: if it is not there (any more).
    """
    wanted = list(SCHEMA if columns is None else columns)
    source = io.BytesIO(_checked_bytes(path)) if check else _source(path)
    with reading(path):
        have = pl.read_parquet_schema(source)
        _rewind(source)
        if wrong := [
            name
            for name in wanted
            if have.get(name, None if name in SCHEMA and name not in DEFAULTS else _type(name))
            != _type(name)
        ]:
            raise LedgerError(
                f"{path} is no segment of a ledger (column {wrong[0]} is missing or of another type);"
                " move it away"
            )
        frame = pl.read_parquet(
            source,
            columns=[name for name in dict.fromkeys(("key", *wanted)) if name in have],
            hive_partitioning=False,
        )
    absent = {**DEFAULTS, "segment": path.name}
    frame = frame.with_columns(
        pl.lit(absent[name], dtype=_type(name)).alias(name) for name in wanted if name not in have
    )
    return frame.select(wanted)


def write_segment(path: AnyPath, frame: pl.DataFrame) -> Keys:
    """Write a segment and its keys; the segment all of it or nothing.

    Args:
        path: of the segment.
        frame: columns of :data:`SCHEMA`, and ``segment`` if rows of several segments are in it.
    """
    keys = keys_of_rows(path, frame)
    write_atomic(path, parquet_bytes(frame))
    write_keys(path, keys)
    return keys


def retried(read: Callable[[], _Made]) -> _Made:
    """List and read files, and do both again if a file is gone: it was joined with others."""
    for _ in range(4):
        try:
            return read()
        except FileNotFoundError:
            continue
    return read()


def parquet_bytes(frame: pl.DataFrame) -> bytes:
    """A frame as a Parquet file in whose metadata its own SHA-256 stands, taken with zeros there."""
    return sealed_parquet(frame, statistics=False)


@contextmanager
def reading(path: AnyPath) -> Iterator[None]:
    """Within this context whatever Polars makes of a damaged file is one error that names it.

    Raises:
        LedgerError: if the file cannot be read.
        FileNotFoundError: if it is not there (any more).
    """
    try:
        yield
    except (FileNotFoundError, SaberError):
        raise
    except (Exception, pl.exceptions.PanicException) as error:
        what = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise LedgerError(
            f"{path} is damaged ({what}); restore it from a copy, or move it away and pay its calls"
            " again"
        ) from None


def read_checked(path: AnyPath) -> pl.DataFrame:
    """All that a Parquet file of the ledger holds, if every byte is as it was written.

    Raises:
        LedgerError: if it is damaged.
    """
    data = _checked_bytes(path)
    with reading(path):
        return pl.read_parquet(data, hive_partitioning=False)


def _checked_bytes(path: AnyPath) -> bytes:
    data = path.read_bytes()
    with reading(path):
        whole = is_whole(data)
        if whole is False:
            raise ValueError("it has another SHA-256 than when it was written")
        if whole is None:
            have = pl.read_parquet_schema(io.BytesIO(data))
            of_version_0_1 = "key" in have and "params" not in have
            if not of_version_0_1:
                raise ValueError("its SHA-256 is missing")
    return data


def segment_keys(paths: Sequence[AnyPath]) -> Iterator[Keys]:
    """The keys of segments, in order."""
    return read_keys(
        paths,
        lambda path: keys_of_rows(
            path, read_segment(path, ["key", "status", "segment"], check=True)
        ),
    )


def read_keys(paths: Sequence[AnyPath], make: Callable[[AnyPath], Keys]) -> Iterator[Keys]:
    """The files of keys beside Parquet files; ``make`` gives those that are missing or damaged.

    They are then written again, unless the ledger cannot be written to.
    """
    beside = [path.with_suffix(".keys") for path in paths]
    for path, data in zip(paths, read_many(beside), strict=True):
        keys = _parse_keys(path, data)
        if keys is None:
            keys = make(path)
            with suppress(OSError):
                write_keys(path, keys)
        yield keys


def keys_beside(path: AnyPath) -> Keys | None:
    """The file of keys beside a Parquet file; None if it is missing or damaged."""
    return _parse_keys(path, next(read_many([path.with_suffix(".keys")])))


def keys_of_rows(path: AnyPath, frame: pl.DataFrame) -> Keys:
    """The keys of the rows of a segment.

    Raises:
        LedgerError: if one is no key.
    """
    try:
        high, low = key_halves(frame["key"].to_list())
    except ValueError as error:
        raise LedgerError(f"{path} is damaged (column key: {error}); move it away") from None
    parts: tuple[tuple[str, int], ...] = ((path.name, frame.height),)
    if "segment" in frame.columns:
        lengths = frame["segment"].rle().struct.unnest()
        parts = tuple(zip(lengths["value"].to_list(), lengths["len"].to_list(), strict=True))
    return Keys(parts, high, low, frame["status"].is_in(list(FINAL)).to_numpy())


def write_keys(path: AnyPath, keys: Keys) -> None:
    """Write the file of keys of a segment: a line of JSON with a checksum of all else, then the keys."""
    body = b"".join(array.tobytes() for array in (keys.high, keys.low, keys.final))
    head = {"file": path.name, "parts": keys.parts, "crc32": _checksum(keys.parts, body)}
    write_atomic(path.with_suffix(".keys"), json.dumps(head).encode() + b"\n" + body)


def key_halves(keys: Sequence[str]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """The first 128 bits of hexadecimal keys, as two arrays.

    Raises:
        ValueError: if one is no key.
    """
    raw = bytes.fromhex("".join([key[:32] for key in keys]))
    if len(raw) != 16 * len(keys):
        raise ValueError("a key is shorter than 32 digits")
    pairs = np.frombuffer(raw, dtype=">u8").reshape(-1, 2)
    return pairs[:, 0].astype(np.uint64), pairs[:, 1].astype(np.uint64)


def _parse_keys(path: AnyPath, data: bytes | None) -> Keys | None:
    head, _, body = (data or b"").partition(b"\n")
    try:
        values = json.loads(head)
        parts = tuple((str(name), int(rows)) for name, rows in values["parts"])
        if values["file"] != path.name or values["crc32"] != _checksum(parts, body):
            return None
    except (ValueError, KeyError, TypeError):
        return None
    rows = sum(rows for _, rows in parts)
    if len(body) != 17 * rows:
        return None
    halves = np.frombuffer(body, dtype=np.uint64, count=2 * rows)
    final = np.frombuffer(body, dtype=np.bool_, offset=16 * rows)
    return Keys(parts, halves[:rows], halves[rows:], final)


def _checksum(parts: Sequence[tuple[str, int]], body: bytes) -> int:
    return zlib.crc32(body, zlib.crc32(json.dumps(parts).encode()))


def _source(path: AnyPath) -> Any:
    return path if is_local(path) else io.BytesIO(path.read_bytes())


def _rewind(source: Any) -> None:
    if isinstance(source, io.BytesIO):
        source.seek(0)


def _type(name: str) -> pl.DataType:
    return SCHEMA.get(name, pl.String())
