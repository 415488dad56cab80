"""``saber report``: a build as one page."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from saber_dagster.cli.common import console, current_home
from saber_dagster.errors import SaberError
from saber_dagster.storage import write_atomic

FILE = "report.html"


def report(
    out: Annotated[
        Path | None, typer.Option(help="The page; default: report.html in the home.")
    ] = None,
    queries: Annotated[
        int | None,
        typer.Option(min=0, help="Example queries; default: one of each domain."),
    ] = None,
    judge: Annotated[str | None, typer.Option(help="Only this judge.")] = None,
) -> None:
    """Write the build of the home as one HTML page, with figures and examples.

    The page needs neither network nor script. What is missing or not fresh is named on it.
    """
    from saber_dagster.report.page import make_report

    home = current_home()
    path = out or home.root / FILE
    if path.is_dir():
        raise SaberError(f"{path} is a folder; name a file, such as {path / FILE}")
    made = make_report(home, queries, judge)
    data = made.html.encode()
    write_atomic(path, data)
    for note in made.notes:
        console.print(f"[yellow]note:[/] {escape(note)}", soft_wrap=True)
    console.print(f"{path} ({len(data) / 1e6:.1f} MB)", highlight=False, soft_wrap=True)
