"""The summary join agrees with its plain twin on every pair, however the work is cut."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from saber_dagster.similarity import twins
from saber_dagster.similarity.bit_counts import (
    LEAST_PLANES,
    add_one,
    add_seven,
    at_least,
    count_numbers,
    number_at,
    sum_seven,
)
from saber_dagster.similarity.sparse_rows import SparseRows
from saber_dagster.similarity.summary_join import SummaryJoin, required_overlaps
from saber_dagster.similarity.word_sets import WordSets

pytestmark = pytest.mark.property

SIZES = [0, 1, 2, 3, 6, 7, 8, 14, 15, 16, 31, 32, 63, 64, 130, 255, 256, 300]
"""Around the numbers of bit planes, of columns that are added at once and of values in a byte."""


@dataclass(frozen=True)
class Texts:
    """Word sets as Python sets, and as arrays."""

    queries: list[set[str]]
    documents: list[set[str]]
    vocabulary: dict[str, int]

    @property
    def arrays(self) -> tuple[WordSets, WordSets]:
        return (
            WordSets.of(self.queries, self.vocabulary),
            WordSets.of(self.documents, self.vocabulary),
        )


@st.composite
def texts(draw: st.DrawFn) -> Texts:
    """Documents on both sides of the ends of words and tiles; equal, nested, disjoint and empty."""
    n_words = draw(st.sampled_from([1, 3, 9, 40, 400]))
    vocabulary = {f"w{i}": i for i in draw(st.permutations(range(n_words)))}
    names = sorted(vocabulary, key=lambda name: int(name[1:]))
    sizes = draw(st.lists(st.sampled_from(SIZES), min_size=1, max_size=12))
    nested = draw(st.booleans())
    zipf = 1 / np.arange(1, n_words + 1) ** draw(st.sampled_from([0.0, 1.0, 2.0]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))

    def words() -> set[str]:
        size = min(int(rng.choice(sizes)), n_words)
        if nested:
            return set(names[:size])
        return set(rng.choice(names, size, replace=False, p=zipf / zipf.sum()).tolist())

    n_documents = draw(st.sampled_from([0, 1, 2, 63, 64, 65, 129, 513]))
    documents = [words() for _ in range(n_documents)]
    queries = [documents[i] for i in rng.integers(0, max(n_documents, 1), 4) if documents]
    queries += [words() for _ in range(draw(st.integers(0, 4)))]
    return Texts(queries, documents, vocabulary)


@st.composite
def floors(draw: st.DrawFn) -> float:
    """Floors at possible similarities, and the numbers next to them."""
    union = draw(st.integers(1, 40))
    floor = draw(st.integers(0, union)) / union
    return max(
        draw(st.sampled_from([floor, math.nextafter(floor, 2), math.nextafter(floor, -1)])), 0
    )


@st.composite
def cuts(draw: st.DrawFn) -> dict[str, int]:
    """How the work is cut, which no result may depend on."""
    return {
        "threads": draw(st.sampled_from([1, 2])),
        "tile_words": draw(st.sampled_from([8, 16, 256])),
        "columns": draw(st.sampled_from([0, 1, 6, 7, 8, 20, 512])),
        "block": draw(st.sampled_from([1, 2, 3, 1000])),
    }


def expected_rows(data: Texts, floor: float) -> list[list[tuple[int, int]]]:
    return [
        [
            (position, len(x & y))
            for position, y in enumerate(data.documents)
            if (similarity := twins.jaccard(x, y)) > 0 and similarity >= floor
        ]
        for x in data.queries
    ]


def entries(rows: SparseRows) -> list[list[tuple[int, int]]]:
    pairs = list(zip(rows.columns.tolist(), rows.values.tolist(), strict=True))
    return [pairs[rows.indptr[i] : rows.indptr[i + 1]] for i in range(len(rows))]


@settings(max_examples=80, deadline=None)
@given(data=texts(), floor=floors(), cut=cuts())
def test_rows_are_the_pairs_that_reach_the_floor(data: Texts, floor: float, cut: dict) -> None:
    queries, documents = data.arrays
    found = SummaryJoin(documents, floor, **cut).rows(queries)
    assert entries(found) == expected_rows(data, floor)
    assert found.indptr.dtype == np.int64
    assert found.columns.dtype == np.int32
    assert found.values.dtype == (np.uint8 if documents.sizes.max(initial=0) < 256 else np.uint16)


@settings(max_examples=50, deadline=None)
@given(data=texts(), bins=st.sampled_from([1, 2, 7, 256, 1000]), cut=cuts())
def test_histogram_counts_every_document(data: Texts, bins: int, cut: dict) -> None:
    queries, documents = data.arrays
    found = SummaryJoin(documents, 0.5, **cut).histogram(queries, bins)
    expected = np.zeros((len(queries), bins), dtype=np.int64)
    for i, x in enumerate(data.queries):
        for y in data.documents:
            expected[i, min(int(twins.jaccard(x, y) * bins), bins - 1)] += 1
    np.testing.assert_array_equal(found, expected)


@settings(max_examples=30, deadline=None)
@given(data=texts(), floor=floors(), seed=st.integers(0, 2**32))
def test_a_pair_does_not_depend_on_the_others(data: Texts, floor: float, seed: int) -> None:
    queries, documents = data.arrays
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(queries))
    kept = np.sort(rng.permutation(len(documents))[: len(documents) // 2])
    whole = entries(SummaryJoin(documents, floor).rows(queries))
    part = entries(SummaryJoin(documents.take(kept), floor).rows(queries.take(order)))
    place = {int(document): i for i, document in enumerate(kept)}
    assert part == [[(place[d], v) for d, v in whole[i] if d in place] for i in order]


@settings(max_examples=80, deadline=None)
@given(
    data=texts(),
    seed=st.integers(0, 2**32),
    share=st.sampled_from([0.0, 0.05, 0.3, 1.0]),
    cut=cuts(),
    few=st.sampled_from([0, 1, 5, 1000]),
    most_pairs=st.sampled_from([1, 2, 40, 10**6]),
)
def test_overlaps_of_given_pairs(
    data: Texts, seed: int, share: float, cut: dict, few: int, most_pairs: int
) -> None:
    queries, documents = data.arrays
    rng = np.random.default_rng(seed)
    # any order will do, and no document at all for some queries
    rows = [
        rng.permutation(np.flatnonzero(rng.random(len(documents)) < rng.choice([0, share])))
        for _ in data.queries
    ]
    pairs = SparseRows(
        np.cumsum([0, *map(len, rows)]),
        np.concatenate([*rows, np.zeros(0)]).astype(np.int32),
        np.zeros(0),
    )
    expected = [
        len(x & data.documents[document])
        for x, row in zip(data.queries, rows, strict=True)
        for document in row
    ]
    join = SummaryJoin(documents, 0.5, **cut, few=few, most_pairs=most_pairs)
    found = join.overlaps(queries, pairs)
    assert found.tolist() == expected
    assert found.dtype == join.rows(queries).values.dtype


@settings(max_examples=200, deadline=None)
@given(floor=floors(), x=st.integers(0, 60), y=st.integers(0, 60))
@example(floor=0.211, x=300, y=299)
@example(floor=0.0, x=0, y=0)
@example(floor=1.5, x=3, y=3)
def test_required_overlap_is_the_least_that_reaches_the_floor(floor: float, x: int, y: int) -> None:
    reaching = [c for c in range(1, min(x, y) + 1) if c / (x + y - c) >= floor]
    assert required_overlaps(np.array([x]), np.array([y]), floor) == min(reaching, default=0)


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    n_columns=st.integers(0, 40),
    ones=st.integers(0, 90),
    density=st.sampled_from([0.0, 0.3, 0.9, 1.0]),
)
def test_bit_planes_count(seed: int, n_columns: int, ones: int, density: float) -> None:
    rng, n = np.random.default_rng(seed), 24
    bits = rng.random((n_columns + 1, n * 64)) < density
    bits[n_columns] = False
    columns = np.packbits(bits, axis=1, bitorder="little").view(np.uint64)[None]
    which = np.full(n_columns + 7, n_columns)
    which[:n_columns] = rng.permutation(n_columns)
    top = max((n_columns + ones).bit_length(), LEAST_PLANES)
    planes = rng.integers(0, 2**63, (top + 1, n)).astype(np.uint64)
    numbers = bits.sum(axis=0)

    sum_seven(columns, 0, which, 0, planes, n)
    planes[LEAST_PLANES:] = 0
    for at in range(7, n_columns, 7):
        add_seven(columns, 0, which, at, planes, top, np.zeros(n, dtype=np.uint64), n)
    for slot in rng.choice([0, 5, 63, 64, n * 64 - 1], ones).tolist():
        add_one(planes, slot)
        numbers[slot] += 1
    assert [number_at(planes, top, slot) for slot in range(n * 64)] == numbers.tolist()

    start, stop = sorted(rng.integers(0, n + 1, 2).tolist())
    within = numbers[start * 64 : stop * 64]
    found, mask = np.zeros(n, dtype=np.uint64), np.zeros(n, dtype=np.uint64)
    for least in range(1, n_columns + ones + 1):
        at_least(planes, top, least, start, stop, found)
        reached = np.unpackbits(found[start:stop].view(np.uint8), bitorder="little")
        assert reached.tolist() == (within >= least).astype(int).tolist()
    counts = np.zeros(((n_columns + ones) | 15) + 1, dtype=np.int64)
    count_numbers(planes, top, mask, start, stop, counts)
    assert counts.tolist() == np.bincount(within, minlength=counts.size).tolist()


def test_no_queries_and_no_words() -> None:
    nothing = WordSets.of([], {})
    empty = WordSets.of([[], []], {})
    join = SummaryJoin(empty, 0.0)
    assert len(join.rows(nothing)) == 0
    assert join.histogram(nothing, 4).shape == (0, 4)
    assert join.rows(empty).indptr.tolist() == [0, 0, 0]
    assert join.histogram(empty, 2).tolist() == [[2, 0], [2, 0]]
    assert SummaryJoin(nothing, 0.0).histogram(empty, 2).tolist() == [[0, 0], [0, 0]]


def test_a_word_given_twice_counts_once() -> None:
    sets = WordSets.of([["b", "a", "b"], ["a"]], {"a": 1, "b": 0})
    assert sets.indptr.tolist() == [0, 2, 3]
    assert sets.words.tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("indptr", "words"),
    [([0, 1], [3]), ([0, 2], [1]), ([0, 2], [1, 1]), ([0, 2, 1, 2], [0, 1]), ([1, 2], [0, 1])],
)
def test_broken_word_sets_are_refused(indptr: list[int], words: list[int]) -> None:
    with pytest.raises(ValueError, match=r"word"):
        WordSets(np.array(indptr), np.array(words, dtype=np.int32), 3)


def test_broken_requests_are_refused() -> None:
    sets = WordSets.of([["a"]], {"a": 0})
    other = WordSets.of([["a"]], {"a": 0, "b": 1})
    with pytest.raises(ValueError, match="floor"):
        SummaryJoin(sets, math.nan)
    with pytest.raises(ValueError, match="tile_words"):
        SummaryJoin(sets, 0.2, tile_words=9)
    with pytest.raises(ValueError, match="one vocabulary"):
        SummaryJoin(sets, 0.2).rows(other)
    with pytest.raises(ValueError, match="bin"):
        SummaryJoin(sets, 0.2).histogram(sets, 0)
    columns: npt.NDArray[np.int32] = np.array([1], dtype=np.int32)
    with pytest.raises(ValueError, match="beyond"):
        SummaryJoin(sets, 0.2).overlaps(sets, SparseRows(np.array([0, 1]), columns, columns))
    with pytest.raises(ValueError, match="rows"):
        SummaryJoin(sets, 0.2).overlaps(sets, SparseRows(np.array([0]), columns[:0], columns))
