"""Hashes that decide identity, order and versions. None depends on process, platform or row order."""

import hashlib
import json
from collections.abc import Iterable
from typing import Any

import polars as pl
import polars.selectors as cs

_CHUNK_ROWS = 50_000


def canonical_json(value: Any) -> bytes:
    """Serialize a JSON value to one byte string: sorted keys, no spaces, UTF-8, no NaN.

    Raises:
        ValueError: on NaN or infinity.
        UnicodeEncodeError: on lone surrogates, which no input check lets through.
    """
    text = json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    return text.encode("utf-8")


def sha256_hex(data: bytes | str) -> str:
    """SHA-256 of bytes, or of a string's UTF-8, as 64 hexadecimal digits."""
    return hashlib.sha256(data.encode("utf-8") if isinstance(data, str) else data).hexdigest()


def digest(value: Any, length: int = 12) -> str:
    """The first ``length`` hexadecimal digits of the SHA-256 of a value's canonical JSON."""
    return sha256_hex(canonical_json(value))[:length]


def hash64(*parts: str | int) -> int:
    """A uniform integer in [0, 2**64) that is a function of the parts alone.

    Parts are length-prefixed, so that ("ab", "c") and ("a", "bc") differ. This is the only source
    of randomness for samples, pairings and the order in which a judge sees two documents.
    """
    state = hashlib.blake2b(digest_size=8)
    for part in parts:
        raw = str(part).encode("utf-8")
        state.update(len(raw).to_bytes(4, "little"))
        state.update(raw)
    return int.from_bytes(state.digest(), "little")


def bucket(doc_id: str, buckets: int) -> int:
    """The hash bucket in [0, buckets) of a document id."""
    return hash64("bucket", doc_id) % buckets


def sum_of_versions(versions: Iterable[str]) -> str:
    """Add versions of 64 hexadecimal digits modulo 2**256: a version of them all, in any order."""
    return f"{sum(int(version, 16) for version in versions) % 2**256:064x}"


def data_version(frame: pl.DataFrame, exclude: Iterable[str] = ()) -> str:
    """Hash a table's sorted, typed rows: equal tables in any row order have equal versions.

    Args:
        frame: the table; rows are sorted by all hashed columns, lists item by item. Columns may stand
            in any order. -0.0 counts as 0.0.
        exclude: columns that say where or when a row was stored, not what it says.

    Returns:
        64 hexadecimal digits.

    Raises:
        ValueError: on NaN or infinity, which the hashed text could not tell from an empty value.
    """
    hashed = sorted(set(frame.columns) - set(exclude))
    frame = frame.select(hashed)
    floats = frame.select(cs.float())
    if not all(column.is_finite().all() for column in floats):
        raise ValueError("NaN or infinity in a table")
    frame = frame.with_columns(
        pl.when(pl.col(name) == 0).then(0.0).otherwise(pl.col(name)).cast(dtype).alias(name)
        for name, dtype in floats.schema.items()
    )
    state = hashlib.sha256(
        canonical_json([[name, str(dtype)] for name, dtype in frame.schema.items()])
    )
    if frame.height and hashed:
        frame = frame.sort(hashed, nulls_last=False)
    for start in range(0, frame.height, _CHUNK_ROWS):
        state.update(frame.slice(start, _CHUNK_ROWS).write_ndjson().encode("utf-8"))
    return state.hexdigest()
