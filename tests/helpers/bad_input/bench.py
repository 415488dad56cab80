"""Where a case of bad input is made and tried.

The command line is called as its script calls it: Typer's ``CliRunner`` goes past the place where
errors become messages.
"""

import hashlib
import io
import json
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from saber_dagster.cli import app

GOOD = {"problem": "Is $1$ odd?", "solution": "Yes.", "licence": "MIT"}

Content = bytes | str | Callable[[Path], object]


@dataclass(frozen=True)
class Said:
    """What a case came to.

    ``code`` is the exit code, None where no command was run; ``at`` are places that the text must name;
    ``changed`` are the paths that differ afterwards.
    """

    code: int | None
    text: str
    at: tuple[str, ...] = ()
    changed: frozenset[str] = frozenset()
    writes: bool = False
    """Whether the case is one that may write."""


class Bench:
    """A folder with a home in it, and the command line."""

    def __init__(self, folder: Path, small_build: Callable[[], Any]) -> None:
        self.folder = folder
        self.small_build = small_build

    def write(self, name: str, content: Content) -> Path:
        """Write a file, or have it written."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if callable(content):
            content(path)
        else:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def saber(
        self,
        *args: str | Path,
        at: tuple[str, ...] = (),
        environ: Mapping[str, str] | None = None,
        writes: bool = False,
    ) -> Said:
        """Run a command in the folder."""
        before = snapshot(self.folder)
        environ = {"SABER_HOME": str(self.folder / "home"), **(environ or {})}
        code, text = run([str(arg) for arg in args], environ)
        after = snapshot(self.folder)
        changed = frozenset(path for path, _, _ in before ^ after)
        return Said(code, text, at, changed, writes)


Case = Callable[[Bench], Said]


def run(args: list[str], environ: Mapping[str, str]) -> tuple[int, str]:
    """Exit code of ``saber``, and all that it prints, in one line."""
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(out):
        for name, value in environ.items():
            patch.setenv(name, value)
        with pytest.raises(SystemExit) as end:
            app(args)
    return end.value.code or 0, " ".join(out.getvalue().split())


def snapshot(folder: Path) -> set[tuple[str, int, str]]:
    """Name, size and SHA-256 of everything below a folder."""
    return {
        (
            str(path.relative_to(folder)),
            path.stat().st_size if path.is_file() else 0,
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
        )
        for path in folder.rglob("*")
    }


def jsonl(*rows: Mapping[str, Any]) -> str:
    """Good rows with changes, their ids "1", "2", …"""
    return "".join(
        json.dumps({"id": str(number), **GOOD, **row}) + "\n" for number, row in enumerate(rows, 1)
    )


def checked(name: str, content: Content, *options: str, at: str = "") -> Case:
    """``saber corpus check`` of one file; ``at`` is the place that it must name."""

    def case(bench: Bench) -> Said:
        path = bench.write(name, content)
        return bench.saber("corpus", "check", path, *options, at=(f"{at or name + ':'} ",))

    return case


def row(at: str = "", **changes: Any) -> Case:
    """``saber corpus check`` of one row of JSONL; ``at`` is the field that it must name."""
    return checked("a.jsonl", jsonl(changes), at=f"a.jsonl:1: {at}:" if at else "1 problems can")
