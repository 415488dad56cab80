"""Figures of the LLM engines and the call ledger: ``make bench-llm``.

The server answers at once, on loopback, in a process of its own, so that what is measured is our side:
rendering, keys, requests, parsing and the ledger. The baseline is what anybody would write, a loop over
``AsyncOpenAI().chat.completions.create`` with as many requests in flight, which stores nothing.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from benchmarks import ledger
from benchmarks.loopback_server import loopback_server
from benchmarks.results_file import Row, write
from resources.engines.openai import OpenAIEngine
from saber_dagster.engines import PAIRWISE_JUDGMENT, Call
from saber_dagster.ledger import Counts, Ledger
from saber_dagster.replies import parse_verdict

IN_FLIGHT, ROUNDS, CALLS = 256, 3, 4000
START, WINDOW, WINDOWS, ASK = 20_000, 40_000, 2, 5_000
THROUGHPUT_BAR, GROWTH_BAR, IMPORT_BAR_S = 0.8, 1.1, 4

IMPORT = """
import json, sys, tempfile, time, dagster
start = time.process_time()
from pathlib import Path
from saber_dagster.definitions import load
from saber_dagster.home import Home
with tempfile.TemporaryDirectory() as home:
    load(Home(Path(home)))
heavy = [name for name in ("torch", "vllm") if name in sys.modules]
print(json.dumps([time.process_time() - start, len(heavy)]))
"""

DOCUMENTS = [
    {
        "problem": f"Let $n_{{{i}}} > 1$ be an integer; prove that $\\sum_k a_k$ is even. " * 8,
        "solution": f"We pair the terms $a_{{{i}}}$ and use that $\\frac{{n}}{{2}}$ is odd. " * 30,
    }
    for i in range(300)
]
"""Of the size of problems with solutions: 0.5 and 2 kB."""


def calls(numbers: Sequence[int], documents: Sequence[dict[str, str]] = DOCUMENTS) -> list[Call]:
    """Judgments: each number is one of three documents, no two the same for 44,850 numbers."""
    found = []
    for number in numbers:
        sample, pair = divmod(number, 300 * 149)
        query, step = pair % 300, 1 + pair // 300
        texts = (documents[(query + part * step) % 300] for part in range(3))
        inputs = dict(zip(("query", "first", "second"), texts, strict=True))
        found.append(Call(PAIRWISE_JUDGMENT, inputs, f"{query} {step}", sample))
    return found


def engine(url: str) -> OpenAIEngine:
    return OpenAIEngine("loopback", "1", base_url=url, concurrency=IN_FLIGHT)


def ask(folder: Path, url: str, asked: list[Call]) -> Counts:
    with Ledger(folder).session(engine(url), "judge", "p") as session:
        session.ask(asked, lambda _, text: parse_verdict(text))
    return session.counts


def bare(url: str, asked: list[Call]) -> float:
    """Calls per second of the loop without an engine or a ledger."""
    from openai import AsyncOpenAI

    bodies = [engine(url).body(call) for call in asked]

    async def run() -> float:
        async with AsyncOpenAI(api_key="none", base_url=url) as client:
            left: Iterator[dict[str, object]] = iter(bodies)

            async def work() -> None:
                for body in left:
                    await client.chat.completions.create(**body)  # type: ignore[call-overload]

            start = time.perf_counter()
            await asyncio.gather(*(work() for _ in range(IN_FLIGHT)))
            return len(bodies) / (time.perf_counter() - start)

    return asyncio.run(run())


def ours(url: str, asked: list[Call]) -> float:
    """Calls per second through engine and ledger, from no file to closed segments."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        counts = ask(Path(folder), url, asked)
        seconds = time.perf_counter() - start
    if counts.made != len(asked) or counts.failed:
        raise SystemExit(f"{counts.made} of {len(asked)} calls were made, {counts.failed} failed")
    return len(asked) / seconds


def throughput(url: str) -> list[Row]:
    asked = calls(range(CALLS))
    bare(url, asked[:500])
    pairs = [(bare(url, asked), ours(url, asked)) for _ in range(ROUNDS)]
    ratios = sorted(mine / other for other, mine in pairs)
    return [
        Row.at_least(
            "calls per second as a part of a bare AsyncOpenAI loop's, median",
            median(ratios),
            "",
            THROUGHPUT_BAR,
            interval=(ratios[0], ratios[-1]),
        ),
        Row.at_least(
            f"calls per second, {IN_FLIGHT} in flight, ledger included",
            median(mine for _, mine in pairs),
            "1/s",
            baseline=median(other for other, _ in pairs),
        ),
    ]


def memory(url: str) -> list[Row]:
    """Peak memory of two windows of equally many calls, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.llm", url]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    early, late = json.loads(done.stdout)
    return [
        Row("peak memory from call 20,000 to 60,000", early, "MiB"),
        Row("peak memory from call 60,000 to 100,000", late, "MiB", early, late / early),
        Row.at_most("the later peak over the earlier", late / early, "", GROWTH_BAR),
    ]


def make_all(url: str) -> None:
    """Make the calls of :func:`memory`, as a tournament does: one session, several rounds.

    Equally many segments are written in each window. The first ones, which make the pools of Polars,
    come before.
    """
    peaks = []
    with (
        tempfile.TemporaryDirectory() as folder,
        Ledger(Path(folder)).session(engine(url), "judge", "p") as session,
    ):

        def make(first: int, last: int) -> None:
            for start in range(first, last, ASK):
                session.ask(calls(range(start, start + ASK)), lambda _, text: parse_verdict(text))

        make(0, START)
        for window in range(WINDOWS):
            Path("/proc/self/clear_refs").write_text("5")  # the peak is now what there is
            first = START + window * WINDOW
            make(first, first + WINDOW)
            status = Path("/proc/self/status").read_text()
            peaks.append(int(status.split("VmHWM:")[1].split()[0]) / 1024)
    print(json.dumps(peaks))


def one_document(url: str) -> list[Row]:
    """Calls made after a letter of one document among 300 has changed."""
    numbers = range(0, 300 * 149, 37)
    changed = [dict(document) for document in DOCUMENTS]
    changed[17]["solution"] += "."
    with tempfile.TemporaryDirectory() as folder:
        ask(Path(folder), url, calls(numbers))
        again = ask(Path(folder), url, calls(numbers))
        after = ask(Path(folder), url, calls(numbers, changed))
    touched = sum(changed[17] in call.inputs.values() for call in calls(numbers, changed))
    name = f"calls made after one of 300 documents changed, {touched} of {len(numbers)} contain it"
    return [
        Row.at_most("calls made when nothing changed", again.made, "calls", 0),
        Row(
            name,
            after.made,
            "calls",
            touched,
            after.made / touched,
            bar=touched,
            holds=after.made == touched,
        ),
    ]


def imports() -> list[Row]:
    done = subprocess.run(
        [sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True
    )
    seconds, heavy = json.loads(done.stdout)
    return [
        Row.at_most("definitions, above `import dagster`", seconds, "CPU-s", IMPORT_BAR_S),
        Row.at_most("torch and vllm among what they import", heavy, "", 0),
    ]


def main() -> None:
    os.environ["NO_PROXY"] = "127.0.0.1"
    with loopback_server() as url:
        rows = [*throughput(url), *memory(url), *one_document(url)]
    write("llm", [*rows, *ledger.rows(), *imports()])


if __name__ == "__main__":
    if len(sys.argv) > 1:
        make_all(sys.argv[1])
    else:
        main()
