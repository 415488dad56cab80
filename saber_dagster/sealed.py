"""Parquet files that carry their own SHA-256, so that a changed byte is noticed when they are read.

The digest stands in the metadata of the file, and is taken with zeros in its place.
"""

import hashlib

_NAME = "saber_file_sha256"
_ZEROS = "0" * 64

UNSEALED = {_NAME: _ZEROS}
"""Metadata to write a file with that is then to be sealed."""


def seal(data: bytes) -> bytes:
    """The bytes of a file that was written with :data:`UNSEALED`, with its digest in place."""
    start = _place(data)
    digest = hashlib.sha256(data).hexdigest().encode()
    return b"".join([data[:start], digest, data[start + len(_ZEROS) :]])


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
