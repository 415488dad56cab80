"""What becomes of a request that failed: tried again, a reply, or the end of the batch."""

import email.utils
import math
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC
from typing import TYPE_CHECKING, Any

from saber_dagster.engines import Reply

if TYPE_CHECKING:
    from openai import APIError

_FILTERED = re.compile(
    r"content_filter|content_policy|invalid_prompt|data_inspection_failed", re.IGNORECASE
)
_NO_CREDIT = re.compile(r"insufficient_quota|billing_hard_limit", re.IGNORECASE)
_MAY_PASS = (408, 409, 429)


@dataclass(frozen=True, slots=True)
class Failure:
    """A request that brought no answer.

    Attributes:
        status: of HTTP; None if there was none.
        said: what the server said, or why there was no answer.
        code: the kinds of the error, as the server names them.
        retry_after: seconds that the server asks to wait; None if it does not.
        final: the server says that no retry will help.
        connected: False if the server could not be reached or broke the connection off.
    """

    status: int | None
    said: str
    code: str = ""
    retry_after: float | None = None
    final: bool = False
    connected: bool = True

    @property
    def may_pass(self) -> bool:
        """Whether the same request may succeed later."""
        if self.no_credit:
            return False
        return self.status is None or self.status in _MAY_PASS or self.status >= 500

    @property
    def no_credit(self) -> bool:
        """Whether the account is empty."""
        return self.status == 402 or bool(_NO_CREDIT.search(self.code))

    @property
    def filtered(self) -> bool:
        """Whether a filter refused the prompt."""
        if self.no_credit or self.status in (401, 403, 404):
            return False
        return bool(_FILTERED.search(f"{self.code} {self.said}"))

    def too_long(self, pattern: str) -> bool:
        """Whether the input is longer than the context, by a provider's pattern."""
        if self.no_credit or self.status in (401, 403, 404):
            return False
        text = f"{self.code} {self.said}"
        return self.status == 413 or bool(re.search(pattern, text, re.IGNORECASE))

    def remedy(self, url: str, model: str, env: str | None, item: str, too_long: bool) -> str:
        """What happened, where, and what to change, if no retry can mend it.

        Args:
            url: address of the server.
            model: that was asked.
            env: environment variable of the key, if there is one.
            item: that was asked about.
            too_long: whether the input is longer than the context.
        """
        if self.no_credit:
            return f"{url}: no credit left ({self.said}). Top up, then run again"
        if self.status in (401, 403):
            return f"{url} does not let this key use {model} ({self.status}: {self.said}). " + (
                f"Check the key in {env}" if env else "Name the key's variable in api_key_env"
            )
        if self.status == 404:
            return (
                f"{url} does not know model {model!r}, or is not the right address: {self.said}. Check"
                " model and base_url, which as a rule ends in /v1"
            )
        if too_long:
            return (
                f"{item} does not fit into the context of {model}: {self.said}. Set context_tokens to"
                " its length, to have long calls cut; start the server with a longer one (vLLM:"
                " --max-model-len); lower max_tokens; or set skip_too_long: true to leave such calls"
                " unanswered for good"
            )
        return (
            f"{url} rejected the request for {item}: {self.status}, {self.said}. Check the options of"
            f" {model}; some models want temperature: null or max_tokens: null, some servers structured:"
            " off"
        )

    def lost(self) -> Reply:
        """The reply if no retry helped."""
        return Reply("transport_error", finish_reason="error", error=self.said)


def failure_in(status: int, body: Any, hide: Callable[[str], str] = str) -> Failure:
    """The failure that an error body tells of, as in a line of a Batch API's error file.

    Args:
        status: of HTTP.
        body: the JSON value; ``{"error": {"message", "type", "code"}}``, or that without ``error``.
        hide: takes the key out of a text, before anything is cut off.
    """
    error = body.get("error", body) if isinstance(body, Mapping) else body
    if isinstance(error, list):  # Gemini's compatible endpoint wraps it
        error = error[0] if error else {}
    if not isinstance(error, Mapping):
        return Failure(status, _short(error, hide))
    error = error["error"] if isinstance(error.get("error"), Mapping) else error
    kinds = (error.get(name) for name in ("code", "type", "status"))
    code = " ".join(str(kind) for kind in kinds if kind)
    return Failure(status, _short(error.get("message") or dict(error), hide), _short(code, hide))


def failure_of(error: "APIError", hide: Callable[[str], str] = str) -> Failure:
    """The failure that the client raised; ``hide`` as for :func:`failure_in`."""
    from openai import APIConnectionError, APIStatusError, APITimeoutError

    if isinstance(error, APIStatusError):
        found = failure_in(error.status_code, error.body, hide)
        headers = error.response.headers
        return Failure(
            found.status,
            found.said or hide(error.response.reason_phrase),
            found.code,
            retry_after(headers),
            headers.get("x-should-retry") == "false",
        )
    cause = error.__cause__
    why = _short(f"{error}" + (f" ({type(cause).__name__}: {cause})" if cause else ""), hide)
    timed_out = isinstance(error, APITimeoutError) and "Connect" not in type(cause).__name__
    return Failure(None, why, connected=timed_out or not isinstance(error, APIConnectionError))


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that ``Retry-After-Ms`` or ``Retry-After`` (seconds, or a date of HTTP) asks to wait."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers[name]) / unit
        except (KeyError, ValueError):
            continue
        return seconds if math.isfinite(seconds) and seconds >= 0 else None
    try:
        date = email.utils.parsedate_to_datetime(headers["retry-after"])
        if date.tzinfo is None:
            date = date.replace(tzinfo=UTC)
        return max(0.0, date.timestamp() - time.time())
    except (KeyError, ValueError, TypeError, OverflowError):
        return None


def _short(value: Any, hide: Callable[[str], str]) -> str:
    text = " ".join(hide(str(value or "")).split())[:500]
    return text.encode("utf-8", "replace").decode("utf-8")
