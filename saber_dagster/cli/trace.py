"""``saber trace``: from a figure down to raw replies, prompt, model and Dagster run."""

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from saber_dagster.cli.common import current_home
from saber_dagster.cli.trace_text import lines_of
from saber_dagster.errors import SaberError
from saber_dagster.home import Home
from saber_dagster.storage import write_atomic

if TYPE_CHECKING:
    from saber_dagster.trace import Means


def trace(
    query: Annotated[str | None, typer.Option(help="A query: your own id, or ours.")] = None,
    doc: Annotated[str | None, typer.Option(help="One of its candidates, likewise.")] = None,
    judge: Annotated[str | None, typer.Option(help="Slug of a judge; default: the first.")] = None,
    retriever: Annotated[
        str | None, typer.Option(help="From a cell of the leaderboard: slug of the retriever.")
    ] = None,
    domain: Annotated[str, typer.Option(help="The cell's domain.")] = "overall",
    setting: Annotated[
        str | None, typer.Option(help="The cell's setting; default: the first.")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Print all texts whole.")] = False,
    json_file: Annotated[
        str | None, typer.Option("--json", help="Write the chain as JSON to this file, or to -.")
    ] = None,
) -> None:
    """Print how a document's rating, or a cell of the leaderboard, came about.

    Either --query and --doc, or --retriever (with --domain, --setting) for a cell; then --query and
    --doc say which of its queries and documents to follow, the worst query and the document that the
    retriever ranks first if they are absent.
    """
    from saber_dagster.trace import trace_cell, trace_document

    home = current_home()
    with redirect_stdout(sys.stderr):
        means = _means(home)
        if retriever is not None:
            found = trace_cell(home, retriever, domain, judge, setting, means, query, doc)
        elif query is not None and doc is not None:
            found = trace_document(home, query, doc, judge, means)
        else:
            raise SaberError(
                "say what to trace: --query Q --doc D, or --retriever R --domain X for a cell of the"
                " leaderboard"
            )
    if json_file is not None:
        _write(found, json_file)
    else:
        typer.echo("\n".join(lines_of(found, full)))


def _means(home: Home) -> "Means":
    from saber_dagster.definitions import judge_engine, render_archived

    return render_archived, [judge_engine(judge) for judge in home.judges]


def _write(found: dict[str, Any], file: str) -> None:
    import json

    text = json.dumps(found, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    if file == "-":
        sys.stdout.write(text)
        return
    path = Path(file)
    if not path.parent.is_dir():
        raise SaberError(f"--json {file}: there is no folder {path.parent}")
    write_atomic(path, text.encode())
    typer.echo(f"written to {path}", err=True)
