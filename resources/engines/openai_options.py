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
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LIKE_A_KEY = re.compile(r"(?=.*[a-z])(?=.*[0-9]).{20,}")
_SECRET_NAME = re.compile(
    r"(?!.*_env$)(?!(stop|eos|bos|pad|unk|sep|cls|mask|start|end|begin)_?token$)"
    r"(.*api_?key.*|.*authorization|.*secret.*|.*passw(or)?d.*|.*token)"
)


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


def checked_variable(api_key_env: str | None, url: str) -> str | None:
    """The environment variable of the key; default: OpenAI's for OpenAI, none for other servers.

    Raises:
        SaberError: if it is no name of one, but perhaps the key; the message does not repeat it.
    """
    if not api_key_env:
        return "OPENAI_API_KEY" if url.rstrip("/") == OPENAI_URL else None
    if not _VARIABLE.fullmatch(api_key_env) or _LIKE_A_KEY.fullmatch(api_key_env):
        raise SaberError(
            "api_key_env is no name of an environment variable. If it is the key itself, put that into"
            " a variable (export MY_KEY=…), and the variable's name into api_key_env: MY_KEY"
        )
    return api_key_env


def refuse_secrets(options: Any, place: str) -> None:
    """Look for secrets in options, which are written to files, ledgers and logs.

    A text under a name such as ``api_key``, ``Authorization``, ``secret``, ``password`` or
    ``access_token`` is taken for one, at any depth; ``stop_token`` and its like are not.

    Args:
        options: JSON.
        place: where they stand, for the message.

    Raises:
        SaberError: if there is one. The message names its place, never its value.
    """
    if isinstance(options, Mapping):
        for name, value in options.items():
            here = f"{place}.{name}" if place else str(name)
            plain = str(name).lower().replace("-", "_")
            if isinstance(value, str) and value and _SECRET_NAME.fullmatch(plain):
                raise SaberError(
                    f"{here} may be a secret, and options are kept in files and logs. Put it into an"
                    " environment variable, and the variable's name into api_key_env; a class of your"
                    " own reads the variable itself"
                )
            refuse_secrets(value, here)
    elif isinstance(options, list | tuple):
        for value in options:
            refuse_secrets(value, place)


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
        SaberError: if one is a field that the engine sets, or a secret.
        TypeError: if a value is not JSON; loading an engine by its options names it first.
    """
    if wrong := sorted(_OWN_FIELDS & (extra_body or {}).keys()):
        raise SaberError(f"extra_body may not set {', '.join(wrong)}; the engine does")
    refuse_secrets(extra_body, "extra_body")
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
