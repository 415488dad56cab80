"""Compressed sparse rows: what a join of two signals returns."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class SparseRows:
    """The pairs that were found, row by row.

    Args:
        indptr: (n_rows + 1,) row i has the entries ``indptr[i]`` to ``indptr[i + 1]`` (without).
        columns: (n_entries,) ascending within each row.
        values: (n_entries,) one per column.
    """

    indptr: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int32]
    values: npt.NDArray[Any]

    def __len__(self) -> int:
        """The number of rows."""
        return self.indptr.size - 1

    def take(self, rows: npt.NDArray[Any]) -> "SparseRows":
        """The rows at these positions, in this order."""
        sizes = np.diff(self.indptr)[rows]
        indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        places = np.arange(indptr[-1]) + np.repeat(self.indptr[:-1][rows] - indptr[:-1], sizes)
        return SparseRows(indptr, self.columns[places], self.values[places])

    def where(self, kept: npt.NDArray[np.bool_]) -> "SparseRows":
        """The same rows with some of their entries, (n_entries,)."""
        before = np.concatenate([[0], np.cumsum(kept)]).astype(np.int64)
        return SparseRows(before[self.indptr], self.columns[kept], self.values[kept])

    @classmethod
    def stack(cls, parts: "Sequence[SparseRows]") -> "SparseRows":
        """The rows of all parts, of which there is at least one, one after the other."""
        sizes = np.concatenate([np.diff(part.indptr) for part in parts])
        return cls(
            np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            np.concatenate([part.columns for part in parts]),
            np.concatenate([part.values for part in parts]),
        )
