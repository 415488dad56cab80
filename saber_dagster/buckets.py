"""Paths in an object store, through s3fs: one request per file, and errors that name the remedy.

Endpoint and credentials come from the usual variables (``AWS_ENDPOINT_URL``, ``AWS_ACCESS_KEY_ID`` …) or
files of AWS. What goes wrong with the store as a whole is a :class:`StoreError`; only a missing file is a
FileNotFoundError, so that an outage is never taken for an empty home.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from botocore.exceptions import (  # type: ignore[import-untyped]
    BotoCoreError,
    ConnectionError,
    HTTPClientError,
    NoCredentialsError,
    PartialCredentialsError,
)
from fsspec.exceptions import FSTimeoutError  # type: ignore[import-untyped]
from s3fs import S3FileSystem  # type: ignore[import-untyped]
from upath import UPath
from upath.implementations.cloud import S3Path
from upath.registry import register_implementation

from saber_dagster.errors import SaberError

_CONFIG = {
    "connect_timeout": 5,
    "read_timeout": 60,
    "retries": {"mode": "standard", "total_max_attempts": 3},
    "max_pool_connections": 32,
}
"""An endpoint that refuses is given up after some seconds, one that is silent after half a minute."""

_DENIED = "check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and that they may {doing} this bucket"


class StoreError(SaberError):
    """The object store cannot be used; the message names what to check, never a credential."""


class _Store(S3FileSystem):  # type: ignore[misc]
    """s3fs without listing caches, which says what is wrong with the store."""

    retries = 2  # of the whole call, each with botocore's own

    async def _call_s3(self, method: str, *options: Any, **arguments: Any) -> Any:
        try:
            return await super()._call_s3(method, *options, **arguments)
        except FileExistsError:  # of a conditional write
            raise
        except (OSError, ValueError, BotoCoreError) as error:
            code = _code(error)
            absent = isinstance(error, FileNotFoundError) and method in (
                "get_object",
                "head_object",
            )
            if absent and code != "NoSuchBucket":
                raise
            if code in ("InvalidRange", "416"):  # of an empty file
                raise _EmptyFileError from None
            bucket, key = arguments.get("Bucket", ""), arguments.get("Key", "")
            where = f"s3://{bucket}/{key}" if key else f"s3://{bucket}"
            raise StoreError(f"{where}: {self._explain(error, code, bucket, method)}") from None

    async def _cat_file(self, path: str, *args: Any, **options: Any) -> bytes:
        try:
            data: bytes = await super()._cat_file(path, *args, **options)
        except _EmptyFileError:
            return b""
        except (BotoCoreError, FSTimeoutError) as error:  # the connection broke while it was read
            raise StoreError(f"s3://{path}: {self._explain(error, '', '', 'read')}") from None
        return data

    def _explain(self, error: Exception, code: str, bucket: str, method: str) -> str:
        if isinstance(error, FileNotFoundError):
            return (
                f"there is no bucket {bucket!r} at {self._endpoint()}; make it, or check SABER_HOME and"
                " AWS_ENDPOINT_URL"
            )
        if isinstance(error, NoCredentialsError | PartialCredentialsError):
            return "no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        if isinstance(error, PermissionError):
            doing = "write to" if method.startswith(("put", "create", "upload", "del")) else "read"
            return f"{self._endpoint()} denies access ({code}); {_DENIED.format(doing=doing)}"
        if isinstance(error, ConnectionError | HTTPClientError | TimeoutError | FSTimeoutError):
            return (
                f"{self._endpoint()} does not answer ({type(error).__name__}); check AWS_ENDPOINT_URL and"
                " the network, then run the same again: it goes on from there"
            )
        if isinstance(error, ValueError | BotoCoreError):
            return (
                f"not a usable store ({type(error).__name__}); check the bucket in SABER_HOME,"
                " AWS_ENDPOINT_URL and AWS_DEFAULT_REGION"
            )
        return f"{self._endpoint()} failed to {method} ({code or type(error).__name__}); try again"

    def _endpoint(self) -> str:
        """The endpoint without a user or password that somebody may have put into it."""
        if self._s3 is None:
            return "the endpoint"
        parts = urlsplit(self._s3.meta.endpoint_url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


class _EmptyFileError(Exception):
    """A range was asked of a file without a byte."""


def _code(error: BaseException) -> str:
    """The code that the store gave: S3's own, or the HTTP status."""
    response = getattr(error, "response", None) or getattr(error.__cause__, "response", None)
    return str(response["Error"].get("Code", "")) if response else ""


class BucketPath(S3Path):
    """A path in a bucket; reading, writing and removing a file take one request each."""

    __slots__ = ()

    @classmethod
    def _fs_factory(cls, urlpath: str, protocol: str, storage_options: Mapping[str, Any]) -> _Store:
        # fsspec keeps one instance for equal arguments: another endpoint is another store
        endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
        return _Store(endpoint_url=endpoint, config_kwargs=_CONFIG, use_listings_cache=False)

    def read_bytes(self) -> bytes:
        """The file's content.

        Raises:
            FileNotFoundError: if there is none.
            StoreError: if the store cannot be used.
        """
        data: bytes = self.fs.cat_file(self.path, max_concurrency=1)
        return data

    def read_text(
        self, encoding: str | None = None, errors: str | None = None, newline: str | None = None
    ) -> str:
        """The file's content as a text; line ends stay as they are."""
        return self.read_bytes().decode(encoding or "utf-8", errors or "strict")

    def write_bytes(self, data: Any) -> int:
        """Write the whole file, or nothing."""
        self.fs.pipe_file(self.path, bytes(data))
        return len(data)

    def unlink(self, missing_ok: bool = False) -> None:
        """Remove the file."""
        if not missing_ok and not self.exists():
            raise FileNotFoundError(str(self))
        self.fs.rm_file(self.path)

    @staticmethod
    def read_many(paths: Sequence[UPath], last: int | None = None) -> list[bytes | None]:
        """The contents of files of one bucket, or their last bytes, at once; None for a missing one.

        Raises:
            StoreError: if the store cannot be used.
        """
        start = None if last is None else -last
        found = paths[0].fs.cat_ranges(
            [path.path for path in paths], start, None, max_concurrency=1
        )
        for item in found:
            if isinstance(item, BaseException) and not isinstance(item, FileNotFoundError):
                raise item
        return [None if isinstance(item, BaseException) else item for item in found]


register_implementation("s3", BucketPath, clobber=True)
