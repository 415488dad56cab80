"""``saber ledger``: what was asked and what it cost, whether it is whole, and ways in and out."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any

import polars as pl
import typer
from rich.table import Table

from saber_dagster.cli.common import JsonOption, console, current_home, money, print_json
from saber_dagster.errors import SaberError
from saber_dagster.ledger import Ledger

ledger_app = typer.Typer(
    help="Look at the call ledger, check it, and move it.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
StageOption = Annotated[str | None, typer.Option(help="Only this stage, such as summaries.")]
ModelOption = Annotated[str | None, typer.Option(help="Only this model.")]
_STATUSES = ("ok", "parse_error", "refused", "truncated", "transport_error")
_SUMMED = ("prompt_tokens", "completion_tokens", "reasoning_tokens", "cached_tokens")


@ledger_app.callback()
def _group() -> None:
    """Look at the call ledger, check it, and move it."""


def current_ledger() -> Ledger:
    """The ledger of ``SABER_HOME``."""
    home = current_home()
    return Ledger(home.ledger, home.journals)


@ledger_app.command("stats")
def stats(as_json: JsonOption = False) -> None:
    """Sum the ledger by stage and model: replies by status, tokens, money."""
    ledger = current_ledger()
    columns = ["model", "revision", "price", "latency", "attempt", "truncated_input", *_SUMMED]
    frame = ledger.frame(columns=["stage", "key", "status", *columns])
    rows = (
        frame.group_by("stage", "model", "revision")
        .agg(
            pl.len().alias("replies"),
            pl.col("canonical").sum().alias("distinct"),
            *((pl.col("status") == status).sum().alias(status) for status in _STATUSES),
            (pl.col("attempt") > 0).sum().alias("reasked"),
            pl.col("truncated_input").sum(),
            *(pl.col(name).sum() for name in _SUMMED),
            pl.col("price").sum().alias("price_usd"),
            pl.col("latency").sum().alias("engine_seconds"),
        )
        .with_columns(
            (pl.col("replies") - pl.col("distinct") - pl.col("transport_error")).alias("duplicates")
        )
        .sort("stage", "model", "revision")
        .to_dicts()
    )
    if as_json:
        print_json({"ledger": str(ledger.root), "rows": rows})
        return
    shown = [
        {
            **row,
            "cut": row["truncated_input"],
            "tokens": (tokens := row["prompt_tokens"] + row["completion_tokens"]),
            "usd": money(row["price_usd"], tokens),
        }
        for row in rows
    ]
    counted = ("replies", *_STATUSES, "duplicates", "reasked", "cut", "tokens", "usd")
    _print_table(str(ledger.root), ("stage", "model"), counted, shown)


@ledger_app.command("show")
def show(
    key: Annotated[str, typer.Argument(help="A call key, or its first 6 digits or more.")],
    as_json: JsonOption = False,
) -> None:
    """Show a stored reply: what was sent, what came back, and whether the key is right."""
    from saber_dagster.definitions import render_archived
    from saber_dagster.ledger.rendering import rendering

    ledger = current_ledger()
    rows = ledger.lookup(key)
    keys = sorted({row["key"] for row in rows})
    if not keys:
        raise SaberError(f"the ledger has no reply whose key begins with {key}")
    if len(keys) > 1:
        listed = "\n".join(f"  {key}" for key in keys[:20])
        raise SaberError(f"{len(keys)} keys begin with {key}; give more digits:\n{listed}")
    sent = rendering(rows[0], ledger.archive, render_archived)
    if as_json:
        print_json({"rows": rows, **asdict(sent)})
        return
    for row in rows:
        _print_row(row)
    for message in sent.messages or ():
        console.rule(message["role"])
        _print(message["content"])
    console.rule("key")
    _print("verified: the messages above give it" if sent.verified else sent.problem)


@ledger_app.command("verify")
def verify(as_json: JsonOption = False) -> None:
    """Read everything and name what is damaged; exit code 1 if anything is. Nothing is changed."""
    from saber_dagster.definitions import render_archived
    from saber_dagster.ledger.verify import verify as verified

    result = verified(current_ledger(), render_archived)
    if as_json:
        print_json(result.as_json())
    else:
        _print(
            f"{result.segments:,} segments, {result.replies:,} replies, {result.texts:,} texts,"
            f" {result.prompts:,} prompts; {result.keys_verified:,} keys verified"
        )
        for reason, number in result.keys_unverifiable.items():
            _print(f"{number:,} keys cannot be verified: {reason}")
        for finding in result.findings:
            _print(f"{'damaged' if finding.damage else 'note'}: {finding}")
        _print(f"{len(result.damaged)} damaged" if result.damaged else "nothing is damaged")
    if result.damaged:
        raise typer.Exit(1)


@ledger_app.command("compact")
def compact(as_json: JsonOption = False) -> None:
    """Join many small files into few. Nothing in them changes; steps may run meanwhile."""
    from saber_dagster.ledger.compact import compact as join

    done = join(current_ledger())
    if as_json:
        print_json(asdict(done))
        return
    _print(f"{done.files_before:,} files became {done.files_after:,}")
    for folder in done.in_use:
        _print(f"{folder} was left alone: a step writes to it")


@ledger_app.command("export")
def export(
    folder: Annotated[str, typer.Argument(help="A new folder, or s3://bucket/prefix.")],
    stage: StageOption = None,
    model: ModelOption = None,
    as_json: JsonOption = False,
) -> None:
    """Copy replies, prompts and texts to a folder: a ledger to publish, import or replay."""
    from saber_dagster.ledger.transfer import export as copy
    from saber_dagster.storage import storage_path

    done = copy(current_ledger(), storage_path(folder), stage, model)
    if as_json:
        print_json({"folder": folder, **asdict(done)})
        return
    _print(f"{done.replies:,} replies, {done.texts:,} texts, {done.prompts:,} prompts in {folder}")


@ledger_app.command("import")
def import_(
    folder: Annotated[str, typer.Argument(help="An exported folder, a ledger folder, or a home.")],
    as_json: JsonOption = False,
) -> None:
    """Add the replies that are missing here; what is here stays as it is."""
    from saber_dagster.ledger.transfer import import_from
    from saber_dagster.storage import storage_path

    done = import_from(current_ledger(), storage_path(folder))
    if as_json:
        print_json({"folder": folder, **asdict(done)})
        return
    _print(
        f"{done.replies:,} replies, {done.texts:,} texts, {done.prompts:,} prompts added;"
        f" {done.present:,} replies were here already"
    )


@ledger_app.command("reparse")
def reparse(
    write: Annotated[bool, typer.Option("--write", help="Correct the stored statuses.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Read every complete reply with today's parsers, and say what changes. Nothing is paid."""
    from saber_dagster.ledger.reparse import reparse as parse_again

    results = parse_again(current_ledger(), write)
    if as_json:
        print_json({"written": write, "rows": [asdict(result) for result in results]})
        return
    rows = [
        {
            **asdict(result),
            "newly_ok": result.changes.get("parse_error → ok", 0),
            "no_longer_ok": result.changes.get("ok → parse_error", 0),
        }
        for result in results
    ]
    columns = ("read", "unread", "newly_ok", "no_longer_ok")
    _print_table("", ("stage", "model", "partition"), columns, rows)
    if any(result.changes for result in results) and not write:
        _print(
            "`saber ledger reparse --write` corrects the statuses. Tables stay as they are: materialize"
            " these partitions again"
        )


def _print(text: str) -> None:
    console.print(text, highlight=False, soft_wrap=True, markup=False)


def _print_row(row: Mapping[str, Any]) -> None:
    long = ("text", "reasoning", "inputs", "messages")
    console.rule("reply" if row["canonical"] else "reply that does not count")
    for name, value in row.items():
        if name == "created":
            value = datetime.fromtimestamp(value, UTC).isoformat(timespec="seconds")
        if name not in long and value not in ("", None):
            _print(f"{name:<18}{value}")
    for name in ("reasoning", "text"):
        if row[name]:
            console.rule(name)
            _print(row[name])


def _print_table(
    title: str, named: Sequence[str], counted: Sequence[str], rows: Sequence[Mapping[str, Any]]
) -> None:
    table = Table(title=title or None, title_justify="left")
    for name in (*named, *counted):
        left = name in named
        heading = name.replace("_", " ")
        table.add_column(
            heading,
            justify="left" if left else "right",
            no_wrap=left,
            min_width=max(map(len, heading.split())),
        )
    for row in rows:
        table.add_row(*(_cell(row[name]) for name in (*named, *counted)))
    console.print(table)


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
