"""Signals of a corpus that has changed a little: only pairs with a changed problem are computed.

Where topic statistics are pinned, both signals of a pair depend on the pair alone. So the pairs of two
problems that are as they were stay as they were, and what is left is every query with the changed
documents, and the changed queries with every document.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from saber_dagster.signals.join import SignalJoin
from saber_dagster.signals.statistics import population
from saber_dagster.signals.storage import SignalRows
from saber_dagster.signals.top import Top

_DECIDES = ("cluster_id", "topics", "words", "is_document")
"""What of a problem decides its pairs."""


@dataclass(frozen=True)
class Before:
    """Signals as they were computed for a former index.

    Args:
        rows: all pairs of the queries.
        queries: (n_queries,) their positions in the former index, also of those without a pair.
        index: table ``problem_index`` as it was.
    """

    rows: SignalRows
    queries: npt.NDArray[np.int32]
    index: pl.DataFrame


@dataclass(frozen=True)
class Signals:
    """The signals of some queries.

    Args:
        rows: their pairs.
        population: of how many pairs these are the ones that reach a floor
            (:func:`saber_dagster.signals.statistics.population`).
        taken_over: whether pairs were taken over, and not all computed.
    """

    rows: SignalRows
    population: pl.DataFrame
    taken_over: bool


Join = Callable[[npt.NDArray[np.bool_] | None], SignalJoin]
"""Makes the join of an index with some of its documents, or with all."""


def compute_signals(
    join: Join,
    index: pl.DataFrame,
    queries: npt.NDArray[np.int32],
    before: Before | None = None,
    top: Top | None = None,
) -> Signals:
    """The pairs of some queries, and of how many they are.

    Args:
        join: of the index.
        index: table ``problem_index``.
        queries: (n_queries,) positions in the index, ascending.
        before: signals with the same floors, ontology and topic statistics, if there are any.
        top: what the join keeps of each query, if not all above the floors. Then everything is
            computed if a document has gone or changed.
    """
    moved = _moved(before.index, index) if before else None
    if before and top is not None:
        gone = moved is not None and moved[before.index["is_document"].to_numpy()] < 0
        moved = None if np.any(gone) else moved  # others may take the place of what has gone
    if before is None or moved is None:
        rows = join(None).rows(queries)
    else:
        rows = _grow(before, moved, index, queries, join, top)
    counted = population(index[queries], index.filter("is_document"))
    return Signals(rows, counted, taken_over=moved is not None)


def _grow(
    before: Before,
    moved: npt.NDArray[np.int32],
    index: pl.DataFrame,
    queries: npt.NDArray[np.int32],
    join: Join,
    top: Top | None,
) -> SignalRows:
    """The pairs of some queries, taken over from a former index where nothing has changed.

    Args:
        before: signals with the same floors, ontology and topic statistics.
        moved: (n_problems before,) where each problem is now; -1 if it is gone or has changed.
        index: table ``problem_index`` as it is.
        queries: (n_queries,) positions in it, ascending.
        join: of the index.
        top: what the join keeps of each query, if not all above the floors; no document has gone.

    Returns:
        What ``join(None).rows(queries)`` returns.
    """
    kept = np.zeros(index.height, dtype=np.bool_)
    kept[moved[moved >= 0]] = True
    known = np.intersect1d(moved[before.queries], queries).astype(np.int32)
    others = np.setdiff1d(queries, known).astype(np.int32)
    parts = [_taken_over(before.rows, moved, known)]
    fresh = ~kept & index["is_document"].to_numpy()
    if known.size and fresh.any():
        parts.append(join(fresh).rows(known))
    if others.size:
        parts.append(join(None).rows(others))
    rows = _merged(parts, queries)
    return rows if top is None else top.cut(rows, index["words"].list.len().to_numpy())


def _moved(before: pl.DataFrame, after: pl.DataFrame) -> npt.NDArray[np.int32]:
    """(n_problems before,) where each problem is now; -1 if it is gone or has changed."""
    columns = ["doc_id", *_DECIDES]
    old, new = (frame.select(columns).with_row_index("place") for frame in (before, after))
    both = old.join(new, on="doc_id", suffix="_after")
    same = both.filter(pl.all_horizontal(pl.col(c) == pl.col(f"{c}_after") for c in _DECIDES))
    moved = np.full(before.height, -1, dtype=np.int32)
    moved[same["place"].to_numpy()] = same["place_after"].to_numpy()
    return moved


def _taken_over(
    rows: SignalRows, moved: npt.NDArray[np.int32], known: npt.NDArray[np.int32]
) -> SignalRows:
    """The pairs of the known queries with documents that are as they were, by their new positions."""
    query, document = moved[rows.query_of()], moved[rows.documents]
    stays = np.isin(query, known) & (document >= 0)
    places = np.searchsorted(known, query[stays])
    indptr = np.concatenate(([0], np.cumsum(np.bincount(places, minlength=known.size))))
    # the index is sorted by id before and after, so that what stays is still in order
    return SignalRows(
        known,
        indptr.astype(np.int64),
        document[stays],
        rows.topics[stays],
        rows.overlaps[stays],
    )


def _merged(parts: list[SignalRows], queries: npt.NDArray[np.int32]) -> SignalRows:
    """The pairs of several parts, which have none in common, in order."""
    query = np.concatenate([part.query_of() for part in parts])
    document = np.concatenate([part.documents for part in parts])
    order = np.lexsort((document, query))
    lengths = np.bincount(np.searchsorted(queries, query), minlength=queries.size)
    return SignalRows(
        queries.astype(np.int32),
        np.concatenate(([0], np.cumsum(lengths))).astype(np.int64),
        document[order],
        np.concatenate([part.topics for part in parts])[order],
        np.concatenate([part.overlaps for part in parts])[order],
    )
