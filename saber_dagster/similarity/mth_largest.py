"""The M-th largest value of each row of sparse rows."""

from typing import Any

import numpy as np
import numpy.typing as npt

from saber_dagster.similarity.kernel import kernel


def mth_largest(
    values: npt.NDArray[np.float64], indptr: npt.NDArray[np.int64], m: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """The M-th largest value of each row, with an M of its own; equal values count one by one.

    Args:
        values: (n_values,) row i has ``values[indptr[i]:indptr[i + 1]]``, in any order.
        indptr: (n_rows + 1,).
        m: (n_rows,) M of each row; 0 to leave the row out.

    Returns:
        (n_rows,); 0 for a row that is left out or has fewer than M values.

    Raises:
        ValueError: the arrays do not belong together.
    """
    sizes = np.diff(indptr)
    if m.shape != sizes.shape or indptr[0] or indptr[-1] != values.size or (sizes < 0).any():
        raise ValueError("values, indptr and m are not of the same rows")
    room = np.empty(2 * int(m[m <= sizes].max(initial=0)), dtype=np.float64)
    largest = np.zeros(m.size, dtype=np.float64)
    _mth_largest_of_rows(values, indptr, m, room, largest)
    return largest


@kernel
def _mth_largest_of_rows(values: Any, indptr: Any, m: Any, room: Any, largest: Any) -> None:
    """Write the M-th largest of each row; ``room`` holds 2 M values of any row.

    Values above the M-th largest so far are collected. Whenever there are 2 M of them, the lower
    half is dropped, so that a row takes linear time in any order of its values.
    """
    for row in range(m.size):
        begin, end, kept = indptr[row], indptr[row + 1], m[row]
        if kept <= 0 or end - begin < kept:
            continue
        count = 0
        least = -np.inf
        for i in range(begin, end):
            if values[i] > least:
                room[count] = values[i]
                count += 1
                if count == 2 * kept:
                    least = _select(room, count, kept)
                    count = kept
        largest[row] = _select(room, count, kept)


@kernel
def _select(room: Any, count: Any, kept: Any) -> Any:
    """The ``kept``-th largest of the first ``count`` values, moved with all larger ones to the front.

    Hoare's quickselect with three parts, so that equal values are dealt with at once.
    """
    low, high, place = 0, count - 1, kept - 1
    while low < high:
        first, middle, last = room[low], room[(low + high) // 2], room[high]
        pivot = max(min(first, middle), min(max(first, middle), last))
        larger, i, smaller = low, low, high
        while i <= smaller:
            value = room[i]
            if value > pivot:
                room[i] = room[larger]
                room[larger] = value
                larger += 1
                i += 1
            elif value < pivot:
                room[i] = room[smaller]
                room[smaller] = value
                smaller -= 1
            else:
                i += 1
        if place < larger:
            high = larger - 1
        elif place > smaller:
            low = smaller + 1
        else:
            return pivot
    return room[low]
