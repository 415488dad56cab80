"""Reads the answer of a chat-completions server: text, reasoning, status, tokens."""

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from saber_dagster.engines import Reply, Status, Usage

if TYPE_CHECKING:
    from openai import APIError

_CUT = {"length", "max_tokens", "model_length"}
_REFUSED = {"content_filter", "refusal", "safety"}
_BROKEN = {"error", "abort", "cancelled"}
_OPENING = re.compile(r"\s*<(?:think|thinking|thought)>")
_CLOSING = re.compile(r"</(?:think|thinking|thought)>")


def read_completion(body: str) -> Reply:
    """The reply in the body of a successful response.

    Finish reason and refusal are looked at before the text. An answer that is no chat completion, or
    one that the server broke off, is a ``transport_error``; an empty text is ``refused``.
    """
    try:
        answer = json.loads(body)
    except ValueError:
        return _lost(f"the server sent no JSON but {body[:200]!r}")
    choices = answer.get("choices") if isinstance(answer, dict) else None
    if not isinstance(choices, list) or not all(isinstance(choice, dict) for choice in choices):
        return _lost(f"the server sent no chat completion but {body[:200]!r}")
    choice: dict[str, Any] = choices[0] if choices else {"finish_reason": "no choice"}
    message = choice.get("message")
    if not isinstance(message, Mapping):
        message = {}
    content = message.get("content") or message.get("refusal") or ""
    reasoning = message.get("reasoning_content") or message.get("reasoning") or ""
    if not isinstance(content, str) or not isinstance(reasoning, str):
        return _lost(f"the message is no text but {body[:200]!r}")
    finish = _clean(str(choice.get("finish_reason") or "stop"))
    thought, text = split_reasoning(content)
    status, error = _status(finish, text, bool(thought), bool(message.get("refusal")))
    return Reply(
        status=status,
        text=_clean(text),
        reasoning=_clean("\n".join(part for part in (reasoning, thought) if part)),
        finish_reason=finish,
        usage=_usage(answer),
        error=error,
    )


def split_reasoning(content: str) -> tuple[str, str]:
    """Reasoning and text of a message that holds both.

    The text begins after the last closing tag, so that a tag quoted in the reasoning does not end it.
    Some chat templates put the opening tag into the prompt, so that only the closing one comes back.
    Reasoning that does not end leaves no text.
    """
    opening = _OPENING.match(content)
    closings = list(_CLOSING.finditer(content))
    if not opening and not closings:
        return "", content
    start = opening.end() if opening else 0
    if not closings:
        return content[start:].strip(), ""
    return content[start : closings[-1].start()].strip(), content[closings[-1].end() :].lstrip()


def explain(error: "APIError") -> str:
    """What the server said, or why there was no answer."""
    if isinstance(error.body, Mapping) and error.body.get("message"):
        return _clean(str(error.body["message"])[:500])
    cause = error.__cause__
    return f"{error}"[:500] + (f" ({type(cause).__name__}: {cause})" if cause else "")


def _status(finish: str, text: str, thought: bool, refusal: bool) -> tuple[Status, str]:
    if refusal or finish in _REFUSED:
        return "refused", "the model or its filter refused"
    if finish in _CUT:
        return "truncated", "the reply reached the limit of tokens"
    if finish in _BROKEN:
        return "transport_error", f"the server broke the reply off ({finish})"
    if text.strip():
        return "ok", ""
    if thought:
        return "truncated", "there is reasoning, and no reply after it"
    return "refused", "the reply is empty"


def _lost(error: str) -> Reply:
    return Reply("transport_error", finish_reason="error", error=_clean(error))


def _usage(answer: Mapping[str, Any]) -> Usage:
    return Usage(
        prompt=_count(answer, "usage", "prompt_tokens"),
        completion=_count(answer, "usage", "completion_tokens"),
        reasoning=_count(answer, "usage", "completion_tokens_details", "reasoning_tokens"),
        cached=_count(answer, "usage", "prompt_tokens_details", "cached_tokens"),
    )


def _count(value: Any, *path: str) -> int:
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, int) else 0


def _clean(text: str) -> str:
    """The text with lone surrogates, which no file can hold, replaced."""
    return text.encode("utf-8", "replace").decode("utf-8")
