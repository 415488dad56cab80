"""The bodies of requests: what a call's parameters are called by each API and provider."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal

from resources.engines.providers import CHOICE_FIELDS, SCHEMA_FIELDS, Provider

LEAST_OUTPUT_TOKENS = 16
"""The Responses API takes no lower limit."""

Api = Literal["chat", "responses"]


def chat_fields(params: Mapping[str, Any], provider: Provider, way: str) -> dict[str, Any]:
    """The fields of a chat-completions request, but for model and messages.

    Args:
        params: as :meth:`resources.engines.openai.OpenAIEngine.params` gives them.
        provider: of the server.
        way: key of :data:`resources.engines.providers.SCHEMA_FIELDS`.
    """
    fields: dict[str, Any] = {
        name: params[name]
        for name in ("temperature", "seed", "stop", "reasoning_effort")
        if name in params
    }
    if "max_tokens" in params:
        fields[provider.limit_field] = params["max_tokens"]
    if "schema" in params:
        fields |= SCHEMA_FIELDS[way]("reply", params["schema"])
    if "choice" in params:
        choice = params["choice"]
        fields |= CHOICE_FIELDS[choice["forced"]](choice["of"])
        fields |= {"logprobs": True, "top_logprobs": choice["top_logprobs"]}
    return {**fields, **params.get("extra_body", {})}


def responses_fields(params: Mapping[str, Any], provider: Provider, way: str) -> dict[str, Any]:
    """The fields of a request to the Responses API, likewise. Nothing is kept by the server."""
    fields: dict[str, Any] = {"store": False}
    if "temperature" in params:
        fields["temperature"] = params["temperature"]
    if "max_tokens" in params:
        fields["max_output_tokens"] = max(LEAST_OUTPUT_TOKENS, params["max_tokens"])
    if "reasoning_effort" in params:
        fields["reasoning"] = {"effort": params["reasoning_effort"]}
    if "schema" in params:
        form = {"type": "json_schema", "name": "reply", "schema": params["schema"], "strict": True}
        fields["text"] = {"format": form}
    if "choice" in params:
        fields |= {
            "top_logprobs": params["choice"]["top_logprobs"],
            "include": ["message.output_text.logprobs"],
        }
    return {**fields, **params.get("extra_body", {})}


FIELDS: Mapping[str, Callable[[Mapping[str, Any], Provider, str], dict[str, Any]]] = (
    MappingProxyType({"chat": chat_fields, "responses": responses_fields})
)
PATHS: Mapping[str, str] = MappingProxyType(
    {"chat": "/chat/completions", "responses": "/responses"}
)
MESSAGES: Mapping[str, str] = MappingProxyType({"chat": "messages", "responses": "input"})
"""By API: what makes the fields, where they go, and the field of the messages."""


def choice_params(choices: Sequence[str], provider: Provider, api: str) -> dict[str, Any]:
    """How a choice is asked for, as a parameter: what is forced decides what is reported."""
    forced = provider.choice if api == "chat" else "none"
    return {"of": list(choices), "top_logprobs": provider.top_logprobs, "forced": forced}
