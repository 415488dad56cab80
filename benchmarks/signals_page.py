"""What signals cost, as tables in ``docs/signals.md``, from ``benchmarks/results/signals.json``.

``make bench-signals`` fills them in. The projection takes the cost of each step at the largest size times
(N / size) to the power of its growth, measured between the two largest sizes; steps that handle pair by
pair grow as the pairs, with the square of N.
"""

import json
import math
from pathlib import Path

from benchmarks.results_file import RESULTS, fill

PAGE = Path(__file__).parents[1] / "docs" / "signals.md"
SIZES = (35_000, 70_000, 141_000, 283_000)
TARGET = 3_500_000
STEPS = ("topic", "summary", "union", "other signal", "store")
BY_PAIR = ("union", "other signal", "store")
JOIN, CHAIN = "{density}, 283,000 problems: ", "chain, {density}, 283,000 problems"
COST = (
    ("rows of both signals, CPU-s", JOIN + "rows of both signals", ".0f"),
    ("rows and histograms of all pairs, CPU-s", JOIN + "rows and full histograms", ".0f"),
    ("peak memory, GB", JOIN + "peak memory", ".2f"),
    ("pairs that reach a floor, millions", JOIN + "stored pairs", "millions"),
    ("stored, GB", JOIN + "stored bytes", ".2f"),
    ("topic, against a plain loop", JOIN + "topic against plain loop", "times"),
    ("summary, against a plain loop", JOIN + "summary against plain loop", "times"),
    ("summary, against SciPy", JOIN + "summary against SciPy", "times"),
    ("topic, exponent of growth from 70,000", JOIN + "topic growth from 70,000", ".2f"),
    ("summary, exponent of growth from 70,000", JOIN + "summary growth from 70,000", ".2f"),
)
CHAIN_COST = (
    ("index to candidates, CPU-s", CHAIN + ": all stages", ".0f"),
    ("of it the signals of all pairs", CHAIN + ": join", ".0f"),
    ("of it thresholds", CHAIN + ": thresholds", ".0f"),
    ("of it query set", CHAIN + ": query set", ".0f"),
    ("of it candidates", CHAIN + ": candidates", ".0f"),
    ("peak memory, GB", CHAIN + ": peak memory", ".2f"),
    ("pairs that reach a floor, millions", CHAIN + ": stored pairs", "millions"),
    ("stored, GB", CHAIN + ": stored bytes", ".2f"),
    ("`keep: top_m`, c = 4: stored, GB", CHAIN + ", keep top_m, c = 4: stored bytes", ".2f"),
    ("`keep: top_m`, c up to 8: stored, GB", CHAIN + ", keep top_m, c = 8: stored bytes", ".2f"),
)

Rows = dict[str, dict[str, float]]


def tables(record: dict[str, object]) -> dict[str, list[str]]:
    """The tables by the name of their place in the page.

    Args:
        record: what the results file holds.
    """
    found = record["rows"]
    assert isinstance(found, list)
    rows: Rows = {row["name"]: row for row in found}
    compiled = rows["compile all kernels, once per machine"]["value"]
    note = f"{record['machine']}, {record['date']}. Kernels were compiled in {compiled:.0f} CPU-s."
    return {
        "cost": [note, "", *_by_density(rows, COST)],
        "chain": _by_density(rows, CHAIN_COST),
        "growth": _growth(rows),
        "projection": _projection(rows),
    }


def _by_density(rows: Rows, wanted: tuple[tuple[str, str, str], ...]) -> list[str]:
    lines = ["| | low density | high density | bar |", "|---|---:|---:|---:|"]
    for label, name, shape in wanted:
        found = [rows[name.format(density=density)] for density in ("low", "high")]
        bars = dict.fromkeys(_bar(row, shape) for row in found)
        cells = [*(_cell(row, shape) for row in found), " / ".join(bars)]
        lines.append(f"| {label} | {' | '.join(cells)} |")
    return lines


def _cell(row: dict[str, float], shape: str) -> str:
    if shape == "times":
        return f"{row['ratio']:,.0f} ×"
    return f"{row['value'] / 1e6:,.1f}" if shape == "millions" else format(row["value"], shape)


def _bar(row: dict[str, float], shape: str) -> str:
    if row["bar"] is None:
        return "–"
    return f"{row['bar'] / row['baseline']:.0f} ×" if shape == "times" else f"{row['bar']:g}"


def _rows_at(rows: Rows, step: str, size: int, density: str = "low") -> float:
    return rows[f"{density}, {size:,} problems: {step}"]["value"]


def _growth(rows: Rows) -> list[str]:
    names = ["N", "pairs, millions", *(f"{step}, CPU-s" for step in STEPS), "peak, GB"]
    lines = [f"| {' | '.join(names)} |", f"|{'---:|' * len(names)}"]
    for density in ("low", "high"):
        lines.append(f"| **{density} density** |{' |' * (len(names) - 1)}")
        for size in SIZES:
            cells = [
                f"{size:,}",
                f"{_rows_at(rows, 'stored pairs', size, density) / 1e6:,.1f}",
                *(f"{_rows_at(rows, f'rows: {step}', size, density):.1f}" for step in STEPS),
                f"{_rows_at(rows, 'peak memory', size, density):.2f}",
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def _projection(rows: Rows) -> list[str]:
    lines = ["| low density | 283,000 | exponent | 3,500,000 |", "|---|---:|---:|---:|"]
    total, times = [0.0, 0.0], TARGET / SIZES[-1]
    for step in STEPS:
        before, now = (_rows_at(rows, f"rows: {step}", size) for size in SIZES[-2:])
        measured = math.log(now / before) / math.log(SIZES[-1] / SIZES[-2])
        exponent = 2.0 if step in BY_PAIR else measured
        then = now * times**exponent
        total = [total[0] + now, total[1] + then]
        lines.append(f"| {step}, CPU-s | {now:.0f} | {exponent:.2f} | {then:,.0f} |")
    lines.append(f"| all of them, CPU-min | {total[0] / 60:.1f} | | {total[1] / 60:,.0f} |")
    pairs, stored = (_rows_at(rows, name, SIZES[-1]) for name in ("stored pairs", "stored bytes"))
    lines += [
        f"| pairs, millions | {pairs / 1e6:,.0f} | 2 | {pairs * times**2 / 1e6:,.0f} |",
        f"| stored, GB | {stored:.2f} | 2 | {stored * times**2:,.0f} |",
    ]
    return lines


def main() -> None:
    """Fill the tables in from the results that are there."""
    fill(PAGE, tables(json.loads((RESULTS / "signals.json").read_text())))


if __name__ == "__main__":
    main()
