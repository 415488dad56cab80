"""One batch of calls on its way to a server: concurrency, tries, pauses, and when to give up."""

import asyncio
import logging
import operator
import random
import time
from collections import Counter, deque
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass, replace
from typing import TYPE_CHECKING, Any

from resources.engines.background import Put
from resources.engines.line import Line
from resources.engines.openai_failures import Failure
from resources.engines.rate_limit import PAUSE_AT_MOST_S
from resources.engines.secret import Secret
from saber_dagster.engines import Call, Reply, Usage
from saber_dagster.errors import SaberError

if TYPE_CHECKING:
    from ssl import SSLContext

    from resources.engines.openai import OpenAIEngine

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 8.0
"""Pause before the second try, and the longest one; it doubles from try to try."""
GIVE_UP_AFTER = 10
"""A batch stops after so many lost calls in a row, or twice the concurrency if that is more."""
UNREACHABLE_S = 20.0
"""A batch stops when no connection held for so long."""
LOG_EVERY_S = 10.0
"""Troubles of one kind are logged no more often."""
_log = logging.getLogger("saber_dagster.engines")
_jitter = random.Random()


@dataclass(frozen=True, slots=True)
class Request:
    """A call as it is sent: the JSON of its body, and how many tokens it will take, by a guess."""

    body: dict[str, Any]
    truncated_input: bool = False
    tokens: float = 0.0


class Batch:
    """The calls of one :meth:`resources.engines.openai.OpenAIEngine.answer`.

    Args:
        engine: makes requests of calls, and replies of what comes back.
        calls: what to ask.
        secret: the key.
    """

    def __init__(self, engine: "OpenAIEngine", calls: Sequence[Call], secret: Secret) -> None:
        self._engine = engine
        self._how = engine.sending
        self._limit = engine.rate_limit
        self._secret = secret
        self._waiting = deque(enumerate(calls))
        self._halt = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lost_in_a_row = 0
        self._unreachable_since: float | None = None
        self._troubles: Counter[str] = Counter()
        self._logged: dict[str, float] = {}

    def stop(self) -> None:
        """Begin no further call, and try none again; may be called from any thread."""
        self._waiting.clear()
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._halt.set)

    async def run(self, put: Put[tuple[int, Reply]]) -> None:
        """Ask all calls; hand over (position, reply) as replies come in.

        Raises:
            SaberError: if the batch must stop, after the requests in flight have come home.
        """
        from httpx2 import create_ssl_context

        self._loop = asyncio.get_running_loop()
        self._limit.open()
        workers = min(self._how.concurrency, len(self._waiting))
        certificates = create_ssl_context()
        with self._secret.hidden_in_logs():
            tasks = (self._work(certificates, put) for _ in range(workers))
            problems = await asyncio.gather(*tasks, return_exceptions=True)
        for problem in filter(None, problems):
            raise problem

    async def _work(self, certificates: "SSLContext", put: Put[tuple[int, Reply]]) -> None:
        line = Line(self._how, self._secret, certificates)
        try:
            while self._waiting:
                position, call = self._waiting.popleft()
                reply = await self._ask(line, call)
                if reply is None:
                    return
                await put((position, reply))
                self._count(reply)
        except BaseException:
            self._waiting.clear()  # the others finish what is in flight, and begin no more
            self._halt.set()
            raise
        finally:
            await line.close()

    async def _ask(self, line: Line, call: Call) -> Reply | None:
        """The reply to a call after as many tries as it takes; None if it was not begun."""
        request = self._engine.request(call)
        reply, lost, lost_price = None, Usage(), 0.0
        for tries in range(1, self._how.retries + 2):
            if self._limit.waits and not await self._unless_halted(
                self._limit.admit(request.tokens)
            ):
                break
            start = time.perf_counter()
            found = await line.ask(request.body)
            if isinstance(found, str):
                self._unreachable_since = None
                reply = self._without_key(self._engine.completed(call, found))
                failure = Failure(200, reply.error)
            else:
                failure = found
                self._notice(failure)
                reply = self._engine.failed(call, failure)
            self._limit.settle(request.tokens, reply.usage)
            latency = time.perf_counter() - start
            reply = replace(
                reply,
                latency=latency,
                truncated_input=request.truncated_input,
                usage=_sum(lost, reply.usage),
                price=lost_price + reply.price,
            )
            lost, lost_price = reply.usage, reply.price  # a try that is repeated was paid, too
            if reply.status != "transport_error":
                break
            if failure.final or tries > self._how.retries or self._unreachable:
                self._note(f"{failure.said}; {call.item} is given up", failure)
                break
            if not await self._unless_halted(self._sleep(failure, tries)):
                break
        return reply

    async def _sleep(self, failure: Failure, tries: int) -> None:
        """Pause before the next try: as long as the server asks, or twice as long as the last time."""
        pause = min(FIRST_PAUSE_S * 2.0 ** (tries - 1), LONGEST_PAUSE_S)
        pause *= 1.0 - 0.25 * _jitter.random()
        asked = failure.retry_after
        if asked is not None:
            pause = min(asked, PAUSE_AT_MOST_S) * (1.0 + 0.1 * _jitter.random())
            self._limit.pause(asked)
        wanted = f", of the {asked:.0f} s asked for" if asked and asked > PAUSE_AT_MOST_S else ""
        self._note(f"{failure.said}; trying again in {pause:.1f} s{wanted}", failure)
        await asyncio.sleep(pause)

    def _notice(self, failure: Failure) -> None:
        if failure.connected:
            self._unreachable_since = None
        elif self._unreachable_since is None:
            self._unreachable_since = time.monotonic()

    @property
    def _unreachable(self) -> bool:
        """Whether no connection held for too long."""
        since = self._unreachable_since
        return since is not None and time.monotonic() - since > UNREACHABLE_S

    def _count(self, reply: Reply) -> None:
        """Raise if so much was lost that the rest would be, too."""
        if reply.status != "transport_error":
            self._lost_in_a_row = 0
            return
        self._lost_in_a_row += 1
        lost = f"{self._lost_in_a_row} calls in a row"
        if not self._waiting:
            return
        if self._unreachable:
            raise SaberError(
                f"{self._how.url} could not be reached for {UNREACHABLE_S:.0f} s, the last time:"
                f" {reply.error}. Start the server or mend base_url; then run the partition again,"
                " nothing paid is lost"
            )
        if self._lost_in_a_row >= max(GIVE_UP_AFTER, 2 * self._how.concurrency):
            raise SaberError(
                f"{lost} did not get through to {self._how.url}, the last: {reply.error}. See whether"
                " the server is up, raise timeout_s or lower concurrency; then run the partition again,"
                " nothing paid is lost"
            )

    def _without_key(self, reply: Reply) -> Reply:
        """The reply without the key, which may have come back in escaped letters."""
        hide = self._secret.hide
        return replace(
            reply,
            text=hide(reply.text),
            reasoning=hide(reply.reasoning),
            finish_reason=hide(reply.finish_reason),
            error=hide(reply.error),
        )

    def _note(self, what: str, failure: Failure) -> None:
        """Log a trouble, unless one of its kind was logged just now."""
        kind = str(failure.status or failure.said.partition("(")[2].partition(":")[0] or "timeout")
        self._troubles[kind] += 1
        now = time.monotonic()
        if now - self._logged.get(kind, -LOG_EVERY_S) >= LOG_EVERY_S:
            self._logged[kind] = now
            _log.warning("%s: %s (%s, %d so far)", self._how.url, what, kind, self._troubles[kind])

    async def _unless_halted(self, waiting: Coroutine[Any, Any, None]) -> bool:
        """Wait, but not beyond the end of the batch; returns whether it goes on."""
        if self._halt.is_set():
            waiting.close()
            return False
        wait, halt = asyncio.ensure_future(waiting), asyncio.ensure_future(self._halt.wait())
        try:
            await asyncio.wait((wait, halt), return_when=asyncio.FIRST_COMPLETED)
            return not self._halt.is_set()
        finally:
            wait.cancel()
            halt.cancel()


def _sum(one: Usage, other: Usage) -> Usage:
    return Usage(*map(operator.add, astuple(one), astuple(other)))
