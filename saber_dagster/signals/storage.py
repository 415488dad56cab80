"""How pairs with their signals are stored: few bytes a pair, in columns that Polars reads as they are.

A frame of stored pairs has a row per pair, in order of query and document:

==========  ========  ===================================================================
query       UInt32    position of the query in ``problem_index``
gap         UInt32    position of the document minus that of the query's document before
topic       UInt32    topic signal in units of 1e-6
overlap     UInt16    number of words that both word sets have
==========  ========  ===================================================================

Nothing is lost. The topic signal is a whole number of units by definition; the summary signal is
overlap / (size of x + size of y - overlap), with the sizes of the word sets in ``problem_index``. In
plain Polars the document is ``pl.col("gap").cum_sum().over("query")``.

Gaps are small numbers where positions are not, and Parquet stores the few values that most of them,
most topics and most overlaps have as short codes: at 2e-3 hits of each signal among 283,000 problems a
pair takes 2.5 bytes (``make bench-signals``), against 4 with positions in place of gaps and 8 with ids
and floats.
"""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from saber_dagster.contracts import TABLES
from saber_dagster.errors import SaberError
from saber_dagster.hashing import sum_of_versions
from saber_dagster.similarity.topic import UNITS

SCHEMA = TABLES["signal_shards"].schema
"""Columns of a frame of stored pairs."""


@dataclass(frozen=True)
class SignalRows:
    """Pairs with both signals, query by query.

    Args:
        queries: (n_queries,) positions in ``problem_index``, ascending.
        indptr: (n_queries + 1,) query i has the pairs ``indptr[i]`` to ``indptr[i + 1]`` (without).
        documents: (n_pairs,) positions in ``problem_index``, ascending for each query.
        topics: (n_pairs,) topic signals in units of 1e-6.
        overlaps: (n_pairs,) numbers of common words.
    """

    queries: npt.NDArray[np.int32]
    indptr: npt.NDArray[np.int64]
    documents: npt.NDArray[np.int32]
    topics: npt.NDArray[np.uint32]
    overlaps: npt.NDArray[np.uint16]

    def __len__(self) -> int:
        """The number of pairs."""
        return self.documents.size

    def take(self, first: int, last: int) -> "SignalRows":
        """The pairs of the queries from the ``first`` to the ``last`` (without), as they are listed."""
        start, stop = self.indptr[first], self.indptr[last]
        return SignalRows(
            self.queries[first:last],
            self.indptr[first : last + 1] - start,
            self.documents[start:stop],
            self.topics[start:stop],
            self.overlaps[start:stop],
        )

    def where(self, kept: npt.NDArray[np.bool_]) -> "SignalRows":
        """Some of the pairs, of the same queries.

        Args:
            kept: (n_pairs,).
        """
        before = np.concatenate([[0], np.cumsum(kept)]).astype(np.int64)
        return SignalRows(
            self.queries,
            before[self.indptr],
            self.documents[kept],
            self.topics[kept],
            self.overlaps[kept],
        )

    def query_of(self) -> npt.NDArray[np.int32]:
        """(n_pairs,) the position of each pair's query."""
        return np.repeat(self.queries, np.diff(self.indptr))

    def topic(self) -> npt.NDArray[np.float64]:
        """(n_pairs,) the topic signal, as ``twins.best_match_average`` gives it."""
        return self.topics / UNITS

    def summary(self, word_counts: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """The summary signal, as ``twins.jaccard`` gives it.

        Args:
            word_counts: (n_problems,) sizes of the word sets of ``problem_index``.

        Returns:
            (n_pairs,) correctly rounded quotients; 0 if both sets are empty.
        """
        sizes = word_counts.astype(np.int32)
        union = sizes[self.documents]
        union += np.repeat(sizes[self.queries], np.diff(self.indptr))
        union -= self.overlaps
        np.maximum(union, 1, out=union)
        quotient: npt.NDArray[np.float64] = self.overlaps / union
        return quotient

    def version(self, doc_ids: pl.Series, word_counts: npt.NDArray[Any]) -> str:
        """A data version: equal if and only if ids, pairs and both signals are.

        It is the sum of a SHA-256 of each query's pairs, so that the version of all shards is the sum of
        theirs, however the queries are cut into shards. A query without pairs
        adds nothing. It hashes
        bytes, not texts.

        Args:
            doc_ids: the ids of ``problem_index``, in its order.
            word_counts: (n_problems,) sizes of its word sets.

        Returns:
            64 hexadecimal digits.
        """
        problems = hashlib.sha256(b"signal pairs 2")
        lengths = doc_ids.str.len_bytes().to_numpy()
        for part in ([len(doc_ids)], lengths, word_counts):
            problems.update(np.ascontiguousarray(part, dtype="<i8").data)
        problems.update("".join(doc_ids).encode())
        columns = [
            np.ascontiguousarray(values, dtype=dtype)
            for values, dtype in (
                (self.documents, "<i4"),
                (self.topics, "<u4"),
                (self.overlaps, "<u2"),
            )
        ]
        ends = self.indptr.tolist()
        versions = []
        for i, query in enumerate(self.queries.tolist()):
            start, stop = ends[i : i + 2]
            if start < stop:
                state = problems.copy()
                state.update(query.to_bytes(8, "little") + (stop - start).to_bytes(8, "little"))
                for column in columns:
                    state.update(column[start:stop].data)
                versions.append(state.hexdigest())
        return sum_of_versions(versions)


def encode(rows: SignalRows) -> pl.DataFrame:
    """Make the frame of stored pairs; a query without pairs leaves no trace.

    Raises:
        ValueError: queries or documents are negative, repeated or not in order.
    """
    lengths = np.diff(rows.indptr)
    starts = rows.indptr[:-1][lengths > 0]
    gap = np.empty_like(rows.documents)
    np.subtract(rows.documents[1:], rows.documents[:-1], out=gap[1:])
    gap[starts] = rows.documents[starts]
    # at least 1, or 0 where a query starts
    below = np.count_nonzero(gap < 1) > np.count_nonzero(gap[starts] == 0)
    if below or (rows.queries < 0).any() or (np.diff(rows.queries) <= 0).any():
        raise ValueError("queries, and the documents of each, must be ascending positions")
    columns = {
        "query": rows.query_of().view(np.uint32),
        "gap": gap.view(np.uint32),
        "topic": rows.topics,
        "overlap": rows.overlaps,
    }
    return pl.DataFrame(columns, schema=SCHEMA)


def decode(frame: pl.DataFrame, n_problems: int) -> SignalRows:
    """Read a frame of stored pairs; its queries are those that have a pair.

    Args:
        frame: what :func:`encode` made, or a part of it that has all pairs of each of its queries.
        n_problems: number of rows of ``problem_index``.

    Raises:
        SaberError: the frame is not what :func:`encode` makes of so many problems.
    """
    found = dict(frame.schema)
    if found != SCHEMA or any(frame.null_count().row(0)):
        raise SaberError(f"stored pairs have columns {found}, not {SCHEMA}, or empty values")
    query, gap, topics, overlaps = (frame[name].to_numpy() for name in SCHEMA)
    new = np.ones(query.size, dtype=np.bool_)
    np.not_equal(query[1:], query[:-1], out=new[1:])
    starts = np.flatnonzero(new)
    indptr = np.concatenate([starts, [query.size]])
    # Sums are modulo 2**32, and so are their differences, which are the positions.
    documents = np.cumsum(gap, dtype=np.uint32)
    documents -= np.repeat(documents[starts] - gap[starts], np.diff(indptr))
    queries = query[starts]
    good = (
        bool((queries[1:] > queries[:-1]).all())
        and np.count_nonzero(gap) == gap.size - np.count_nonzero(gap[starts] == 0)
        and all(
            part.size == 0 or int(part.max()) < n_problems for part in (gap, documents, queries)
        )
        and int(topics.max(initial=0)) <= UNITS
    )
    if not good:
        raise SaberError(
            f"stored pairs are not in order of query and document, or not of {n_problems} problems."
            " Materialize signal_shards again: the corpus has changed since, or a file is damaged"
        )
    return SignalRows(queries.astype(np.int32), indptr, documents.view(np.int32), topics, overlaps)
