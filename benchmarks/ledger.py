"""The call ledger: opening a large one, replaying a partition, storing a reply, memory.

Each figure is taken in a fresh process. The baseline is the ledger that one writes first: a file of
JSON lines that is read into a dictionary. ``python -m benchmarks.ledger`` prints the rows.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.results_file import Row, show
from saber_dagster.engines import PAIRWISE_JUDGMENT, Call, PromptRef, Reply, Usage, call_key
from saber_dagster.ledger import Ledger

STORED = 3_000_000
BASELINE_STORED = 100_000
"""Rows of the baseline; its time and memory are those for them, times 30."""
REPLAYED = 30_000
MADE = 150_000
STAGE, PARTITION = "tournament_rounds", "algebra|s00"
TEXT = "Both problems use the same idea, which is to look at the sum of the squares. " * 6


class _Engine:
    """Answers at once, with messages of about 5,000 characters."""

    model, revision = "bench/model", "r1"

    def params(self, task: str) -> dict[str, object]:
        return {"temperature": 0, "max_tokens": 1024}

    def prompt(self, task: str) -> PromptRef:
        return PromptRef("pairwise_judgment", "0" * 64)

    def messages(self, call: Call) -> list[dict[str, str]]:
        texts = [
            part for name in ("query", "first", "second") for part in call.inputs[name].values()
        ]
        return [{"role": "user", "content": "\n\n".join(texts)}]

    def answer(self, calls: Sequence[Call]) -> Iterator[tuple[int, Reply]]:
        reply = Reply("ok", TEXT + "<verdict>1</verdict>", usage=Usage(1500, 120), latency=0.5)
        for position in range(len(calls)):
            yield position, reply


def make_calls(start: int, stop: int) -> list[Call]:
    """Calls of a tournament: 300 documents with problem and solution."""
    text = "Let $x$ be real with \\frac{1}{x} = y², and find all of its values. " * 13
    documents = [{"problem": f"{n} {text}", "solution": f"{n}: {text}"} for n in range(300)]
    return [
        Call(
            PAIRWISE_JUDGMENT,
            {
                "query": documents[n % 300],
                "first": documents[n // 300 % 300],
                "second": documents[(n * 7 + n // 90_000) % 300],
            },
            f"q{n % 300} {n}",
            sample=n // 90_000,
        )
        for n in range(start, stop)
    ]


class _JsonLines:
    """The baseline: one file of JSON lines, all of it in a dictionary."""

    def __init__(self, path: Path) -> None:
        self.file = path.open("a+b")
        self.file.seek(0)
        self.replies = {(row := json.loads(line))["key"]: row for line in self.file}

    def ask(self, engine: _Engine, calls: Sequence[Call]) -> list[float]:
        keys = [call_key(engine, call) for call in calls]
        missing = [n for n, key in enumerate(keys) if key not in self.replies]
        for position, reply in engine.answer([calls[n] for n in missing]):
            call, key = calls[missing[position]], keys[missing[position]]
            row = {"key": key, "item": call.item, **asdict(reply), "created": time.time()}
            self.file.write(json.dumps(row).encode() + b"\n")
            self.file.flush()
            self.replies[key] = row
        return [
            parse(call, self.replies[key]["text"]) for key, call in zip(keys, calls, strict=True)
        ]


def parse(call: Call, text: str) -> float:
    return float(text.endswith("<verdict>1</verdict>"))


def fill(root: Path, rows: int) -> None:
    """Store rows as many steps would have, in segments of the usual size."""
    import polars as pl

    from saber_dagster.ledger.rows import DEFAULTS, SCHEMA
    from saber_dagster.ledger.segments import write_segment
    from saber_dagster.ledger.store import SEGMENT_ROWS

    folder = root / STAGE / "bench-model"
    fixed = {
        **{name: dtype.to_python()() for name, dtype in SCHEMA.items()},
        **DEFAULTS,
        "status": "ok",
        "text": TEXT,
    }
    for number in range(rows // SEGMENT_ROWS):
        raw = os.urandom(32 * SEGMENT_ROWS).hex()
        keys = [raw[64 * n : 64 * n + 64] for n in range(SEGMENT_ROWS)]
        frame = pl.DataFrame({"key": keys}).with_columns(
            pl.lit(value, dtype=SCHEMA[name]).alias(name)
            for name, value in fixed.items()
            if name != "key"
        )
        write_segment(
            folder / f"c{number % 40:02}" / f"{number:020}.parquet", frame.select(*SCHEMA)
        )


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def now_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def open_ledger(root: Path) -> list[float]:
    start = time.perf_counter()
    with Ledger(root).session(_Engine(), STAGE, PARTITION, mode="replay"):
        return [time.perf_counter() - start, peak_mb()]


def open_by_columns(root: Path) -> list[float]:
    """The same without the files of keys: two columns of each segment are read."""
    from saber_dagster.ledger import segments

    start = time.perf_counter()
    segments._parse_keys = lambda path, data: None  # type: ignore[assignment]
    with Ledger(root).session(_Engine(), STAGE, PARTITION, mode="replay"):
        return [time.perf_counter() - start, peak_mb()]


def open_json_lines(root: Path) -> list[float]:
    with (root / "lines").open("w") as file:
        for _ in range(BASELINE_STORED):
            row = {"key": os.urandom(32).hex(), "item": "q1 1", **asdict(Reply("ok", TEXT))}
            file.write(json.dumps(row) + "\n")
    before, start = now_mb(), time.perf_counter()
    ledger = _JsonLines(root / "lines")
    scale = STORED / len(ledger.replies)
    return [(time.perf_counter() - start) * scale, before + (now_mb() - before) * scale]


def store(root: Path) -> list[float]:
    """Microseconds a reply, key and flush included; memory after 50,000 and after all."""
    seconds = 0.0
    with Ledger(root).session(_Engine(), STAGE, PARTITION) as session:
        for start in range(0, MADE, 5_000):
            calls = make_calls(start, start + 5_000)
            began = time.perf_counter()
            session.ask(calls, parse)
            seconds += time.perf_counter() - began
            if start == 45_000:
                early = now_mb()
        late = now_mb()
    return [seconds / MADE * 1e6, early, late]


def store_json_lines(root: Path) -> list[float]:
    ledger, seconds = _JsonLines(root / "lines"), 0.0
    for start in range(0, MADE, 5_000):
        calls = make_calls(start, start + 5_000)
        began = time.perf_counter()
        ledger.ask(_Engine(), calls)
        seconds += time.perf_counter() - began
        if start == 45_000:
            early = now_mb()
    return [seconds / MADE * 1e6, early, now_mb()]


def replay(root: Path) -> list[float]:
    """Seconds to open what ``store`` stored and answer the calls of a partition."""
    calls = make_calls(0, REPLAYED)
    start = time.perf_counter()
    with Ledger(root).session(_Engine(), STAGE, PARTITION, mode="replay") as session:
        session.ask(calls, parse)
    return [time.perf_counter() - start]


def replay_json_lines(root: Path) -> list[float]:
    calls = make_calls(0, REPLAYED)
    start = time.perf_counter()
    _JsonLines(root / "lines").ask(_Engine(), calls)
    return [time.perf_counter() - start]


PARTS: dict[str, Callable[[Path], list[float]]] = {
    part.__name__: part
    for part in (
        open_ledger,
        open_by_columns,
        open_json_lines,
        store,
        store_json_lines,
        replay,
        replay_json_lines,
    )
}


def fresh(part: Callable[[Path], list[float]], root: Path) -> list[float]:
    """What a part measures in a process of its own."""
    root.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "benchmarks.ledger", part.__name__, str(root)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    figures: list[float] = json.loads(done.stdout)
    return figures


def rows() -> list[Row]:
    """Measure everything; takes about three minutes and 4 GB of disk."""
    with tempfile.TemporaryDirectory() as folder:
        large, small, lines = (Path(folder, name) for name in ("large", "small", "lines"))
        fill(large, STORED)
        seconds, peak = fresh(open_ledger, large)
        by_columns, by_columns_peak = fresh(open_by_columns, large)
        line_seconds, line_peak = fresh(open_json_lines, lines)
        (lines / "lines").unlink()
        cost, early, late = fresh(store, small)
        line_cost, line_early, line_late = fresh(store_json_lines, lines)
        (again,), (line_again,) = fresh(replay, small), fresh(replay_json_lines, lines)
    million = f"{STORED / 1e6:g} M rows"
    return [
        Row.at_most(
            f"open a ledger of {million}, against JSON lines", seconds, "s", 10, line_seconds
        ),
        Row.at_most(f"peak memory of opening {million}", peak, "MB", 500, line_peak),
        Row.at_most(f"open {million} by two columns, no files of keys", by_columns, "s", 10),
        Row.at_most("peak memory of opening them by columns", by_columns_peak, "MB", 500),
        Row.at_most(f"replay {REPLAYED:,} calls, 0 made", again, "s", 5, line_again),
        Row.at_most(
            "store a reply, key and segments included", cost, "µs", 2 * line_cost, line_cost
        ),
        Row.at_most(
            "memory gained over 100,000 calls, from call 50,000 on",
            late - early,
            "MB",
            25,
            line_late - line_early,
        ),
    ]


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(PARTS[sys.argv[1]](Path(sys.argv[2]))))
    else:
        show(rows())
