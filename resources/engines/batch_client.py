"""Talks to a Batch API: submits a batch once, finds it again, tells how it fares, reads results."""

import io
import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from resources.engines.batch_state import Batch, BatchState
from resources.engines.openai_failures import Failure, failure_of
from resources.engines.secret import Secret
from saber_dagster.errors import SaberError

if TYPE_CHECKING:
    from openai import OpenAI
    from openai.types import Batch as Seen

SETTLE_S = 30.0
"""A batch whose submission was interrupted is looked for until it would be of this age."""
RETRY_PAUSE_S = 1.0
"""Pause before a batch is started again; it doubles from try to try."""
LOST_POLLS = 5
"""A step stops after so many polls in a row that got no answer, the client's retries not counted."""
ENDED = frozenset({"completed", "failed", "expired", "cancelled"})

_TOKEN = "saber_token"
_CLOCKS_DIFFER_S = 86400.0
_log = logging.getLogger("saber_dagster.engines")
Value = TypeVar("Value")


class BatchClient:
    """A provider's files and batches.

    Args:
        client: makes the requests, and retries all but the one that must not be sent twice.
        url: address, for messages and for the state.
        secret: the key, which no message may hold.
        endpoint: what the requests of all batches are for, such as ``/v1/chat/completions``.
        state: where batches are written down.
    """

    def __init__(
        self, client: "OpenAI", url: str, secret: Secret, endpoint: str, state: BatchState
    ) -> None:
        self._client = client
        self._url = url
        self._secret = secret
        self._endpoint = endpoint
        self._state = state
        self._lost = 0
        self._told: dict[str, str] = {}

    def submit(self, batch: Batch, requests: bytes) -> None:
        """Upload a file of requests and start its batch; ``batch.id`` is known then.

        The start is not retried like other requests: where the answer got lost, the batch is looked for
        first, as otherwise it could be started, and paid, twice.

        Raises:
            SaberError: if it did not start, or nobody knows whether it did. In the second case it
                stays in the state, and the next run looks for it.
        """
        name = f"{batch.token}.jsonl"
        file = self._ask(
            lambda: self._client.files.create(file=(name, requests), purpose="batch"),
            "upload requests",
        )
        start = partial(
            self._client.with_options(max_retries=0).batches.create,
            input_file_id=file.id,
            endpoint=self._endpoint,  # type: ignore[arg-type]
            completion_window="24h",
            metadata={_TOKEN: batch.token},
        )
        for tries in range(self._client.max_retries + 1):
            batch.started, batch.starts = time.time(), batch.starts + 1
            self._state.save(batch)
            made = self._try(start)
            if not isinstance(made, Failure):
                batch.id = made.id
                self._state.save(batch)
                break
            if not made.may_pass:
                self._state.forget(batch)
                raise self._problem(made, "start a batch")
            self._warn(f"no batch was started ({made.said})")
            if made.status != 429 and self.find(batch):
                break
            if tries == self._client.max_retries:
                raise self._problem(made, "start a batch")
            time.sleep(RETRY_PAUSE_S * 2**tries)
        _log.info("%s: batch %s: %s calls are out", self._url, batch.id, f"{len(batch.keys):,}")

    def find(self, batch: Batch) -> bool:
        """Look for a batch whose start was interrupted, by its token; ``batch.id`` is known then.

        If it was started again, as its first start did not show in time, the second is cancelled.

        Raises:
            SaberError: if the server cannot be asked.
        """
        while True:
            known = [
                seen
                for seen in self._recent(batch)
                if (seen.metadata or {}).get(_TOKEN) == batch.token
            ]
            if len(known) >= batch.starts or time.time() > batch.started + SETTLE_S * batch.starts:
                break
            time.sleep(SETTLE_S / 10)
        known.sort(key=lambda seen: (seen.created_at, seen.id))
        for twin in known[1:]:
            if twin.status not in ENDED:
                self._warn(f"batch {twin.id} is a second of the same, and is cancelled")
                self._ask(partial(self._client.batches.cancel, twin.id), "cancel a batch")
        if known:
            batch.id = known[0].id
            self._state.save(batch)
        return bool(known)

    def look(self, batch: Batch) -> "Seen | None":
        """The batch as the server has it; None if it does not answer just now.

        Raises:
            SaberError: if there is no such batch, the key is not accepted, or there has been no answer
                too often in a row.
        """
        seen = self._try(partial(self._client.batches.retrieve, batch.id))
        if not isinstance(seen, Failure):
            self._lost = 0
            self._tell(seen)
            return seen
        if seen.status == 404:
            raise SaberError(
                f"{self._url} knows no batch {batch.id}, which was submitted there. Use the key and"
                " address that it was submitted with; or, if it is gone for good, remove"
                f" {self._state.file(batch)}, and its {len(batch.keys):,} calls are"
                " paid again"
            )
        self._lost += 1
        if not seen.may_pass or self._lost >= LOST_POLLS:
            raise self._problem(seen, f"look at batch {batch.id}")
        self._warn(f"batch {batch.id}: no answer ({seen.said})")
        return None

    def lines(self, seen: "Seen") -> Iterator[bytes]:
        """The lines of the output file, then those of the error file, of a batch that has ended."""
        for name in (seen.output_file_id, seen.error_file_id):
            if name:
                read = partial(self._client.files.content, name)
                yield from io.BytesIO(self._ask(read, f"read results of batch {seen.id}").content)

    def without_key(self, result: Mapping[str, Any]) -> Mapping[str, Any]:
        """A result for storage: a server may repeat what it was sent, the key included."""
        return json.loads(self._secret.hide(json.dumps(result)))  # type: ignore[no-any-return]

    def _tell(self, seen: "Seen") -> None:
        """Log how a batch fares, if that has changed."""
        text = f"batch {seen.id} is {seen.status}"
        if counts := seen.request_counts:
            text += f": {counts.completed:,} of {counts.total:,} done, {counts.failed:,} failed"
        if self._told.get(seen.id) != text:
            self._told[seen.id] = text
            _log.info("%s: %s", self._url, text)

    def _warn(self, text: str) -> None:
        _log.warning("%s: %s", self._url, self._secret.hide(text))

    def _recent(self, batch: Batch) -> list["Seen"]:
        def read() -> list["Seen"]:
            found = []
            for seen in self._client.batches.list(limit=100):  # the newest come first
                if seen.created_at < batch.started - _CLOCKS_DIFFER_S:
                    break
                found.append(seen)
            return found

        return self._ask(read, "list its batches")

    def _ask(self, request: Callable[[], Value], what: str) -> Value:
        found = self._try(request)
        if isinstance(found, Failure):
            raise self._problem(found, what)
        return found

    def _try(self, request: Callable[[], Value]) -> Value | Failure:
        """The answer, or why there is none.

        Nothing is raised: an error raised from the client's would carry the request, and so the key.
        """
        from openai import APIError

        try:
            return request()
        except APIError as error:
            return failure_of(error)

    def _problem(self, failure: Failure, what: str) -> SaberError:
        said = self._secret.hide(failure.said)
        if failure.no_credit:
            remedy = "No credit is left: top up, then run again"
        elif failure.may_pass:
            remedy = "Batches that are out go on; run the partition again to collect them"
        elif failure.status in (401, 403):
            remedy = "Check the key, and that it may use files and batches"
        elif failure.status == 404:
            remedy = (
                "Check base_url: not every server has the Batch API; engine openai asks them all"
            )
        else:
            remedy = "Check the options of engine openai_batch"
        code = f"{failure.status}: " if failure.status else ""
        return SaberError(f"{self._url} did not {what} ({code}{said}). {remedy}")


def read_result(line: bytes) -> tuple[str, Mapping[str, Any]]:
    """Custom id and content of a line of a result file.

    Raises:
        ValueError: if it is no such line.
    """
    result = json.loads(line)
    if not isinstance(result, dict) or not isinstance(result.get("custom_id"), str):
        raise ValueError("no result")
    return result["custom_id"], result


def how_ended(seen: "Seen") -> str:
    """How a batch ended, with what the server says of it."""
    errors = (seen.errors.data if seen.errors else None) or []
    said = "; ".join(f"{e.message} ({e.code})" for e in errors[:3])
    if "token_limit" in said:
        said += ". Set max_queued_tokens to the provider's limit of enqueued tokens"
    return f"ended as {seen.status}" + (f": {said}" if said else "")
