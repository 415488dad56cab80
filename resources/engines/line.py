"""One worker's way to a server: a client with a connection of its own."""

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from resources.engines.openai_failures import Failure, failure_of
from resources.engines.secret import Secret

if TYPE_CHECKING:
    from ssl import SSLContext

    from openai import AsyncOpenAI

CONNECT_TIMEOUT_S = 10.0


@dataclass(slots=True)
class Sending:
    """How requests are sent; nothing here changes an answer.

    Attributes:
        url: address of the server.
        path: of the requests, below ``url``.
        concurrency: most calls that are begun and not yet taken care of.
        timeout_s: seconds until a try counts as failed.
        retries: further tries.
        repeats: whether the server was seen to give the same bytes, with an id in them, to different
            questions, so that this says nothing about a connection.
    """

    url: str
    path: str
    concurrency: int
    timeout_s: float
    retries: int
    repeats: bool = False


class Line:
    """Requests one after the other.

    A client per worker is cheap, and faster than a large one, which looks at all of its connections
    for every request. And it shows when a connection is out of step: if a server, or what stands before
    it, sends an answer twice, the client would take the second for the answer to the next question.

    Args:
        how: where to and how.
        secret: the key.
        certificates: of the authorities that are trusted.
    """

    def __init__(self, how: Sending, secret: Secret, certificates: "SSLContext") -> None:
        self._how = how
        self._secret = secret
        self._certificates = certificates
        self._client = self._connect()
        self._last = ""

    def _connect(self) -> "AsyncOpenAI":
        from openai import AsyncOpenAI, DefaultAsyncHttpxClient, Timeout

        timeout = self._how.timeout_s
        return AsyncOpenAI(
            api_key=self._secret.reveal(),
            base_url=self._how.url,
            timeout=Timeout(timeout, connect=min(CONNECT_TIMEOUT_S, timeout)),
            max_retries=0,
            http_client=DefaultAsyncHttpxClient(verify=self._certificates),
        )

    async def ask(self, body: dict[str, Any]) -> str | Failure:
        """The text of the response, or why there is none; the key is in neither."""
        found = await self._post(body)
        if found == self._last and '"id"' in found and not self._how.repeats:
            await self.close()
            self._client = self._connect()
            found = await self._post(body)
            self._how.repeats = found == self._last
        if isinstance(found, str):
            self._last = found
        return found

    async def _post(self, body: dict[str, Any]) -> str | Failure:
        """Send a request.

        Nothing is raised: an error raised from the client's would carry the request, and so the key.
        """
        from httpx2 import Response
        from openai import APIError

        try:
            async with asyncio.timeout(self._how.timeout_s):
                response = await self._client.post(self._how.path, cast_to=Response, body=body)
                text = response.content.decode("utf-8", "replace")  # JSON, whatever a header says
                return self._secret.hide(text)
        except TimeoutError:
            return Failure(None, f"the request timed out after {self._how.timeout_s:g} s")
        except APIError as error:
            return failure_of(error, self._secret.hide)

    async def close(self) -> None:
        """Close the connection."""
        await self._client.close()
