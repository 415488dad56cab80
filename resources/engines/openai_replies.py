"""Reads the answer of an OpenAI-compatible server: text, reasoning, status, tokens, log-probabilities.

Both forms are read: that of chat completions and that of the Responses API.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from resources.engines.choices import Reported, choice_text
from saber_dagster.engines import Reply, Status, Usage

REASONING_FIELDS = ("reasoning_content", "reasoning")

_CUT = {"length", "max_tokens", "model_length", "max_output_tokens"}
_REFUSED = {"content_filter", "refusal", "safety"}
_BROKEN = {"error", "abort", "cancelled", "failed"}
_OPENING = re.compile(r"\s*<(?:think|thinking|thought)>")
_CLOSING = re.compile(r"</(?:think|thinking|thought)>")


class _FormError(Exception):
    """The answer is not of the form that it should have."""


@dataclass(frozen=True, slots=True)
class _Said:
    """What the server said, in either form."""

    content: str
    reasoning: str
    refusal: bool
    finish: str
    tokens: Sequence[Any]


def read_completion(
    body: str, choices: Sequence[str] = (), reasoning_fields: Sequence[str] = REASONING_FIELDS
) -> Reply:
    """The reply in the body of a successful response.

    Finish reason and refusal are looked at before the text. An answer that is no completion, or one
    that the server broke off, is a ``transport_error``, and so is one without any choice, unless it
    names a filter. Reasoning without a text is ``truncated``; an empty text is ``refused``. Of several
    choices the one with index 0 counts.

    Args:
        body: JSON, as it came.
        choices: if there are some, the text of the reply is that of
            :func:`resources.engines.choices.choice_text`, wherever the reply ended.
        reasoning_fields: fields of the message that hold the reasoning.

    Raises:
        NoLogprobs: if there are choices, and the server sent no log-probabilities, or the model began
            to reason.
    """
    try:
        answer = json.loads(body)
        said = (
            _of_response(answer)
            if isinstance(answer, dict) and "output" in answer
            else _of_chat(answer, reasoning_fields)
        )
    except (ValueError, RecursionError):
        return _lost(f"the server sent no JSON but {body[:200]!r}")
    except _FormError as error:
        return _lost(f"{error} but {body[:200]!r}")
    thought, text = split_reasoning(said.content)
    reasoned = bool(thought or said.reasoning.strip())
    status, error_text = _status(said.finish, text, reasoned, said.refusal)
    if choices and not said.refusal and said.finish not in _REFUSED | _BROKEN:
        text = choice_text(_place_of_choice(said.tokens), choices)
        status, error_text = "ok", ""
    return Reply(
        status=status,
        text=_clean(text),
        reasoning=_clean("\n".join(part for part in (said.reasoning, thought) if part)),
        finish_reason=_clean(said.finish),
        usage=usage_in(answer),
        error=error_text,
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


def _of_chat(answer: Any, reasoning_fields: Sequence[str]) -> _Said:
    choices = answer.get("choices") if isinstance(answer, dict) else None
    if not isinstance(choices, list) or not all(isinstance(choice, dict) for choice in choices):
        raise _FormError("the server sent no chat completion")
    if not choices and not _prompt_blocked(answer):
        raise _FormError("the server sent a completion without a choice")
    in_order = sorted(choices, key=lambda choice: _count(choice.get("index")))
    choice: dict[str, Any] = in_order[0] if in_order else {"finish_reason": "content_filter"}
    message = _mapping(choice.get("message"))
    content = _joined(message.get("content")) or message.get("refusal") or ""
    reasoning = next((found for name in reasoning_fields if (found := message.get(name))), "")
    if not isinstance(content, str) or not isinstance(reasoning, str):
        raise _FormError("the message is no text")
    return _Said(
        content,
        reasoning,
        refusal=bool(message.get("refusal")),
        finish=str(choice.get("finish_reason") or "stop"),
        tokens=_list(_mapping(choice.get("logprobs")).get("content")),
    )


def _joined(content: Any) -> Any:
    """The text of a message whose content is a list of parts of text; what is none stays as it is."""
    if not isinstance(content, list):
        return content
    parts = [_mapping(part) for part in content]
    texts = [str(part["text"]) for part in parts if isinstance(part.get("text"), str)]
    return "".join(texts) if len(texts) == len(parts) else content


def _prompt_blocked(answer: Mapping[str, Any]) -> bool:
    """Whether an answer without a choice says that a filter stopped the prompt (Gemini's form)."""
    told = _mapping(answer.get("promptFeedback") or answer.get("prompt_feedback"))
    return bool(told.get("blockReason") or told.get("block_reason"))


def _of_response(answer: Mapping[str, Any]) -> _Said:
    items = [_mapping(item) for item in _list(answer["output"])]
    parts = [
        (item.get("type"), _mapping(part))
        for item in items
        for name in ("content", "summary")
        for part in _list(item.get(name))
    ]
    said = [part for kind, part in parts if kind == "message"]
    refusals = [part["refusal"] for part in said if part.get("refusal")]
    texts = [part.get("text", "") for part in said if part.get("type") == "output_text"]
    thoughts = [part.get("text", "") for kind, part in parts if kind == "reasoning"]
    if not all(isinstance(text, str) for text in (*refusals, *texts, *thoughts)):
        raise _FormError("the message is no text")
    status = answer.get("status") or "completed"
    reason = _mapping(answer.get("incomplete_details")).get("reason") or status
    return _Said(
        "".join(texts) or "".join(refusals),
        "\n".join(filter(None, thoughts)),
        refusal=bool(refusals),
        finish="stop" if status == "completed" else str(reason),
        tokens=[token for part in said for token in _list(part.get("logprobs"))],
    )


def _place_of_choice(tokens: Sequence[Any]) -> Reported:
    """What might have stood in the first place where there is more than space."""
    for token in map(_mapping, tokens):
        if str(token.get("token", "")).strip(" \t\n▁Ġ"):
            return [
                (str(other.get("token", "")), other["logprob"])
                for other in map(_mapping, _list(token.get("top_logprobs")))
                if isinstance(other.get("logprob"), int | float)
            ]
    return []


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


def usage_in(answer: Any) -> Usage:
    """Tokens that a body tells of, be it a failure's; the two forms name them differently."""
    usage = _mapping(_mapping(answer).get("usage"))
    prompt, completion = (
        ("input", "output") if "input_tokens" in usage else ("prompt", "completion")
    )
    asked, said = (_count(usage.get(f"{kind}_tokens")) for kind in (prompt, completion))
    if asked:  # some servers count reasoning in the total alone
        said = max(said, _count(usage.get("total_tokens")) - asked)
    return Usage(
        prompt=asked,
        completion=said,
        reasoning=_count(
            _mapping(usage.get(f"{completion}_tokens_details")).get("reasoning_tokens")
        ),
        cached=_count(_mapping(usage.get(f"{prompt}_tokens_details")).get("cached_tokens")),
    )


def _count(value: Any) -> int:
    return value if isinstance(value, int) and 0 <= value < 2**53 else 0


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _clean(text: str) -> str:
    """The text with lone surrogates, which no file can hold, replaced."""
    return text.encode("utf-8", "replace").decode("utf-8")
