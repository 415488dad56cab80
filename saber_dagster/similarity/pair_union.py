"""The pairs that either signal found: topic rows are by distinct set, summary rows by document."""

from typing import Any

import numpy as np
import numpy.typing as npt

from saber_dagster.similarity.bit_counts import lowest_bit
from saber_dagster.similarity.blocks import in_blocks
from saber_dagster.similarity.kernel import kernel
from saber_dagster.similarity.sparse_rows import SparseRows

Ints = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]

BLOCK = 1024
"""Queries per task."""


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
            summary.indptr, summary.columns, query_clusters, document_clusters, counts,
        )  # fmt: skip
        return found

    parts = in_blocks(query_sets.size, BLOCK, task, threads)
    indptr = np.cumsum(counts)
    columns, values = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], np.uint32)
    end = indptr[-1]
    while parts:  # each part is freed when it has been copied
        part_columns, part_values = parts.pop()
        columns[end - part_columns.size : end] = part_columns
        values[end - part_columns.size : end] = part_values
        end -= part_columns.size
    return SparseRows(indptr, columns, values)


@kernel
def _unite_block(
    first: int, last: int, topic_indptr: Any, topic_columns: Any, topic_values: Any, query_sets: Any,
    set_ends: Any, set_documents: Any, summary_indptr: Any, summary_columns: Any, query_clusters: Any,
    document_clusters: Any, counts: Any,
) -> Any:  # fmt: skip
    """Mark the documents of each query as bits and read the bits off in order."""
    marks = np.zeros((document_clusters.size + 63) // 64, dtype=np.uint64)
    value_of = np.zeros(document_clusters.size, dtype=np.uint32)
    most = 0
    for query in range(first, last):
        row = query_sets[query]
        for entry in range(topic_indptr[row], topic_indptr[row + 1]):
            found = topic_columns[entry]
            most += set_ends[found + 1] - set_ends[found]
        most += summary_indptr[query + 1] - summary_indptr[query]
    # the end of these is not written, and takes no memory
    documents, topics = np.empty(most, dtype=np.int32), np.empty(most, dtype=np.uint32)
    at = 0
    for query in range(first, last):
        row, begin, cluster = query_sets[query], at, query_clusters[query]
        for entry in range(topic_indptr[row], topic_indptr[row + 1]):
            found, value = topic_columns[entry], topic_values[entry]
            for k in range(set_ends[found], set_ends[found + 1]):
                document = np.int64(set_documents[k])
                marks[document >> 6] |= np.uint64(1) << np.uint64(document & 63)
                value_of[document] = value
        for k in range(summary_indptr[query], summary_indptr[query + 1]):
            document = np.int64(summary_columns[k])
            marks[document >> 6] |= np.uint64(1) << np.uint64(document & 63)
        for word in range(marks.size):
            left = marks[word]
            marks[word] = 0
            while left:
                document = word * 64 + lowest_bit(left)
                left &= left - np.uint64(1)
                documents[at] = document
                topics[at] = value_of[document]
                value_of[document] = 0
                at += document_clusters[document] != cluster
        counts[query + 1] = at - begin
    return documents[:at], topics[:at]
