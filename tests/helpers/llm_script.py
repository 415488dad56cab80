"""A chat-completions server on loopback that plays a script, and what tests of engines ask it."""

import json
import threading
import time
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from resources.engines.openai import OpenAIEngine
from saber_dagster.engines import PAIRWISE_JUDGMENT, Call
from saber_dagster.errors import SaberError

KEY = "sk-marked-3f9c"
GOOD = "because …\n<verdict>2</verdict>"


def completion(content=GOOD, finish="stop", usage=None, **message):
    message = {"role": "assistant", "content": content, **message}
    choices = [{"index": 0, "finish_reason": finish, "message": message}]
    return 200, {}, json.dumps({"choices": choices, "usage": usage})


def failure(status, message="no", headers=None, **fields):
    return status, headers or {}, json.dumps({"error": {"message": message, **fields}})


class Script:
    """A server on a loopback port; ``steps`` are its next answers, then ``default`` for ever."""

    def __init__(self):
        self.steps = deque()
        self.default = completion()
        self.requests = []
        self.times = []
        self.active = self.most_active = 0
        self.release = threading.Event()
        script = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                headers = {name.lower(): value for name, value in self.headers.items()}
                script.requests.append((self.path, headers, body))
                script.times.append(time.monotonic())
                script.active += 1
                script.most_active = max(script.active, script.most_active)
                try:
                    script.reply(self, body)
                finally:
                    script.active -= 1

            def log_message(self, *_):
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                """A client that has gone is what some tests are about."""

        self.server = Server(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"

    def reply(self, handler, body):
        step = self.steps.popleft() if self.steps else self.default
        if callable(step):
            step = step(body)
        if step == "hang":
            self.release.wait(10)
            handler.close_connection = True
            return
        if step == "drip":
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
            while not self.release.wait(0.05):
                handler.wfile.write(b" ")
            return
        if step == "reset":
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{")
            handler.close_connection = True
            return
        status, headers, text = step
        handler.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(text.encode())))
        handler.end_headers()
        handler.wfile.write(text.encode())

    def close(self):
        self.release.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def make(script, **options):
    options = {"base_url": script.url, "api_key_env": "MARKED_KEY", "retries": 2, **options}
    return OpenAIEngine("judge", "r1", **options)


def make_calls(n, sample=0):
    document = {"problem": "p", "solution": "s"}
    return [
        Call(
            PAIRWISE_JUDGMENT,
            {"query": {"problem": f"p{i}", "solution": "s"}, "first": document, "second": document},
            f"item {i}",
            sample,
        )
        for i in range(n)
    ]


def ask(script, n=1, **options):
    """All replies, by position; every call must have exactly one."""
    found = list(make(script, **options).answer(make_calls(n)))
    assert sorted(position for position, _ in found) == list(range(n))
    return [reply for _, reply in sorted(found, key=lambda pair: pair[0])]


def gather(items):
    """What came before the end, and the error that ended it."""
    found = []
    try:
        for item in items:
            found.append(item)
    except (SaberError, KeyError) as error:
        return found, error
    return found, None


def loops():
    return [t for t in threading.enumerate() if t.name == "in_background"]
