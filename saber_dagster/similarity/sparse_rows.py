"""Compressed sparse rows: what a join of two signals returns."""

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
