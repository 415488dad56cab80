"""Summary similarity of all pairs: Jaccard's measure by counting common words in bit planes."""

from typing import Any

import numpy as np
import numpy.typing as npt

from saber_dagster.similarity.blocks import in_blocks
from saber_dagster.similarity.pair_overlaps import FEW, MOST_PAIRS, overlaps_block
from saber_dagster.similarity.sparse_rows import SparseRows
from saber_dagster.similarity.summary_kernels import histogram_block, rows_block
from saber_dagster.similarity.word_index import WordIndex
from saber_dagster.similarity.word_sets import WordSets

Ints = npt.NDArray[np.int64]

TILE_WORDS, COLUMNS, BLOCK = 256, 512, 2048
"""A tile has 16,384 documents, and its columns are 1 MiB. These decide speed and memory alone."""


def required_overlaps(query_sizes: Ints, document_sizes: Ints, floor: float) -> Ints:
    """The least number of common words with which two sets reach the floor.

    It decides every pair in integers: it is the least c from 1 on for which the float64 quotient
    c / (|x| + |y| - c) is at least the floor. The quotient does not decrease with c, so that bisection
    finds it.

    Args:
        query_sizes: (n,) sizes |x|.
        document_sizes: (m,) sizes |y|.
        floor: lowest similarity that counts.

    Returns:
        (n, m); 0 where even the smaller set as a part of the larger one does not reach the floor.
    """
    total = query_sizes[:, None] + document_sizes
    most = np.minimum(query_sizes[:, None], document_sizes)
    low, high = np.ones_like(total), most + 1
    while (low < high).any():
        middle = (low + high) // 2
        reached = middle / np.maximum(total - middle, 1) >= floor
        high, low = (
            np.where((low < high) & reached, middle, high),
            np.where((low < high) & ~reached, middle + 1, low),
        )
    return np.where(low <= most, low, 0)


class SummaryJoin:
    """The documents of a corpus, ready to be compared with any queries.

    What it returns depends on the word sets and the floor alone: every pair is decided by comparing
    the number of common words with :func:`required_overlaps`.

    Args:
        documents: their word sets.
        floor: lowest Jaccard similarity that :meth:`rows` returns.
        threads: see :func:`in_blocks`.
        tile_words: words of 64 documents in a tile, a multiple of 8 up to 1,024.
        columns: so many of the most frequent words have a bit column.
        block: queries per task.
        few: :meth:`overlaps` compares the words of a query's pairs if there are at most so many per
            tile, and counts those of whole tiles otherwise.
        most_pairs: so many pairs are sorted by tile at once there, if no query has more.

    Raises:
        ValueError: a number is out of range.

    Source: SABER-Math, "Summary-based relevance estimation".
    """

    def __init__(
        self,
        documents: WordSets,
        floor: float,
        *,
        threads: int | None = None,
        tile_words: int = TILE_WORDS,
        columns: int = COLUMNS,
        block: int = BLOCK,
        few: int = FEW,
        most_pairs: int = MOST_PAIRS,
    ) -> None:
        if not floor >= 0:
            raise ValueError(f"the floor of the summary similarity is {floor}, not 0 or more")
        if tile_words % 8 or not 0 < tile_words <= 1024:
            raise ValueError(f"tile_words is {tile_words}, not a multiple of 8 up to 1,024")
        self.documents, self.floor = documents, floor
        self._index = WordIndex.of(documents, tile_words, columns)
        self._threads, self._block = threads, block
        self._few, self._most_pairs = few, most_pairs

    def rows(self, queries: WordSets, floor: float | None = None) -> SparseRows:
        """Find the documents whose similarity is positive and reaches the floor.

        Memory is that of the result, 5 bytes per pair, up to twice, and about 150 MB of tables and
        scratch for 283,000 documents: give a shard of the queries at a time.

        Args:
            queries: word sets over the documents' vocabulary.
            floor: in place of that of the join; not negative.

        Returns:
            A row per query: the positions of the documents, with the number of common words as value
            (uint8, or wider if a document has more than 255 words).
        """
        index, dtype = self._index, _overlap_type(self.documents)
        ends, ranks = self._ranked(queries)
        sizes, size_of = np.unique(queries.sizes, return_inverse=True)
        least = self.floor if floor is None else floor
        need = required_overlaps(sizes, index.run_sizes, least)

        def task(start: int, stop: int) -> tuple[Ints, npt.NDArray[np.int32], npt.NDArray[Any]]:
            found: tuple[Ints, npt.NDArray[np.int32], npt.NDArray[Any]] = rows_block(
                start, stop, ends, ranks, size_of, need, index, np.empty(0, dtype=dtype)
            )
            return found

        parts = in_blocks(len(queries), self._block, task, self._threads)
        lengths = np.concatenate([np.zeros(1, dtype=np.int64), *(part[0] for part in parts)])
        indptr = np.cumsum(lengths)
        if len(parts) == 1:
            return SparseRows(indptr, *parts[0][1:])
        columns, values = np.empty(indptr[-1], dtype=np.int32), np.empty(indptr[-1], dtype=dtype)
        end = indptr[-1]
        while parts:  # each part is freed when it has been copied
            _, part_columns, part_values = parts.pop()
            columns[end - part_columns.size : end] = part_columns
            values[end - part_columns.size : end] = part_values
            end -= part_columns.size
        return SparseRows(indptr, columns, values)

    def overlaps(self, queries: WordSets, pairs: SparseRows) -> npt.NDArray[Any]:
        """Count the common words of given pairs, such as those that the other signal has found.

        Memory is that of the result, and about 15 MB of scratch per thread.

        Args:
            queries: word sets over the documents' vocabulary.
            pairs: a row per query, positions of documents in any order; its values are not read.

        Returns:
            (n_pairs,) of the type of the values of :meth:`rows`.

        Raises:
            ValueError: the pairs are not of these queries and documents.
        """
        documents, columns = self.documents, pairs.columns
        if len(pairs) != len(queries) or pairs.indptr[-1] != columns.size:
            raise ValueError(f"pairs have {len(pairs)} rows, and there are {len(queries)} queries")
        if columns.size and not 0 <= columns.min() <= columns.max() < len(documents):
            raise ValueError(f"pairs name a document beyond the {len(documents)} there are")
        ends, ranks = self._ranked(queries)
        out = np.empty(columns.size, dtype=_overlap_type(documents))

        def task(start: int, stop: int) -> None:
            overlaps_block(
                start, stop, ends, ranks, self._index, (queries.indptr, queries.words),
                (documents.indptr, documents.words), (pairs.indptr, columns), self._few,
                self._most_pairs, out,
            )  # fmt: skip

        in_blocks(len(queries), self._block, task, self._threads)
        return out

    def histogram(self, queries: WordSets, bins: int) -> Ints:
        """Count all documents by their similarity with each query.

        A similarity is in bin ``min(int(similarity * bins), bins - 1)``, the product in float64.

        Args:
            queries: word sets over the documents' vocabulary.
            bins: how many bins of equal width [0, 1] is cut into.

        Returns:
            (n_queries, bins); the sum of every row is the number of documents.
        """
        if bins < 1:
            raise ValueError(f"a histogram needs at least 1 bin, not {bins}")
        index, sizes = self._index, queries.sizes
        ends, ranks = self._ranked(queries)
        out = np.empty((len(queries), bins), dtype=np.int64)

        def task(start: int, stop: int) -> None:
            histogram_block(start, stop, ends, ranks, sizes, index, len(self.documents), out)

        in_blocks(len(queries), self._block, task, self._threads)
        return out

    def _ranked(self, queries: WordSets) -> tuple[Ints, npt.NDArray[np.int32]]:
        """The words of the queries that documents have, by rank, and where each query's begin."""
        _check_vocabulary(queries, self.documents)
        ranks = self._index.rank[queries.words]
        rows = np.repeat(np.arange(len(queries)), queries.sizes)[ranks >= 0]
        # one number per word sorts by query, then rank, faster than two
        width = max(queries.n_words, 1)
        keys = np.sort(rows * width + ranks[ranks >= 0])
        ends = np.searchsorted(keys, np.arange(len(queries) + 1) * width)
        return ends, (keys % width).astype(np.int32)


def _overlap_type(documents: WordSets) -> npt.DTypeLike:
    """The type that holds the overlaps of these documents with anything."""
    return np.min_scalar_type(int(documents.sizes.max(initial=1)))


def _check_vocabulary(queries: WordSets, documents: WordSets) -> None:
    if queries.n_words != documents.n_words:
        raise ValueError("queries and documents must be word sets over one vocabulary")
