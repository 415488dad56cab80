"""``saber leaderboard``: the board of each judge."""

import sys
from contextlib import redirect_stdout
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table

from saber_dagster.cli.common import JsonOption, console, current_home, print_json
from saber_dagster.errors import SaberError
from saber_dagster.freshness import report
from saber_dagster.home import Home
from saber_dagster.leaderboard import caution
from saber_dagster.tables import TableStore

_MAIN_SETTING = "statement-full"


def leaderboard(
    judge: Annotated[str | None, typer.Option(help="Only this judge's board.")] = None,
    setting: Annotated[
        str | None,
        typer.Option(help="Which texts retrievers see; statement-full, if it was evaluated."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Print the leaderboard of every judge, by domain, with 95 % bootstrap intervals."""
    home = current_home()
    rows = leaderboard_rows(home)
    known = sorted({row["setting"] for row in rows})
    setting = setting or default_setting(rows)
    if setting not in known:
        raise SaberError(f"no setting {setting!r}; there are {', '.join(known)}")
    judges = sorted({row["judge"] for row in rows})
    if judge is not None and judge not in judges:
        raise SaberError(f"no judge {judge!r}; there are {', '.join(judges)}")
    if judge is not None:
        rows = [row for row in rows if row["judge"] == judge]
        judges = [judge]
    if as_json:
        print_json(rows)
        return
    engines = {entry.slug: entry.engine for entry in home.judges}
    for slug in judges:
        print_board(rows, slug, engines.get(slug, ""), setting)
    for note in _cautions(home, judges):
        console.print(f"[yellow]note:[/] {escape(note)}", soft_wrap=True)


def default_setting(rows: list[dict[str, Any]]) -> str:
    """``statement-full`` if it was evaluated, else the first setting that was."""
    settings = {row["setting"] for row in rows}
    return _MAIN_SETTING if _MAIN_SETTING in settings or not settings else min(settings)


def _narrowest(table: Table) -> int:
    """Columns of the terminal below which cells would be cut."""
    return Measurement.get(console, console.options.update(max_width=10_000), table).minimum


def _cautions(home: Home, judges: list[str]) -> list[str]:
    """Whether the board is what the home would give now."""
    from saber_dagster.definitions import load
    from saber_dagster.materialize import absent_assets, graph_of

    configured = {judge.slug for judge in home.judges}
    found = [
        f"judge {slug} is no longer in judges.yaml" for slug in judges if slug not in configured
    ]
    try:
        with redirect_stdout(sys.stderr):
            graph = graph_of(load(home))
    except SaberError as error:
        return [*found, f"whether the leaderboard is fresh cannot be said: {error}"]
    for state in report(TableStore(home.tables), graph, absent_assets(home)):
        if state.node.key == ("leaderboard",) and state.condition != "fresh":
            found.append(
                f"the leaderboard is {state.condition} ({state.reason}); `saber build` brings it up to"
                " date"
            )
    return found


def leaderboard_rows(home: Home) -> list[dict[str, Any]]:
    """The rows of the table ``leaderboard``.

    Raises:
        SaberError: if there is none yet.
    """
    store = TableStore(home.tables)
    if not store.path(["leaderboard"], None).exists():
        raise SaberError(f"{home.root} has no leaderboard yet; run `saber build`")
    return store.read("leaderboard", ["leaderboard"], None).to_dicts()


def print_board(rows: list[dict[str, Any]], judge: str, engine: str, setting: str) -> None:
    """Print a judge's board; without its domains, and a note, where they would not fit."""
    table = board_table(rows, judge, engine, setting)
    needed = _narrowest(table)
    if needed <= console.width:
        console.print(table)
        return
    overall = [row for row in rows if row["domain"] == "overall"]
    console.print(board_table(overall, judge, engine, setting))
    console.print(
        f"[yellow]note:[/] the domains are left out for want of room; `saber leaderboard` shows them in"
        f" a terminal of {needed} columns, or with --json"
    )


def board_table(rows: list[dict[str, Any]], judge: str, engine: str, setting: str) -> Table:
    """A judge's board in one setting: a row per retriever, a column per domain."""
    mine = [row for row in rows if row["judge"] == judge and row["setting"] == setting]
    if not mine:
        return Table(title=f"judge {judge}: no rows in {setting}", title_justify="left")
    columns = list(dict.fromkeys(row["domain"] for row in mine))
    columns.sort(key=lambda domain: (domain != "overall", domain))
    queries = {row["domain"]: row["n_queries"] for row in mine}
    title = f"{mine[0]['metric']}, judge {judge}, release {mine[0]['release']}, {setting}"
    table = Table(
        title=title,
        title_justify="left",
        caption=caution(engine) or None,
        caption_justify="left",
    )
    table.add_column("retriever", no_wrap=True)
    for domain in columns:
        heading = f"{domain.replace('_', ' ')}\n({queries[domain]} queries)"
        table.add_column(heading, justify="right", no_wrap=domain == "overall")
    cells = {(row["retriever"], row["domain"]): row for row in mine}
    retrievers = sorted(
        {row["retriever"] for row in mine},
        key=lambda name: (-cells[name, "overall"]["value"], name),
    )
    for name in retrievers:
        table.add_row(
            name, *(_cell(cells[name, domain], domain == "overall") for domain in columns)
        )
    return table


def _cell(row: dict[str, Any], with_interval: bool) -> str:
    if not with_interval:
        return f"{row['value']:.3f}"
    return f"{row['value']:.3f} \\[{row['low']:.3f}, {row['high']:.3f}]"
