"""``saber build --dry-run``: what the next build would pay."""

import sys
from contextlib import redirect_stdout
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table

from saber_dagster.cli.common import console, print_json
from saber_dagster.errors import SaberError
from saber_dagster.home import Home
from saber_dagster.ledger.counts import amount, duration

if TYPE_CHECKING:
    from saber_dagster.dry_run import Plan

_NUMBERS = ("calls", "replayed", "prompt_tokens", "completion_tokens")


def show_plan(home: Home, as_json: bool) -> None:
    """Print what the next build would pay.

    Raises:
        SaberError: if there is no home yet.
    """
    from saber_dagster.definitions import load
    from saber_dagster.dry_run import plan

    if not home.root.exists():
        raise SaberError(f"there is no home at {home.root}; `saber build` makes one")
    with redirect_stdout(sys.stderr):
        made = plan(home, load(home))
    if as_json:
        print_json({**asdict(made), "total": made.total})
    else:
        _print(made)


def _print(plan: "Plan") -> None:
    if not plan.planned and not plan.unknown:
        console.print("Everything paid is fresh; a build would ask nothing.")
        return
    if plan.planned:
        console.print(_table(plan))
        for basis in dict.fromkeys(item.basis for item in plan.planned if item.calls):
            console.print(f"[yellow]note:[/] estimated from {escape(basis)}", soft_wrap=True)
        console.print(
            "[yellow]note:[/] calls that follow from replies not there yet are guessed, and nothing is"
            " counted for asking again",
            soft_wrap=True,
        )
    for item in plan.unknown:
        limit = "" if item.at_most is None else f"; at most {item.at_most:,} calls"
        console.print(
            f"not known yet: {item.asset}, {item.partitions} partition(s), as {escape(item.reason)}"
            f"{limit}",
            highlight=False,
            soft_wrap=True,
        )


def _table(plan: "Plan") -> Table:
    table = Table(
        title="What the next build would pay, as far as it is known",
        title_justify="left",
        show_footer=len(plan.planned) > 1,
    )
    total = plan.total
    table.add_column("asset", footer="total", no_wrap=True)
    table.add_column("partition", no_wrap=True)
    headings = ("calls", "from the ledger", "prompt tokens", "completion tokens", "$", "time")
    for heading, cell in zip(headings, _cells(total), strict=True):
        table.add_column(heading, footer=cell, justify="right")
    for item in plan.planned:
        table.add_row(item.asset, item.partition or "", *_cells(asdict(item)))
    return table


def _cells(row: dict[str, Any]) -> list[str]:
    price, seconds = row["price"], row["seconds"]
    calls, replayed, *tokens = (row[name] for name in _NUMBERS)
    return [
        f"{calls:,}",
        f"{replayed:,}",
        *map(amount, tokens),
        "?" if price is None else f"{price:,.2f}",
        "?" if seconds is None else duration(seconds),
    ]
