"""A chat-completions server on loopback that answers by a digest of what it is asked."""

import json
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any

from saber_dagster.hashing import canonical_json, sha256_hex

_NUMBERS = count()


class ModelServer:
    """Counts every answer that it began to send, by a digest of the messages.

    Args:
        latency_s: how long an answer takes.
        echo_key: whether answers quote the key that they were asked with, as a careless proxy does.
    """

    def __init__(self, latency_s: float = 0.0, echo_key: bool = False) -> None:
        self.paid: Counter[str] = Counter()
        self.keys_seen: set[str] = set()
        lock = threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                asked = sha256_hex(canonical_json(body["messages"]))
                key = self.headers.get("Authorization", "")
                time.sleep(latency_s)
                with lock:
                    server.paid[asked] += 1
                    server.keys_seen.add(key)
                said = f"<verdict>{1 + int(asked[:8], 16) % 2}</verdict>"
                text = f"asked with {key}\n{said}" if echo_key else said
                payload = json.dumps(completion(text)).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(payload)))
                self.end_headers()
                self.wfile.write(payload)

            def log_message(self, *_: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: Any) -> None:
                """A client that was killed in the middle is what some tests are about."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def completion(text: str) -> dict[str, Any]:
    """The body of a chat completion."""
    message = {"role": "assistant", "content": text}
    return {
        "id": f"c{next(_NUMBERS)}",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105},
    }
