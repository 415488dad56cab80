"""Checks of the options that engines for servers and models share."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from saber_dagster.engines import (
    PAIRWISE_CHOICE,
    PAIRWISE_JUDGMENT,
    RELEVANCE_CHOICE,
    SOLUTION_SUMMARY,
    TASKS,
    TOPIC_SCORES,
)
from saber_dagster.errors import SaberError
from saber_dagster.hashing import canonical_json
from saber_dagster.tokens import tokenizer_counter

OPENAI_URL = "https://api.openai.com/v1"
ONE_TOKEN: Mapping[str, int] = MappingProxyType({PAIRWISE_CHOICE: 1, RELEVANCE_CHOICE: 1})
"""Tasks whose reply is one token, of which the log-probabilities are read."""
MAX_TOKENS: Mapping[str, int] = MappingProxyType(
    {
        **dict.fromkeys(TASKS, 8192),
        TOPIC_SCORES: 2048,
        SOLUTION_SUMMARY: 1024,
        PAIRWISE_JUDGMENT: 4096,
        **ONE_TOKEN,
    }
)
"""Longest reply by task, in tokens, reasoning included."""

_DATE = re.compile(r"(?<!\d)20\d\d-?[01]\d-?[0-3]\d(?!\d)")
_OWN_FIELDS = {"model", "messages", "input", "n", "stream"}
_PRICES = {"prompt", "completion", "cached"}


def checked_revision(model: str, revision: str | None) -> str:
    """The revision, or the date in the model's name.

    Raises:
        SaberError: if there is neither.
    """
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


def checked_url(base_url: str | None) -> str:
    """The address of the server; default: OpenAI.

    Raises:
        SaberError: if it is none, or holds what may be a secret, which the message does not repeat.
    """
    url = base_url or OPENAI_URL
    if not url.startswith(("http://", "https://")):
        raise SaberError(f"base_url is {base_url!r}; write it as http://localhost:8000/v1")
    parts = urlsplit(url)
    if parts.username or parts.password or parts.query or parts.fragment:
        raise SaberError(
            "base_url holds a user, a password or a query, which would reach logs and errors. Put the key"
            " into an environment variable, and the variable's name into api_key_env"
        )
    return url


def limits_by_task(max_tokens: int | Mapping[str, int] | None) -> Mapping[str, int]:
    """Longest replies by task; a task without a limit is not in it.

    Args:
        max_tokens: one number for all tasks but those of one token; or numbers of some tasks, over
            :data:`MAX_TOKENS`; None: no limit but for those of one token.

    Raises:
        SaberError: if a task is unknown or a number below 1.
    """
    if max_tokens is None:
        return ONE_TOKEN
    limits = (
        {**MAX_TOKENS, **max_tokens}
        if isinstance(max_tokens, Mapping)
        else {**dict.fromkeys(TASKS, max_tokens), **ONE_TOKEN}
    )
    if limits.keys() != set(TASKS) or min(limits.values()) < 1:
        raise SaberError(f"max_tokens is a number above 0, or one for each of {', '.join(TASKS)}")
    return limits


def checked_prices(prices: Mapping[str, float] | None) -> Mapping[str, float]:
    """Prices of a million tokens; empty if there are none.

    Raises:
        SaberError: if one is missing, unknown or no price.
    """
    prices = dict(prices or {})
    if prices and not {"prompt", "completion"} <= prices.keys() <= _PRICES:
        raise SaberError("price_per_million needs prompt and completion, and may have cached")
    for name, price in prices.items():
        if isinstance(price, bool) or not isinstance(price, int | float) or not 0 <= price < 1e9:
            raise SaberError(f"price_per_million: {name} is {price!r}; give a number, 0 or above")
    return prices


def checked_extra(extra_body: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Further fields of a request; None if there are none.

    Raises:
        SaberError: if one is a field that the engine sets.
        TypeError: if a value is not JSON; loading an engine by its options names it first.
    """
    if wrong := sorted(_OWN_FIELDS & (extra_body or {}).keys()):
        raise SaberError(f"extra_body may not set {', '.join(wrong)}; the engine does")
    canonical_json(extra_body)
    return dict(extra_body or {}) or None


def one_of(option: str, value: str, known: Sequence[str]) -> str:
    """The value of an option that has a few.

    Raises:
        SaberError: if it is none of them.
    """
    if value not in known:
        raise SaberError(f"{option} is {value!r}; use {', '.join(known)}")
    return value


def above_zero(**options: float | None) -> None:
    """Check limits that may be left out.

    Raises:
        SaberError: if one is 0, below, or no number.
    """
    for name, value in options.items():
        if value is not None and (isinstance(value, bool) or not value > 0):
            raise SaberError(f"{name} is {value}; give a number above 0, or null for no limit")


def token_counter(path: str) -> Callable[[str], int]:
    """Counts by a ``tokenizer.json`` that is read when the first text is counted."""
    counter = cache(lambda: tokenizer_counter(path))
    return lambda text: counter()(text)
