"""A server of the Batch API in a process of its own: it keeps files and batches, and plays a script.

Run as ``python batch_server.py``; it prints its address. It checks what OpenAI checks: the purpose of a
file, every line of it, its limits. What a test may set and see:

* ``POST /script`` replaces the script and forgets everything. Its fields:

  - ``polls``: how often a batch is asked for before it has ended (default 1);
  - ``end``: the status that batches end with (default completed); ``failed`` answers nothing,
    ``expired`` and ``cancelled`` answer the first half;
  - ``lines``: kinds of result (see :data:`KINDS`), by position in the file, over and over;
  - ``faults``: ``{"route", "nth", "do"}``: what becomes of the nth request (from 1) of a route.
    ``hang`` and ``drop`` (before it has an effect) and ``hang_after`` and ``drop_after`` (it has one, but
    the client does not learn of it), or a number: the HTTP status of a failure;
  - ``max_requests``, ``max_bytes``: limits of a file; ``list_after_s``: seconds until a batch is listed.

* ``GET /log``: all that happened, as a list of objects with an ``event``.
"""

import email.parser
import email.policy
import json
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

KEY = "sk-marked-3f9c"
ENDPOINTS = ("/v1/chat/completions", "/v1/responses")
KINDS = (
    "ok",
    "missing",  # no line at all
    "broken",  # half a line
    "duplicate",  # two lines
    "length",
    "refusal",
    "filtered",  # the rest are lines of the error file
    "too_long",
    "429",
    "500",
    "expired",
)
USAGE = {"prompt_tokens": 100, "completion_tokens": 10}
_ID = re.compile(r"/(?:batch|file)-\w+")


class Server:
    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.released = threading.Event()
        self.play({})

    def play(self, script: dict[str, Any]) -> None:
        with self.lock:
            self.released.set()  # whoever hangs goes on
            self.released = threading.Event()
            self.script = script
            self.files: dict[str, bytes] = {}
            self.batches: dict[str, dict[str, Any]] = {}
            self.log: list[dict[str, Any]] = []
            self.seen: dict[str, int] = {}

    def fault(self, route: str) -> Any:
        with self.lock:
            self.seen[route] = self.seen.get(route, 0) + 1
            for fault in self.script.get("faults", []):
                if (fault["route"], fault["nth"]) == (route, self.seen[route]):
                    return fault["do"]
            return None

    def note(self, event: str, **fields: Any) -> None:
        self.log.append({"event": event, "time": time.time(), **fields})

    def keep(self, data: bytes) -> str:
        name = f"file-{len(self.files):04d}"
        self.files[name] = data
        return name

    def upload(self, purpose: str, data: bytes) -> tuple[int, Any]:
        if purpose != "batch":
            return 400, problem(f"purpose {purpose!r} is not supported")
        if len(data) > self.script.get("max_bytes", 200_000_000):
            return 413, problem("file is too large")
        name = self.keep(data)
        self.note("upload", file=name, lines=data.count(b"\n"))
        return 200, {"id": name, "object": "file", "bytes": len(data), "purpose": purpose}

    def create(self, body: dict[str, Any]) -> tuple[int, Any]:
        if body.get("completion_window") != "24h":
            return 400, problem("completion_window must be 24h")
        if body.get("endpoint") not in ENDPOINTS:
            return 400, problem("endpoint is not supported")
        if body.get("input_file_id") not in self.files:
            return 400, problem("no such input_file_id")
        metadata = body.get("metadata") or {}
        texts = [text for pair in metadata.items() for text in pair]
        if len(metadata) > 16 or not all(isinstance(t, str) and len(t) <= 512 for t in texts):
            return 400, problem("metadata is at most 16 pairs of texts")
        name = f"batch-{len(self.batches):04d}"
        requests, faults = self.checked(self.files[body["input_file_id"]], body["endpoint"])
        batch: dict[str, Any] = {
            "id": name,
            "object": "batch",
            "endpoint": body["endpoint"],
            "input_file_id": body["input_file_id"],
            "completion_window": "24h",
            "status": "validating",
            "created_at": int(time.time()),
            "metadata": metadata,
            "request_counts": {"total": len(requests), "completed": 0, "failed": 0},
        }
        batch["_at"], batch["_polls"] = time.time(), self.script.get("polls", 1)
        self.batches[name] = batch
        self.note("create", batch=name, requests=len(requests), metadata=metadata)
        if faults:
            batch["_end"] = {"status": "failed", "errors": {"object": "list", "data": faults}}
        else:
            batch["_end"] = self.run(name, requests)
        return 200, shown(batch)

    def checked(self, data: bytes, endpoint: str) -> tuple[list[dict[str, Any]], list[Any]]:
        requests: list[dict[str, Any]] = []
        faults: list[dict[str, Any]] = []
        for number, line in enumerate(data.splitlines(), 1):
            try:
                request = json.loads(line)
                name = request["custom_id"]
                assert isinstance(name, str)
                assert 0 < len(name) <= 64
                assert request["method"] == "POST"
                assert request["url"] == endpoint
                assert isinstance(request["body"]["model"], str)
                assert request["body"].get("messages") or request["body"].get("input")
            except (ValueError, KeyError, TypeError, AssertionError) as error:
                faults.append({"code": "invalid_request", "message": repr(error), "line": number})
            else:
                requests.append(request)
        if len({r["custom_id"] for r in requests}) < len(requests):
            faults.append({"code": "duplicate_custom_id", "message": "custom_id used twice"})
        if len(requests) > self.script.get("max_requests", 50_000):
            faults.append({"code": "max_requests_exceeded", "message": "too many requests"})
        if self.script.get("end") == "failed":
            said = "Enqueued token limit reached"
            faults.append({"code": "token_limit_exceeded", "message": said})
        return requests, faults

    def run(self, name: str, requests: list[dict[str, Any]]) -> dict[str, Any]:
        """Answer a batch's requests; what the batch looks like when it has ended."""
        status = self.script.get("end", "completed")
        kinds = self.script.get("lines") or ["ok"]
        out: list[str] = []
        err: list[str] = []
        for number, request in enumerate(requests):
            kind = kinds[number % len(kinds)]
            if status in ("expired", "cancelled") and number >= len(requests) // 2:
                kind = "expired"
            if kind not in ("expired", "429", "500", "filtered", "too_long"):
                self.note("answered", custom_id=request["custom_id"], batch=name)
            good, bad = lines(kind, request)
            out += good[::-1]
            err += bad
        ended: dict[str, Any] = {"status": status, "completed_at": int(time.time())}
        if out:  # in another order than they came
            ended["output_file_id"] = self.keep("".join(out[::-1]).encode())
        if err:
            ended["error_file_id"] = self.keep("".join(err[::-1]).encode())
        ended["request_counts"] = {
            "total": len(requests),
            "completed": len(out),
            "failed": len(err),
        }
        return ended

    def retrieve(self, name: str) -> tuple[int, Any]:
        batch = self.batches.get(name)
        if batch is None:
            return 404, problem(f"No batch found with id {name!r}")
        if batch["_polls"] > 0:
            batch["_polls"] -= 1
            batch["status"] = "in_progress"
        elif batch["status"] not in ("cancelling", batch["_end"]["status"]):
            batch |= batch["_end"]
            self.note("ended", batch=name)
        return 200, shown(batch)

    def cancel(self, name: str) -> tuple[int, Any]:
        self.note("cancel", batch=name)
        self.batches[name]["status"] = "cancelling"
        return 200, shown(self.batches[name])

    def list(self, limit: int, after: str) -> tuple[int, Any]:
        ready = time.time() - self.script.get("list_after_s", 0)
        names = [n for n in sorted(self.batches, reverse=True) if self.batches[n]["_at"] <= ready]
        start = names.index(after) + 1 if after else 0
        page = names[start : start + limit]
        return 200, {
            "object": "list",
            "data": [shown(self.batches[name]) for name in page],
            "has_more": start + limit < len(names),
            "last_id": page[-1] if page else None,
        }


def problem(message: str, **fields: Any) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", **fields}}


def shown(batch: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in batch.items() if not name.startswith("_")}


def lines(kind: str, request: dict[str, Any]) -> tuple[list[str], list[str]]:
    """What a request leaves in the output file and in the error file."""
    name = request["custom_id"]

    def line(status: int, body: Any, error: Any = None) -> str:
        response = {"status_code": status, "request_id": f"req-{name[:8]}", "body": body}
        fields = {"id": f"r-{name[:8]}", "custom_id": name}
        return json.dumps({**fields, "response": response, "error": error}) + "\n"

    def answer(finish: str = "stop", **changed: Any) -> str:
        content = f"because of \u2028 it\n<verdict>{1 + int(name, 16) % 2}</verdict>"
        message = {"role": "assistant", "content": content, **changed}
        choices = [{"index": 0, "finish_reason": finish, "message": message}]
        body = {"object": "chat.completion", "choices": choices, "usage": USAGE}
        return line(200, body).replace("\\u2028", "\u2028")  # as it may stand in a JSON text

    if kind == "expired":
        said = {"code": "batch_expired", "message": "This request could not be executed in time."}
        return [], [
            json.dumps({"id": "r", "custom_id": name, "response": None, "error": said}) + "\n"
        ]
    refusal = {"content": None, "refusal": "I cannot help with that"}
    failures = {
        "filtered": (400, problem("The prompt was filtered", code="content_filter")),
        "too_long": (
            400,
            problem("This model's maximum context length is 9", code="context_length_exceeded"),
        ),
        "429": (429, {**problem("Rate limit reached"), "usage": USAGE}),
        "500": (500, problem(f"The server had an error; your key is {KEY}")),
    }
    if kind in failures:
        return [], [line(*failures[kind])]
    return {
        "ok": [answer()],
        "missing": [],
        "broken": [answer()[:90] + "\n"],
        "duplicate": [answer(), answer(content="<verdict>=</verdict>")],
        "echo": [answer(content=f"your key is {KEY}\n<verdict>1</verdict>")],
        "length": [answer("length", content="because it is cut")],
        "refusal": [answer(**refusal)],
    }[kind], []


def form(content_type: str, data: bytes) -> dict[str, tuple[str, bytes]]:
    """The fields of a multipart form: file name and content."""
    head = f"Content-Type: {content_type}\r\n\r\n".encode()
    message = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + data)
    return {
        str(part.get_param("name", header="content-disposition")): (
            part.get_filename() or "",
            part.get_payload(decode=True),
        )
        for part in message.iter_parts()
    }


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_state: ClassVar[Server]

    def log_message(self, *_: Any) -> None:
        pass

    def send(self, status: int, body: Any) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        self.answer("GET")

    def do_POST(self) -> None:
        self.answer("POST")

    def answer(self, method: str) -> None:
        state = self.server_state
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path, _, query = self.path.partition("?")
        if path == "/log":
            return self.send(200, state.log)
        if path == "/script":
            state.play(json.loads(data))
            return self.send(200, {})
        route = f"{method} {_ID.sub('/ID', path.removeprefix('/v1'))}"
        if self.headers.get("Authorization") != f"Bearer {KEY}":
            said = f"Incorrect API key provided: {self.headers.get('Authorization')}"
            return self.send(401, problem(said, code="invalid_api_key"))
        fault = state.fault(route)
        waits = state.released
        with state.lock:
            state.note("request", route=route, fault=fault)
        if isinstance(fault, int):
            return self.send(fault, problem("scripted failure"))
        if fault in (None, "hang_after", "drop_after"):
            with state.lock:
                status, body = self.route(route, path, query, data)
        if fault:
            if fault.startswith("hang"):
                with state.lock:
                    state.note("hang", route=route)
                waits.wait(60)
            self.close_connection = True
            return None
        return self.send(status, body)

    def route(self, route: str, path: str, query: str, data: bytes) -> tuple[int, Any]:
        state = self.server_state
        name = path.split("/")[3] if path.count("/") > 2 else ""
        if route == "POST /files":
            fields = form(self.headers["Content-Type"], data)
            return state.upload(fields["purpose"][1].decode(), fields["file"][1])
        if route == "GET /files/ID/content":
            return 200, state.files[name]
        if route == "POST /batches":
            return state.create(json.loads(data))
        if route == "GET /batches":
            asked = dict(pair.split("=") for pair in query.split("&") if pair)
            return state.list(int(asked.get("limit", 20)), asked.get("after", ""))
        if route == "GET /batches/ID":
            return state.retrieve(name)
        if route == "POST /batches/ID/cancel":
            return state.cancel(name)
        return 404, problem(f"no such address: {path}")


if __name__ == "__main__":
    Handler.server_state = Server()
    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    print(f"http://127.0.0.1:{http.server_port}", flush=True)
    http.serve_forever()
