"""Any OpenAI-compatible server as an engine: vLLM, llama.cpp, OpenAI, Gemini and others.

Timeouts, retries with jittered backoff and ``Retry-After`` are those of the ``openai`` package. A
call that does not get through becomes a ``transport_error``; what no retry can mend (a wrong key, an
unknown model) stops the batch, after the calls in flight have come home.
"""

import asyncio
import os
import re
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from resources.engines.background import in_background
from resources.engines.openai_replies import explain, read_completion
from resources.engines.prompted import PromptedEngine
from saber_dagster.engines import (
    PAIRWISE_JUDGMENT,
    SOLUTION_SUMMARY,
    TASKS,
    TOPIC_SCORES,
    Call,
    Reply,
    Usage,
)
from saber_dagster.errors import SaberError
from saber_dagster.hashing import canonical_json

if TYPE_CHECKING:
    from openai import APIError, AsyncOpenAI

OPENAI_URL = "https://api.openai.com/v1"
MAX_TOKENS: Mapping[str, int] = MappingProxyType(
    {
        **dict.fromkeys(TASKS, 8192),
        TOPIC_SCORES: 2048,
        SOLUTION_SUMMARY: 1024,
        PAIRWISE_JUDGMENT: 4096,
    }
)
"""Longest reply by task, in tokens, reasoning included."""
CONNECT_TIMEOUT_S = 10.0
GIVE_UP_AFTER = 10
"""A batch stops after so many lost calls in a row, or twice the concurrency if that is more."""

_DATE = re.compile(r"(?<!\d)20\d\d-?[01]\d-?[0-3]\d(?!\d)")
_PRICES = {"prompt", "completion", "cached"}
_OWN_FIELDS = {"model", "messages", "n", "stream"}
_TOO_LONG = re.compile(
    r"context[ _]?(length|size|window)|maximum model length|maximum number of tokens"
    r"|prompt is too long",
    re.IGNORECASE,
)
_FILTERED = re.compile(
    r"content_filter|content_policy|invalid_prompt|data_inspection_failed", re.IGNORECASE
)


class OpenAIEngine(PromptedEngine):
    """An :class:`saber_dagster.engines.Engine` that asks a chat-completions server.

    Args:
        model: name of the model, as the server knows it.
        revision: what exactly answers under that name: the commit of open weights, the dated
            snapshot of an API. Not needed if the model's name has a date in it.
        base_url: address of the server, such as ``http://localhost:8000/v1``; default: OpenAI.
        api_key_env: environment variable that holds the key. Default: ``OPENAI_API_KEY`` for
            OpenAI; no key for a ``base_url``, so that a key never goes to another server unasked.
        temperature: None leaves it to the server, as some reasoning models demand.
        max_tokens: longest reply for all tasks, or by task (over :data:`MAX_TOKENS`); None: no limit.
        seed: sent plus the number of the sample; None: not sent.
        extra_body: further fields of the request, such as ``{"reasoning_effort": "low"}``.
        concurrency: most requests at a time.
        timeout_s: seconds that the server may stay silent before a try counts as failed.
        retries: further tries of a request that failed in a way that may pass.
        skip_too_long: what becomes of a call that is longer than the model's context. False: the batch
            stops. True: the call is ``truncated``, for good, as a longer context is no part of its key.
        price_per_million: price of a million tokens: ``prompt``, ``completion``, and ``cached`` for
            the part of the prompt that came from a cache, if that is cheaper.

    Raises:
        SaberError: if an option is wrong or the revision is not known. The key is not read yet.
    """

    def __init__(
        self,
        model: str,
        revision: str | None = None,
        *,
        base_url: str | None = None,
        api_key_env: str | None = None,
        temperature: float | None = 0.0,
        max_tokens: int | Mapping[str, int] | None = MAX_TOKENS,
        seed: int | None = None,
        extra_body: Mapping[str, Any] | None = None,
        concurrency: int = 8,
        timeout_s: float = 600.0,
        retries: int = 5,
        skip_too_long: bool = False,
        price_per_million: Mapping[str, float] | None = None,
    ) -> None:
        self._model = model
        self._revision = _checked_revision(model, revision)
        self._url = base_url or OPENAI_URL
        self._key_env = api_key_env or ("OPENAI_API_KEY" if self._url == OPENAI_URL else None)
        self._sampling = {"temperature": temperature, "seed": seed}
        self._max_tokens = _by_task(max_tokens)
        self._extra = dict(extra_body or {})
        self._concurrency = concurrency
        self._timeout_s = timeout_s
        self._retries = retries
        self._skip_too_long = skip_too_long
        self._prices = dict(price_per_million or {})
        canonical_json(self._extra)
        if not self._url.startswith(("http://", "https://")):
            raise SaberError(f"base_url is {base_url!r}; write it as http://localhost:8000/v1")
        if concurrency < 1 or timeout_s <= 0 or retries < 0:
            raise SaberError("need concurrency of at least 1, timeout_s above 0, retries not below")
        if wrong := sorted(_OWN_FIELDS & self._extra.keys()):
            raise SaberError(f"extra_body may not set {', '.join(wrong)}; the engine does")
        if self._prices and not {"prompt", "completion"} <= self._prices.keys() <= _PRICES:
            raise SaberError("price_per_million needs prompt and completion, and may have cached")

    @property
    def model(self) -> str:
        """Name of the model."""
        return self._model

    @property
    def revision(self) -> str:
        """What exactly answers under that name."""
        return self._revision

    def params(self, task: str) -> Mapping[str, Any]:
        """The options that can change an answer: sampling, limit, further fields."""
        values: dict[str, Any] = {**self._sampling, "max_tokens": self._max_tokens.get(task)}
        values["extra_body"] = self._extra or None
        return {name: value for name, value in values.items() if value is not None}

    def answer(self, calls: Sequence[Call]) -> Iterator[tuple[int, Reply]]:
        """Yield (position, reply) as replies come in. Closing the iterator cancels what is left.

        Raises:
            SaberError: if there is no key, the server rejects it or the request, a call is too long,
                or too many calls in a row were lost. The message names what to change.
        """
        if calls:
            yield from in_background(partial(self._answer_all, calls, self._key()))

    def _key(self) -> str:
        if self._key_env is None:
            return "no-api-key"  # the client wants one
        key = os.environ.get(self._key_env, "").strip()
        if not key:
            raise SaberError(
                f"the environment variable {self._key_env} is not set; {self._model} at {self._url}"
                " needs it to hold the API key"
            )
        if not (key.isascii() and key.isprintable() and " " not in key):
            raise SaberError(f"{self._key_env} holds characters that no API key has; set it anew")
        return key

    async def _answer_all(
        self, calls: Sequence[Call], key: str, put: Callable[[tuple[int, Reply]], None]
    ) -> None:
        from openai import AsyncOpenAI, Timeout

        waiting = deque(enumerate(calls))
        lost_in_a_row = 0

        async def work() -> None:
            nonlocal lost_in_a_row
            try:
                while waiting:
                    position, call = waiting.popleft()
                    reply = await self._ask(client, call, key)
                    put((position, reply))
                    lost_in_a_row = lost_in_a_row + 1 if reply.status == "transport_error" else 0
                    if waiting and lost_in_a_row >= max(GIVE_UP_AFTER, 2 * self._concurrency):
                        raise SaberError(
                            f"{lost_in_a_row} calls in a row did not get through to {self._url}, the"
                            f" last: {reply.error}. See whether the server is up, raise timeout_s or"
                            " lower concurrency; then run the partition again, nothing paid is lost"
                        )
            except BaseException:
                waiting.clear()  # the others finish what they have begun, and no more
                raise

        async with AsyncOpenAI(
            api_key=key,
            base_url=self._url,
            timeout=Timeout(self._timeout_s, connect=min(CONNECT_TIMEOUT_S, self._timeout_s)),
            max_retries=self._retries,
        ) as client:
            workers = (work() for _ in range(min(self._concurrency, len(calls))))
            problems = await asyncio.gather(*workers, return_exceptions=True)
        for problem in filter(None, problems):
            raise problem

    async def _ask(self, client: "AsyncOpenAI", call: Call, key: str) -> Reply:
        from openai import APIError

        start = time.perf_counter()
        try:
            text = await client.post("/chat/completions", cast_to=str, body=self._body(call))
        except APIError as error:
            problem = error
        else:
            reply = read_completion(text)
            return replace(
                reply,
                error=reply.error.replace(key, "***"),
                price=self._price(reply.usage),
                latency=time.perf_counter() - start,
            )
        # Not in the handler: an error raised there would carry the request, and so the key.
        reply = self._failed(problem, call, key)
        return replace(reply, latency=time.perf_counter() - start)

    def _body(self, call: Call) -> dict[str, Any]:
        body = {**self.params(call.task), "model": self._model, "messages": self.messages(call)}
        body |= body.pop("extra_body", {})
        if "seed" in body:
            body["seed"] += call.sample
        if "max_tokens" in body and self._url == OPENAI_URL:  # newer models know the new name only
            body["max_completion_tokens"] = body.pop("max_tokens")
        return body

    def _price(self, usage: Usage) -> float:
        if not self._prices:
            return 0.0
        prompt, completion = self._prices["prompt"], self._prices["completion"]
        cached = self._prices.get("cached", prompt)
        fresh = usage.prompt - usage.cached
        return (fresh * prompt + usage.cached * cached + usage.completion * completion) / 1e6

    def _failed(self, error: "APIError", call: Call, key: str) -> Reply:
        """The reply that a failed request comes to; raises if the whole batch must stop."""
        status: int | None = getattr(error, "status_code", None)
        said = explain(error).replace(key, "***")
        code = f"{error.code} {error.type} {said}"
        if status == 402 or "insufficient_quota" in code:
            raise SaberError(f"{self._url}: no credit left ({said}). Top up, then run again")
        if status is None or status in (408, 409, 429) or status >= 500:
            return Reply("transport_error", finish_reason="error", error=said)
        if status in (401, 403):
            env = self._key_env
            raise SaberError(
                f"{self._url} does not let this key use {self._model} ({status}: {said}). "
                + (f"Check the key in {env}" if env else "Name the key's variable in api_key_env")
            )
        if status == 404:
            raise SaberError(
                f"{self._url} does not know model {self._model!r}, or is not the right address: {said}."
                " Check model and base_url, which as a rule ends in /v1"
            )
        if _FILTERED.search(code):
            return Reply("refused", finish_reason="content_filter", error=said)
        if status == 413 or _TOO_LONG.search(code):
            if self._skip_too_long:
                return Reply("truncated", finish_reason="context_length", error=said)
            raise SaberError(
                f"{call.item} does not fit into the context of {self._model}: {said}. Start the server"
                " with a longer one (vLLM: --max-model-len), lower max_tokens, or set skip_too_long:"
                " true to leave such calls unanswered for good"
            )
        raise SaberError(
            f"{self._url} rejected the request for {call.item}: {status}, {said}. Check the options of"
            f" {self._model}; some models want temperature: null or max_tokens: null"
        )


def _checked_revision(model: str, revision: str | None) -> str:
    if revision is None and (date := _DATE.search(model)):
        return date[0]
    if isinstance(revision, str) and revision.strip():
        return revision.strip()
    if revision not in (None, ""):
        raise SaberError(f'revision {revision!r} is not a text; quote it: revision: "{revision}"')
    raise SaberError(
        f"model {model} has no revision. What answers under a name changes in time, and replies of two"
        " versions must not mix. Give what pins it: the commit of open weights, the dated snapshot of an"
        ' API, or else the date you start, such as revision: "2026-05-01"'
    )


def _by_task(max_tokens: int | Mapping[str, int] | None) -> Mapping[str, int]:
    if max_tokens is None:
        return {}
    limits = (
        {**MAX_TOKENS, **max_tokens}
        if isinstance(max_tokens, Mapping)
        else dict.fromkeys(TASKS, max_tokens)
    )
    if limits.keys() != set(TASKS) or min(limits.values()) < 1:
        raise SaberError(f"max_tokens is a number above 0, or one for each of {', '.join(TASKS)}")
    return limits
