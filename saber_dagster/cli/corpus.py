"""``saber corpus``: look at a file before it is built on."""

from pathlib import Path
from typing import Annotated

import polars as pl
import typer
from rich.markup import escape

from saber_dagster.cli.common import JsonOption, MapOption, console, parse_mapping, print_json
from saber_dagster.corpus_rows import Problem
from saber_dagster.errors import Fault

corpus_app = typer.Typer(help="Check a corpus.", no_args_is_help=True, rich_markup_mode=None)


@corpus_app.callback()
def _group() -> None:
    """Check a corpus."""


@corpus_app.command("check")
def check(
    files: Annotated[list[Path], typer.Argument(help="JSONL, CSV or Parquet files.")],
    mapping: MapOption = None,
    as_json: JsonOption = False,
) -> None:
    """List every fault of corpus files with file, row, field and remedy; exit code 1 if there is one.

    Nothing is written.
    """
    from saber_dagster.corpus import build_corpus, read_problems
    from saber_dagster.corpus_rows import repeated_ids
    from saber_dagster.input_files import given_twice

    twice = given_twice((path, None) for path in files)
    once = [path for n, path in enumerate(files) if n not in twice]
    read = [read_problems(path, parse_mapping(mapping)) for path in once]
    faults = [*twice.values(), *(fault for file in read for fault in file.faults)]
    warnings = [warning for file in read for warning in file.warnings]
    rows = [row for file in read for row in file.rows]
    known = {str(fault) for fault in faults}
    ids = ((row.source, row.source_id, row.file, row.row) for row in rows)
    faults += [fault for fault in repeated_ids(ids) if str(fault) not in known]
    if not faults:
        warnings += _duplicates(rows, build_corpus(rows).duplicates)
    if as_json:
        print_json(
            {
                "problems": len(rows),
                "faults": [fault.as_row() for fault in faults],
                "warnings": [warning.as_row() for warning in warnings],
            }
        )
    else:
        for fault in faults:
            console.print(f"[red]fault[/]   {escape(str(fault))}", soft_wrap=True, highlight=False)
        for warning in warnings:
            console.print(
                f"[yellow]warning[/] {escape(str(warning))}", soft_wrap=True, highlight=False
            )
        console.print(
            f"{len(rows):,} problems can be read; {len(faults)} fault(s), {len(warnings)} warning(s)"
        )
    if faults:
        raise typer.Exit(1)


def _duplicates(rows: list[Problem], left_out: pl.DataFrame) -> list[Fault]:
    """A warning with the number of rows that the build leaves out, if there are any."""
    kept = {(row[0], row[1]): row[3] for row in left_out.iter_rows()}
    same = [row for row in rows if (row.source, row.source_id) in kept]
    if not same:
        return []
    first = same[0]
    problem = (
        f"{len(same)} of {len(rows)} rows have the problem and solution of another row; the first is"
        f" row {first.row}, {first.source_id!r}, like {kept[first.source, first.source_id]!r}"
    )
    return [Fault(first.file, first.row, "", problem, "The build keeps one of them")]
