"""The call ledger: every reply of an engine, kept for good and paid once.

Replies lie in immutable Parquet segments under ``<root>/<stage>/<model>/<partition>/``. While a step
runs, each reply goes at once to the step's journal, a file of JSON lines beside the segments. A journal
becomes the segment of the same name when it is full or the step ends; the journal of a process that was
killed is found by its released file lock and becomes a segment the next time anybody opens the stage.
Merging one twice writes the same segment again, so a kill at any point loses only calls in flight.

No locks guard segments: names are unique. If two steps paid one key, the reply in the smallest
(segment, row) is canonical and the other counts as a duplicate.
"""

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

import polars as pl

from saber_dagster import progress
from saber_dagster.engines import FINAL, Call, Engine, Reply, call_key
from saber_dagster.ledger_files import SCHEMA, Journal, LedgerError, Row, read_segment, recover
from saber_dagster.replies import ParseError

SEGMENT_ROWS = 20_000
"""A journal becomes a segment after this many replies."""

Mode = Literal["live", "replay"]
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Outcome(Generic[Value]):
    """What a call came to: a parsed value if ``status`` is ok, else None and the reason."""

    key: str
    status: str
    value: Value | None
    error: str = ""


@dataclass
class Counts:
    """What a session asked and what it cost."""

    asked: int = 0
    replayed: int = 0
    made: int = 0
    failed: int = 0
    price: float = 0.0
    tokens: int = 0


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-.") or "unnamed"


def _utf8(text: str) -> str:
    """The text without lone surrogates, which JSON can carry and Parquet cannot."""
    return text.encode("utf-8", "replace").decode("utf-8")


class Ledger:
    """All replies of a home."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def session(
        self, engine: Engine, stage: str, partition: str, run_id: str = "", mode: Mode = "live"
    ) -> "Session":
        """Open the ledger for one step; use it in a ``with`` block."""
        return Session(self.root, engine, stage, partition, run_id, mode)

    def frame(self, stage: str | None = None) -> pl.DataFrame:
        """Every stored reply with its segment, the canonical one of each stage and key marked.

        Journals of running steps are not part of it.
        """
        recover(self.root)
        frames = [
            read_segment(path).with_columns(pl.lit(path.name).alias("segment"))
            for path in self._segments(stage)
        ]
        frame = pl.concat([pl.DataFrame(schema={**SCHEMA, "segment": pl.String}), *frames])
        final = pl.col("status").is_in(list(FINAL))
        first = pl.struct("stage", "key", final.alias("final")).is_first_distinct()
        return frame.with_columns((final & first).alias("canonical"))

    def _segments(self, stage: str | None) -> list[Path]:
        folder = self.root / _slug(stage) if stage else self.root
        return sorted(folder.rglob("*.parquet"), key=lambda path: path.name)


class Session:
    """One step's access to the ledger and its engine."""

    def __init__(
        self, root: Path, engine: Engine, stage: str, partition: str, run_id: str, mode: Mode
    ) -> None:
        self.counts = Counts()
        self._engine = engine
        self._stage = stage
        self._run_id = run_id
        self._mode = mode
        self._model_folder = root / _slug(stage) / _slug(engine.model)
        self._folder = self._model_folder / _slug(partition)
        self._journal: Journal | None = None
        self._known: dict[str, tuple[str, str, str]] = {}

    def __enter__(self) -> "Session":
        if self._model_folder.exists():
            recover(self._model_folder)
        columns = ["key", "status", "text", "error"]
        for path in sorted(self._model_folder.rglob("*.parquet"), key=lambda path: path.name):
            for key, status, text, error in read_segment(path, columns).iter_rows():
                if status in FINAL:
                    self._known.setdefault(key, (status, text, error))
        return self

    def __exit__(self, *_: object) -> None:
        self.flush()

    def flush(self) -> None:
        """Make a segment of what the journal holds."""
        if self._journal:
            self._journal.close()
            self._journal = None

    def ask(
        self, calls: Sequence[Call], parse: Callable[[Call, str], Value]
    ) -> list[Outcome[Value]]:
        """Answer calls from the ledger, and the rest by the engine.

        Args:
            calls: in any order; equal ones are asked once.
            parse: turns the text of a complete reply into a value, or raises ``ParseError``.

        Returns:
            One outcome per call, in order. Failures are outcomes, never values.

        Raises:
            LedgerError: if a call did not get through (after all other replies were stored), if the
                engine did not yield each position once, or in replay mode if a reply is missing.
        """
        keys = [call_key(self._engine, call) for call in calls]
        missing: dict[str, Call] = {}
        for key, call in zip(keys, calls, strict=True):
            if key not in self._known:
                missing.setdefault(key, call)
        self.counts.asked += len(calls)
        self.counts.replayed += len(calls) - len(missing)
        if missing:
            self._make(list(missing), list(missing.values()), parse)
        progress.report(self._stage, self.counts.asked, self.counts.asked)
        return [self._outcome(key, call, parse) for key, call in zip(keys, calls, strict=True)]

    def _make(
        self, keys: list[str], calls: list[Call], parse: Callable[[Call, str], Value]
    ) -> None:
        if self._mode == "replay":
            raise LedgerError(
                f"{self._stage}: the ledger lacks {len(calls)} replies, the first for"
                f" {calls[0].item} (key {keys[0][:12]}); replay mode makes no calls"
            )
        lost: list[str] = []
        waiting = set(range(len(calls)))
        for position, reply in self._engine.answer(calls):
            if position not in waiting:
                raise LedgerError(
                    f"{self._stage}: engine {self._engine.model} yielded position {position} of"
                    f" {len(calls)} calls, which does not exist or was answered before"
                )
            waiting.remove(position)
            row = self._row(keys[position], calls[position], reply, parse)
            self._store(row)
            if row.status == "transport_error":
                lost.append(f"{row.item}: {row.error}")
            progress.report(self._stage, self.counts.asked - len(waiting), self.counts.asked)
        if lost:
            raise LedgerError(
                f"{self._stage}: {len(lost)} of {len(calls)} calls did not get through, such as"
                f" {lost[0]}. Nothing that was paid is lost; run the partition again"
            )
        if waiting:
            raise LedgerError(
                f"{self._stage}: engine {self._engine.model} left {len(waiting)} of {len(calls)} calls"
                " without a reply; an engine must yield one for each"
            )

    def _store(self, row: Row) -> None:
        if self._journal is None:
            self._journal = Journal(self._folder)
        self._journal.append(row)
        self.counts.made += 1
        self.counts.failed += row.status != "ok"
        self.counts.price += row.price
        self.counts.tokens += row.prompt_tokens + row.completion_tokens
        if row.status in FINAL:
            self._known.setdefault(row.key, (row.status, row.text, row.error))
        if len(self._journal.rows) >= SEGMENT_ROWS:
            self.flush()

    def _row(self, key: str, call: Call, reply: Reply, parse: Callable[[Call, str], Any]) -> Row:
        status: str = reply.status
        error, text = reply.error, _utf8(reply.text)
        if status == "ok":
            try:
                parse(call, text)
            except ParseError as problem:
                status, error = "parse_error", str(problem)
            except (
                Exception
            ):  # _outcome meets the parser's fault again; the paid reply is kept first
                error = "the parser failed"
        prompt = self._engine.prompt(call.task)
        return Row(
            key=key,
            item=_utf8(call.item),
            status=status,
            text=text,
            reasoning=_utf8(reply.reasoning),
            finish_reason=reply.finish_reason,
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
            model=self._engine.model,
            revision=self._engine.revision,
            prompt=prompt.name,
            prompt_sha256=prompt.sha256,
            error=_utf8(error),
        )

    def _outcome(self, key: str, call: Call, parse: Callable[[Call, str], Value]) -> Outcome[Value]:
        status, text, error = self._known[key]
        if status not in ("ok", "parse_error"):
            return Outcome(key, status, None, error)
        try:
            return Outcome(key, "ok", parse(call, text))
        except ParseError as problem:
            return Outcome(key, "parse_error", None, str(problem))
