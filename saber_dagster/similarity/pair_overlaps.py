"""The overlaps of given pairs, read off the bit planes in which whole tiles are counted."""

from typing import Any

import numpy as np

from saber_dagster.similarity.bit_counts import number_at
from saber_dagster.similarity.kernel import kernel
from saber_dagster.similarity.summary_kernels import count_words, most_words, planes_for

FEW = 16
"""So many pairs of a query per tile take as long word by word as counting the tile does."""

MOST_PAIRS = 1 << 21
"""Pairs that are sorted by tile at once, in 6 bytes each, unless one query has more."""


@kernel
def overlaps_block(
    first: int, last: int, ends: Any, ranks: Any, index: Any, queries: Any, documents: Any,
    pairs: Any, few: int, most_pairs: int, out: Any,
) -> None:  # fmt: skip
    """Count the common words of the given pairs of the queries from first to last.

    A query with few pairs has its word set compared with theirs. The pairs of the others are sorted
    by tile, those of as many queries as there is room for. Then each tile meets each of these
    queries: its words are counted in all documents of the tile, and the listed ones are read off.

    Args:
        first: first query.
        last: query after the last.
        ends: (n_queries + 1,) where the queries' words begin in ``ranks``.
        ranks: the words of each query that documents have, by rank.
        index: of the documents.
        queries: indptr and words of the queries' word sets.
        documents: indptr and words of the documents' word sets.
        pairs: (n_queries + 1,) where each query's pairs begin, and (n_pairs,) the documents.
        few: a query has few pairs if it has at most so many per tile, on average.
        most_pairs: so many pairs are sorted at once, if no query has more.
        out: (n_pairs,) written.
    """
    n_tiles, n = index.columns.shape[0], index.columns.shape[2]
    begins, listed = pairs
    most = most_words(ends, first, last)
    planes = np.zeros((planes_for(most), n), dtype=np.uint64)
    carry, which = np.zeros(n, dtype=np.uint64), np.zeros(most + 7, dtype=np.int64)
    room = min(most_pairs, begins[last] - begins[first])
    for query in range(first, last):
        room = max(room, begins[query + 1] - begins[query])
    slots, places = np.empty(room, dtype=np.uint16), np.empty(room, dtype=np.int32)
    segments = np.zeros((last - first, n_tiles + 1), dtype=np.int32)
    of_query = np.zeros(index.rank.size, dtype=np.bool_)
    stop = first
    while stop < last:
        start, base = stop, begins[stop]
        while stop < last and begins[stop + 1] - base <= room:
            begin, end = begins[stop], begins[stop + 1]
            if end - begin <= few * n_tiles:
                segments[stop - first] = 0
                _compare(stop, queries, documents, listed[begin:end], of_query, out[begin:end])
            else:
                _sort_by_tile(
                    begin - base, end - base, listed[base:end], index, segments[stop - first],
                    slots, places,
                )  # fmt: skip
            stop += 1
        for tile in range(n_tiles):
            for query in range(start, stop):
                begin, end = segments[query - first, tile], segments[query - first, tile + 1]
                if begin == end:
                    continue
                top = planes_for(ends[query + 1] - ends[query])
                count_words(
                    tile, ranks, ends[query], ends[query + 1], index, which, planes, top, carry
                )
                for i in range(begin, end):
                    out[base + places[i]] = number_at(planes, top, np.int64(slots[i]))


@kernel
def _compare(
    query: int, queries: Any, documents: Any, listed: Any, of_query: Any, out: Any
) -> None:
    """Count the common words of a query and the listed documents, by marking the query's."""
    ends, words = queries
    document_ends, document_words = documents
    for i in range(ends[query], ends[query + 1]):
        of_query[words[i]] = True
    for place in range(listed.size):
        common, document = 0, listed[place]
        for i in range(document_ends[document], document_ends[document + 1]):
            common += of_query[document_words[i]]
        out[place] = common
    for i in range(ends[query], ends[query + 1]):
        of_query[words[i]] = False


@kernel
def _sort_by_tile(
    begin: int, end: int, listed: Any, index: Any, segment: Any, slots: Any, places: Any
) -> None:
    """Sort the pairs of one query from begin to end by tile; ``segment`` is where each tile's begin."""
    tile_of, slot_of = index.tile_of, index.slot_of
    segment[:] = 0
    for place in range(begin, end):
        segment[tile_of[listed[place]]] += 1
    at = begin
    for tile in range(segment.size):
        at += segment[tile]
        segment[tile] = at
    for place in range(end - 1, begin - 1, -1):
        document = listed[place]
        tile = tile_of[document]
        segment[tile] -= 1
        slots[segment[tile]] = slot_of[document]
        places[segment[tile]] = place
