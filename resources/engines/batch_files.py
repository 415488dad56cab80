"""Cuts requests into the files that a Batch API takes."""

import math
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from resources.engines.batch_state import Batch
from saber_dagster.errors import SaberError


@dataclass(frozen=True, slots=True)
class Limits:
    """Most requests and bytes of a file, and most tokens of prompts that are out (None: no limit)."""

    requests: int
    size: int
    tokens: int | None

    def allow(self, batch: Batch, out: Sequence[Batch]) -> bool:
        """Whether the provider's queue takes a batch beside those that are out."""
        tokens = batch.tokens + sum(other.tokens for other in out)
        return not out or self.tokens is None or tokens <= self.tokens


@dataclass(frozen=True, slots=True)
class Line:
    """A request as a line of a file: its ledger key, what it is about, its bytes and tokens."""

    key: str
    item: str
    data: bytes
    tokens: int


def files_of(lines: Iterable[Line], url: str, limits: Limits) -> Iterator[tuple[Batch, bytes]]:
    """Batches for a server, not yet started, and their files, cut where a limit is reached.

    Raises:
        SaberError: if one request is longer than a file may be.
    """
    batch, file, size = Batch(uuid.uuid4().hex, url, []), list[bytes](), 0
    for line in lines:
        if len(line.data) > limits.size:
            raise SaberError(
                f"the request for {line.item} has {len(line.data):,} bytes, and a file of the Batch API"
                f" at most {limits.size:,}. Set context_tokens, so that long texts are cut"
            )
        full = len(file) == limits.requests or size + len(line.data) > limits.size
        if file and (full or batch.tokens + line.tokens > (limits.tokens or math.inf)):
            yield batch, b"".join(file)
            batch, file, size = Batch(uuid.uuid4().hex, url, []), [], 0
        batch.keys.append(line.key)
        batch.tokens += line.tokens
        file.append(line.data)
        size += len(line.data)
    if file:
        yield batch, b"".join(file)
