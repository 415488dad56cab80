"""Joins many small files of the ledger into few. Nothing that is in it changes, nor does any order.

Before anything is written, every file is compared with its SHA-256: what was changed must not look
whole afterwards. A joined file is read back and compared before those that it replaces are removed. A
kill in between leaves rows in two files, which everybody counts once, as a row is known by the segment
that it was first stored in; the next compaction removes them.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import polars as pl

from saber_dagster.ledger.journal import live_journals
from saber_dagster.ledger.ledger import Ledger, names_below, stage_files
from saber_dagster.ledger.rows import SCHEMA, LedgerError
from saber_dagster.ledger.segments import (
    new_name,
    read_checked,
    read_segment,
    segment_files,
    write_segment,
)
from saber_dagster.ledger.texts import read_pack, read_texts, write_pack
from saber_dagster.storage import AnyPath

JOINED_ROWS = 50_000
"""Rows of a joined file, at most."""
JOINED_TEXTS = 20_000


@dataclass
class Compaction:
    """Files before and after, and the folders that were left alone since a step writes to them."""

    files_before: int = 0
    files_after: int = 0
    in_use: tuple[str, ...] = ()


def compact(ledger: Ledger) -> Compaction:
    """Join the small files of each folder.

    Raises:
        LedgerError: if a file is damaged; then nothing was changed. If a joined file is not what was
            written; then the old ones are still there.
    """
    ledger.recover()
    done = Compaction()
    files = stage_files(ledger.root, ledger.root)
    packs = segment_files(ledger.archive.packs)
    for path in files:
        with suppress(FileNotFoundError):  # another compaction is at work
            read_segment(path, ["key"], check=True)
    for path in packs:
        with suppress(FileNotFoundError):
            read_texts(path)
    for folder in dict.fromkeys(path.parent for path in files):
        journals = ledger.place.journals.joinpath(*names_below(folder, ledger.root))
        if live_journals(journals):
            done.in_use = (*done.in_use, str(folder))
        else:
            mine = [path for path in files if path.parent == folder]
            done.files_before += len(mine)
            done.files_after += _join(mine, _rows_of, JOINED_ROWS, _join_segments)
    done.files_before += len(packs)
    done.files_after += _join(packs, lambda path: read_pack(path).height, JOINED_TEXTS, _join_packs)
    return done


def _join(
    paths: Sequence[AnyPath],
    size: Callable[[AnyPath], int],
    most: int,
    join: Callable[[AnyPath, Sequence[AnyPath]], None],
) -> int:
    """Join neighbouring files; returns the number of files that there are then."""
    after = 0
    for group in _groups(paths, size, most):
        after += 1
        if len(group) > 1:
            join(group[0].parent / new_name(".parquet"), group)
            for path in group:
                path.with_suffix(".keys").unlink(missing_ok=True)
                path.unlink(missing_ok=True)
    return after


def _groups(
    paths: Sequence[AnyPath], size: Callable[[AnyPath], int], most: int
) -> Iterator[list[AnyPath]]:
    group: list[AnyPath] = []
    total = 0
    for path in paths:
        try:
            rows = size(path)
        except FileNotFoundError:  # another compaction is at work
            continue
        if group and total + rows > most:
            yield group
            group, total = [], 0
        group.append(path)
        total += rows
    if group:
        yield group


def _rows_of(path: AnyPath) -> int:
    return read_segment(path, ["key"]).height


def _join_segments(new: AnyPath, paths: Sequence[AnyPath]) -> None:
    frames: list[pl.DataFrame] = []
    seen: set[str] = set()
    for path in paths:
        frame = read_segment(path, [*SCHEMA, "segment"], check=True)
        frames.append(frame.filter(~pl.col("segment").is_in(list(seen))))
        seen |= set(frame["segment"].unique())
    joined = pl.concat(frames).sort("segment", maintain_order=True)
    write_segment(new, joined)
    _compare(new, joined)


def _join_packs(new: AnyPath, paths: Sequence[AnyPath]) -> None:
    joined = pl.concat(read_texts(path) for path in paths).unique("sha256").sort("sha256")
    write_pack(new, dict(joined.iter_rows()))
    _compare(new, joined)


def _compare(new: AnyPath, meant: pl.DataFrame) -> None:
    try:
        if read_checked(new).equals(meant):
            return
        problem = "did not come back as it was written"
    except LedgerError as error:
        problem = str(error).removeprefix(f"{new} ")
    new.with_suffix(".keys").unlink(missing_ok=True)
    new.unlink(missing_ok=True)
    raise LedgerError(
        f"{new} {problem}; the files that it was to replace are all there. Check the disk"
    )
