"""Time, peak memory and calls of each stage of a build: ``make bench-stages``.

Builds the demo (champ-dataset) and, where SABER_TEST_DATA is there, the 908 problems of its sample, each
in a new home, as a user runs it; then builds each again, which must do nothing. The baseline of a stage
is the whole build, that of a second build the first.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.results_file import Row, write

DATA = Path(os.environ.get("SABER_TEST_DATA") or Path(__file__).parents[2] / "shared" / "data")
BUILD_BAR_S, SECOND_BAR_S, IMPORT_BAR_S = 300, 30, 4

IMPORT = """
import time, dagster
start = time.process_time()
from pathlib import Path
from saber_dagster.definitions import load
from saber_dagster.home import Home
load(Home(Path({home!r})))
print(time.process_time() - start)
"""


def build(home: Path, *options: str) -> tuple[float, dict[str, Any]]:
    command = [sys.executable, "-m", "saber_dagster", "build", "--json", *options]
    environ = {**os.environ, "SABER_HOME": str(home)}
    start = time.monotonic()
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
    return time.monotonic() - start, json.loads(done.stdout)


def measure(name: str, *options: str) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        first, report = build(home, *options)
        second, again = build(home)
    if again["runs"]:
        raise SystemExit(f"{name}: the second build ran {len(again['runs'])} partitions again")
    rows = [
        Row.at_most(f"{name}: build", first, "s", BUILD_BAR_S),
        Row.at_most(f"{name}: build again", second, "s", SECOND_BAR_S, baseline=first),
    ]
    totals: dict[str, list[float]] = {}
    for run in report["runs"]:
        for asset, cost in run["assets"].items():
            total = totals.setdefault(asset, [0.0, 0.0, 0.0, 0.0])
            total[0] += cost["seconds"]
            total[1] = max(total[1], run["peak_mib"])
            total[2] += cost["calls_made"]
            total[3] += cost["rows"]
    for asset, (seconds, peak, calls, n_rows) in totals.items():
        rows.append(Row(f"{name}: {asset}", seconds, "s", first, seconds / first))
        rows.append(Row(f"{name}: {asset}, peak of the process", peak, "MiB"))
        rows.append(Row(f"{name}: {asset}, rows", n_rows, "rows"))
        if calls:
            rows.append(Row(f"{name}: {asset}, calls made", calls, "calls"))
    return rows


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", IMPORT.format(home=folder)]
        imported = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = [
        Row.at_most("definitions, above `import dagster`", float(imported), "CPU-s", IMPORT_BAR_S),
        *measure("demo"),
    ]
    sample = DATA / "sample.jsonl"
    if sample.exists():
        rows += measure("sample", "--corpus", str(sample))
    else:
        print(f"{sample} is absent; set SABER_TEST_DATA to measure it")
    write("stages", rows)


if __name__ == "__main__":
    main()
