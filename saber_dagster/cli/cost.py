"""``saber cost``: what the ledger says was paid."""

from datetime import UTC, datetime
from typing import Annotated, Any, cast, get_args

import typer
from rich.markup import escape
from rich.table import Table

from saber_dagster.cli.common import JsonOption, console, current_home, money, print_json
from saber_dagster.cost import GROUPS, STATUSES, TOKENS, By, run_ids, since_time, sums
from saber_dagster.errors import SaberError
from saber_dagster.home import Home
from saber_dagster.ledger import Ledger

_REPLAYS = (
    "calls that were answered from the ledger are not in it; how many there were is in the metadata of"
    " each table (calls_replayed)"
)
_SUMMED = ("calls", *STATUSES, "duplicates", "counted", "unpriced", *TOKENS, "price_usd")


def cost(
    by: Annotated[str, typer.Option(help=f"What a row is: {', '.join(get_args(By))}.")] = "stage",
    since: Annotated[
        str | None, typer.Option(help="Only replies since then: 12h, 7d, 2026-05-01.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Sum the call ledger: calls, failures by status, tokens, money, mean latency."""
    if by not in get_args(By):
        raise SaberError(f"--by {by}: there are {', '.join(get_args(By))}")
    home = current_home()
    rows = cost_rows(home, cast(By, by), since)
    total = {name: sum(row[name] for row in rows) for name in _SUMMED}
    if as_json:
        print_json({"ledger": str(home.ledger), "by": by, "rows": rows, "total": total})
        return
    console.print(_table(str(home.ledger), cast(By, by), rows, total))
    console.print(f"[yellow]note:[/] {_REPLAYS}", soft_wrap=True)
    if total["unpriced"]:
        console.print(
            f"[yellow]note:[/] {total['unpriced']:,} of {total['counted']:,} paid calls have no price:"
            " they took tokens, and their engine had no price_per_million; `?` stands for sums of"
            " nothing else",
            highlight=False,
            soft_wrap=True,
        )


def cost_rows(home: Home, by: By, since: str | None = None) -> list[dict[str, Any]]:
    """The rows of the report; runs and judges are named where Dagster knows them."""
    from saber_dagster.recorded_runs import recorded_runs

    ledger = Ledger(home.ledger, home.journals)
    start = since_time(since) if since else None
    if by not in ("run", "judge"):
        return sums(ledger, by, start).to_dicts()
    runs = recorded_runs(home, run_ids(ledger))
    judges = {run.run_id: run.judge for run in runs.values() if run.judge}
    rows = sums(ledger, by, start, judges).to_dicts()
    if by == "run":
        for row in rows:
            run = runs[row["run_id"]]
            row |= {"run": str(run), "partition": run.partition, "known": run.known}
        rows.sort(key=lambda row: row["first"])
    return rows


def _table(title: str, by: By, rows: list[dict[str, Any]], total: dict[str, Any]) -> Table:
    names = ["run", "stage", "model"] if by == "run" else list(GROUPS[by])
    failed = [status for status in STATUSES if status != "ok" and total[status]]
    tokens = [name for name in TOKENS if total[name]]
    numbers = ["calls", *failed, "duplicates", *tokens, "price_usd", "mean_latency_s"]
    table = Table(title=title, title_justify="left", show_footer=len(rows) > 1)
    for number, name in enumerate(names):
        table.add_column(name, footer="total" if number == 0 else "", overflow="fold")
    for name in numbers:
        footer = _cell(name, total) if name in total else ""
        heading = name.replace("_s", " s").replace("_usd", " $").replace("_", " ")
        table.add_column(heading, justify="right", footer=footer)
    for row in rows:
        named = (escape(str(row[name]) or "(no judge's run)") for name in names)
        table.add_row(*named, *(_cell(name, row) for name in numbers))
    return table


def _cell(name: str, row: dict[str, Any]) -> str:
    value = row[name]
    if name == "price_usd":
        return money(value, row["unpriced"])
    return f"{value:.3f}" if isinstance(value, float) else f"{value:,}"


def moment(seconds: float | None) -> str:
    """Seconds since the epoch as a date and time in UTC."""
    if seconds is None:
        return ""
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}"
    except (ValueError, OverflowError):  # of a damaged segment
        return f"{seconds:g} s"
