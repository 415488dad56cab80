"""``saber build``: from a corpus of problems to a leaderboard."""

import sys
from contextlib import redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from saber_dagster import progress
from saber_dagster.build_failures import BuildError
from saber_dagster.cli.boards import default_setting, leaderboard_rows, print_board
from saber_dagster.cli.build_progress import Bars, Lines
from saber_dagster.cli.common import (
    JsonOption,
    MapOption,
    console,
    current_home,
    money,
    parse_mapping,
    print_json,
)
from saber_dagster.cli.configure import configure
from saber_dagster.cli.notes import notes
from saber_dagster.cli.plan import show_plan
from saber_dagster.errors import SaberError
from saber_dagster.home import Home
from saber_dagster.releases import release_of

if TYPE_CHECKING:
    from saber_dagster.build_report import BuildReport
    from saber_dagster.ledger import Budget


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
    budget_usd: Annotated[
        float | None, typer.Option(min=0.0, help="Stop paying when the build has spent this.")
    ] = None,
    budget_calls: Annotated[
        int | None, typer.Option(min=0, help="Stop paying after so many calls.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what the build would pay, and make nothing.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Materialize whatever is not fresh, and print the leaderboard.

    Without --corpus the home's corpus is used; a new home starts with the starter corpus and the
    competition problems of champ-dataset. Options are kept in saber.yaml of the home. Interrupt it at
    any time: the next build goes on from there.

    What fails holds up only what depends on it. A budget (default: that of the settings) is for the
    whole build; when it is spent, what needs no further call is finished, and the exit code is 3.
    """
    if dry_run:
        given = (corpus, queries, ontology, mapping, queries_mapping, preset)
        if any(option is not None for option in given):
            raise SaberError("--dry-run writes nothing; change the settings first, without it")
        show_plan(current_home(), as_json)
        return
    home = configure(
        current_home(),
        corpus,
        queries,
        ontology,
        parse_mapping(mapping),
        parse_mapping(queries_mapping, "--map-queries"),
        preset,
    )
    try:
        report = run_build(home, quiet=as_json, budget=_budget(home, budget_usd, budget_calls))
    except BuildError as error:
        if error.report and not as_json:
            console.print(_cost_table(error.report))
        raise
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


def _budget(home: Home, usd: float | None, calls: int | None) -> "Budget":
    """The options, each over the setting of its name."""
    from saber_dagster.ledger import Budget
    from saber_dagster.materialize import home_budget

    default = home_budget(home)
    return Budget(default.usd if usd is None else usd, default.calls if calls is None else calls)


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

    if quiet:
        return materialize(home, load(home), **selects)
    if not sys.stderr.isatty():
        lines = Lines()
        with progress.listening(lines.say):
            return materialize(home, load(home), lines.watch, **selects)
    with Bars() as bars, progress.listening(bars.say):
        opening = bars.add_task("loading the graph", total=1, calls="")
        defs = load(home)
        bars.update(opening, completed=1)
        return materialize(home, defs, bars.watch, **selects)


def _cost_table(report: "BuildReport") -> Table:
    table = Table(title=f"Built in {report.seconds:.0f} s", title_justify="left")
    table.add_column("asset", no_wrap=True)
    totals = report.by_asset()
    priced = ["$"] if any(cost.price_usd or cost.tokens for _, cost, _ in totals.values()) else []
    names = ("partitions", "seconds", "peak MiB", "rows", "calls asked", "calls made", *priced)
    for name in names:
        table.add_column(name, justify="right")
    for name, (runs, cost, peak) in totals.items():
        calls = (cost.calls_asked, cost.calls_made) if cost.calls_asked else ()
        numbers = [f"{n:,}" for n in (cost.rows, *calls)]
        if priced and cost.calls_asked:
            numbers.append(money(cost.price_usd, cost.tokens))
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
