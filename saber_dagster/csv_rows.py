"""Rows of a CSV or TSV text, past what is wrong with some of them."""

import csv
from collections.abc import Callable, Iterator, Sequence, Set

NoteFault = Callable[[int, str, str], None]
"""Takes row, problem and remedy."""

_NEVER_CLOSED = "unexpected end of data"


def csv_rows(
    lines: Sequence[str],
    delimiter: str,
    note: NoteFault,
    *,
    quoted: bool = True,
    skip: Set[int] = frozenset(),
    may_be_short: bool = False,
) -> Iterator[tuple[int, list[str]]]:
    """The header, which is the first row with something in it, then every row of as many cells.

    Where quotes are wrong, reading goes on with the line after the one on which the row starts. Rows
    are then not called too short or too long until one has the right number of cells, as they may be
    parts of a cell.

    Args:
        lines: the text's lines, with their ends.
        delimiter: what stands between two cells.
        note: told of every fault. After a fault of the header, nothing is read.
        quoted: whether quotation marks quote; else they are text.
        skip: numbers of lines whose rows are left out without a fault.
        may_be_short: whether a row may have fewer cells than the header.

    Yields:
        The number of the line on which the row starts, and its cells.
    """
    width, lost = 0, False
    for start, end, cells in _records(lines, delimiter, quoted):
        if isinstance(cells, csv.Error):
            lost = True
            reason = "a quote is never closed" if str(cells) == _NEVER_CLOSED else str(cells)
            remedy = "Put the cell into double quotes and double the quotes inside"
            note(start, f"is not valid CSV ({reason})", remedy)
        elif not width and not any(cell.strip() for cell in cells):
            continue
        elif cells and skip.isdisjoint(range(start, end + 1)):
            width = width or len(cells)
            fits = len(cells) == width or (may_be_short and len(cells) < width)
            lost = lost and not fits
            if fits:
                yield start, cells
            elif not lost:
                note(start, *_misfit(len(cells), width, delimiter))
            continue
        if cells and not width:
            return  # without its header, the rest cannot be told apart


def _records(
    lines: Sequence[str], delimiter: str, quoted: bool
) -> Iterator[tuple[int, int, list[str] | csv.Error]]:
    """First and last line of each record, and its cells or what is wrong with it."""
    csv.field_size_limit(2**31 - 1)  # a process-wide limit of 131,072 characters otherwise
    done = 0
    while done < len(lines):
        reader = csv.reader(
            map(lines.__getitem__, range(done, len(lines))),
            delimiter=delimiter,
            quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE,
            strict=True,
        )
        before, start = done, done + 1
        while True:
            try:
                cells: list[str] | csv.Error = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                cells = error
            done = before + reader.line_num
            yield start, done, cells
            if isinstance(cells, csv.Error) and done > start:
                done = start  # the lines below may be rows of their own
                break
            start = done + 1


def _misfit(cells: int, width: int, delimiter: str) -> tuple[str, str]:
    remedy = (
        f"Quote cells that contain {delimiter!r}, quotes or line breaks"
        if cells > width
        else f"Write {delimiter!r} for empty cells too, and quote cells that contain line breaks"
    )
    return f"has {cells} cell{'s' if cells > 1 else ''}, the header has {width}", remedy
