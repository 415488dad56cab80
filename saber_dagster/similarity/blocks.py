"""Blocks of rows computed side by side by kernels that release the GIL."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numba

_T = TypeVar("_T")


def in_blocks(
    n: int, most: int, task: Callable[[int, int], _T], threads: int | None = None
) -> list[_T]:
    """Run a task on each block of rows.

    Threads of Python serve here, not numba's own: a Dagster process may run two steps at once, which
    numba's default threads do not survive, and each block can return arrays of its own length.

    Args:
        n: number of rows.
        most: largest block.
        task: takes the first row of a block and the row after its last.
        threads: at most this many at once; by default as many as numba would take
            (``NUMBA_NUM_THREADS``, or the number of cores).

    Returns:
        What the task returned, in the order of the rows.
    """
    threads = threads or numba.get_num_threads()
    size = max(1, min(most, -(-n // threads)))
    blocks = [(start, min(start + size, n)) for start in range(0, n, size)]
    if threads == 1 or len(blocks) <= 1:
        return [task(*block) for block in blocks]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(lambda block: task(*block), blocks))
