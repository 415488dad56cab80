"""Records of JSONL, CSV, TSV, Parquet and id-list files; lists every fault and writes nothing.

What the fields must contain is checked in :mod:`saber_dagster.corpus_rows`.
"""

import gzip
import io
import json
import math
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

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

EXTENSIONS = (".jsonl", ".ndjson", ".csv", ".tsv", ".parquet")
"""Formats of a problem file. All but Parquet may be compressed: ``.jsonl.gz``."""
ID_LIST = ".txt"
"""A list of ids, one a line; for queries only."""

_SEPARATORS = (";", "\t", ",")
_AGAIN = "Copy or write the file again"


@dataclass
class Records:
    """What a file holds, before its values are checked.

    ``rows`` are (row, values by our field name), without the fields whose column is absent; ``row``
    is the line on which the record starts, or the 1-based row of a Parquet file. ``columns`` are
    the names that the file has.
    """

    file: str
    rows: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)

    @property
    def names(self) -> str:
        """The file's columns for a message."""
        shown = [name if name.isprintable() else ascii(name) for name in self.columns[:12]]
        return ", ".join(shown) + (", …" if len(self.columns) > 12 else "")

    def fault(self, row: int, problem: str, remedy: str) -> None:
        """Note a fault of the file's form."""
        self.faults.append(Fault(self.file, row, "", problem, remedy))


def file_stem(path: Path) -> str:
    """The file's name without its extensions: ``mine`` for ``mine.jsonl.gz``."""
    name = path.name[:-3] if path.name.lower().endswith(".gz") else path.name
    return Path(name).stem


def read_records(path: Path, columns: Mapping[str, str], id_lists: bool = False) -> Records:
    """Read the named columns of a file.

    Args:
        path: a file with one of :data:`EXTENSIONS`.
        columns: the file's column of each of our fields; other columns are not kept.
        id_lists: also accept a ``.txt`` file with one id per line.

    Returns:
        Records and faults; never raises for what a file contains. A Parquet file of which bytes in
        the middle were overwritten is beyond this promise: Polars can abort on it.
    """
    records = Records(shown_name(path))
    if refused := no_file(path):
        records.fault(0, *refused)
        return records
    name = path.name.lower()
    extension = Path(name.removesuffix(".gz")).suffix
    known = (*EXTENSIONS, ID_LIST) if id_lists else EXTENSIONS
    if extension not in known or (extension == ".parquet" and name.endswith(".gz")):
        remedy = f"Use one of {', '.join(known)}; JSON as one object per line (.jsonl)"
        records.fault(0, f"has the unknown extension {path.suffix!r}", remedy)
        return records
    data = _read_bytes(records, path)
    if data is None:
        return records
    if extension == ".parquet":
        _parquet(records, data, columns)
    elif disguise := other_format(data):
        records.fault(0, *disguise)
    else:
        data = data.removeprefix(b"\xef\xbb\xbf")
        if extension == ID_LIST:
            _id_list(records, data)
        elif extension in (".csv", ".tsv"):
            _csv(records, data, columns, "," if extension == ".csv" else "\t")
        else:
            _jsonl(records, data, columns)
    if not records.rows and not records.faults:
        records.fault(0, "has no rows", "Add rows or take it off the list of files")
    return records


def _read_bytes(records: Records, path: Path) -> bytes | None:
    """The file's bytes, decompressed; None, with a fault, if there are none."""
    try:
        data = path.read_bytes()
        if path.name.lower().endswith(".gz") and data:
            data = gzip.decompress(data)
    except FileNotFoundError:
        records.fault(0, "does not exist", "Check the path")
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        records.fault(0, f"is damaged or incomplete gzip ({error})", _AGAIN)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        records.fault(0, f"cannot be read ({error})", "Check the path and its permissions")
    else:
        if data:
            return data
        records.fault(0, "is empty", _AGAIN)
    return None


def _add(records: Records, row: int, values: Mapping[str, Any], columns: Mapping[str, str]) -> None:
    known = {name: values[column] for name, column in columns.items() if column in values}
    records.rows.append((row, known))


def _lines(records: Records, data: bytes) -> Iterator[tuple[int, str]]:
    """Numbered lines that are not blank, without those that are no UTF-8, which are faults."""
    for row, raw in enumerate(io.BytesIO(data), 1):
        if raw.strip():
            try:
                yield row, raw.decode("utf-8")
            except UnicodeDecodeError as error:
                records.fault(row, undecodable(raw[error.start]), ENCODING_REMEDY)


def _id_list(records: Records, data: bytes) -> None:
    records.columns = ["id"]
    records.rows = [(row, {"id": line.rstrip("\r\n")}) for row, line in _lines(records, data)]


def _jsonl(records: Records, data: bytes, columns: Mapping[str, str]) -> None:
    text = data.strip()
    if text.startswith(b"[") and text.endswith(b"]"):
        remedy = "Write one object per line, for instance with: jq -c '.[]' FILE.json > FILE.jsonl"
        return records.fault(0, "is a JSON array, not JSONL", remedy)
    if text.partition(b"\n")[0].strip() == b"{":
        remedy = "Write each object on one line, for instance with: jq -c . FILE.json > FILE.jsonl"
        return records.fault(0, "has JSON objects that span several lines", remedy)
    names: dict[str, None] = {}
    cut_off = 0 if data.endswith(b"\n") else data.count(b"\n") + 1
    strange = known = 0
    for row, line in _lines(records, data):
        line = line.rstrip("\r\n")
        try:
            value = decode(line)
        except (ValueError, RecursionError) as error:
            strange += not line.lstrip().startswith("{")
            records.fault(row, *_broken_json(error, line, row == cut_off))
            continue
        known += 1
        if not isinstance(value, dict):
            remedy = 'Write an object such as {"id": "1", "problem": "…", "solution": "…"}'
            records.fault(row, f"is {kind_of(value)}, not a JSON object", remedy)
            continue
        if isinstance(value, RepeatedKeys):
            records.faults.append(value.fault(records.file, row, ""))
        names.update(dict.fromkeys(value))
        _add(records, row, value, columns)
    records.columns = list(names)
    if strange > 1 and len(records.faults) == strange and not known:
        first = records.faults[0].problem
        records.faults.clear()
        remedy = "Write one object per line, or name the file by its format, such as .csv"
        records.fault(0, f"has no line that is JSON; the first {first}", remedy)
    return None


def _broken_json(error: Exception, line: str, last: bool) -> tuple[str, str]:
    """Problem and remedy for a line that is no JSON."""
    if line.lstrip().startswith("{") and not line.rstrip().endswith("}"):
        where = ": the file was cut off" if last else ""
        return f"ends in the middle of a JSON object{where}", _AGAIN
    if not isinstance(error, json.JSONDecodeError):
        return "is JSON that nests too deeply or has too long a number", "Write a flat object"
    remedy = "Write the line with a JSON library"
    if "escape" in error.msg:
        remedy = r"Double the backslash of LaTeX commands in JSON: \\sum, or use a JSON library"
    elif "Extra data" in error.msg:
        remedy = r"Write one object per line, with a line feed (\n) after each"
    return f"is not valid JSON ({error.msg.rstrip(':')}, column {error.colno})", remedy


def _csv(records: Records, data: bytes, columns: Mapping[str, str], delimiter: str) -> None:
    text = data.decode("utf-8", errors="surrogateescape")
    lines = list(io.StringIO(text, newline=""))
    bad: set[int] = set()
    for row, line in enumerate(lines, 1):
        try:
            line.encode("utf-8")
        except UnicodeEncodeError as error:
            bad.add(row)
            records.fault(row, undecodable(ord(line[error.start]) & 0xFF), ENCODING_REMEDY)
    header: list[str] = []
    for row, cells in csv_rows(lines, delimiter, records.fault, skip=bad):
        if header:
            _add(records, row, dict(zip(header, cells, strict=True)), columns)
            continue
        header = records.columns = [cell.strip() for cell in cells]
        other = next((sign for sign in _SEPARATORS if sign in cells[0]), None)
        if header[0].startswith(("{", "[{")):
            return records.fault(row, "is JSON, not CSV", "Name the file .jsonl")
        if len(header) == 1 and other:
            return records.fault(row, *_wrong_separator(other, delimiter))
        if not set(header) & set(columns.values()):
            problem = f"has the columns {records.names}, none of {', '.join(columns.values())}"
            remedy = "Begin with a line of column names, or map them, as in problem=my_column"
            return records.fault(row, problem, remedy)
        twice = sorted({name for name in header if header.count(name) > 1 and name})
        if twice:
            records.fault(row, f"names columns twice: {', '.join(twice)}", "Rename one")
    return None


def _wrong_separator(found: str, delimiter: str) -> tuple[str, str]:
    """Problem and remedy for a header of one cell that has another separator in it."""
    if found == "\t":
        return "is separated by tabs", "Name the file .tsv"
    if delimiter == "\t":
        return (
            f"is one column: it is separated by {found!r}, not tabs",
            "Save it with tabs, or as .csv",
        )
    return f"is one column: it is separated by {found!r}, not commas", "Save the file with commas"


def _parquet(records: Records, data: bytes, columns: Mapping[str, str]) -> None:
    if not data.startswith(b"PAR1"):
        return records.fault(0, "is not a Parquet file", "Check the extension of the file")
    if not data.endswith(b"PAR1"):
        return records.fault(0, "ends before its footer: half-written Parquet", _AGAIN)
    try:
        records.columns = list(pl.read_parquet_schema(io.BytesIO(data)))
        wanted = [name for name in records.columns if name in columns.values()]
        frame = pl.read_parquet(io.BytesIO(data), columns=wanted or None)
        for row, values in enumerate(frame.iter_rows(named=True), 1):
            _add(records, row, values, columns)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError) as error:
        records.rows.clear()
        reason = str(error).partition("\n")[0]
        records.fault(0, f"is damaged Parquet ({reason})", _AGAIN)
    return None


def kind_of(value: object) -> str:
    """What a value is, in words for a message."""
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    names: dict[type, str] = {
        type(None): "null",
        bool: "true or false",
        int: "a number",
        float: "a number",
        str: "text",
        list: "a list",
        dict: "an object",
        bytes: "bytes",
    }
    return names.get(type(value), f"a {type(value).__name__}")
