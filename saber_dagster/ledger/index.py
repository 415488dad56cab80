"""Where the canonical reply of each key lies: compact arrays, 20 bytes a key, searched many at a time."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from saber_dagster.ledger.segments import Keys, key_halves
from saber_dagster.storage import AnyPath

_MISSING = np.iinfo(np.uint32).max


@dataclass(frozen=True, eq=False)
class _Block:
    """Keys sorted by their first half, equal ones in canonical order, and the number of each row."""

    high: NDArray[np.uint64]
    low: NDArray[np.uint64]
    row: NDArray[np.uint32]


class Index:
    """Finds keys in segments. Of several replies to a key, the one in the smallest (segment, row)."""

    def __init__(self, skip: Iterable[str] = ()) -> None:
        self.parts = set(skip)
        """Names of the segments that are in it, or left out, and of the files that hold them."""
        self._blocks: list[_Block] = []
        self._starts: list[int] = [0]
        self._places: list[tuple[AnyPath, int]] = []

    @property
    def rows(self) -> int:
        """Rows of all segments, final or not."""
        return self._starts[-1]

    def add(self, files: Iterable[tuple[AnyPath, Keys]]) -> None:
        """Add files whose segments are all younger than those added before.

        A segment that is there already, as it lies in two files after a kill, is left out.
        """
        found = []
        for path, keys in files:
            start = 0
            for name, rows in keys.parts:
                if name not in self.parts:
                    self.parts.add(name)
                    found.append((name, path, start, keys, rows))
                start += rows
            self.parts.add(path.name)
        found.sort(key=lambda part: part[0])
        highs, lows, numbers = [], [], []
        for _, path, start, keys, rows in found:
            here = np.flatnonzero(keys.final[start : start + rows]) + start
            highs.append(keys.high[here])
            lows.append(keys.low[here])
            numbers.append((here + (self.rows - start)).astype(np.uint32))
            self._places.append((path, start))
            self._starts.append(self.rows + rows)
        if found:
            self._push(np.concatenate(highs), np.concatenate(lows), np.concatenate(numbers))

    def find(self, keys: Sequence[str]) -> list[tuple[AnyPath, int] | None]:
        """File and row of each key's canonical reply; None where there is none."""
        if not self._blocks or not keys:
            return [None] * len(keys)
        rows = self._rows(*key_halves(keys))
        return [None if row == _MISSING else self._place(row) for row in rows.tolist()]

    def count(self, keys: Keys) -> int:
        """How many of the final keys of a file have a reply here."""
        return int(np.sum(self._rows(keys.high[keys.final], keys.low[keys.final]) != _MISSING))

    def _rows(self, high: NDArray[np.uint64], low: NDArray[np.uint64]) -> NDArray[np.uint32]:
        rows = np.full(len(high), _MISSING, np.uint32)
        for block in self._blocks:
            open_ = np.flatnonzero(rows == _MISSING)
            rows[open_] = _search(block, high[open_], low[open_])
        return rows

    def _place(self, row: int) -> tuple[AnyPath, int]:
        part = bisect_right(self._starts, row) - 1
        path, start = self._places[part]
        return path, start + row - self._starts[part]

    def _push(
        self, high: NDArray[np.uint64], low: NDArray[np.uint64], row: NDArray[np.uint32]
    ) -> None:
        """Add a block; blocks halve in size from first to last, so there are few."""
        while self._blocks and len(self._blocks[-1].row) < 2 * len(row):
            last = self._blocks.pop()
            high = np.concatenate([last.high, high])
            low = np.concatenate([last.low, low])
            row = np.concatenate([last.row, row])
        order = np.argsort(high, kind="stable")
        self._blocks.append(_Block(high[order], low[order], row[order]))


def _search(block: _Block, high: NDArray[np.uint64], low: NDArray[np.uint64]) -> NDArray[np.uint32]:
    found = np.full(len(high), _MISSING, np.uint32)
    place = np.searchsorted(block.high, high)
    open_ = np.arange(len(high))
    while len(open_):
        at = place[open_]
        inside = at < len(block.high)
        inside[inside] = block.high[at[inside]] == high[open_[inside]]
        open_, at = open_[inside], at[inside]
        hit = block.low[at] == low[open_]
        found[open_[hit]] = block.row[at[hit]]
        open_ = open_[~hit]
        place[open_] += 1
    return found
