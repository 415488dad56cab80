"""The call ledger: every reply of an engine, kept for good and paid once.

Replies lie in immutable Parquet segments under ``<root>/<stage>/<model>/<partition>/``. While a step
runs, each reply goes at once to the step's journal, a file of JSON lines beside the segments. A journal
becomes the segment of the same name when it is full or the step ends; the journal of a process that was
killed is found by its released file lock and becomes a segment the next time anybody opens the stage.
Merging one twice writes the same segment again, so a kill at any point loses only calls in flight.

No locks guard segments: names are unique. If two steps paid one key, the reply in the smallest
(segment, row) is canonical and the other counts as a duplicate.
"""

import math
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from operator import index
from pathlib import Path
from typing import Any, Generic, Literal, SupportsIndex, TypeVar, get_args

import polars as pl

from saber_dagster import progress
from saber_dagster.engines import FINAL, Call, Engine, Reply, Status, Usage, call_key
from saber_dagster.ledger_files import SCHEMA, Journal, LedgerError, Row, read_segment, recover
from saber_dagster.plugins import call_user
from saber_dagster.replies import ParseError

SEGMENT_ROWS = 20_000
"""A journal becomes a segment after this many replies."""

_AGAIN = "Mend the engine and run again; the replies before it are kept"
_MUST_YIELD = (
    "an engine must yield (position in calls, saber_dagster.engines.Reply), with a status of"
    f" {', '.join(get_args(Status))}. {_AGAIN}"
)
Mode = Literal["live", "replay"]
Value = TypeVar("Value")
Said = tuple[str, str, str]
"""Status, text and error of a reply."""


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


def _wrong(reply: Reply) -> str:
    """What keeps a reply from being stored; empty if nothing."""
    if reply.status not in get_args(Status):
        return f"status is {reply.status!r}"
    texts = ("text", "reasoning", "finish_reason", "error")
    if wrong := [name for name in texts if not isinstance(getattr(reply, name), str)]:
        return f"{wrong[0]} is a {type(getattr(reply, wrong[0])).__name__}, not a str"
    for name, value in (("price", reply.price), ("latency", reply.latency)):
        if not isinstance(value, int | float) or not math.isfinite(value):
            return f"{name} is {value!r}, not a finite number"
    usage = reply.usage
    if not isinstance(usage, Usage) or not all(isinstance(n, int) for n in astuple(usage)):
        return f"usage is {usage!r}, not a Usage of whole numbers"
    return ""


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
        self._name = f"{stage}: engine {engine.model}"
        self._run_id = run_id
        self._mode = mode
        self._model_folder = root / _slug(stage) / _slug(engine.model)
        self._folder = self._model_folder / _slug(partition)
        self._journal: Journal | None = None
        self._segments: list[Path] = []
        self._stored: dict[str, tuple[int, int]] = {}
        """Key → segment and row of its canonical reply. Texts are read when they are asked for."""
        self._said: dict[str, Said] = {}
        """Replies of this session."""

    def __enter__(self) -> "Session":
        if self._model_folder.exists():
            recover(self._model_folder)
        self._segments = sorted(self._model_folder.rglob("*.parquet"), key=lambda path: path.name)
        for number, path in enumerate(self._segments):
            for row, (key, status) in enumerate(read_segment(path, ["key", "status"]).iter_rows()):
                if status in FINAL:
                    self._stored.setdefault(key, (number, row))
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
                engine did not yield each position once with a reply that can be stored, or in replay
                mode if a reply is missing.
            SaberError: if the engine raises. The replies before any error are kept.
        """
        keys = [
            call_user(self._name, "params or messages", call_key, self._engine, call)
            for call in calls
        ]
        missing: dict[str, Call] = {}
        for key, call in zip(keys, calls, strict=True):
            if key not in self._stored and key not in self._said:
                missing.setdefault(key, call)
        self.counts.asked += len(calls)
        self.counts.replayed += len(calls) - len(missing)
        if missing:
            self._make(list(missing), list(missing.values()), parse)
        progress.report(self._stage, self.counts.asked, self.counts.asked)
        said = self._read(keys)
        return [
            _outcome(key, call, parse, said[key]) for key, call in zip(keys, calls, strict=True)
        ]

    def _read(self, keys: Sequence[str]) -> dict[str, Said]:
        """The replies of some keys, from this session or from their segments."""
        said = {key: self._said[key] for key in keys if key in self._said}
        by_segment: dict[int, dict[str, int]] = defaultdict(dict)
        for key in keys:
            if key not in said:
                number, row = self._stored[key]
                by_segment[number][key] = row
        for number, rows in by_segment.items():
            segment = read_segment(self._segments[number], ["status", "text", "error"])
            said.update(zip(rows, segment[list(rows.values())].iter_rows(), strict=True))
        return said

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
        for item in self._yielded(calls):
            position, reply = self._checked(item)
            if position not in waiting:
                raise LedgerError(
                    f"{self._name} yielded position {position} of {len(calls)} calls, which does not"
                    " exist or was answered before"
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
                f"{self._name} left {len(waiting)} of {len(calls)} calls without a reply; an engine"
                " must yield one for each"
            )

    def _yielded(self, calls: list[Call]) -> Iterator[Any]:
        """Whatever the engine yields."""
        answers = call_user(self._name, "answer", self._engine.answer, calls, remedy=_AGAIN)
        if not isinstance(answers, Iterable):
            raise LedgerError(f"{self._name} returned {answers!r} from answer; {_MUST_YIELD}")
        items, end = iter(answers), object()
        while (item := call_user(self._name, "answer", next, items, end, remedy=_AGAIN)) is not end:
            yield item

    def _checked(self, item: Any) -> tuple[int, Reply]:
        """A position and a reply that can be stored."""
        match item:
            case [SupportsIndex() as position, Reply() as reply]:
                if wrong := _wrong(reply):
                    raise LedgerError(f"{self._name} yielded a Reply whose {wrong}; {_MUST_YIELD}")
                return index(position), reply
        raise LedgerError(f"{self._name} yielded {repr(item)[:200]}; {_MUST_YIELD}")

    def _store(self, row: Row) -> None:
        if self._journal is None:
            self._journal = Journal(self._folder)
        self._journal.append(row)
        self.counts.made += 1
        self.counts.failed += row.status != "ok"
        self.counts.price += row.price
        self.counts.tokens += row.prompt_tokens + row.completion_tokens
        if row.status in FINAL:
            self._said.setdefault(row.key, (row.status, row.text, row.error))
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


def _outcome(
    key: str, call: Call, parse: Callable[[Call, str], Value], said: Said
) -> Outcome[Value]:
    status, text, error = said
    if status not in ("ok", "parse_error"):
        return Outcome(key, status, None, error)
    try:
        return Outcome(key, "ok", parse(call, text))
    except ParseError as problem:
        return Outcome(key, "parse_error", None, str(problem))
