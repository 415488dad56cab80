"""Both signals of all pairs of a corpus: CPU-seconds, memory, bytes, growth: ``make bench-signals``.

Each part runs in a process of its own (``benchmarks/signal_parts.py``) on a synthetic corpus of each
density, with compiled kernels in a cache that the first part fills. Bars are those for 283,000
problems; at other sizes a figure has none. ``--quick`` tries everything with 20,000 problems.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import signals_page
from benchmarks.hit_densities import SUMMARY_FLOOR, TOPIC_FLOOR
from benchmarks.results_file import Row, show, write
from benchmarks.synthetic_corpus import SHAPES

FULL, QUICK, TINY = 283_000, 20_000, 600
SHARDS = 40
"""As many as a home of five domains and eight shards computes one after the other."""
ROWS_S, ROWS_AND_HISTOGRAMS_S = 120, 300
PEAK_GB = {"low": 1.0, "high": 2.5}
STORED_GB = {"high": 2.0}
TOPIC_TIMES, SUMMARY_TIMES, SCIPY_TIMES = 40, 80, 8
TOPIC_GROWTH, SUMMARY_GROWTH = 1.6, 2.3
GROWTH = (35_000, 70_000, 141_000)
"""Smaller corpora, to see how cost grows."""
STEPS = ("prepare", "topic", "summary", "union", "other signal")

CHAIN_S, CHAIN_GB, TOP_GB = 400, 2.0, 0.6
TOP_C, K = (4, 8), 50
"""The first and the largest default c of the rule top_m. The bar is for the first."""
CHAIN = ("index", "prepare", "join", "store", "thresholds", "query set", "candidates")

Figures = dict[str, float]


class Bench:
    """Runs parts on corpora in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environ = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "numba")}

    def run(self, part: str, *options: object) -> Figures:
        """The figures of one part."""
        return self.module("benchmarks.signal_parts", part, *options)

    def module(self, name: str, *options: object) -> Figures:
        """The figures that a module prints."""
        print(f"… {name} {' '.join(map(str, options))}", file=sys.stderr, flush=True)
        command = [sys.executable, "-m", name, *map(str, options)]
        done = subprocess.run(
            command, env=self.environ, stdout=subprocess.PIPE, text=True, check=True
        )
        figures: Figures = json.loads(done.stdout)
        print(f"  {done.stdout.strip()}", file=sys.stderr, flush=True)
        return figures

    def compile_all(self) -> float:
        """CPU-seconds of compiling every kernel, with so few problems that nothing else takes time."""
        folder = self.folder / "tiny"
        first = self.run("compile_all", self.corpus(TINY, "low"))["seconds"]
        self.module("benchmarks.signal_chain", "make", folder, TINY, "low")
        chain = self.module("benchmarks.signal_chain", "run", folder)
        top = self.module("benchmarks.signal_chain", "top", folder, K)
        return first + sum(chain[step] for step in CHAIN) + sum(top[step] for step in CHAIN[:4])

    def corpus(self, n: int, density: str) -> Path:
        """The file of a corpus, made once."""
        path = self.folder / f"{density}-{n}.npz"
        if not path.exists():
            self.run("corpus", path, n, density)
        return path

    def rows(self, n: int, density: str, topic: float, summary: float) -> Figures:
        """The rows above the floors."""
        return self.run("rows", self.corpus(n, density), topic, summary, SHARDS)


def at_most(name: str, value: float, unit: str, bar: float | None) -> Row:
    """A figure with a bar where there is one."""
    return Row(name, value, unit) if bar is None else Row.at_most(name, value, unit, bar)


def of_density(bench: Bench, density: str, n: int) -> list[Row]:
    """The figures of a density."""
    full = n == FULL
    sizes = GROWTH if full else (n // 4,)
    rows = bench.rows(n, density, TOPIC_FLOOR, SUMMARY_FLOOR)
    smaller_rows = {size: bench.rows(size, density, TOPIC_FLOOR, SUMMARY_FLOOR) for size in sizes}
    smaller = 70_000 if full else n // 4
    before = smaller_rows[smaller]
    histograms = bench.run("histograms", bench.corpus(n, density), SHARDS)
    plain = bench.run("baselines", bench.corpus(n, density))

    name = f"{density}, {n:,} problems: {{}}".format
    total = sum(rows[step] for step in STEPS)
    both = total + histograms["topic"] + histograms["summary"]
    peak = max(rows["peak"], histograms["peak"]) * 2**20 / 1e9
    found = [
        at_most(name("rows of both signals"), total, "CPU-s", ROWS_S if full else None),
        *(Row(name(f"rows: {step}"), rows[step], "CPU-s") for step in (*STEPS, "store")),
        at_most(
            name("rows and full histograms"), both, "CPU-s", ROWS_AND_HISTOGRAMS_S if full else None
        ),
        *(
            Row(name(f"histograms: {signal}"), histograms[signal], "CPU-s")
            for signal in ("topic", "summary")
        ),
        at_most(name("peak memory"), peak, "GB", PEAK_GB[density] if full else None),
        Row(name("stored pairs"), rows["pairs"], "pairs"),
        Row(name("stored pairs by all pairs"), rows["pairs"] / n**2, "share"),
        Row(name("bytes per stored pair"), rows["bytes"] / max(rows["pairs"], 1), "bytes"),
        at_most(
            name("stored bytes"),
            rows["bytes"] / 1e9,
            "GB",
            STORED_GB.get(density) if full else None,
        ),
    ]
    # the union makes pairs of problems of the pairs of topic sets, which the loop does not have to do
    topic_rate = n * n / (rows["topic"] + rows["union"])
    summary_rate = n * n / rows["summary"]
    for what, rate, baseline, times in (
        ("topic against plain loop", topic_rate, plain["topic"], TOPIC_TIMES),
        ("summary against plain loop", summary_rate, plain["summary"], SUMMARY_TIMES),
        ("summary against SciPy", summary_rate, plain["scipy"], SCIPY_TIMES),
    ):
        bar = times * baseline if full else None
        found.append(Row.at_least(name(what), rate, "pairs/s", bar, baseline))
    for signal, most in (("topic", TOPIC_GROWTH), ("summary", SUMMARY_GROWTH)):
        exponent = math.log(rows[signal] / before[signal]) / math.log(n / smaller)
        found.append(
            at_most(
                name(f"{signal} growth from {smaller:,}"),
                exponent,
                "exponent",
                most if full else None,
            )
        )
    for size, figures in smaller_rows.items():
        label = f"{density}, {size:,} problems: {{}}".format
        found += [
            Row(label("rows of both signals"), sum(figures[step] for step in STEPS), "CPU-s"),
            *(Row(label(f"rows: {step}"), figures[step], "CPU-s") for step in (*STEPS, "store")),
            Row(label("stored pairs"), figures["pairs"], "pairs"),
            Row(label("peak memory"), figures["peak"] * 2**20 / 1e9, "GB"),
        ]
    compared = f"mismatches with plain loops in {plain['compared']:.3g} pairs"
    found.append(Row.at_most(name(compared), plain["mismatches"], "pairs", 0))
    found.append(
        Row.at_most(name("mismatches with twins in 5,000 pairs"), plain["twins"], "pairs", 0)
    )
    return found


def of_chain(bench: Bench, density: str, n: int) -> list[Row]:
    """The chain from problem index to candidates with unknown thresholds."""
    full = n == FULL
    folder = bench.folder / f"chain-{density}"
    bench.module("benchmarks.signal_chain", "make", folder, n, density)
    found = bench.module("benchmarks.signal_chain", "run", folder)
    name = f"chain, {density}, {n:,} problems: {{}}".format
    total = sum(found[step] for step in CHAIN)
    return [
        at_most(name("all stages"), total, "CPU-s", CHAIN_S if full else None),
        *(Row(name(step), found[step], "CPU-s") for step in CHAIN),
        at_most(name("peak memory"), found["peak"] * 2**20 / 1e9, "GB", CHAIN_GB if full else None),
        Row(name("stored pairs"), found["pairs"], "pairs"),
        Row(name("stored bytes"), found["bytes"] / 1e9, "GB"),
        Row(name("topic threshold found"), found["topic threshold"], ""),
        Row(name("summary threshold found"), found["summary threshold"], ""),
        Row(name("eligible queries, fewest of a domain"), found["eligible"], "queries"),
        Row(name("queries chosen"), found["queries"], "queries"),
    ] + [row for c in TOP_C for row in of_top(bench, folder, density, n, c)]


def of_top(bench: Bench, folder: Path, density: str, n: int, c: int) -> list[Row]:
    """The largest signals of each query alone, with M = c K."""
    full = n == FULL
    top = bench.module("benchmarks.signal_chain", "top", folder, c * K)
    name = f"chain, {density}, {n:,} problems, keep top_m, c = {c}: {{}}".format
    stored, peak = top["bytes"] / 1e9, top["peak"] * 2**20 / 1e9
    return [
        *(Row(name(step), top[step], "CPU-s") for step in CHAIN[:4]),
        Row(name("stored pairs"), top["pairs"], "pairs"),
        at_most(name("stored bytes"), stored, "GB", TOP_GB if full and c == TOP_C[0] else None),
        at_most(name("peak memory"), peak, "GB", CHAIN_GB if full else None),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=FULL, help="number of problems")
    parser.add_argument("--density", choices=[*SHAPES, "all"], default="all")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK:,} problems; writes no file")
    options = parser.parse_args()
    n = QUICK if options.quick else options.n
    densities = list(SHAPES) if options.density == "all" else [options.density]
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        rows = [Row("compile all kernels, once per machine", bench.compile_all(), "CPU-s")]
        for density in densities:
            rows += of_density(bench, density, n)
            rows += of_chain(bench, density, n)
    if n == FULL and densities == list(SHAPES):
        write("signals", rows)
        signals_page.main()
    else:
        show(rows)


if __name__ == "__main__":
    main()
