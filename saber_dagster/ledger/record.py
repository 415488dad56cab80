"""Makes the row of a reply: what was asked, by whom, and what came back."""

import time
from typing import NamedTuple

from saber_dagster.engines import Call, Engine, Reply
from saber_dagster.hashing import canonical_json, sha256_hex
from saber_dagster.ledger.rows import Row, utf8
from saber_dagster.ledger.store import Store
from saber_dagster.ledger.texts import packed
from saber_dagster.plugins import call_user


class _Task(NamedTuple):
    params: str
    prompt: str
    prompt_sha256: str


class Recorder:
    """Makes rows for one step and sees to it that what they refer to is archived."""

    def __init__(self, store: Store, engine: Engine, stage: str, run_id: str, name: str) -> None:
        self._store = store
        self._engine = engine
        self._stage = stage
        self._run_id = run_id
        self._name = name
        self._model, self._revision = engine.model, engine.revision
        self._tasks: dict[str, _Task] = {}

    def row(self, key: str, call: Call, reply: Reply, text: str, status: str, error: str) -> Row:
        """The row of a reply.

        Args:
            key: the call's key.
            call: what was asked.
            reply: what came back.
            text: its text, fit to be stored.
            status: the reply's, or ``parse_error``.
            error: why the status is not ok.
        """
        task = self._tasks.get(call.task) or self._task(call.task)
        messages = ""
        if reply.truncated_input:
            messages = self._packed([dict(part) for part in self._engine.messages(call)])
        return Row(
            key=key,
            item=utf8(call.item),
            status=status,
            text=text,
            reasoning=utf8(reply.reasoning),
            finish_reason=utf8(reply.finish_reason),
            prompt_tokens=reply.usage.prompt,
            completion_tokens=reply.usage.completion,
            reasoning_tokens=reply.usage.reasoning,
            cached_tokens=reply.usage.cached,
            price=reply.price,
            latency=reply.latency,
            created=time.time(),
            run_id=self._run_id,
            stage=self._stage,
            task=call.task,
            model=self._model,
            revision=self._revision,
            prompt=task.prompt,
            prompt_sha256=task.prompt_sha256,
            error=utf8(error),
            params=task.params,
            sample=call.sample,
            attempt=call.attempt,
            inputs=call_user(
                self._name, f"inputs of {call.task}", self._packed, call.inputs, remedy="Give JSON"
            ),
            messages=messages,
            truncated_input=reply.truncated_input,
        )

    def _packed(self, value: object) -> str:
        text = packed(value, self._store.keep)
        text.encode()  # lone surrogates are an error here, not in the segment
        return text

    def _task(self, name: str) -> _Task:
        prompt = self._engine.prompt(name)
        params = canonical_json(dict(self._engine.params(name))).decode()
        template = getattr(self._engine, "template", None)
        if callable(template):
            text = getattr(template(name), "text", "")
            if isinstance(text, str) and sha256_hex(text) == prompt.sha256:
                self._store.archive.add_prompt(text)
        self._tasks[name] = task = _Task(params, prompt.name, prompt.sha256)
        return task
