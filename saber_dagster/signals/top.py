"""The largest signals of each query, ties included, without finding many more pairs than those."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from saber_dagster.signals.storage import SignalRows
from saber_dagster.similarity.mth_largest import mth_largest
from saber_dagster.similarity.sparse_rows import SparseRows

Ints = npt.NDArray[np.int64]

TOPIC_STEPS = (0.9, 0.75, 0.6, 0.45)
SUMMARY_STEPS = (0.3, 0.2, 0.15, 0.1)
"""Floors that are tried one after the other. They decide time and memory alone."""


@dataclass(frozen=True)
class Top:
    """How many pairs of a query are kept.

    Args:
        most: M: a pair is kept if one of its signals is at least the query's M-th largest.
        topic_floor: and at least this.
        summary_floor: the same of the summary signal.
    """

    most: int
    topic_floor: float
    summary_floor: float

    def cut(self, rows: SignalRows, word_counts: npt.NDArray[Any]) -> SignalRows:
        """Leave out the pairs that are not kept.

        Args:
            rows: pairs, among them all that are kept.
            word_counts: (n_problems,) sizes of the word sets of ``problem_index``.
        """
        m = np.full(rows.queries.size, self.most, dtype=np.int64)
        kept = np.zeros(len(rows), dtype=np.bool_)
        for values, floor in (
            (rows.topic(), self.topic_floor),
            (rows.summary(word_counts), self.summary_floor),
        ):
            least = np.maximum(mth_largest(values, rows.indptr, m), floor)
            kept |= (values >= np.repeat(least, np.diff(rows.indptr))) & (values > 0)
        return rows.where(kept)


def descend(
    steps: Sequence[float],
    floor: float,
    find: Callable[[Ints, float], SparseRows],
    weights: Ints,
    wanted: Ints,
) -> SparseRows:
    """Find so many documents for each row, from high floors to low ones.

    Args:
        steps: floors to try before the last one.
        floor: the last one.
        find: the rows at these positions, above a floor.
        weights: (n_columns,) how many documents a column stands for.
        wanted: (n_rows,) a row with at least so many documents above a floor is done.

    Returns:
        (n_rows) each with all of its entries above the first floor at which it has enough.
    """
    left = np.arange(wanted.size)
    order: list[Ints] = []
    parts: list[SparseRows] = []
    for least in [*(step for step in steps if step > floor), floor]:
        found = find(left, least)
        before = np.concatenate([[0], np.cumsum(weights[found.columns])])
        enough = np.diff(before[found.indptr]) >= wanted[left]
        done = np.flatnonzero(enough | (least == floor))
        order.append(left[done])
        parts.append(found.take(done) if done.size < left.size else found)
        left = np.delete(left, done)
        if not left.size:
            break
    return SparseRows.stack(parts).take(np.argsort(np.concatenate(order)))
