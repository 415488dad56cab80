"""``saber ledger``: what was asked and what it cost."""

import polars as pl
import typer
from rich.table import Table

from saber_dagster.cli.common import JsonOption, console, current_home, print_json
from saber_dagster.ledger import Ledger

ledger_app = typer.Typer(
    help="Look at the call ledger.", no_args_is_help=True, rich_markup_mode=None
)


@ledger_app.callback()
def _group() -> None:
    """Look at the call ledger."""


@ledger_app.command("stats")
def stats(as_json: JsonOption = False) -> None:
    """Sum the ledger by stage and model: replies, failures by status, tokens, money."""
    home = current_home()
    frame = Ledger(home.ledger).frame()
    status_of = {
        status: (pl.col("status") == status).sum().alias(status)
        for status in ("ok", "parse_error", "refused", "truncated", "transport_error")
    }
    rows = (
        frame.group_by("stage", "model", "revision")
        .agg(
            pl.len().alias("replies"),
            pl.col("canonical").sum().alias("distinct"),
            *status_of.values(),
            pl.col("prompt_tokens").sum(),
            pl.col("completion_tokens").sum(),
            pl.col("price").sum().alias("price_usd"),
            pl.col("latency").sum().alias("engine_seconds"),
        )
        .with_columns(
            (pl.col("replies") - pl.col("distinct") - pl.col("transport_error")).alias("paid_twice")
        )
        .sort("stage", "model", "revision")
    )
    if as_json:
        print_json({"ledger": str(home.ledger), "rows": rows.to_dicts()})
        return
    table = Table(title=str(home.ledger), title_justify="left")
    shown = (
        "stage",
        "model",
        "replies",
        *status_of,
        "paid_twice",
        "prompt_tokens",
        "completion_tokens",
        "price_usd",
    )
    for name in shown:
        named = name in shown[:2]
        heading = name.replace("_", " ")
        table.add_column(heading, justify="left" if named else "right", no_wrap=named)
    for row in rows.iter_rows(named=True):
        table.add_row(*(_cell(row[name]) for name in shown))
    console.print(table)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.2f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
