"""How fast calls may be sent: requests and tokens a minute, and pauses that the server asked for."""

import asyncio
import time
from typing import TYPE_CHECKING

from saber_dagster.engines import Usage

if TYPE_CHECKING:
    from aiolimiter import AsyncLimiter

FIRST_GUESS_TOKENS = 1024
"""What a reply is taken to need before the first one is there, if its limit is not lower."""
PAUSE_AT_MOST_S = 120.0
"""A longer pause that a server asks for is cut to this."""


class RateLimit:
    """Two token buckets in a row, both of which hold one second's worth, so that a start is no burst.

    Tokens of a call are not known before its reply. What was taken too little is owed and taken with
    the next calls, of this batch or a later one; what was taken too much is given back likewise.

    Args:
        requests: a minute; None: no limit.
        tokens: a minute, of prompts and replies together; None: no limit.
    """

    def __init__(self, requests: float | None = None, tokens: float | None = None) -> None:
        self._rates = (requests, tokens)
        self._requests: AsyncLimiter | None = None
        self._tokens: AsyncLimiter | None = None
        self._turn = asyncio.Lock()
        self._owed = 0.0
        self._replies = self._reply_tokens = 0
        self._not_before = 0.0

    @property
    def waits(self) -> bool:
        """Whether :meth:`admit` may have to wait."""
        return self._rates != (None, None) or time.monotonic() < self._not_before

    @property
    def counts_tokens(self) -> bool:
        """Whether :meth:`admit` wants to know the tokens."""
        return self._rates[1] is not None

    def open(self) -> None:
        """Begin a batch: buckets belong to an event loop."""
        self._requests, self._tokens = (_bucket(rate) for rate in self._rates)
        self._turn = asyncio.Lock()

    async def admit(self, tokens: float = 0.0) -> None:
        """Wait until a request may be sent; first come, first served.

        A pause may begin while a call waits for its bucket, so pauses come last. One call at a time
        waits for their end, so that it is no burst.
        """
        async with self._turn:
            if self._requests is not None:
                await self._requests.acquire()
            if self._tokens is not None:
                left, self._owed = max(0.0, tokens + self._owed), min(0.0, tokens + self._owed)
                while left > 0:  # a bucket gives no more at a time than it holds
                    part = min(left, self._tokens.max_rate)
                    await self._tokens.acquire(part)
                    left -= part
            while (wait := self._not_before - time.monotonic()) > 0:
                await asyncio.sleep(wait)

    def expected(self, prompt: int, limit: int | None) -> float:
        """What a call will take: its prompt, and as much as replies took so far, on the mean.

        Args:
            prompt: tokens of the prompt.
            limit: of the reply; it counts before the first reply is there, if it is not too high.
        """
        mean = self._reply_tokens / self._replies if self._replies else FIRST_GUESS_TOKENS
        return prompt + min(mean, mean if limit is None else limit)

    def settle(self, expected: float, usage: Usage) -> None:
        """Correct what a call took by what it used."""
        self._owed += usage.prompt + usage.completion - expected
        self._replies += usage.completion > 0
        self._reply_tokens += usage.completion

    def pause(self, seconds: float) -> None:
        """Admit nothing for so many seconds, at most :data:`PAUSE_AT_MOST_S`."""
        until = time.monotonic() + min(seconds, PAUSE_AT_MOST_S)
        self._not_before = max(self._not_before, until)


def _bucket(per_minute: float | None) -> "AsyncLimiter | None":
    if per_minute is None:
        return None
    from aiolimiter import AsyncLimiter

    period = max(1.0, 60.0 / per_minute)
    return AsyncLimiter(per_minute * period / 60.0, period)
