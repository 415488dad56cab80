"""Rows of a corpus or query file: what each field must contain, and what is wrong with it.

A row's texts are normalized here once, so that nothing later depends on how a file was encoded.
"""

import math
import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from saber_dagster.corpus_files import Records, kind
from saber_dagster.errors import Fault

FIELDS = ("id", "problem", "solution", "answer", "source", "language", "licence", "url")
"""Every field that is read; labels such as a subject never are."""
LONG_TEXT = 200_000
"""Characters above which a text gets a warning."""
UNKNOWN_LICENCE = "unknown"

_NUMBERS: Mapping[str, tuple[type, ...]] = {"id": (int,), "answer": (int, float)}
_BLOCKS = ("problem", "solution", "answer")  # fields that may have several lines
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_ESCAPES = {"\x07": r"\alpha", "\x08": r"\beta", "\x0b": r"\vec", "\x0c": r"\frac", "\r": r"\rho"}


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


def check_records(
    records: Records,
    mapping: Mapping[str, str],
    required: Collection[str],
    default_source: str,
) -> tuple[list[tuple[int, dict[str, str]]], list[Fault]]:
    """Check the values of records.

    Args:
        records: values by field name.
        mapping: the file's column of a field where the names differ.
        required: fields that every row must have.
        default_source: source of rows that name none; ids must be unique in a source.

    Returns:
        (row, text of every field, "" where it has none) of the rows without a fault, and all faults
        of the file. A fault that every row has is given once.
    """
    faults: list[Fault] = []
    checked: dict[int, dict[str, str]] = {}
    ids: list[tuple[str, str, str, int]] = []
    for row, values in records.rows:
        texts, before = {}, len(faults)
        for name in FIELDS:
            try:
                texts[name] = _text(name, values, name in required, records.names)
            except _BadValueError as bad:
                column = mapping.get(name, name)
                faults.append(Fault(records.file, row, column, bad.problem, bad.remedy))
        if len(faults) == before:
            checked[row] = texts
        if "id" in texts and "source" in texts:
            ids.append((texts["source"] or default_source, texts["id"], records.file, row))
    faults = _once(faults, len(records.rows), records.file)
    for fault in repeated_ids(ids):
        checked.pop(fault.row, None)
        faults.append(fault)
    for name, column in mapping.items():
        if name not in FIELDS:
            near = get_close_matches(name, FIELDS, 1)
            hint = f"Did you mean {near[0]}? " if near else ""
            remedy = f"{hint}The fields are {', '.join(FIELDS)}"
            faults.append(Fault(records.file, 0, name, "is mapped, but is no field", remedy))
        elif records.rows and name not in required and column not in records.columns:
            problem = f"is mapped to {name}, but the file has no such column"
            remedy = f"Name one of: {records.names}"
            faults.append(Fault(records.file, 0, column, problem, remedy))
    return list(checked.items()), sorted(records.faults + faults)


def repeated_ids(rows: Iterable[tuple[str, str, str, int]]) -> list[Fault]:
    """A fault for each row but the first whose (source, id) is not its own.

    Args:
        rows: (source, id, file, row) in any order.
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
            remedy = "Give each row its own id, or each file its own source"
            found.append(Fault(file, row, "id", problem, remedy))
    return found


def warnings_of(rows: Sequence[Problem]) -> list[Fault]:
    """What the owner of a file should know, once per kind with the number of rows."""
    noted: dict[tuple[str, str, str], list[Problem]] = defaultdict(list)
    for row in rows:
        for name, text in (("problem", row.problem), ("solution", row.solution)):
            if "$" in text and re.sub(r"\\.", "", text, flags=re.DOTALL).count("$") % 2:
                remedy = r"Check the formulas; write \$ for a currency"
                noted[name, "an unpaired $", remedy].append(row)
            if len(text) > LONG_TEXT:
                remedy = "Models read the beginning only: check that it is one problem"
                noted[name, f"over {LONG_TEXT:,} characters", remedy].append(row)
        if row.licence == UNKNOWN_LICENCE:
            remedy = "Give a column licence, or one licence for the file"
            noted["licence", "no licence", remedy].append(row)
    found = []
    for (name, what, remedy), same in noted.items():
        first = same[0]
        problem = f"{len(same)} of {len(rows)} rows have {what}; the first is row {first.row}"
        found.append(Fault(first.file, first.row, name, problem, remedy))
    return found


class _BadValueError(Exception):
    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.problem, self.remedy = problem, remedy


def _text(name: str, values: Mapping[str, Any], required: bool, names: str) -> str:
    """The normalized text of a field, "" if it may be absent and is."""
    value = values.get(name)
    if value is None:
        if not required:
            return ""
        if name in values:
            raise _BadValueError("is null", "Give a text or remove the row")
        remedy = f"Rename a column or map it, as in --map {name}=my_column; found: {names}"
        raise _BadValueError("is missing", remedy)
    if not isinstance(value, str):
        number = isinstance(value, _NUMBERS.get(name, ())) and not isinstance(value, bool)
        if not number or (isinstance(value, float) and not math.isfinite(value)):
            raise _BadValueError(f"is {kind(value)}, not text", "Write it as text, in quotes")
        return str(value)
    text = value.replace("\r\n", "\n")
    if bad := _CONTROL.search(text):
        remedy = "Remove it"
        if command := _ESCAPES.get(bad[0]):
            remedy = rf"Probably a LaTeX command that was not escaped ({command}): write \{command}"
        problem = f"has the control character U+{ord(bad[0]):04X} at {bad.start() + 1}"
        raise _BadValueError(problem, remedy)
    if bad := _SURROGATE.search(text):
        problem = f"has the lone surrogate U+{ord(bad[0]):04X} at {bad.start() + 1}"
        raise _BadValueError(problem, "Half of a character is lost: write the text again as UTF-8")
    text = normalize(text)
    if required and not text:
        raise _BadValueError("is empty", "Give a text or remove the row")
    if name not in _BLOCKS and ("\n" in text or "\t" in text):
        raise _BadValueError("has a line break or tab inside", "Write it on one line")
    return text


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
