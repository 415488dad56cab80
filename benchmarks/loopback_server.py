"""A chat-completions server on a loopback port that answers at once, in a process of its own.

``python -m benchmarks.loopback_server`` prints its port, then serves until its input ends.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

TEXT = (
    "Both solutions count in two ways; the first one by an involution.\n<verdict>1</verdict>\n" * 3
)
_COMPLETION = json.dumps(
    {
        "id": "chatcmpl-0",
        "object": "chat.completion",
        "created": 1,
        "model": "loopback",
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "logprobs": None,
                "message": {"role": "assistant", "content": TEXT},
            }
        ],
        "usage": {"prompt_tokens": 2000, "completion_tokens": 60, "total_tokens": 2060},
    }
).encode()
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (
    len(_COMPLETION),
    _COMPLETION,
)


class _Connection(asyncio.Protocol):
    """Reads whole requests by their Content-Length and sends the same answer to each."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end].lower()
            length = int(head.partition(b"content-length:")[2].split(b"\r\n", 1)[0])
            if len(self._buffer) < end + 4 + length:
                return
            del self._buffer[: end + 4 + length]
            self._transport.write(_ANSWER)


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(_Connection, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)  # ends with the process that started it


@contextmanager
def loopback_server() -> Iterator[str]:
    """Run the server; yields its address."""
    command = [sys.executable, "-m", "benchmarks.loopback_server"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        assert run.stdin is not None
        yield f"http://127.0.0.1:{int(run.stdout.readline())}/v1"
        run.stdin.close()


if __name__ == "__main__":
    asyncio.run(_serve())
