"""Pairs of a query and a document with both signals, as the later stages read them.

A frame of numbered pairs has columns ``query`` and ``doc``, positions of the two in ``problem_index``,
and ``topic`` and ``summary``, both in [0, 1]; its rows are in order of query and document. As
``problem_index`` is sorted by id, that is the order of their ids.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from saber_dagster.signal_storage import SignalRows, decode

SIGNALS = ("topic", "summary")
"""Both signals, in the order in which every table has them."""

SCHEMA = {"query": pl.UInt32, "doc": pl.UInt32, "topic": pl.Float64, "summary": pl.Float64}
"""Columns of a frame of numbered pairs."""

MOST_PAIRS = 4_000_000
"""Pairs of a part, about 100 MB, unless one query has more."""


class SignalShards:
    """The numbered pairs of many queries, a part at a time, as often as they are asked for.

    Each part has all pairs of its queries, and no query is in two parts.

    Args:
        stored: frames of table ``signal_shards``, each with all pairs of its queries.
        index: table ``problem_index``, the one that they were computed from.
        most: pairs of a part, if no query has more.

    Raises:
        SaberError: while iterating, if a frame is not of this index.
    """

    def __init__(
        self, stored: Iterable[pl.DataFrame], index: pl.DataFrame, most: int = MOST_PAIRS
    ) -> None:
        self._stored = stored
        self._word_counts = index["words"].list.len().to_numpy()
        self._most = most

    def __iter__(self) -> Iterator[pl.DataFrame]:
        """Read the parts, one after the other."""
        for frame in self._stored:
            rows = decode(frame, self._word_counts.size)
            del frame
            first = 0
            while first < rows.queries.size:
                room = rows.indptr[first] + self._most
                last = max(int(np.searchsorted(rows.indptr, room, side="right")) - 1, first + 1)
                yield numbered_pairs(rows.take(first, last), self._word_counts)
                first = last


def numbered_pairs(rows: SignalRows, word_counts: npt.NDArray[Any]) -> pl.DataFrame:
    """Stored pairs as a frame of numbered pairs.

    Args:
        rows: the pairs.
        word_counts: (n_problems,) sizes of the word sets of ``problem_index``.
    """
    columns = {
        "query": rows.query_of().view(np.uint32),
        "doc": rows.documents.view(np.uint32),
        "topic": rows.topic(),
        "summary": rows.summary(word_counts),
    }
    return pl.DataFrame(columns, schema=SCHEMA)


def with_ids(pairs: pl.DataFrame, doc_ids: pl.Series) -> pl.DataFrame:
    """Numbered pairs with the ids of both in place of their positions, further columns as they are.

    Args:
        pairs: columns query and doc, and any others.
        doc_ids: the ids of ``problem_index``, in its order.
    """
    ids = {"query_id": pairs["query"], "doc_id": pairs["doc"]}
    named = [doc_ids.gather(positions).alias(name) for name, positions in ids.items()]
    return pl.DataFrame(named).hstack(pairs.drop("query", "doc"))
