"""Parquet files that carry their own SHA-256, so that a changed byte is noticed when they are read.

The digest stands in the metadata of the file, and is taken with zeros in its place.
"""

import hashlib
import io
from collections.abc import Mapping
from typing import Any

import polars as pl

_NAME = "saber_file_sha256"
_ZEROS = "0" * 64


def sealed_parquet(
    frame: pl.DataFrame, metadata: Mapping[str, str] | None = None, **options: Any
) -> bytes:
    """A frame as a Parquet file that carries its digest.

    Args:
        frame: the rows.
        metadata: of the file, beside the digest.
        options: of ``write_parquet``.
    """
    buffer = io.BytesIO()
    frame.write_parquet(buffer, metadata={**(metadata or {}), _NAME: _ZEROS}, **options)
    with buffer.getbuffer() as data:  # in place: a copy of a large file takes room
        footer = int.from_bytes(data[-8:-4], "little") + 8
        start = len(data) - footer + _place(bytes(data[-footer:]))
        data[start : start + len(_ZEROS)] = hashlib.sha256(data).hexdigest().encode()
    return buffer.getvalue()


def is_whole(data: bytes) -> bool | None:
    """Whether a file is as it was sealed; None if it never was."""
    start = _place(data)
    if start < 0:
        return None
    end, view = start + len(_ZEROS), memoryview(data)
    digest = hashlib.sha256(view[:start])
    digest.update(_ZEROS.encode())
    digest.update(view[end:])
    return digest.hexdigest().encode() == data[start:end]


def _place(data: bytes) -> int:
    """Where the digest begins; -1 if there is none. Only metadata come after it.

    In Thrift's compact protocol two bytes, type and length, stand between name and value.
    """
    name = data.rfind(_NAME.encode())
    return name + len(_NAME) + 2 if name >= 0 else -1
