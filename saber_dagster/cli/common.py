"""What the commands share: errors for people, JSON for programs, options."""

import json
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from saber_dagster.errors import SaberError
from saber_dagster.home import Home, home_path

_PIPED_WIDTH = 160
"""Columns where there is no terminal: wide enough for every table."""


def _console(stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    return Console(stderr=stderr, width=None if stream.isatty() else _PIPED_WIDTH)


console = _console(stderr=False)
errors = _console(stderr=True)

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]
MapOption = Annotated[
    list[str] | None,
    typer.Option("--map", help="FIELD=COLUMN where names differ, such as problem=question."),
]


class SaberTyper(typer.Typer):
    """A Typer application whose user errors are a message and exit code 1, not a traceback."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the command line."""
        try:
            return super().__call__(*args, **kwargs)
        except SaberError as error:
            errors.print(
                f"[bold red]error:[/] {escape(str(error))}", highlight=False, soft_wrap=True
            )
            sys.exit(1)


def current_home() -> Home:
    """The home of ``SABER_HOME``."""
    return Home(home_path())


def print_json(value: Any) -> None:
    """Print one JSON value to standard output."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def parse_mapping(pairs: Sequence[str] | None) -> dict[str, str]:
    """``["problem=question"]`` → ``{"problem": "question"}``."""
    mapping = {}
    for pair in pairs or ():
        field, equals, column = pair.partition("=")
        if not (field and equals and column):
            raise SaberError(f"--map {pair!r}: write FIELD=COLUMN, such as problem=question")
        mapping[field] = column
    return mapping
