"""What the commands share: errors for people, JSON for programs, options."""

import json
import sys
from collections.abc import Sequence
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.markup import escape

from saber_dagster.errors import SaberError
from saber_dagster.home import Home, home_path
from saber_dagster.storage import is_local

_INTERRUPTED = 130
"""Exit code after Ctrl-C."""

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
    """A Typer application whose errors are for people: a message and an exit code, no traceback."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the command line."""
        given = args[0] if args else sys.argv[1:]
        try:
            return super().__call__(*args, **kwargs)
        except SaberError as error:
            _fail(str(error), given, error.exit_code)
        except OSError as error:
            place = f": {error.filename}" if error.filename else ""
            _fail(f"{error.strerror or error}{place}", given)
        except Exception as error:
            if not (fault := _database_fault(error)):
                raise
            _fail(fault, given)
        except KeyboardInterrupt:
            _interrupted()
        except SystemExit as end:
            if end.code != _INTERRUPTED:
                raise
            _interrupted()


def _database_fault(error: BaseException) -> str:
    """What to say if a database of Dagster's instance is behind an error; else nothing."""
    databases = sys.modules.get("sqlalchemy.exc")  # not imported: then it raised nothing
    cause: BaseException | None = error
    while databases and cause is not None:
        if isinstance(cause, databases.DatabaseError):
            return (
                f"Dagster's instance in {current_home().dagster} cannot be read or written:"
                f" {cause.orig}. Is the disk full, or are the folder's permissions wrong? Mend that and"
                " run the command again; what was finished is kept"
            )
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    return ""


def _fail(message: str, given: Sequence[str], code: int = 1) -> NoReturn:
    errors.print(f"[bold red]error:[/] {escape(message)}", highlight=False, soft_wrap=True)
    if "--json" in given:
        print_json({"error": message})
    sys.exit(code)


def _interrupted() -> NoReturn:
    errors.print("interrupted; `saber build` goes on from here", highlight=False)
    sys.exit(_INTERRUPTED)


def current_home() -> Home:
    """The home of ``SABER_HOME``.

    Raises:
        SaberError: if a file is in its place.
    """
    home = Home(home_path())
    if is_local(home.root) and home.root.exists() and not home.root.is_dir():
        raise SaberError(f"{home.root} is a file; set SABER_HOME to a folder")
    return home


def print_json(value: Any) -> None:
    """Print one JSON value to standard output."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def money(usd: float, taken: int = 0, places: int | None = None) -> str:
    """US dollars; ``?`` where tokens or calls were taken and no price is known.

    Args:
        usd: the sum of the prices.
        taken: tokens or calls that should have a price.
        places: decimals; by default cents, or four decimals below a dollar.
    """
    if taken and not usd:
        return "?"
    if places is None:
        places = 2 if usd >= 1 or usd == 0 else 4
    return f"{usd:,.{places}f}"


def parse_mapping(pairs: Sequence[str] | None, option: str = "--map") -> dict[str, str]:
    """``["problem=question"]`` → ``{"problem": "question"}``.

    Raises:
        SaberError: if a pair is none, or a field is given twice.
    """
    mapping: dict[str, str] = {}
    for pair in pairs or ():
        field, equals, column = pair.partition("=")
        if not (field and equals and column):
            raise SaberError(f"{option} {pair!r}: write FIELD=COLUMN, such as problem=question")
        if field in mapping:
            raise SaberError(
                f"{option} names {field} twice, as {mapping[field]!r} and {column!r}; keep one"
            )
        mapping[field] = column
    return mapping
