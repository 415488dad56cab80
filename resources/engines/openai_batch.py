"""OpenAI's Batch API as an engine: half the price, an answer within a day.

Requests go out as files of JSON lines; results come back as an output file and an error file, in any
order. A call is not submitted again while a batch holds it, even if the process was killed at any point
in between. See ``docs/batch-and-vllm.md``.
"""

import inspect
import json
import logging
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from resources.engines.batch_client import ENDED, BatchClient, how_ended, read_result
from resources.engines.batch_files import Limits, Line, files_of
from resources.engines.batch_results import once_paid, reply_of, was_paid
from resources.engines.batch_spare import Spare, SpareReplies
from resources.engines.batch_state import Batch, BatchState
from resources.engines.openai import OpenAIEngine
from resources.engines.openai_options import above_zero
from saber_dagster.engines import Call, Reply, Usage, call_key
from saber_dagster.errors import SaberError
from saber_dagster.storage import AnyPath

if TYPE_CHECKING:
    from openai.types import Batch as Seen

PAUSES_GROW = 1.5
LONGEST_PAUSE_S = 300.0

_log = logging.getLogger("saber_dagster.engines")
Init = TypeVar("Init", bound=Callable[..., None])


def _with_options_of(base: type) -> Callable[[Init], Init]:
    """Let ``**options`` of an initializer be known by name and type, as those of its base class."""

    def mark(init: Init) -> Init:
        own, more = inspect.signature(init), inspect.signature(base.__init__)  # type: ignore[misc]
        named = {n: p for n, p in own.parameters.items() if p.kind is not p.VAR_KEYWORD}
        options = [p for name, p in more.parameters.items() if name not in named]
        init.__signature__ = own.replace(parameters=[*named.values(), *options])  # type: ignore[attr-defined]
        init.__annotations__ = {**base.__init__.__annotations__, **init.__annotations__}  # type: ignore[misc]
        return init

    return mark


class BatchEngine(OpenAIEngine):
    """An :class:`saber_dagster.engines.Engine` that asks by files of requests.

    Model, revision and parameters are those of :class:`OpenAIEngine`, and so are the keys in the
    ledger: a reply that one of the two has paid for is never asked by the other.

    Args:
        model: name of the model.
        revision: see :class:`OpenAIEngine`.
        discount: what a token costs, as a part of ``price_per_million``.
        max_requests: most requests of a file.
        max_bytes: most bytes of a file.
        max_queued_tokens: most tokens of prompts, by estimate, of all batches that are out: the
            provider's limit of enqueued tokens. Further batches wait until one has ended. None: all
            go out at once.
        poll_s: pause before a batch is looked at again; each further pause is longer by half, up to
            five minutes.
        wait_s: after so many seconds the step stops, the batches go on, and the next run of the
            partition collects them. None: it waits until all have ended, which takes a day at most.
        options: further options of :class:`OpenAIEngine`. Those that are about the pace of requests
            (``concurrency``, ``requests_per_minute``, ``tokens_per_minute``) have no effect.

    Raises:
        SaberError: if an option is wrong.
    """

    @_with_options_of(OpenAIEngine)
    def __init__(
        self,
        model: str,
        revision: str | None = None,
        *,
        discount: float = 0.5,
        max_requests: int = 50_000,
        max_bytes: int = 200_000_000,
        max_queued_tokens: int | None = None,
        poll_s: float = 15.0,
        wait_s: float | None = None,
        **options: Any,
    ) -> None:
        super().__init__(model, revision, **options)
        if not 0 <= discount <= 1:
            raise SaberError(f"discount is {discount}; it is a part of the price, from 0 to 1")
        above_zero(
            max_requests=max_requests,
            max_bytes=max_bytes,
            max_queued_tokens=max_queued_tokens,
            poll_s=poll_s,
            wait_s=wait_s,
        )
        self._discount = discount
        self._limits = Limits(max_requests, max_bytes, max_queued_tokens)
        self._poll_s = poll_s
        self._wait_s = wait_s
        self._endpoint = f"/v1{self.sending.path}"
        self._state, self._spare = BatchState(None), SpareReplies(None)
        self._halted = False

    def keep_state_in(self, folder: AnyPath) -> None:
        """Keep what is known of batches, and spare replies, where a later process finds them."""
        self._state, self._spare = BatchState(folder), SpareReplies(folder)

    def price(self, usage: Usage) -> float:
        """Price of a reply, the discount included."""
        return super().price(usage) * self._discount

    def stop(self) -> None:
        """Submit no further batch; :meth:`answer` ends when those that are out have ended."""
        self._halted = True

    def answer(self, calls: Sequence[Call]) -> Iterator[tuple[int, Reply]]:
        """Yield (position, reply) as batches end. Closing the iterator leaves the batches out.

        Raises:
            SaberError: if there is no key, the server rejects it or a batch, or ``wait_s`` has passed.
                What has come back by then was yielded, and batches that are out go on.
        """
        if not calls:
            return
        from openai import OpenAI

        self._halted = False
        secret = self.key()
        with (
            secret.hidden_in_logs(),
            OpenAI(
                api_key=secret.reveal(),
                base_url=self.sending.url,
                timeout=self.sending.timeout_s,
                max_retries=self.sending.retries,
            ) as client,
        ):
            server = BatchClient(client, self.sending.url, secret, self._endpoint, self._state)
            for position, reply in self._collect(calls, server):
                text, reasoning, error = map(
                    secret.hide, (reply.text, reply.reasoning, reply.error)
                )
                yield position, replace(reply, text=text, reasoning=reasoning, error=error)

    def _collect(self, calls: Sequence[Call], server: BatchClient) -> Iterator[tuple[int, Reply]]:
        keys = [call_key(self, call) for call in calls]
        asked = dict(zip(keys, calls, strict=True))
        waiting: dict[str, list[int]] = {}
        for position, key in enumerate(keys):
            waiting.setdefault(key, []).append(position)
        for key, reply in self._taken(asked, waiting):
            yield from once_paid(waiting.pop(key), reply)
        out = list(self._known(asked, waiting, server))
        held = {key for batch in out for key in batch.keys}
        left = [(key, asked[key]) for key in waiting if key not in held]
        parts = files_of(self._lines(left), self.sending.url, self._limits)
        part = next(parts, None)
        failure: SaberError | None = None
        begin, pause = time.monotonic(), self._poll_s
        while True:
            while part and not failure and not self._halted and self._limits.allow(part[0], out):
                try:
                    server.submit(*part)
                except SaberError as error:
                    failure = error
                else:
                    out.append(part[0])
                    part = next(parts, None)
            if not out:
                break
            for batch in tuple(out):
                seen = server.look(batch)
                if seen is None or seen.status not in ENDED:
                    continue
                for key, reply in self._replies(seen, batch, asked, waiting, server):
                    yield from once_paid(waiting.pop(key), reply)
                self._state.forget(batch)
                out.remove(batch)
                if seen.status == "failed":
                    failure = SaberError(f"batch {seen.id} {how_ended(seen)}")
            if out:
                rest = begin + (self._wait_s or math.inf) - time.monotonic()
                if rest <= 0:
                    raise self._still_out(out)
                time.sleep(min(pause, rest))
                pause = min(pause * PAUSES_GROW, LONGEST_PAUSE_S)
        if failure and part:
            raise failure

    def _still_out(self, out: Sequence[Batch]) -> SaberError:
        calls = sum(len(batch.keys) for batch in out)
        return SaberError(
            f"{len(out)} batch(es) of {calls:,} calls, such as {out[0].id}, have not ended within"
            f" wait_s = {self._wait_s:g}. They go on; run the partition again to collect them, nothing"
            " is submitted twice"
        )

    def _taken(
        self, asked: Mapping[str, Call], waiting: Mapping[str, object]
    ) -> Iterator[tuple[str, Reply]]:
        """Replies that were paid when nobody asked for them."""
        taken = 0
        for spare in self._spare.take(asked):
            if spare.key in waiting:
                taken += 1
                yield spare.key, reply_of(self, asked[spare.key], spare.result, spare.latency)
        if taken:
            _log.info("%s: %s replies that were paid before are used", self.sending.url, taken)

    def _known(
        self, asked: Mapping[str, Call], waiting: Mapping[str, object], server: BatchClient
    ) -> Iterator[Batch]:
        """The batches of earlier runs, or other partitions, that hold calls which still wait.

        Of others of this partition that have ended, what was paid is kept; nobody waits for them.
        """
        for batch in self._state.load(self.sending.url):
            idle, own = waiting.keys().isdisjoint(batch.keys), self._state.owns(batch)
            if idle and not own:
                continue
            try:
                if not batch.id and not server.find(batch):  # it was never started
                    if own:
                        self._state.forget(batch)
                elif not idle:
                    _log.info("%s: batch %s of an earlier run is collected", batch.url, batch.id)
                    yield batch
                elif (seen := server.look(batch)) and seen.status in ENDED:
                    for _ in self._replies(seen, batch, asked, waiting, server):
                        pass
                    self._state.forget(batch)
            except SaberError as error:
                if not idle:
                    raise
                _log.warning("%s", error)

    def _lines(self, calls: Iterable[tuple[str, Call]]) -> Iterator[Line]:
        for key, call in calls:
            request = {
                "custom_id": key,
                "method": "POST",
                "url": self._endpoint,
                "body": self.body(call),
            }
            tokens = 0
            if self._limits.tokens is not None:
                tokens = sum(self.count_tokens(m["content"]) for m in self.messages(call))
            yield Line(key, call.item, json.dumps(request).encode() + b"\n", tokens)

    def _replies(
        self,
        seen: "Seen",
        batch: Batch,
        asked: Mapping[str, Call],
        waiting: Mapping[str, object],
        server: BatchClient,
    ) -> Iterator[tuple[str, Reply]]:
        """The reply of every call of a batch that waits for one; what nobody asked for is kept."""
        latency = max(0.0, float((seen.completed_at or time.time()) - seen.created_at))
        broken = again = 0
        done: set[str] = set()
        spares: dict[str, Spare] = {}
        for line in server.lines(seen):
            try:
                key, result = read_result(line)
            except ValueError:
                broken += 1
                continue
            again += key in done
            done.add(key)
            if key in waiting:
                yield key, reply_of(self, asked[key], result, latency)
            elif key not in asked and was_paid(result):
                spares.setdefault(key, Spare(key, latency, server.without_key(result)))
        unreadable = f"; {broken} lines of its files cannot be read" if broken else ""
        lost = [key for key in batch.keys if key in waiting]
        for key in lost:
            error = (
                f"batch {seen.id} {how_ended(seen)}, and has no result for this call{unreadable}"
            )
            yield key, Reply("transport_error", finish_reason="error", error=error)
        self._spare.keep(batch, list(spares.values()))
        if spares:
            _log.info(
                "%s: batch %s: %s replies that were paid and are not asked for now are kept",
                *(self.sending.url, seen.id, len(spares)),
            )
        _log.info(
            "%s: batch %s %s after %.0f s: %s results, %s calls without one, %s given twice, %s broken",
            *(self.sending.url, seen.id, seen.status, latency, len(done), len(lost), again, broken),
        )
