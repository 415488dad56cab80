"""The largest signals of each query, ties included, without finding many more pairs than those."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from saber_dagster.signals.storage import SignalRows
from saber_dagster.similarity.mth_largest import mth_largest
from saber_dagster.similarity.sparse_rows import SparseRows
from saber_dagster.similarity.summary_join import SummaryJoin
from saber_dagster.similarity.topic import Ints, TopicSets
from saber_dagster.similarity.topic_join import TopicJoin
from saber_dagster.similarity.word_sets import WordSets

TOPIC_STEPS = (0.9, 0.75, 0.6, 0.45)
SUMMARY_STEPS = (0.3, 0.2, 0.15, 0.1)
"""Floors that are tried one after the other. They decide time and memory alone."""
QUERIES_PER_PIECE = 512
"""Queries whose summary signals are found at once. It decides memory alone."""


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

    def topics(
        self, join: TopicJoin, queries: TopicSets, documents: TopicSets, wanted: Ints
    ) -> SparseRows:
        """The pairs of topic sets, among them all whose topic signal is one of the largest.

        Args:
            join: of the document sets.
            queries: their distinct sets, and the set of each query.
            documents: the same of the documents.
            wanted: (n_queries,) so many documents are enough.

        Returns:
            A row for each distinct set of the queries.
        """
        most = np.zeros(queries.sizes.size, dtype=np.int64)
        np.maximum.at(most, queries.set_of, wanted)
        return _descend(
            TOPIC_STEPS,
            self.topic_floor,
            lambda some, floor: join.rows(queries.take(some), floor),
            np.bincount(documents.set_of, minlength=documents.sizes.size),
            most,
        )

    def words(self, join: SummaryJoin, queries: WordSets, wanted: Ints) -> SparseRows:
        """The pairs of problems whose summary signal is one of the largest.

        Args:
            join: of the documents.
            queries: their word sets.
            wanted: (n_queries,) so many documents are enough.

        Returns:
            A row for each query.
        """

        def largest(some: Ints, floor: float) -> SparseRows:
            mine = queries.take(some)
            found = join.rows(mine, floor)
            lengths = np.diff(found.indptr)
            sizes = np.repeat(mine.sizes, lengths) + join.documents.sizes[found.columns]
            values = found.values / (sizes - found.values)
            least = mth_largest(values, found.indptr, wanted[some])
            return found.where(values >= np.repeat(least, lengths))

        def find(some: Ints, floor: float) -> SparseRows:
            starts = range(0, max(some.size, 1), QUERIES_PER_PIECE)
            return SparseRows.stack(
                [largest(some[start : start + QUERIES_PER_PIECE], floor) for start in starts]
            )

        alone = np.ones(join.documents.sizes.size, dtype=np.int64)
        return _descend(SUMMARY_STEPS, self.summary_floor, find, alone, wanted)

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


def _descend(
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
