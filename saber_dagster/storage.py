"""Where files lie: in a local folder, or under an ``s3://bucket/prefix``; one way to use both.

A path is a :class:`pathlib.Path` or, elsewhere than on local disk, a
:class:`saber_dagster.buckets.BucketPath`, which has the same methods. Object stores have no rename and no
half-written file: a PUT is atomic. Listings are never cached, as other processes write, too.
"""

import os
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Union

from saber_dagster.errors import SaberError

if TYPE_CHECKING:
    from upath import UPath

AnyPath = Union[Path, "UPath"]
"""A local path or a remote one; what both have in common is used."""


def storage_path(text: str | Path) -> AnyPath:
    """The path that a text names: absolute if it is local.

    Raises:
        SaberError: if it is a URL that this environment cannot open, or one with credentials in it.
    """
    if isinstance(text, Path) or "://" not in text:
        return Path(text).resolve()
    protocol, _, rest = text.partition("://")
    if protocol != "s3":
        raise SaberError(f"a home is a folder or s3://bucket/prefix, not {protocol}://")
    bucket, *prefix = rest.rstrip("/").split("/")
    if "@" in bucket or ":" in bucket:
        raise SaberError(
            "credentials do not belong into s3://bucket/prefix, which is printed and stored; set"
            " AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )
    if not bucket:
        raise SaberError(f"{text} names no bucket; write s3://bucket/prefix")
    if any(part in ("", ".", "..") for part in prefix) or {"?", "#"} & set(rest):
        raise SaberError(
            f"{text}: write s3://bucket/prefix without empty parts, '.', '..', '?' or '#'"
        )
    try:
        from saber_dagster.buckets import BucketPath
    except ImportError:
        raise SaberError(
            f"{text} needs s3fs; install it with `pip install 'saber-dagster[s3]'`"
        ) from None
    path = BucketPath(text.rstrip("/"), protocol="s3")
    _ = path.fs  # the paths below share it: one pool of connections
    return path


def is_local(path: AnyPath) -> bool:
    """Whether a path lies on local disk."""
    return isinstance(path, Path)


def write_atomic(path: AnyPath, data: bytes) -> None:
    """Write a whole file or nothing: a reader never sees half of it, even after a kill."""
    if not isinstance(path, Path):
        path.write_bytes(data)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}.part")
    try:
        with part.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def files_below(folder: AnyPath, suffix: str) -> Iterator[AnyPath]:
    """Every file of a folder and the folders in it whose name ends so, in no order."""
    if isinstance(folder, Path):
        yield from folder.rglob(f"*{suffix}")
        return
    for name in folder.fs.find(folder.path):
        if name.endswith(suffix):
            yield folder.joinpath(name.removeprefix(folder.path).lstrip("/"))


def read_many(paths: Sequence[AnyPath], last: int | None = None) -> Iterator[bytes | None]:
    """Files of one folder or bucket, or their last bytes, in order; None for a missing one.

    Local files are read one after the other as they are asked for, those of a bucket all at once.

    Raises:
        SaberError: if a file cannot be read.
    """
    local = [path for path in paths if isinstance(path, Path)]
    if len(local) < len(paths):
        from saber_dagster.buckets import BucketPath

        yield from BucketPath.read_many([p for p in paths if not isinstance(p, Path)], last)
        return
    for path in local:
        try:
            yield path.read_bytes() if last is None else _end(path, last)
        except FileNotFoundError:
            yield None
        except OSError as error:
            raise SaberError(f"{path} cannot be read: {error.strerror}") from None


def _end(path: Path, length: int) -> bytes:
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - length))
        return file.read()
