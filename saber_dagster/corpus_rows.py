"""Rows of a corpus or query file: what each field must contain, and what is wrong with it.

A row's texts are normalized here once, so that nothing later depends on how a file was encoded.
"""

import math
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from saber_dagster.bad_text import (
    INVISIBLE,
    OVERRIDE,
    REPLACEMENT,
    has_eaten_command,
    impossible_character,
    invisible_character,
    is_blank,
)
from saber_dagster.corpus_files import Records, kind_of
from saber_dagster.errors import Fault

FIELDS = ("id", "problem", "solution", "answer", "source", "language", "licence", "url")
"""Every field that is read; labels such as a subject never are."""
LONG_TEXT = 200_000
"""Characters above which a text gets a warning."""
UNKNOWN_LICENCE = "unknown"

_NUMBERS: Mapping[str, tuple[type, ...]] = {"id": (int,), "answer": (int, float)}
_BLOCKS = ("problem", "solution", "answer")  # fields that may have several lines
_LINE_BREAK = re.compile("[\n\t\u2028\u2029]")


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem with its solution as a file gives it; ``file`` and ``row`` say where."""

    source: str
    source_id: str
    problem: str
    solution: str
    answer: str | None = None
    language: str = "en"
    licence: str = UNKNOWN_LICENCE
    url: str | None = None
    file: str = ""
    row: int = 0


def normalize(text: str) -> str:
    r"""Unicode NFC, ``\r\n`` as ``\n``, no outer white space; the text is otherwise kept."""
    return unicodedata.normalize("NFC", text.replace("\r\n", "\n")).strip()


@dataclass(frozen=True, slots=True)
class Kind:
    """What a file is for: the fields that every row must have, and how to mend it."""

    required: tuple[str, ...]
    option: str
    """The option of the command line that maps its columns."""
    twice: str
    """What to do with an id that is given twice."""


CORPUS = Kind(
    ("id", "problem", "solution"), "--map", "Give each row its own id, or each file its own source"
)
QUERIES = Kind(("id",), "--map-queries", "Keep one of the two, or give a query text its own id")


def check_records(
    records: Records, mapping: Mapping[str, str], kind: Kind, default_source: str
) -> tuple[list[tuple[int, dict[str, str]]], list[Fault]]:
    """Check the values of records.

    Args:
        records: values by field name.
        mapping: the file's column of a field where the names differ.
        kind: what the file is for.
        default_source: source of rows that name none; ids must be unique in a source.

    Returns:
        (row, text of every field, "" where it has none) of the rows without a fault, and all faults
        of the file. A fault that every row has is given once.
    """
    faults: list[Fault] = []
    column_of = {name: mapping.get(name, name) for name in FIELDS}
    checked: dict[int, dict[str, str]] = {}
    ids: list[tuple[str, str, str, int]] = []
    malformed = {fault.row for fault in records.faults}
    for row, values in records.rows:
        texts, before = {}, len(faults)
        for name, column in column_of.items():
            try:
                texts[name] = _text(name, column, values, kind, records)
            except _BadValueError as bad:
                faults.append(Fault(records.file, row, column, bad.problem, bad.remedy))
        if len(faults) == before and row not in malformed:
            checked[row] = texts
        if "id" in texts and "source" in texts:
            ids.append((texts["source"] or default_source, texts["id"], records.file, row))
    faults = _once(faults, len(records.rows), records.file)
    for fault in repeated_ids(ids, kind):
        checked.pop(fault.row, None)
        faults.append(fault)
    faults += _mapping_faults(records, mapping, kind)
    return list(checked.items()), sorted(records.faults + faults)


def _mapping_faults(records: Records, mapping: Mapping[str, str], kind: Kind) -> Iterator[Fault]:
    for name, column in mapping.items():
        if name not in FIELDS:
            near = get_close_matches(name, FIELDS, 1)
            hint = f"Did you mean {near[0]}? " if near else ""
            remedy = f"{hint}The fields are {', '.join(FIELDS)}"
            yield Fault(records.file, 0, name, "is mapped, but is no field", remedy)
        elif records.rows and name not in kind.required and column not in records.columns:
            problem = f"is mapped to {name}, but the file has no such column"
            yield Fault(records.file, 0, column, problem, f"Name one of: {records.names}")
    columns = [mapping.get(name, name) for name in CORPUS.required]
    for column in sorted({column for column in columns if columns.count(column) > 1}):
        names = [name for name in CORPUS.required if mapping.get(name, name) == column]
        problem = f"is read as {' and as '.join(names)}"
        remedy = f"Map each to its own column: {records.names}"
        yield Fault(records.file, 0, column, problem, remedy)


def repeated_ids(rows: Iterable[tuple[str, str, str, int]], kind: Kind = CORPUS) -> list[Fault]:
    """A fault for each row but the first whose (source, id) is not its own.

    Args:
        rows: (source, id, file, row) in any order.
        kind: what the rows are for.
    """
    groups: dict[tuple[str, str], list[tuple[str, int]]] = defaultdict(list)
    for source, source_id, file, row in rows:
        groups[source, source_id].append((file, row))
    found = []
    for (source, source_id), places in groups.items():
        (first_file, first_row), *others = sorted(places)
        for file, row in others:
            where = f"row {first_row}" + (f" of {first_file}" if file != first_file else "")
            if (file, row) == (first_file, first_row):
                where = "the same row, for the file was read twice"
            problem = f"{source_id!r} is also the id of {where}, in the source {source!r}"
            found.append(Fault(file, row, "id", problem, kind.twice))
    return found


def warnings_of(rows: Sequence[Problem]) -> list[Fault]:
    """What the owner of a file should know, once per kind with the number of rows."""
    noted: dict[tuple[str, str, str], list[Problem]] = defaultdict(list)
    for row in rows:
        for name, text in (("problem", row.problem), ("solution", row.solution)):
            for what, remedy in _oddities(text):
                noted[name, what, remedy].append(row)
        if row.licence == UNKNOWN_LICENCE:
            remedy = "Give a column licence, or one licence for the file"
            noted["licence", "no licence", remedy].append(row)
    found = []
    for (name, what, remedy), same in noted.items():
        first = same[0]
        problem = f"{len(same)} of {len(rows)} rows have {what}; the first is row {first.row}"
        found.append(Fault(first.file, first.row, name, problem, remedy))
    return found


def _oddities(text: str) -> Iterator[tuple[str, str]]:
    """What is odd about a text that is kept as it is, and what to do."""
    if "$" in text and re.sub(r"\\.", "", text, flags=re.DOTALL).count("$") % 2:
        yield "an unpaired $", r"Check the formulas; write \$ for a currency"
    if len(text) > LONG_TEXT:
        remedy = "Models read the beginning only: check that it is one problem"
        yield f"over {LONG_TEXT:,} characters", remedy
    if has_eaten_command(text):
        remedy = r"Double the backslash of LaTeX commands in JSON: \\theta, \\neq"
        yield "a tab or line break in place of the start of a LaTeX command", remedy
    if INVISIBLE.search(text) or OVERRIDE.search(text):
        yield "invisible characters", "They are kept; remove them if they came by copying"
    if REPLACEMENT in text:
        remedy = "An earlier conversion lost characters: convert the original to UTF-8 again"
        yield "the replacement character U+FFFD", remedy


def misspelt_columns(records: Records, mapping: Mapping[str, str], kind: Kind) -> list[Fault]:
    """A warning for each optional field that the file lacks and nearly has."""
    wanted = {name: mapping.get(name, name) for name in FIELDS}
    unread = [column for column in records.columns if column not in wanted.values()]
    found = []
    optional = [name for name in FIELDS if name not in kind.required]
    for name in optional:
        column = wanted[name]
        if column not in records.columns and (near := get_close_matches(name, unread, 1, 0.8)):
            problem = f"is not read, and there is no {column}"
            remedy = f"If it is the {name}, rename it or map it: {kind.option} {name}={near[0]}"
            found.append(Fault(records.file, 0, near[0], problem, remedy))
    return found


class _BadValueError(Exception):
    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.problem, self.remedy = problem, remedy


def _text(name: str, column: str, values: Mapping[str, Any], kind: Kind, records: Records) -> str:
    """The normalized text of a field, "" if it may be absent and is."""
    value = values.get(name)
    required = name in kind.required
    if value is None:
        if not required:
            return ""
        if name in values:
            raise _BadValueError("is null", "Give a text or remove the row")
        raise _BadValueError("is missing", _missing_remedy(name, column, kind, records))
    if not isinstance(value, str):
        number = isinstance(value, _NUMBERS.get(name, ())) and not isinstance(value, bool)
        if not number or (isinstance(value, float) and not math.isfinite(value)):
            raise _BadValueError(f"is {kind_of(value)}, not text", "Write it as text, in quotes")
        return str(value)
    text = value.replace("\r\n", "\n")
    if bad := impossible_character(text):
        raise _BadValueError(*bad)
    text = normalize(text)
    if required and is_blank(text):
        raise _BadValueError("is empty", "Give a text or remove the row")
    if name not in _BLOCKS and _LINE_BREAK.search(text):
        raise _BadValueError("has a line break or tab inside", "Write it on one line")
    if name == "id" and (bad := invisible_character(text)):
        raise _BadValueError(*bad)
    return text


def _missing_remedy(name: str, column: str, kind: Kind, records: Records) -> str:
    if column in records.columns:
        return "Give a text or remove the row"
    if column != name:
        return f"Map {name} to a column that the file has: {records.names}"
    near = next(iter(get_close_matches(name, records.columns, 1, 0.75)), "my_column")
    return f"Rename a column or map it, as in {kind.option} {name}={near}; found: {records.names}"


def _once(faults: Iterable[Fault], n_rows: int, file: str) -> list[Fault]:
    """Replace a fault that all of several rows share by one of the whole file."""
    groups: dict[tuple[str, str, str], list[Fault]] = defaultdict(list)
    for fault in faults:
        groups[fault.field, fault.problem, fault.remedy].append(fault)
    found: list[Fault] = []
    for (name, problem, remedy), same in groups.items():
        whole = Fault(file, 0, name, f"{problem} (all {n_rows} rows)", remedy)
        found += [whole] if len(same) == n_rows > 1 else same
    return found
