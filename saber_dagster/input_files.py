"""Input files before they are read as anything: names, kinds of file, formats by their first bytes."""

import re
import stat
from collections.abc import Iterable
from pathlib import Path

from saber_dagster.errors import Fault

ENCODING_REMEDY = "Save the file as UTF-8"
_MAGIC = (
    (rb"PAR1", "a Parquet file", "Name it .parquet"),
    (rb"\x1f\x8b", "gzip", "Add .gz to its name, as in .jsonl.gz"),
    (rb"PK\x03\x04", "a ZIP archive or a spreadsheet", "Unpack it, or export the sheet as CSV"),
    (rb"\xfd7zXZ\x00", "xz", "Unpack it, or compress it with gzip (.jsonl.gz)"),
    (rb"\x28\xb5\x2f\xfd", "Zstandard", "Unpack it, or compress it with gzip (.jsonl.gz)"),
    (rb"BZh[1-9](1AY&SY|\x17rE8P\x90)", "bzip2", "Unpack it, or compress it with gzip (.jsonl.gz)"),
    (rb"7z\xbc\xaf\x27\x1c", "a 7z archive", "Unpack it"),
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_MOST_LINES = 10
"""Lines that are no text and are named one by one, however short the file."""


def shown_name(path: Path) -> str:
    """The path as text that can be printed; bytes that are not UTF-8 become U+FFFD."""
    return _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", str(path))


def no_file(path: Path) -> tuple[str, str] | None:
    """Problem and remedy for a path that is there and is not to be read; looks at no contents."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):  # reading it says why
        return None
    if _SURROGATE.search(str(path)):
        return "has a name that is not UTF-8", "Rename the file"
    if stat.S_ISDIR(mode):
        return "is a directory", "Name a file; list several files one by one"
    if not stat.S_ISREG(mode):
        return "is not a regular file", "Write what it gives into a file, and name that"
    return None


def given_twice(entries: Iterable[tuple[Path, str | None]]) -> dict[int, Fault]:
    """A fault for each entry, by its position, that names a file and source given before.

    Args:
        entries: files, and the source of their rows where it is given.
    """
    seen: dict[object, Path] = {}
    found = {}
    for position, (path, source) in enumerate(entries):
        first = seen.setdefault((_identity(path), source), path)
        if first is not path:
            other = "" if first == path else f", as {shown_name(first)} too"
            found[position] = Fault(
                shown_name(path), 0, "", f"is given twice{other}", "Name it once"
            )
    return found


def _identity(path: Path) -> object:
    """Equal for two names of one file."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return str(path)
    return found.st_dev, found.st_ino


def other_format(data: bytes) -> tuple[str, str] | None:
    """Problem and remedy for data that are no UTF-8 text, by their first bytes or most lines."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0\0" in (data[:4:2], data[1:4:2]):
        return "is UTF-16 or UTF-32", ENCODING_REMEDY
    for magic, what, remedy in _MAGIC:
        if re.match(magic, data):
            return f"is {what}, whatever its name says", remedy
    return None if _is_text(data) and b"\0" not in data else _mostly_no_text(data)


def _mostly_no_text(data: bytes) -> tuple[str, str] | None:
    lines = [(row, line) for row, line in enumerate(data.split(b"\n"), 1) if line.strip()]
    bad = [row for row, line in lines if b"\0" in line or not _is_text(line)]
    if len(bad) <= max(_MOST_LINES, len(lines) / 2):
        return None
    problem = (
        f"is not UTF-8 text: {len(bad)} of {len(lines)} lines have other bytes, from line {bad[0]}"
    )
    return problem, f"{ENCODING_REMEDY}; unpack or export it if it is of another format"


def _is_text(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def undecodable(byte: int) -> str:
    """What is wrong with a line that has this byte."""
    return f"has the byte 0x{byte:02x}, which is not UTF-8"
