"""An API key on its way from an environment variable to the server, and nowhere else."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager

from saber_dagster.errors import SaberError

_SHORTEST = 8
_LOGGERS = (
    *("openai", "openai._base_client", "openai._response", "openai._legacy_response", "httpx2"),
    *(f"httpcore2.{part}" for part in ("connection", "http11", "http2", "proxy", "socks")),
)


class Secret:
    """A key. It shows itself by :meth:`reveal` alone, not in a ``repr`` or a traceback's variables."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    @classmethod
    def of_variable(cls, name: str, reader: str) -> "Secret":
        """The key in an environment variable.

        Args:
            name: of the variable.
            reader: what needs the key, for the message.

        Raises:
            SaberError: if the variable is not set, or holds what no key can be.
        """
        value = os.environ.get(name, "").strip()
        if not value:
            raise SaberError(
                f"the environment variable {name} is not set; {reader} needs it to hold the API key"
            )
        if not (value.isascii() and value.isprintable() and " " not in value):
            raise SaberError(f"{name} holds characters that no API key has; set it anew")
        return cls(value)

    def reveal(self) -> str:
        """The key itself."""
        return self._value

    def hide(self, text: str) -> str:
        """The text with ``***`` where the key stood, as some servers repeat what they were sent.

        A key of fewer than 8 characters, such as the ``EMPTY`` of a local server, is no secret, and
        its letters may well belong to the text.
        """
        return text if len(self._value) < _SHORTEST else text.replace(self._value, "***")

    @contextmanager
    def hidden_in_logs(self) -> Iterator[None]:
        """Hide the key in what the HTTP client logs, which on DEBUG is every header of an answer."""
        loggers = [logging.getLogger(name) for name in _LOGGERS]
        for logger in loggers:
            logger.addFilter(self._hide_in)
        try:
            yield
        finally:
            for logger in loggers:
                logger.removeFilter(self._hide_in)

    def _hide_in(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = self.hide(record.getMessage()), None
        return True


NO_KEY = Secret("none")
"""For a server that wants no key; the client sends one all the same."""
