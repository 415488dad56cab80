"""How OpenAI-compatible servers differ, as one table.

A server that is not in the table is ``generic``: what every one of them understands, and no structured
output. An entry can be changed by options: ``provider: {like: vllm, top_logprobs: 5}``.
"""

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from saber_dagster.errors import SaberError

_TOO_LONG_VLLM = r"maximum (context|model) length|longer than the maximum|max_model_len"
_TOO_LONG_LLAMA = r"exceed_context_size|context size"
_TOO_LONG_OPENAI = r"context_length_exceeded|maximum context length|context window"
_TOO_LONG_GEMINI = r"exceeds the maximum number of tokens"

SCHEMA_FIELDS: Mapping[str, Callable[[str, Mapping[str, Any]], dict[str, Any]]] = MappingProxyType(
    {
        "none": lambda name, schema: {},
        "response_format": lambda name, schema: {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": name, "schema": schema, "strict": True},
            }
        },
        "structured_outputs": lambda name, schema: {"structured_outputs": {"json": schema}},
    }
)
"""Ways to demand JSON of a schema: the fields of a chat-completions request."""

CHOICE_FIELDS: Mapping[str, Callable[[Sequence[str]], dict[str, Any]]] = MappingProxyType(
    {
        "none": lambda choices: {},
        "structured_outputs": lambda choices: {"structured_outputs": {"choice": list(choices)}},
        "grammar": lambda choices: {
            "grammar": "root ::= " + " | ".join(f'"{choice}"' for choice in choices)
        },
    }
)
"""Ways to force one of some choices, likewise."""


@dataclass(frozen=True, slots=True)
class Provider:
    """What a server wants of a request and gives in an answer.

    Attributes:
        hosts: host names of ``base_url`` that mean this provider.
        limit_field: name of the field that limits the reply.
        reasoning_models: pattern of the models that take neither ``temperature`` nor ``stop``;
            empty: none.
        reasoning_fields: fields of the message that hold the reasoning; the first that is there counts.
            Reasoning between ``<think>`` tags is found at every provider.
        json_schema: key of :data:`SCHEMA_FIELDS`.
        choice: key of :data:`CHOICE_FIELDS`.
        top_logprobs: most tokens whose log-probabilities may be asked for; 0: none are given.
        too_long: pattern of the error for an input that is longer than the context.
        responses: whether the Responses API is there and says when a reply was cut off.
    """

    hosts: tuple[str, ...] = ()
    limit_field: str = "max_tokens"
    reasoning_models: str = ""
    reasoning_fields: tuple[str, ...] = ("reasoning_content", "reasoning")
    json_schema: str = "none"
    choice: str = "none"
    top_logprobs: int = 20
    too_long: str = "|".join((_TOO_LONG_VLLM, _TOO_LONG_LLAMA, _TOO_LONG_OPENAI, _TOO_LONG_GEMINI))
    responses: bool = True

    def reasons(self, model: str) -> bool:
        """Whether a model takes neither ``temperature`` nor ``stop``."""
        return bool(self.reasoning_models and re.search(self.reasoning_models, model))

    def lacks_logprobs(self, model: str, url: str) -> str:
        """Why a model at an address gives no log-probabilities, and the remedy; empty if it does."""
        if self.top_logprobs and not self.reasons(model):
            return ""
        who, change = (
            (f"{model}, a reasoning model,", 'reasoning_models: ""')
            if self.top_logprobs
            else (url, "top_logprobs: 20")
        )
        return (
            f"{who} gives no log-probabilities; ask the judge {model} by `ask: generate`, or set"
            f" provider: {{{change}}} if it does by now"
        )


PROVIDERS: Mapping[str, Provider] = MappingProxyType(
    {
        "generic": Provider(),
        # docs.vllm.ai: `reasoning` since 0.12, `reasoning_content` before; at most 20 log-probabilities
        # unless the server was started with --max-logprobs. A forced choice masks all other tokens.
        "vllm": Provider(
            json_schema="response_format", choice="structured_outputs", too_long=_TOO_LONG_VLLM
        ),
        # Its log-probabilities are those before the grammar, so a grammar would change nothing but hide
        # that the model begins with something else. Its Responses API calls a reply complete that was
        # cut, and takes neither schema nor log-probabilities.
        "llama.cpp": Provider(
            json_schema="response_format", too_long=_TOO_LONG_LLAMA, responses=False
        ),
        # platform.openai.com: the o-series and gpt-5 refuse a temperature, max_tokens and stop.
        "openai": Provider(
            hosts=("api.openai.com",),
            limit_field="max_completion_tokens",
            reasoning_models=r"^(o\d|gpt-5(?!.*chat))",
            json_schema="response_format",
            too_long=_TOO_LONG_OPENAI,
        ),
        # ai.google.dev/gemini-api/docs/openai: log-probabilities are not among what it offers.
        "gemini": Provider(
            hosts=("generativelanguage.googleapis.com",),
            json_schema="response_format",
            top_logprobs=0,
            too_long=_TOO_LONG_GEMINI,
            responses=False,
        ),
    }
)
"""The table."""

_KINDS: Mapping[str, type | tuple[type, ...]] = {
    "hosts": (list, tuple),
    "reasoning_fields": (list, tuple),
    "top_logprobs": int,
    "responses": bool,
}


def provider_of(option: str | Mapping[str, Any] | None, base_url: str) -> Provider:
    """The entry that an option names, or else the address of the server.

    Args:
        option: key of :data:`PROVIDERS`; or a mapping of attributes that differ from those of the
            entry named ``like`` (default: by the address).
        base_url: address of the server.

    Raises:
        SaberError: if there is no such entry, attribute or way; the message names those there are.
    """
    changed = dict(option) if isinstance(option, Mapping) else {"like": option}
    name = changed.pop("like", None)
    if name is None:
        host = urlsplit(base_url).hostname
        name = next((key for key, entry in PROVIDERS.items() if host in entry.hosts), "generic")
    if name not in PROVIDERS:
        raise SaberError(f"provider {name!r} is not known; use {', '.join(PROVIDERS)}")
    known = [field.name for field in fields(Provider)]
    for field, value in changed.items():
        if field not in known:
            near = difflib.get_close_matches(str(field), known, 1)
            hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(known)}"
            raise SaberError(f"provider: there is no {field!r}; {hint}")
        kind = _KINDS.get(field, str)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise SaberError(f"provider: {field} is {value!r}, which is of the wrong type")
    entry = replace(PROVIDERS[name], **changed)
    for field, ways in (("json_schema", SCHEMA_FIELDS), ("choice", CHOICE_FIELDS)):
        if getattr(entry, field) not in ways:
            raise SaberError(
                f"provider: {field} is {getattr(entry, field)!r}; use {', '.join(ways)}"
            )
    for field in ("reasoning_models", "too_long"):
        try:
            re.compile(getattr(entry, field))
        except re.error as error:
            raise SaberError(f"provider: {field} is no regular expression: {error}") from None
    return entry
