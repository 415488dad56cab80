"""The kernels of the summary join: a block of queries against every tile of the documents."""

from typing import Any

import numpy as np

from saber_dagster.similarity.bit_counts import (
    LEAST_PLANES,
    add_one,
    add_seven,
    at_least,
    count_numbers,
    lowest_bit,
    number_at,
    sum_seven,
)
from saber_dagster.similarity.kernel import kernel


@kernel
def planes_for(words: int) -> int:
    """How many planes hold the numbers up to ``words``."""
    planes = LEAST_PLANES
    while words >> planes:
        planes += 1
    return planes


@kernel
def most_words(ends: Any, start: int, stop: int) -> int:
    """How many words the longest of some queries has."""
    most = 0
    for query in range(start, stop):
        most = max(most, ends[query + 1] - ends[query])
    return most


@kernel
def count_words(
    tile: int, ranks: Any, start: int, stop: int, index: Any, which: Any, planes: Any, top: int,
    carry: Any,
) -> None:  # fmt: skip
    """Set the planes to how many of a query's words each document of a tile has."""
    columns, starts, local = index.columns, index.starts, index.local
    n, empty = columns.shape[2], columns.shape[1] - 1
    frequent = 0
    while start + frequent < stop and ranks[start + frequent] < empty:
        which[frequent] = ranks[start + frequent]
        frequent += 1
    which[frequent : frequent + 7] = empty
    sum_seven(columns, tile, which, 0, planes, n)
    planes[LEAST_PLANES:top] = 0
    for at in range(7, frequent, 7):
        add_seven(columns, tile, which, at, planes, top, carry, n)
    for i in range(start + frequent, stop):
        for j in range(starts[tile, ranks[i]], starts[tile, ranks[i] + 1]):
            add_one(planes, np.int64(local[j]))


@kernel
def rows_block(
    first: int, last: int, ends: Any, ranks: Any, size_of: Any, need: Any, index: Any, values: Any
) -> Any:
    """Find the rows of the queries from first to last.

    Args:
        first: first query.
        last: query after the last.
        ends: (n_queries + 1,) where the queries' words begin in ``ranks``.
        ranks: the words of each query that documents have, by rank.
        size_of: (n_queries,) which row of ``need`` is the query's.
        need: (n_query_sizes, n_runs) the least overlap that counts; 0 if none does.
        index: of the documents.
        values: an empty array of the type of the overlaps.

    Returns:
        The length of each row, and the columns, ascending, and overlaps of one row after the other.
    """
    n_tiles, n, n_queries = index.columns.shape[0], index.columns.shape[2], last - first
    tile_runs, run_starts, run_stops = index.tile_runs, index.run_starts, index.run_stops
    document = index.document
    eighth = n // 8
    most = most_words(ends, first, last)
    planes = np.zeros((planes_for(most), n), dtype=np.uint64)
    carry, found = np.zeros(n, dtype=np.uint64), np.zeros(n, dtype=np.uint64)
    folded, parts = np.zeros(eighth, dtype=np.uint64), np.zeros(n + 1, dtype=np.int64)
    which = np.zeros(most + 7, dtype=np.int64)
    segments = np.zeros(n_tiles * n_queries + 1, dtype=np.int64)
    hits = np.empty(1 << 16, dtype=np.int32)
    overlaps = np.empty(1 << 16, dtype=values.dtype)
    size = 0
    for tile in range(n_tiles):
        for query in range(first, last):
            segments[tile * n_queries + query - first] = size
            words = ends[query + 1] - ends[query]
            feasible = False
            for run in range(tile_runs[tile], tile_runs[tile + 1]):
                feasible |= 0 < need[size_of[query], run] <= words
            if not feasible:
                continue
            top = planes_for(words)
            count_words(tile, ranks, ends[query], ends[query + 1], index, which, planes, top, carry)
            found[:] = 0
            for run in range(tile_runs[tile], tile_runs[tile + 1]):
                least = need[size_of[query], run]
                if 0 < least <= words:
                    at_least(planes, top, least, run_starts[run], run_stops[run], found)
            if size + n * 64 > hits.size:
                hits, overlaps = _grown(hits, size, n * 64), _grown(overlaps, size, n * 64)
            # most words of documents have no hit: look at eight at a time
            for w in range(eighth):
                folded[w] = (
                    found[w] | found[w + eighth] | found[w + 2 * eighth] | found[w + 3 * eighth]
                    | found[w + 4 * eighth] | found[w + 5 * eighth] | found[w + 6 * eighth]
                    | found[w + 7 * eighth]
                )  # fmt: skip
            n_parts = 0
            for w in range(eighth):
                if folded[w]:
                    for part in range(w, n, eighth):  # without a branch on what is found
                        parts[n_parts] = part
                        n_parts += found[part] != 0
            for i in range(n_parts):
                left = found[parts[i]]
                while left:
                    slot = parts[i] * 64 + lowest_bit(left)
                    left &= left - np.uint64(1)
                    hits[size] = document[tile * n * 64 + slot]
                    overlaps[size] = number_at(planes, top, slot)
                    size += 1
    segments[n_tiles * n_queries] = size
    return _in_order(segments, n_queries, hits, overlaps, document.size)


@kernel
def _grown(array: Any, size: int, least: int) -> Any:
    larger = np.empty(array.size * 2 + least, dtype=array.dtype)
    for i in range(size):  # a copy of slices would triple the time to compile
        larger[i] = array[i]
    return larger


@kernel
def _in_order(segments: Any, n_queries: int, hits: Any, overlaps: Any, n_documents: int) -> Any:
    """Bring what was found tile by tile into rows with ascending columns.

    A row's documents are marked in a bitmap, whose words are marked in another, and read off again.
    """
    size = segments[segments.size - 1]
    counts = np.zeros(n_queries, dtype=np.int64)
    columns = np.empty(size, dtype=np.int32)
    values = np.empty(size, dtype=overlaps.dtype)
    overlap_of = np.empty(n_documents, dtype=overlaps.dtype)
    marked = np.zeros(n_documents // 64 + 1, dtype=np.uint64)
    marked_words = np.zeros(n_documents // 4096 + 1, dtype=np.uint64)
    end = 0
    for query in range(n_queries):
        start = end
        for segment in range(query, segments.size - 1, n_queries):
            for i in range(segments[segment], segments[segment + 1]):
                column = np.int64(hits[i])
                overlap_of[column] = overlaps[i]
                marked[column >> 6] |= np.uint64(1) << np.uint64(column & 63)
                marked_words[column >> 12] |= np.uint64(1) << np.uint64((column >> 6) & 63)
        for upper in range(marked_words.size):
            words = marked_words[upper]
            marked_words[upper] = 0
            while words:
                word = upper * 64 + lowest_bit(words)
                words &= words - np.uint64(1)
                left = marked[word]
                marked[word] = 0
                while left:
                    column = word * 64 + lowest_bit(left)
                    left &= left - np.uint64(1)
                    columns[end] = column
                    values[end] = overlap_of[column]
                    end += 1
        counts[query] = end - start
    return counts, columns, values


@kernel
def histogram_block(
    first: int, last: int, ends: Any, ranks: Any, sizes: Any, index: Any, n_documents: int, out: Any
) -> None:
    """Count the documents by similarity with the queries from first to last.

    Args:
        first: first query.
        last: query after the last.
        ends: (n_queries + 1,) where the queries' words begin in ``ranks``.
        ranks: the words of each query that documents have, by rank.
        sizes: (n_queries,) the sizes of their word sets.
        index: of the documents.
        n_documents: how many documents there are.
        out: (n_queries, n_bins) int64, written.
    """
    n_tiles, n, bins = index.columns.shape[0], index.columns.shape[2], out.shape[1]
    tile_runs, run_starts, run_stops = index.tile_runs, index.run_starts, index.run_stops
    run_sizes = index.run_sizes
    most = most_words(ends, first, last)
    planes = np.zeros((planes_for(most), n), dtype=np.uint64)
    carry, mask = np.zeros(n, dtype=np.uint64), np.zeros(n, dtype=np.uint64)
    which = np.zeros(most + 7, dtype=np.int64)
    counts = np.zeros((most | 15) + 1, dtype=np.int64)
    out[first:last] = 0
    out[first:last, 0] = n_documents
    for tile in range(n_tiles):
        for query in range(first, last):
            words = ends[query + 1] - ends[query]
            if words == 0:
                continue
            top = planes_for(words)
            count_words(tile, ranks, ends[query], ends[query + 1], index, which, planes, top, carry)
            used = (words | 15) + 1
            for run in range(tile_runs[tile], tile_runs[tile + 1]):
                counts[:used] = 0
                count_numbers(planes, top, mask, run_starts[run], run_stops[run], counts[:used])
                union = sizes[query] + run_sizes[run]
                for overlap in range(1, min(words, run_sizes[run]) + 1):
                    if counts[overlap]:
                        similarity = overlap / (union - overlap)
                        place = min(int(similarity * bins), bins - 1)
                        out[query, place] += counts[overlap]
                        out[query, 0] -= counts[overlap]
