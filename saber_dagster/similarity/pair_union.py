"""The pairs that either signal found: topic rows are by distinct set, summary rows by document."""

import numpy as np
import numpy.typing as npt
from numba import njit

from saber_dagster.similarity.blocks import in_blocks
from saber_dagster.similarity.sparse_rows import SparseRows

Ints = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]

BLOCK = 1024
"""Queries per task."""

_DE_BRUIJN = 0x03F79D71B4CB0A89
"""Its 64 windows of six bits are all different, so that it tells single bits apart."""
_PLACE = np.zeros(64, dtype=np.int64)
for _bit in range(64):
    _PLACE[(_DE_BRUIJN << _bit & (1 << 64) - 1) >> 58] = _bit


def unite(
    topic: SparseRows,
    query_sets: Ints,
    document_sets: Ints,
    summary: SparseRows,
    query_clusters: Int32s,
    document_clusters: Int32s,
    threads: int | None = None,
) -> SparseRows:
    """The pairs that at least one signal found, without those of one near-duplicate cluster.

    Args:
        topic: a row per distinct topic set of the queries; columns are distinct sets of the documents,
            values positive topic signals.
        query_sets: (n_queries,) the row of ``topic`` of each query.
        document_sets: (n_documents,) the column of ``topic`` of each document.
        summary: a row per query; columns are documents. Its values are not read.
        query_clusters: (n_queries,) near-duplicate clusters.
        document_clusters: (n_documents,).
        threads: see :func:`in_blocks`.

    Returns:
        A row per query; columns are documents, values uint32: the topic signal where ``topic`` has it,
        and 0 elsewhere.
    """
    order = np.argsort(document_sets, kind="stable").astype(np.int32)
    n_sets = int(max(document_sets.max(initial=-1), topic.columns.max(initial=-1))) + 1
    ends = np.searchsorted(document_sets[order], np.arange(n_sets + 1)).astype(np.int64)
    counts = np.zeros(query_sets.size + 1, dtype=np.int64)

    def task(first: int, last: int) -> tuple[Int32s, npt.NDArray[np.uint32]]:
        found: tuple[Int32s, npt.NDArray[np.uint32]] = _unite_block(
            first, last, topic.indptr, topic.columns, topic.values, query_sets, ends, order,
            document_sets, summary.indptr, summary.columns, query_clusters, document_clusters,
            _PLACE, counts,
        )  # fmt: skip
        return found

    parts = in_blocks(query_sets.size, BLOCK, task, threads)
    empty = (np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.uint32))
    columns, values = (np.concatenate(column) for column in zip(empty, *parts, strict=True))
    return SparseRows(np.cumsum(counts), columns, values)


@njit(nogil=True, cache=True)
def _unite_block(
    first: int,
    last: int,
    topic_indptr: Ints,
    topic_columns: Int32s,
    topic_values: npt.NDArray[np.uint32],
    query_sets: Ints,
    set_ends: Ints,
    set_documents: Int32s,
    document_sets: Ints,
    summary_indptr: Ints,
    summary_columns: Int32s,
    query_clusters: Int32s,
    document_clusters: Int32s,
    place: Ints,
    counts: Ints,
) -> tuple[Int32s, npt.NDArray[np.uint32]]:
    """Mark the documents of each query as bits and read the bits off in order."""
    marks = np.zeros((document_sets.size + 63) // 64, dtype=np.uint64)
    value_of = np.zeros(set_ends.size - 1, dtype=np.uint32)
    most = 0
    for query in range(first, last):
        row = query_sets[query]
        for entry in range(topic_indptr[row], topic_indptr[row + 1]):
            found = topic_columns[entry]
            most += set_ends[found + 1] - set_ends[found]
        most += summary_indptr[query + 1] - summary_indptr[query]
    documents = np.empty(most, dtype=np.int32)
    topics = np.empty(most, dtype=np.uint32)
    one, six, low_bits = np.uint64(1), np.uint64(58), np.int64(63)
    at = 0
    for query in range(first, last):
        row, begin = query_sets[query], at
        for entry in range(topic_indptr[row], topic_indptr[row + 1]):
            found = topic_columns[entry]
            value_of[found] = topic_values[entry]
            for k in range(set_ends[found], set_ends[found + 1]):
                document = np.int64(set_documents[k])
                marks[document >> 6] |= one << np.uint64(document & low_bits)
        for k in range(summary_indptr[query], summary_indptr[query + 1]):
            document = np.int64(summary_columns[k])
            marks[document >> 6] |= one << np.uint64(document & low_bits)
        for word in range(marks.size):
            bits = marks[word]
            marks[word] = 0
            while bits != 0:
                lowest = bits & (~bits + one)
                bits ^= lowest
                document = (word << 6) + place[(lowest * np.uint64(_DE_BRUIJN)) >> six]
                if document_clusters[document] != query_clusters[query]:
                    documents[at] = document
                    topics[at] = value_of[document_sets[document]]
                    at += 1
        for entry in range(topic_indptr[row], topic_indptr[row + 1]):
            value_of[topic_columns[entry]] = 0
        counts[query + 1] = at - begin
    return documents[:at].copy(), topics[:at].copy()
