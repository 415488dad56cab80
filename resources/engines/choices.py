"""Log-probabilities of a forced choice: what a server reports of one token, as the text of a reply."""

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence

from saber_dagster.errors import SaberError

_THINKS = re.compile(r"<\W?(think|thought|reason|channel)", re.IGNORECASE)
NOT_REPORTED = -9999.0
"""vLLM reports this for a token that cannot come; some servers report it for all."""

Reported = Iterable[tuple[str, float]]
"""Tokens that might have stood in one place, with their log-probabilities."""


class NoLogprobs(SaberError):  # noqa: N818
    """A server or model cannot be asked for the log-probabilities of a choice."""


def choice_text(reported: Reported, choices: Sequence[str]) -> str:
    """The text of a reply to a prompt with choices, by the grammar of :mod:`saber_dagster.replies`.

    Tokens that differ in surrounding space, case or width alone (``" 1"``, ``"Yes"``, ``"１"``) are one
    choice, whose probability is their sum, unless two choices differ in nothing else.

    Args:
        reported: the likeliest tokens in the place of the choice.
        choices: what the reply may be.

    Returns:
        One line for each choice that was reported; if one was not, a line with the lowest
        log-probability reported, which that choice cannot exceed.

    Raises:
        NoLogprobs: if nothing was reported, or the likeliest token begins a reasoning block.
    """
    usable = [
        (token, min(float(logprob), 0.0))
        for token, logprob in reported
        if math.isfinite(logprob) and logprob > NOT_REPORTED
    ]
    if not usable:
        raise NoLogprobs(
            "the server sent no log-probabilities. Ask this judge by `ask: generate`, or use a server and"
            " a model that give them"
        )
    likeliest = max(usable, key=lambda pair: pair[1])[0].strip()
    if _THINKS.match(likeliest):
        raise NoLogprobs(
            f"the model begins with {likeliest!r}, so its first token is no choice. Turn its reasoning"
            " off (for many models extra_body: {chat_template_kwargs: {enable_thinking: false}}), or ask"
            " this judge by `ask: generate`"
        )
    same = _folded if len(set(map(_folded, choices))) == len(choices) else _stripped
    found = {
        choice: [logprob for token, logprob in usable if same(token) == same(choice)]
        for choice in choices
    }
    lines = [
        f'<logprob choice="{choice}">{_log_sum(logprobs):.6g}</logprob>'
        for choice, logprobs in found.items()
        if logprobs
    ]
    if len(lines) < len(choices):
        lowest = min(logprob for _, logprob in usable)
        lines.append(f'<logprob floor="true">{lowest:.6g}</logprob>')
    return "\n".join(lines)


def _log_sum(logprobs: Sequence[float]) -> float:
    """The logarithm of the sum of probabilities, which is at most 1."""
    top = max(logprobs)
    return min(0.0, top + math.log(sum(math.exp(logprob - top) for logprob in logprobs)))


def _stripped(token: str) -> str:
    return token.strip(" \t\n▁Ġ")


def _folded(token: str) -> str:
    return unicodedata.normalize("NFKC", _stripped(token)).casefold()
