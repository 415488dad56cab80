"""An HTTP proxy on loopback that spoils answers by a script, and keeps a log of what it did.

Each request is forwarded to a real server or not, as its fault wants, so the log tells which replies
the client can have seen whole.
"""

import asyncio
import contextlib
import json
import socket
import struct
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from urllib.parse import urlsplit

OK, JSON = "HTTP/1.1 200 OK", "Content-Type: application/json"


@dataclass
class Seen:
    """A request: its fault, the messages it asked, and whether a whole answer went back."""

    fault: str
    asked: str
    whole: bool = False


@dataclass
class Exchange:
    """One request on its connection, for a fault to deal with."""

    proxy: "FaultProxy"
    writer: asyncio.StreamWriter
    upstream: Callable[[], Awaitable[bytes]]

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self, body: bytes | str, *head: str, length: int | None = None) -> None:
        """Send a response; the first line of ``head`` is the status line."""
        body = body.encode() if isinstance(body, str) else body
        lines = [
            *(head or (OK, JSON)),
            f"Content-Length: {len(body) if length is None else length}",
        ]
        await self.send("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    def reset(self) -> None:
        """End the connection with RST."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


async def _refuse(x: Exchange) -> None:
    """Nobody listens for a while, as when a server starts again."""
    await x.proxy.refuse(0.1)
    x.reset()


async def _reset(x: Exchange) -> None:
    x.reset()


async def _close(x: Exchange) -> None:
    x.writer.close()


async def _reset_in_body(x: Exchange) -> None:
    body = await x.upstream()
    await x.answer(body[: len(body) // 2], OK, JSON, length=len(body))
    await asyncio.sleep(0.01)
    x.reset()


async def _cut_json(x: Exchange) -> None:
    await x.answer((await x.upstream())[:-20])


async def _close_in_body(x: Exchange) -> None:
    """No length is given, so that the end of the connection is the end of the body."""
    await x.send(
        f"{OK}\r\n{JSON}\r\nConnection: close\r\n\r\n".encode() + (await x.upstream())[:-9]
    )
    x.writer.close()


async def _too_many(x: Exchange) -> None:
    error = json.dumps({"error": {"message": "slow down", "type": "rate_limit"}})
    await x.answer(error, "HTTP/1.1 429 Too Many Requests", JSON, "Retry-After: 0.05")


async def _server_error(x: Exchange) -> None:
    await x.answer("", "HTTP/1.1 500 Internal Server Error")


async def _bad_gateway(x: Exchange) -> None:
    await x.answer("<html>502</html>", "HTTP/1.1 502 Bad Gateway", "Content-Type: text/html")


async def _hang(x: Exchange) -> None:
    await asyncio.sleep(30)


async def _hang_in_body(x: Exchange) -> None:
    body = await x.upstream()
    await x.answer(body[:50], length=len(body))
    await asyncio.sleep(30)


async def _drip(x: Exchange) -> None:
    body = await x.upstream()
    await x.answer(b"", length=len(body))
    for byte in body:
        await x.send(bytes([byte]))
        await asyncio.sleep(0.02)


async def _page(x: Exchange) -> None:
    await x.answer("<html>Welcome</html>", OK, "Content-Type: text/html")


async def _empty(x: Exchange) -> None:
    await x.answer("")


async def _error_object(x: Exchange) -> None:
    await x.answer('{"error": {"message": "upstream is overloaded", "code": 503}}')


async def _broken_off(x: Exchange) -> None:
    """The model's server gives up in the middle, and counts what it made."""
    answer = json.loads(await x.upstream())
    answer["choices"][0]["finish_reason"] = "abort"
    await x.answer(json.dumps(answer))


async def _wrong_shape(x: Exchange) -> None:
    await x.answer('[{"choices": "none"}]')


async def _garbage(x: Exchange) -> None:
    await x.send(b"\x00\xff\x16\x03\x01 no HTTP at all \r\n\r\n" * 4)
    x.writer.close()


async def _bad_chunks(x: Exchange) -> None:
    await x.send(
        f"{OK}\r\n{JSON}\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{{}}zz\r\nQ\r\n".encode()
    )
    x.writer.close()


async def _bad_gzip(x: Exchange) -> None:
    await x.answer(await x.upstream(), OK, JSON, "Content-Encoding: gzip")


async def _huge_headers(x: Exchange) -> None:
    await x.answer(await x.upstream(), OK, JSON, f"X-Long: {'h' * 2_000_000}")
    x.writer.close()


async def _redirect(x: Exchange) -> None:
    await x.answer("", "HTTP/1.1 307 Temporary Redirect", f"Location: {x.proxy.url}/again")


async def _not_found(x: Exchange) -> None:
    error = json.dumps({"error": {"message": "no such model"}})
    await x.answer(error, "HTTP/1.1 404 Not Found", JSON)


async def _unauthorized(x: Exchange) -> None:
    await x.answer('{"error": "who are you?"}', "HTTP/1.1 401 Unauthorized", JSON)


async def _pass(x: Exchange) -> None:
    await x.answer(await x.upstream())


async def _twice(x: Exchange) -> None:
    body = await x.upstream()
    head = f"{OK}\r\n{JSON}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    await x.send((head + body) * 2)


async def _wrong_type(x: Exchange) -> None:
    await x.answer(await x.upstream(), OK, "Content-Type: image/png; charset=utf-16")


async def _slow(x: Exchange) -> None:
    body = await x.upstream()
    await x.answer(b"", length=len(body))
    for start in range(0, len(body), 100):
        await asyncio.sleep(0.01)  # before a part: with the last one the answer is whole
        await x.send(body[start : start + 100])


PASSING = {
    "refuse": _refuse,
    "reset": _reset,
    "close": _close,
    "reset in body": _reset_in_body,
    "close in body": _close_in_body,
    "cut JSON": _cut_json,
    "429": _too_many,
    "500": _server_error,
    "502": _bad_gateway,
    "hang": _hang,
    "hang in body": _hang_in_body,
    "drip": _drip,
    "page": _page,
    "empty": _empty,
    "error object": _error_object,
    "broken off": _broken_off,
    "wrong shape": _wrong_shape,
    "garbage": _garbage,
    "bad chunks": _bad_chunks,
    "bad gzip": _bad_gzip,
    "huge headers": _huge_headers,
    "redirect": _redirect,
}
"""Faults that may pass: a further try may bring the answer."""
STOPPING = {"404": _not_found, "401": _unauthorized}
"""Faults that no try can mend."""
HARMLESS = {"pass": _pass, "twice": _twice, "wrong type": _wrong_type, "slow": _slow}
"""The answer is there all the same."""
FAULTS = PASSING | STOPPING | HARMLESS


class FaultProxy:
    """The proxy, in a thread of its own.

    Args:
        upstream: address of the real server, such as ``http://127.0.0.1:8000/v1``.
        script: names of faults, one for each request as it comes.
        then: the fault of all further requests.
    """

    def __init__(self, upstream: str, script: Sequence[str] = (), then: str = "pass") -> None:
        self.log: list[Seen] = []
        self.play(script, then)
        self._upstream = urlsplit(upstream)
        self._loop = asyncio.new_event_loop()
        self._open: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fault_proxy")
        self._thread.start()
        self._port = 0
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(5)
        self.url = f"http://127.0.0.1:{self._port}/v1"

    def play(self, script: Sequence[str] = (), then: str = "pass") -> None:
        """Begin a new script."""
        self._script: Iterator[str] = chain(script, repeat(then))

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def refuse(self, seconds: float) -> None:
        """Refuse connections for so long."""
        if self._server.is_serving():
            self._server.close()
            self._loop.call_later(seconds, lambda: self._loop.create_task(self._listen()))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while not writer.is_closing():
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0] or 0)
                await self._deal(head, await reader.readexactly(length), writer)
        self._open.discard(task)
        writer.close()

    async def _deal(self, head: bytes, body: bytes, writer: asyncio.StreamWriter) -> None:
        name = next(self._script)
        seen = Seen(name, json.dumps(json.loads(body)["messages"]) if body else "")
        self.log.append(seen)

        async def upstream() -> bytes:
            return await self._forward(head, body)

        await FAULTS[name](Exchange(self, writer, upstream))
        seen.whole = name in HARMLESS

    async def _forward(self, head: bytes, body: bytes) -> bytes:
        """The body of the real server's answer."""
        assert self._upstream.hostname is not None
        reader, writer = await asyncio.open_connection(self._upstream.hostname, self._upstream.port)
        try:
            line, _, rest = head.partition(b"\r\n")
            writer.write(line + b"\r\nConnection: close\r\n" + rest + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            length = int(answer.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
            return await reader.readexactly(length)
        finally:
            writer.close()

    def close(self) -> None:
        """Stop listening and end all connections."""

        async def end() -> None:
            self._server.close()
            for task in tuple(self._open):
                task.cancel()
            await asyncio.gather(*self._open, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(end(), self._loop).result(5)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
