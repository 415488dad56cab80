"""One file of an ontology: its text, its rows, what is wrong with them and what was mended."""

import io
import unicodedata
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from saber_dagster.bad_text import has_eaten_command, impossible_character, invisible_character
from saber_dagster.corpus_files import kind_of
from saber_dagster.csv_rows import csv_rows
from saber_dagster.errors import Fault
from saber_dagster.input_files import (
    ENCODING_REMEDY,
    no_file,
    other_format,
    shown_name,
    undecodable,
)
from saber_dagster.json_text import RepeatedKeys, decode

_BOM = "\N{ZERO WIDTH NO-BREAK SPACE}"
_GIVE_TEXT = "Give a text that is not empty"


class SourceFile:
    """One input file, and where its faults and repairs are noted."""

    def __init__(self, path: Path, faults: list[Fault], repairs: Counter[str]) -> None:
        self.path, self.faults, self.repairs = path, faults, repairs

    def fault(self, row: int, field: str, problem: str, remedy: str) -> None:
        """Note a fault."""
        self.faults.append(Fault(shown_name(self.path), row, field, problem, remedy))

    def read(self) -> str:
        """The file's text without byte order mark; empty, with a fault, if there is none."""
        if refused := no_file(self.path):
            self.fault(0, "", *refused)
            return ""
        try:
            data = self.path.read_bytes()
        except (OSError, ValueError) as error:  # ValueError: a NUL in the path
            reason = getattr(error, "strerror", error)
            self.fault(0, "", f"cannot be read ({reason})", "Check path and permissions")
            return ""
        if other := other_format(data):
            self.fault(0, "", *other)
            return ""
        before = len(self.faults)
        for row, line in enumerate(data.split(b"\n"), start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                self.fault(row, "", undecodable(line[error.start]), ENCODING_REMEDY)
        if len(self.faults) > before:
            return ""
        text = data.decode("utf-8")
        if text.startswith(_BOM):
            self.repairs["byte_order_mark"] += 1
            text = text[1:]
        if not text.strip():
            self.fault(0, "", "is empty", "Give at least one topic")
        return text

    def text(self, value: Any, row: int, field: str, remedy: str = _GIVE_TEXT) -> str:
        """A value as composed, trimmed text; empty, with a fault, if it is none."""
        if not isinstance(value, str):
            problem = "is missing" if value is None else f"is {kind_of(value)}, not text"
            self.fault(row, field, problem, remedy)
            return ""
        bad = impossible_character(value.replace("\r\n", "\n")) or invisible_character(value)
        if bad is None and has_eaten_command(value):
            remedy = r"Double the backslash in JSON: \\theta, \\neq"
            bad = "has a tab or line break in place of the start of a LaTeX command", remedy
        if bad is None and not value.strip():
            bad = "is empty", _GIVE_TEXT
        if bad:
            self.fault(row, field, *bad)
            return ""
        text = " ".join(value.split())
        if text != value:
            self.repairs["whitespace"] += 1
        composed = unicodedata.normalize("NFC", text)
        if composed != text:
            self.repairs["composed_characters"] += 1
        return composed

    def texts(self, value: Any, row: int, field: str) -> list[str]:
        """An optional list of texts."""
        if value is None:
            return []
        if not isinstance(value, list):
            self.fault(row, field, "is not a list", 'Write a list of texts: ["…", "…"]')
            return []
        return [self.text(item, row, f"{field}[{i}]") for i, item in enumerate(value)]

    def json_lines(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Line number and object of every line that is one."""
        for row, line in enumerate(self.read().split("\n"), start=1):
            if not line.strip():
                continue
            try:
                value = decode(line.rstrip("\r"))
            except (ValueError, RecursionError) as error:
                self.fault(row, "", f"is not JSON ({error})", "Write one JSON object per line")
                continue
            if isinstance(value, dict):
                self.check_keys(value, row, "")
                yield row, value
            else:
                self.fault(row, "", "is not a JSON object", "Write one JSON object per line")

    def check_keys(self, value: dict[str, Any], row: int, place: str) -> None:
        """Note keys that an object has more than once."""
        if isinstance(value, RepeatedKeys):
            self.faults.append(value.fault(shown_name(self.path), row, place))

    def table(self, delimiter: str) -> Iterator[tuple[int, dict[str, Any]]]:
        """Line number and cells by lower-cased column name of every row under the header."""
        lines = list(io.StringIO(self.read(), newline=""))
        # A quotation mark in a TSV file is text; in a CSV file it quotes.
        quoted = delimiter != "\t"
        header: list[str] = []
        for row, cells in csv_rows(lines, delimiter, self._note, quoted=quoted, may_be_short=True):
            if header:
                if any(cell.strip() for cell in cells):
                    yield row, dict(zip(header, cells, strict=False))
                continue
            header = [cell.strip().lower() for cell in cells]
            if missing := {"parent", "child"} - set(header):
                problem = f"lacks the column(s) {', '.join(sorted(missing))}: {cells}"
                remedy = f"Start the file with parent{delimiter}child"
                self._note(row, problem, remedy.replace("\t", "<tab>"))
                return

    def _note(self, row: int, problem: str, remedy: str) -> None:
        self.fault(row, "", problem, remedy)
