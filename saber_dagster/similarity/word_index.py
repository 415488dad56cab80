"""Documents by word: bit columns of the frequent words, inverted lists of the others, in tiles."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from saber_dagster.similarity.kernel import kernel
from saber_dagster.similarity.word_sets import WordSets

Ints = npt.NDArray[np.int64]


class WordIndex(NamedTuple):
    """The inverted lists of some documents, cut into tiles that fit the cache; kernels take it whole.

    A document has a slot. Slots are ordered by the size of the word set, then by document; each size
    starts at a multiple of 64, so that a word of 64 bits never mixes two sizes. A tile is
    ``tile_words`` such words; a run is a part of a tile with one size.

    Args:
        document: (n_slots,) int32, the document of a slot or -1.
        rank: (n_words,) int32, 0 for the word that most documents have; -1 if none has it.
        columns: (n_tiles, n_columns + 1, tile_words) uint64: the documents with the words of rank
            0, 1, …; the last column is empty.
        starts: (n_tiles, n_ranks + 1) int64: where in ``local`` the lists of a tile begin.
        local: (n_occurrences,) uint16, slots within the tile, of the words without a column.
        run_sizes: (n_runs,) size of the word sets.
        run_starts: (n_runs,) first word in the tile.
        run_stops: (n_runs,) word after the last in the tile.
        tile_runs: (n_tiles + 1,) where the runs of a tile begin.
        size_counts: (longest set + 1,) how many documents have a set of that size.
        tile_of: (n_documents,) the tile of a document.
        slot_of: (n_documents,) its slot within the tile.
    """

    document: npt.NDArray[np.int32]
    rank: npt.NDArray[np.int32]
    columns: npt.NDArray[np.uint64]
    starts: Ints
    local: npt.NDArray[np.uint16]
    run_sizes: Ints
    run_starts: Ints
    run_stops: Ints
    tile_runs: Ints
    size_counts: Ints
    tile_of: npt.NDArray[np.int32]
    slot_of: npt.NDArray[np.uint16]

    @classmethod
    def of(cls, documents: WordSets, tile_words: int, most_columns: int) -> "WordIndex":
        """Index documents.

        Args:
            documents: their word sets.
            tile_words: a multiple of 8, at most 1,024; decides speed alone.
            most_columns: this many words get a column; decides speed alone.
        """
        sizes = documents.sizes
        size_counts = np.bincount(sizes, minlength=1)
        per_size = -(-size_counts // 64)
        slots = _slots(sizes, per_size)
        n_words = max(int(per_size.sum()), 1)
        n_tiles = -(-n_words // tile_words)
        document = np.full(n_tiles * tile_words * 64, -1, dtype=np.int32)
        document[slots] = np.arange(sizes.size, dtype=np.int32)

        frequency = np.bincount(documents.words, minlength=documents.n_words)
        by_frequency = np.argsort(-frequency, kind="stable")
        n_ranks = int(np.count_nonzero(frequency))
        rank = np.full(documents.n_words, -1, dtype=np.int32)
        rank[by_frequency[:n_ranks]] = np.arange(n_ranks, dtype=np.int32)
        n_columns = min(most_columns, n_ranks)
        columns = np.zeros((n_tiles, n_columns + 1, tile_words), dtype=np.uint64)
        starts = np.zeros((n_tiles, n_ranks + 1), dtype=np.int64)
        ranks = rank[documents.words]
        local = _fill(documents.indptr, ranks, slots, columns, starts)

        ends = np.concatenate([[0], np.cumsum(per_size)])
        cuts = np.unique(np.concatenate([ends, np.arange(n_tiles) * tile_words]))
        cuts = cuts[cuts <= ends[-1]]
        run_tiles = cuts[:-1] // tile_words
        return cls(
            document,
            rank,
            columns,
            starts,
            local,
            np.searchsorted(ends, cuts[:-1], side="right") - 1,
            cuts[:-1] - run_tiles * tile_words,
            cuts[1:] - run_tiles * tile_words,
            np.searchsorted(run_tiles, np.arange(n_tiles + 1)),
            size_counts,
            (slots // (tile_words * 64)).astype(np.int32),
            (slots % (tile_words * 64)).astype(np.uint16),
        )


def _slots(sizes: Ints, per_size: Ints) -> Ints:
    """The slot of each document."""
    order = np.argsort(sizes, kind="stable")
    first_slot = 64 * (np.cumsum(per_size) - per_size)
    first_place = np.cumsum(np.bincount(sizes, minlength=1)) - np.bincount(sizes, minlength=1)
    slots = np.empty(sizes.size, dtype=np.int64)
    slots[order] = first_slot[sizes[order]] + np.arange(sizes.size) - first_place[sizes[order]]
    return slots


@kernel
def _fill(indptr: Any, ranks: Any, slots: Any, columns: Any, starts: Any) -> Any:
    """Set the bits of the columns and make the inverted lists of the other words."""
    n_columns, tile_slots = columns.shape[1] - 1, columns.shape[2] * 64
    for document in range(slots.size):
        tile, slot = divmod(slots[document], tile_slots)
        for i in range(indptr[document], indptr[document + 1]):
            if ranks[i] < n_columns:
                columns[tile, ranks[i], slot >> 6] |= np.uint64(1) << np.uint64(slot & 63)
            else:
                starts[tile, ranks[i]] += 1
    total = 0
    for tile in range(starts.shape[0]):
        for rank in range(starts.shape[1]):
            total += starts[tile, rank]
            starts[tile, rank] = total
    local = np.empty(total, dtype=np.uint16)
    for document in range(slots.size - 1, -1, -1):
        tile, slot = divmod(slots[document], tile_slots)
        for i in range(indptr[document], indptr[document + 1]):
            if ranks[i] >= n_columns:
                starts[tile, ranks[i]] -= 1
                local[starts[tile, ranks[i]]] = slot
    return local
