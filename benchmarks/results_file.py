"""Results of benchmarks: a table for people, and ``benchmarks/results/NAME.json`` to compare with."""

import json
import os
import platform
import subprocess
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parents[1] / "docs" / "engine-quality.md"


@dataclass(frozen=True)
class Row:
    """One figure; ``ratio`` is value over baseline, ``holds`` says whether value keeps to the bar."""

    name: str
    value: float
    unit: str
    baseline: float | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    bar: float | None = None
    holds: bool | None = None

    @classmethod
    def at_most(
        cls, name: str, value: float, unit: str, bar: float, baseline: float | None = None
    ) -> "Row":
        """A figure that must not exceed a bar."""
        ratio = value / baseline if baseline else None
        return cls(name, value, unit, baseline, ratio, bar=bar, holds=value <= bar)

    @classmethod
    def at_least(
        cls,
        name: str,
        value: float,
        unit: str,
        bar: float | None = None,
        baseline: float | None = None,
        interval: tuple[float, float] | None = None,
    ) -> "Row":
        """A figure that should not fall below a bar, if there is one."""
        ratio = value / baseline if baseline else None
        low, high = interval or (None, None)
        holds = None if bar is None else value >= bar
        return cls(name, value, unit, baseline, ratio, low, high, bar, holds)


def show(rows: list[Row]) -> None:
    """Print the rows."""
    for row in rows:
        bar = (
            f"  bar {row.bar:g}: {'holds' if row.holds else 'MISSED'}"
            if row.bar is not None
            else ""
        )
        ratio = f"  {row.ratio:.2f}× of {row.baseline:.3g}" if row.ratio is not None else ""
        print(f"{row.name:<64} {row.value:>10.4g} {row.unit:<8}{ratio}{bar}")


def write(name: str, rows: list[Row]) -> None:
    """Print the rows and write the results file."""
    show(rows)
    RESULTS.mkdir(exist_ok=True)
    record: dict[str, Any] = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "commit": _commit(),
        "date": datetime.now(UTC).date().isoformat(),
        "rows": [{k: _short(v) for k, v in asdict(row).items()} for row in rows],
    }
    (RESULTS / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")


def _short(value: Any) -> Any:
    return float(f"{value:.4g}") if isinstance(value, float) else value


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def fill(page: Path, tables: dict[str, list[str]]) -> None:
    """Put tables between the marks ``<!-- NAME -->`` and ``<!-- end -->`` of a page."""
    text = page.read_text(encoding="utf-8")
    for name, lines in tables.items():
        before, mark, rest = text.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition("<!-- end -->")
        if not (mark and end):
            raise SystemExit(f"{page} has no place for {name}")
        text = f"{before}{mark}{chr(10).join(lines)}\n{end}{after}"
    page.write_text(text, encoding="utf-8")
