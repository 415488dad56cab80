"""Any OpenAI-compatible server as an engine: vLLM, llama.cpp, OpenAI, Gemini and others.

A call that does not get through becomes a ``transport_error``; what no retry can mend (a wrong key, an
unknown model) stops the batch, after the requests in flight have come home.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

from resources.engines.asking import Batch, Request
from resources.engines.background import in_background
from resources.engines.choices import NoLogprobs
from resources.engines.line import Sending
from resources.engines.openai_failures import Failure
from resources.engines.openai_options import (
    MAX_TOKENS,
    above_zero,
    checked_extra,
    checked_prices,
    checked_revision,
    checked_url,
    checked_variable,
    limits_by_task,
    one_of,
    token_counter,
)
from resources.engines.openai_replies import read_completion
from resources.engines.openai_requests import FIELDS, MESSAGES, PATHS, Api, choice_params
from resources.engines.prompted import PromptedEngine
from resources.engines.providers import provider_of
from resources.engines.rate_limit import RateLimit
from resources.engines.secret import NO_KEY, Secret
from resources.engines.uncounted import counted
from saber_dagster.engines import Call, Message, Reply, Usage
from saber_dagster.errors import SaberError

CONTEXT_MARGIN = 128
"""Tokens of the context that are kept for the chat template."""

Structured = Literal["auto", "json_schema", "off"]


class OpenAIEngine(PromptedEngine):
    """An :class:`saber_dagster.engines.Engine` that asks an OpenAI-compatible server.

    Args:
        model: name of the model, as the server knows it.
        revision: what exactly answers under that name: the commit of open weights, the dated
            snapshot of an API. Not needed if the model's name has a date in it.
        base_url: address of the server, such as ``http://localhost:8000/v1``; default: OpenAI.
        api_key_env: environment variable that holds the key. Default: ``OPENAI_API_KEY`` for
            OpenAI; no key for a ``base_url``, so that a key never goes to another server unasked.
        provider: key of :data:`resources.engines.providers.PROVIDERS`, or changes to an entry, see
            :func:`resources.engines.providers.provider_of`; default: by the address.
        api: ``chat`` for chat completions, ``responses`` for the Responses API.
        prompts: prompts by task, where they are not the shipped ones: names, or paths of files.
        structured: ``auto`` demands JSON by the prompt's schema where the provider can,
            ``json_schema`` does so at any provider, ``off`` asks for tagged text.
        temperature: None leaves it to the server. It is not sent to models that take none.
        max_tokens: longest reply for all tasks but those of one token, or by task (over
            :data:`MAX_TOKENS`); None: no limit.
        seed: sent plus the number of the sample; None: not sent.
        reasoning_effort: such as ``low``; None: not sent.
        extra_body: further fields of the request, such as ``{"top_p": 0.95}``.
        context_tokens: length of the model's context. Longer calls are cut to it, less the reply's
            ``max_tokens`` and :data:`CONTEXT_MARGIN`; None: nothing is cut.
        tokenizer: path of the model's ``tokenizer.json``, to count tokens by; default: an estimate.
        skip_too_long: what becomes of a call that the server finds too long. False: the batch stops.
            True: the call is ``truncated``, for good, as a longer context is no part of its key.
        concurrency: most calls at a time that are sent and not yet stored.
        requests_per_minute: None: no limit.
        tokens_per_minute: of prompts and replies; None: no limit.
        timeout_s: seconds until a try counts as failed.
        retries: further tries of a request that failed in a way that may pass.
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
        provider: str | Mapping[str, Any] | None = None,
        api: Api = "chat",
        prompts: Mapping[str, str] | None = None,
        structured: Structured = "auto",
        temperature: float | None = 0.0,
        max_tokens: int | Mapping[str, int] | None = MAX_TOKENS,
        seed: int | None = None,
        reasoning_effort: str | None = None,
        extra_body: Mapping[str, Any] | None = None,
        context_tokens: int | None = None,
        tokenizer: str | None = None,
        skip_too_long: bool = False,
        concurrency: int = 8,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        timeout_s: float = 600.0,
        retries: int = 5,
        price_per_million: Mapping[str, float] | None = None,
    ) -> None:
        self._model = model
        self._revision = checked_revision(model, revision)
        url = checked_url(base_url)
        self._key_env = checked_variable(api_key_env, url)
        self.provider = provider_of(provider, url)
        self._api = one_of("api", api, get_args(Api))
        self.prompts = dict(prompts or {})
        self._schema_way = {
            "auto": self.provider.json_schema,
            "json_schema": self.provider.json_schema.replace("none", "response_format"),
            "off": "none",
        }[one_of("structured", structured, get_args(Structured))]
        self.form = "tagged" if self._schema_way == "none" else "json"
        self._sampling = {
            "temperature": None if self.provider.reasons(model) else temperature,
            "seed": seed,
            "reasoning_effort": reasoning_effort,
            "api": None if api == "chat" else api,
            "extra_body": checked_extra(extra_body),
        }
        self._max_tokens = limits_by_task(max_tokens)
        self._context, self.tokenizer_file = context_tokens, tokenizer
        if tokenizer is not None:
            self.count_tokens = token_counter(tokenizer)
        self._skip_too_long = skip_too_long
        self._prices = checked_prices(price_per_million)
        above_zero(
            requests_per_minute=requests_per_minute,
            tokens_per_minute=tokens_per_minute,
            context_tokens=context_tokens,
        )
        if concurrency < 1 or timeout_s <= 0 or retries < 0:
            raise SaberError(
                f"concurrency is {concurrency}, timeout_s {timeout_s} and retries {retries}; give 1 or"
                " more, above 0, and 0 or more"
            )
        if api == "responses" and not self.provider.responses:
            raise SaberError(f"{url} has no Responses API to rely on; remove api: responses")
        if seed is not None and api == "responses":
            raise SaberError("the Responses API takes no seed; remove seed, or set api: chat")
        self.sending = Sending(url, PATHS[api], concurrency, timeout_s, retries)
        self.rate_limit = RateLimit(requests_per_minute, tokens_per_minute)
        self._params: dict[str, dict[str, Any]] = {}
        self._fields: dict[str, dict[str, Any]] = {}
        self._running: set[Batch] = set()

    @property
    def model(self) -> str:
        """Name of the model."""
        return self._model

    @property
    def revision(self) -> str:
        """What exactly answers under that name."""
        return self._revision

    def params(self, task: str) -> Mapping[str, Any]:
        """The options that can change an answer: sampling, limit, form of the reply, further fields.

        Raises:
            SaberError: if the prompt wants log-probabilities and the provider gives none.
        """
        if task not in self._params:
            prompt = self.template(task)
            values: dict[str, Any] = {**self._sampling, "max_tokens": self._max_tokens.get(task)}
            if prompt.stop and self._api == "chat" and not self.provider.reasons(self._model):
                values["stop"] = list(prompt.stop)
            if prompt.choices:
                if lacks := self.provider.lacks_logprobs(self._model, self.sending.url):
                    raise NoLogprobs(lacks)
                values["choice"] = choice_params(prompt.choices, self.provider, self._api)
            elif prompt.schema and self.form == "json":
                values["schema"] = dict(prompt.schema)
            self._params[task] = {k: v for k, v in values.items() if v is not None}
        return self._params[task]

    def limit_of(self, task: str) -> int | None:
        """Most tokens of all messages of a call: the context less the reply and the margin.

        Raises:
            SaberError: if that leaves nothing.
        """
        if self._context is None:
            return None
        limit = self._context - self._max_tokens.get(task, 0) - CONTEXT_MARGIN
        if limit < 1:
            raise SaberError(
                f"context_tokens is {self._context}, of which max_tokens of {task} takes"
                f" {self._max_tokens.get(task, 0)} and the margin {CONTEXT_MARGIN}: nothing is left for"
                f" the call. Lower it, such as max_tokens: {{{task}: {self._context // 4}}}"
            )
        return limit

    def body(self, call: Call) -> dict[str, Any]:
        """The JSON of the request.

        Raises:
            SaberError: see :meth:`params`, :meth:`limit_of` and :meth:`render`.
        """
        return self._body(call, self.messages(call))

    def _body(self, call: Call, messages: Sequence[Message]) -> dict[str, Any]:
        if call.task not in self._fields:
            make = FIELDS[self._api]
            self._fields[call.task] = make(
                self.params(call.task), self.provider, self._schema_way
            ) | {"model": self._model}
        body = {**self._fields[call.task], MESSAGES[self._api]: messages}
        if "seed" in body:
            body["seed"] += call.sample
        return body

    def request(self, call: Call) -> Request:
        """The call as it is sent, with a guess of its tokens if they are limited."""
        rendered = self.render(call)
        tokens = 0.0
        if self.rate_limit.counts_tokens:
            prompt = sum(self.count_tokens(message["content"]) for message in rendered.messages)
            tokens = self.rate_limit.expected(prompt, self._max_tokens.get(call.task))
        return Request(self._body(call, rendered.messages), rendered.truncated, tokens)

    def answer(self, calls: Sequence[Call]) -> Iterator[tuple[int, Reply]]:
        """Yield (position, reply) as replies come in. Closing the iterator cancels what is left.

        Raises:
            SaberError: if there is no key, the server rejects it or the request, a call is too long,
                the server is not there, or too many calls in a row were lost. The message names what
                to change.
        """
        if not calls:
            return
        batch = Batch(self, calls, self.key())
        self._running.add(batch)
        try:
            yield from in_background(batch.run)
        finally:
            self._running.discard(batch)

    def stop(self) -> None:
        """Begin no further call; :meth:`answer` ends after those in flight."""
        for batch in tuple(self._running):
            batch.stop()

    def key(self) -> Secret:
        """The API key.

        Raises:
            SaberError: if its environment variable is not set or holds no key.
        """
        if self._key_env is None:
            return NO_KEY
        return Secret.of_variable(self._key_env, f"{self._model} at {self.sending.url}")

    def price(self, usage: Usage) -> float:
        """Price of the tokens; 0 without ``price_per_million``."""
        if not self._prices:
            return 0.0
        prompt, completion = self._prices["prompt"], self._prices["completion"]
        cached = self._prices.get("cached", prompt)
        fresh = max(0, usage.prompt - usage.cached)
        return (fresh * prompt + usage.cached * cached + usage.completion * completion) / 1e6

    def completed(self, call: Call, body: str) -> Reply:
        """The reply in the body of a successful response, with its price.

        Raises:
            NoLogprobs: if the prompt has choices, and the answer no log-probabilities of them.
        """
        choices = self.template(call.task).choices
        reply = counted(read_completion(body, choices, self.provider.reasoning_fields), self, call)
        return replace(reply, price=self.price(reply.usage)) if self._prices else reply

    def failed(self, call: Call, failure: Failure) -> Reply:
        """The reply that a failed request comes to; ``transport_error`` if it may pass.

        Args:
            call: what was asked.
            failure: what happened, without the key.

        Raises:
            SaberError: if the whole batch must stop. The message names what to change.
        """
        if failure.may_pass:
            return failure.lost()
        if failure.filtered:
            return Reply("refused", finish_reason="content_filter", error=failure.said)
        too_long = failure.too_long(self.provider.too_long)
        if too_long and self._skip_too_long:
            return Reply("truncated", finish_reason="context_length", error=failure.said)
        url, env = self.sending.url, self._key_env
        raise SaberError(failure.remedy(url, self._model, env, call.item, too_long))
