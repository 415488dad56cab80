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

from saber_dagster.errors import SaberError
from saber_dagster.signals.storage import SCHEMA as STORED
from saber_dagster.similarity.stored_pairs import unfold
from saber_dagster.similarity.topic import UNITS

SIGNALS = ("topic", "summary")
"""Both signals, in the order in which every table has them."""

SCHEMA = {"query": pl.UInt32, "doc": pl.UInt32, "topic": pl.Float64, "summary": pl.Float64}
"""Columns of a frame of numbered pairs."""

MOST_PAIRS = 1_000_000
"""Pairs of a part, about 25 MB, unless one query has more."""


class SignalShards:
    """The numbered pairs of many queries, a part at a time, as often as they are asked for.

    Each part has all pairs of its queries, and no query is in two parts.

    Args:
        stored: frames of table ``signal_shards``, one after the other; where a query's pairs are cut,
            they go on in the next frame.
        index: table ``problem_index``, the one that they were computed from.
        most: pairs of a part, if no query has more.
        queries: (n_problems,) whose pairs are wanted; by default all.

    Raises:
        SaberError: while iterating, if a frame is not of this index.
    """

    def __init__(
        self,
        stored: Iterable[pl.DataFrame],
        index: pl.DataFrame,
        most: int = MOST_PAIRS,
        queries: npt.NDArray[np.bool_] | None = None,
    ) -> None:
        self._stored = stored
        self._index = index
        self._word_counts = index["words"].list.len().to_numpy()
        self._most = most
        self._queries = queries

    def of(self, queries: npt.NDArray[np.bool_]) -> "SignalShards":
        """The pairs of some queries: those of others are dropped before anything is computed.

        Args:
            queries: (n_problems,).
        """
        return SignalShards(self._stored, self._index, self._most, queries)

    def __iter__(self) -> Iterator[pl.DataFrame]:
        """Read the parts, one after the other."""
        for frame in _whole_queries(self._stored):
            yield from self._parts(self._wanted(frame))

    def _wanted(self, frame: pl.DataFrame) -> pl.DataFrame:
        if self._queries is None or not frame.height:
            return frame
        query = frame["query"].to_numpy()
        if query.max() >= self._queries.size:
            raise _not_of(self._queries.size)
        return frame.filter(self._queries[query])

    def _parts(self, frame: pl.DataFrame) -> Iterator[pl.DataFrame]:
        query = frame["query"].to_numpy()
        first = 0
        while first < query.size:
            if first and query[first] < query[first - 1]:
                raise _not_of(self._word_counts.size)
            stop = first + self._most
            if stop < query.size:
                begin = int(np.searchsorted(query, query[stop], side="left"))
                if begin <= first:  # one query has more
                    begin = int(np.searchsorted(query, query[first], side="right"))
                stop = begin
            yield numbered_pairs(frame[first:stop], self._word_counts)
            first = min(stop, query.size)


def pairs_of(
    shards: Iterable[pl.DataFrame], queries: npt.NDArray[np.bool_]
) -> Iterable[pl.DataFrame]:
    """The parts of the pairs of some queries alone.

    Args:
        shards: frames of numbered pairs.
        queries: (n_problems,).
    """
    if isinstance(shards, SignalShards):
        return shards.of(queries)
    return (part.filter(queries[part["query"].to_numpy()]) for part in shards)


def _whole_queries(frames: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """The same rows in frames that have all pairs of each of their queries."""
    rest = pl.DataFrame(schema=STORED)
    for frame in frames:
        if not frame.height:
            continue
        if rest.height and rest["query"][0] != frame["query"][0]:
            yield rest
        elif rest.height:
            frame = pl.concat([rest, frame], rechunk=True)
        begin = int(np.searchsorted(frame["query"].to_numpy(), frame["query"][-1], side="left"))
        rest = frame[begin:]
        if begin:
            yield frame[:begin]
    if rest.height:
        yield rest


def numbered_pairs(stored: pl.DataFrame, word_counts: npt.NDArray[Any]) -> pl.DataFrame:
    """Stored pairs as a frame of numbered pairs.

    Args:
        stored: a frame of table ``signal_shards`` that has all pairs of each of its queries.
        word_counts: (n_problems,) sizes of the word sets of ``problem_index``.

    Raises:
        SaberError: the frame is not of these problems.
    """
    if any(stored.null_count().row(0)):
        raise _not_of(word_counts.size)
    query, gap, topic, overlap = (stored[name].to_numpy() for name in STORED)
    docs = np.empty(stored.height, dtype=np.uint32)
    topics, summaries = np.empty(stored.height), np.empty(stored.height)
    sizes = word_counts.astype(np.int32)
    bad = unfold(query, gap, topic, overlap, sizes, UNITS, docs, topics, summaries)
    if bad >= 0:
        raise _not_of(word_counts.size)
    found = {"doc": docs, "topic": topics, "summary": summaries}
    return stored.select("query").hstack(pl.DataFrame(found))


def _not_of(n_problems: int) -> SaberError:
    return SaberError(
        f"stored pairs are not in order of query and document, or not of {n_problems} problems."
        " Materialize signal_shards again: the corpus has changed since, or a file is damaged"
    )


def with_ids(pairs: pl.DataFrame, doc_ids: pl.Series) -> pl.DataFrame:
    """Numbered pairs with the ids of both in place of their positions, further columns as they are.

    Args:
        pairs: columns query and doc, and any others.
        doc_ids: the ids of ``problem_index``, in its order.
    """
    ids = {"query_id": pairs["query"], "doc_id": pairs["doc"]}
    named = [doc_ids.gather(positions).alias(name) for name, positions in ids.items()]
    return pl.DataFrame(named).hstack(pairs.drop("query", "doc"))
