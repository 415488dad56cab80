"""``saber build``: from a corpus of problems to a leaderboard."""

import sys
from collections import defaultdict
from contextlib import redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from saber_dagster import progress
from saber_dagster.cli.boards import default_setting, leaderboard_rows, print_board
from saber_dagster.cli.common import (
    JsonOption,
    MapOption,
    console,
    current_home,
    errors,
    parse_mapping,
    print_json,
)
from saber_dagster.cli.configure import configure
from saber_dagster.cli.notes import notes
from saber_dagster.home import Home
from saber_dagster.releases import release_of

if TYPE_CHECKING:
    from saber_dagster.build_report import BuildReport
    from saber_dagster.materialize import Event


def build(
    corpus: Annotated[
        list[Path] | None,
        typer.Option(help="Problems with solutions: JSONL, CSV or Parquet; may be given again."),
    ] = None,
    queries: Annotated[
        Path | None, typer.Option(help="Your own queries: ids of the corpus, or texts.")
    ] = None,
    ontology: Annotated[
        Path | None, typer.Option(help="Your own topics: edge list or nested JSON.")
    ] = None,
    mapping: MapOption = None,
    queries_mapping: Annotated[
        list[str] | None, typer.Option("--map-queries", help="The same for --queries.")
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help="demo (default) or paper; for a new home.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Materialize whatever is not fresh, and print the leaderboard.

    Without --corpus the home's corpus is used; a new home starts with the starter corpus and the
    competition problems of champ-dataset. Options are kept in saber.yaml of the home. Interrupt it at
    any time: the next build goes on from there.
    """
    home = configure(
        current_home(),
        corpus,
        queries,
        ontology,
        parse_mapping(mapping),
        parse_mapping(queries_mapping, "--map-queries"),
        preset,
    )
    report = run_build(home, quiet=as_json)
    rows = leaderboard_rows(home)
    if as_json:
        print_json(_as_json(home, report, rows))
        return
    console.print(_cost_table(report) if report.runs else "Everything is fresh; nothing was run.")
    console.print()
    setting = default_setting(rows)
    for judge in home.judges:
        print_board(rows, judge.slug, judge.engine, setting)
        console.print()
    for note in notes(home):
        console.print(f"[yellow]note:[/] {escape(note)}", soft_wrap=True)
    console.print(_where(home), highlight=False, soft_wrap=True)


def run_build(home: Home, quiet: bool = False, **selects: Any) -> "BuildReport":
    """Build with a progress bar per stage; what a user's class prints goes to standard error.

    Args:
        home: the home.
        quiet: whether to show no progress.
        **selects: what to build: arguments of ``materialize.build``.
    """
    with redirect_stdout(sys.stderr):
        return _run_build(home, quiet, selects)


def _run_build(home: Home, quiet: bool, selects: dict[str, Any]) -> "BuildReport":
    from saber_dagster.definitions import load
    from saber_dagster.materialize import build as materialize

    if quiet or not sys.stderr.isatty():
        watch = _ignore if quiet else _log
        return materialize(home, load(home), watch, **selects)
    columns = (
        TextColumn("{task.description:<34}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[calls]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=errors) as bars:
        opening = bars.add_task("loading the graph", total=1, calls="")
        defs = load(home)
        bars.update(opening, completed=1)
        watcher = _Bars(bars)
        progress.set_sink(watcher.calls)
        try:
            return materialize(home, defs, watcher, **selects)
        finally:
            progress.set_sink(None)


class _Bars:
    """One progress bar per level of the graph."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._task: Any = None
        self._before = 0
        self._run = 0

    def __call__(self, event: "Event") -> None:
        if event.kind == "level":
            self._before = self._run = 0
            title = _title(event.assets)
            self._task = self._bars.add_task(title, total=event.total, calls="")
        elif event.kind == "done":
            self._before += self._run
            self._run = 0
            self._bars.advance(self._task)

    def calls(self, stage: str, done: int, total: int) -> None:
        self._run = done
        if self._task is not None:
            self._bars.update(self._task, calls=f"{self._before + done:,} calls")


def _ignore(event: "Event") -> None:
    """Print nothing."""


def _log(event: "Event") -> None:
    if event.kind == "level":
        errors.print(f"{_title(event.assets)}: {event.total} run(s)", highlight=False)


def _title(assets: tuple[str, ...]) -> str:
    lanes = defaultdict(list)
    for name in assets:
        lane, _, rest = name.partition("/")
        lanes[lane if rest else name].append(rest)
    return ", ".join(
        f"{n} {len(r)}×" if len(r) > 1 else "/".join([n, *r]).rstrip("/") for n, r in lanes.items()
    )


def _cost_table(report: "BuildReport") -> Table:
    table = Table(title=f"Built in {report.seconds:.0f} s", title_justify="left")
    table.add_column("asset", no_wrap=True)
    for name in ("partitions", "seconds", "peak MiB", "rows", "calls asked", "calls made"):
        table.add_column(name, justify="right")
    for name, (runs, cost, peak) in report.by_asset().items():
        calls = (cost.calls_asked, cost.calls_made) if cost.calls_asked else ()
        numbers = (f"{n:,}" for n in (cost.rows, *calls))
        table.add_row(escape(name), str(runs), f"{cost.seconds:.1f}", f"{peak:,.0f}", *numbers)
    return table


def _where(home: Home) -> str:
    release = release_of(home.releases, home.settings)
    own = home.settings_file
    settings = str(own) if own.exists() else f"the defaults of preset {home.settings.preset}"
    return (
        f"tables    {home.tables}\nrelease   {release.folder}\nledger    {home.ledger}\n"
        f"settings  {settings}\n"
        "next      `saber ui` to look at the graph, `saber leaderboard` for other settings"
    )


def _as_json(home: Home, report: "BuildReport", rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "home": str(home.root),
        "release": home.settings.release,
        "seconds": report.seconds,
        "fresh_partitions": report.fresh,
        "runs": [asdict(run) for run in report.runs],
        "notes": notes(home),
        "leaderboard": rows,
    }
