"""Where files lie: in a local folder, or under an ``s3://bucket/prefix``; one way to use both.

A path is a :class:`pathlib.Path` or, elsewhere than on local disk, a :class:`upath.UPath`, which has the
same methods. Object stores have no rename and no half-written file: a PUT is atomic. Listings are never
cached, as other processes write, too.
"""

import os
import uuid
from collections.abc import Iterator
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
        SaberError: if it is a URL that this environment cannot open.
    """
    if isinstance(text, Path) or "://" not in text:
        return Path(text).resolve()
    protocol, _, rest = text.partition("://")
    if protocol != "s3":
        raise SaberError(f"{text}: a home is a folder or s3://bucket/prefix, not {protocol}://")
    if not rest.strip("/"):
        raise SaberError(f"{text} names no bucket; write s3://bucket/prefix")
    from upath import UPath

    try:
        path = UPath(text.rstrip("/"), use_listings_cache=False)
        _ = path.fs
    except ImportError:
        raise SaberError(
            f"{text} needs s3fs; install it with `pip install 'saber-dagster[s3]'`"
        ) from None
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
