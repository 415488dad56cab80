"""What is read is what was stored, exactly, and nothing else is read."""

import io
import itertools

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saber_dagster.errors import SaberError
from saber_dagster.hashing import sum_of_versions
from saber_dagster.signals.pairs import SignalShards, pairs_of, with_ids
from saber_dagster.signals.storage import SCHEMA, SignalRows, decode, encode
from saber_dagster.similarity import twins
from saber_dagster.similarity.topic import UNITS

Pairs = dict[int, dict[int, tuple[int, int]]]
"""Topic units and overlap of each query and document."""

_LAST = 2**31 - 2
positions = st.one_of(st.integers(0, 20), st.integers(0, _LAST), st.just(_LAST))
signals = st.tuples(
    st.sampled_from([0, 1, 858_000, UNITS - 1, UNITS]), st.sampled_from([0, 1, 255, 65_535])
)
pairs_of_queries = st.dictionaries(
    positions, st.dictionaries(positions, signals, max_size=6), max_size=6
)


def rows_of(pairs: Pairs) -> SignalRows:
    queries = sorted(pairs)
    cells = [(d, *pairs[q][d]) for q in queries for d in sorted(pairs[q])]
    documents, topics, overlaps = zip(*cells, strict=True) if cells else ((), (), ())
    return SignalRows(
        np.array(queries, dtype=np.int32),
        np.cumsum([0, *(len(pairs[q]) for q in queries)]),
        np.array(documents, dtype=np.int32),
        np.array(topics, dtype=np.uint32),
        np.array(overlaps, dtype=np.uint16),
    )


def through_parquet(frame: pl.DataFrame) -> pl.DataFrame:
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    buffer.seek(0)
    return pl.read_parquet(buffer)


@pytest.mark.property
@settings(max_examples=150, deadline=None)
@given(pairs_of_queries)
def test_what_is_read_is_what_was_stored(pairs: Pairs) -> None:
    frame = through_parquet(encode(rows_of(pairs)))
    kept = {query: documents for query, documents in pairs.items() if documents}
    found, expected = decode(frame, _LAST + 1), rows_of(kept)
    for name in ("queries", "indptr", "documents", "topics", "overlaps"):
        values, wanted = getattr(found, name), getattr(expected, name)
        assert values.dtype == wanted.dtype
        assert values.tolist() == wanted.tolist()
    plain = frame.select("query", pl.col("gap").cum_sum().over("query"), "topic", "overlap").rows()
    assert plain == [(q, d, *pairs[q][d]) for q in sorted(pairs) for d in sorted(pairs[q])]


@pytest.mark.property
@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sets(st.integers(0, 9)), min_size=1, max_size=8),
    st.lists(st.integers(0, UNITS), min_size=64, max_size=64),
    st.integers(1, 80),
    st.integers(1, 80),
    st.sets(st.integers(0, 7)),
)
def test_signals_are_those_of_the_twins(
    word_sets: list[set[int]], units: list[int], most: int, cut: int, some: set[int]
) -> None:
    pairs = {
        x: {y: (units[8 * x + y], len(word_sets[x] & word_sets[y])) for y in range(len(word_sets))}
        for x in range(len(word_sets))
    }
    index = pl.DataFrame(
        {
            "doc_id": [f"d{i}" for i in range(len(word_sets))],
            "words": [list(map(str, words)) for words in word_sets],
        }
    )
    stored = encode(rows_of(pairs))
    frames = [stored[start : start + cut] for start in range(0, stored.height, cut)]
    shards = SignalShards([*frames, stored.clear()], index, most)
    expected = [
        (f"d{x}", f"d{y}", units[8 * x + y] / UNITS, twins.jaccard(*map(list, (a, b))))
        for (x, a), (y, b) in itertools.product(enumerate(word_sets), repeat=2)
    ]
    for _ in range(2):
        parts = [with_ids(part, index["doc_id"]) for part in shards]
        assert [row for part in parts for row in part.rows()] == expected
        assert all(0 < part.height <= max(most, len(word_sets)) for part in parts)
        queries = [query for part in parts for query in part["query_id"].unique()]
        assert len(queries) == len(set(queries)), "no query is in two parts"
    wanted = np.array([x in some for x in range(len(word_sets))])
    mine = [row for row in expected if int(row[0][1:]) in some]
    for part_of in (shards.of(wanted), pairs_of(list(shards), wanted)):
        rows = [row for part in part_of for row in with_ids(part, index["doc_id"]).rows()]
        assert rows == mine


@pytest.mark.parametrize(
    "rows",
    [
        [(1, 0, 5, 1), (0, 1, 5, 1)],
        [(0, 1, 5, 1), (1, 0, 5, 1), (0, 2, 5, 1)],
        [(0, 1, 5, 1), (0, 0, 5, 1)],
        [(0, 1, 5, 1), (0, 2, 5, 1)],
        [(0, 3, 5, 1)],
        [(3, 0, 5, 1)],
        [(0, 1, UNITS + 1, 1)],
        [(0, 1, 5, 2)],
        [(1, 0, 5, 2)],
    ],
)
def test_what_is_not_of_these_problems_is_not_read(rows: list[tuple[int, ...]]) -> None:
    index = pl.DataFrame({"doc_id": ["a", "b", "c"], "words": [["x"], ["x", "y"], ["x"]]})
    frame = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    for most in (1, 10):
        with pytest.raises(
            SaberError, match="not in order of query and document, or not of 3 prob"
        ):
            list(SignalShards([frame], index, most))


def test_the_version_follows_ids_pairs_and_signals_alone() -> None:
    pairs: Pairs = {1: {0: (5, 1), 2: (6, 1)}, 2: {1: (7, 3)}}
    ids, counts = pl.Series(["a", "b", "c"]), np.array([2, 3, 4])
    first = rows_of(pairs).version(ids, counts)
    assert rows_of(pairs | {0: {}}).version(ids, counts.astype(np.uint8)) == first
    others = [
        rows_of({1: {0: (5, 1), 2: (6, 1)}, 0: {1: (7, 3)}}).version(ids, counts),
        rows_of({1: {0: (5, 1)}, 2: {1: (7, 3), 2: (6, 1)}}).version(ids, counts),
        rows_of({1: {0: (5, 1), 2: (6, 1)}, 2: {1: (8, 3)}}).version(ids, counts),
        rows_of({1: {0: (5, 1), 2: (6, 1)}, 2: {1: (7, 2)}}).version(ids, counts),
        rows_of(pairs).version(pl.Series(["a", "b", "d"]), counts),
        rows_of(pairs).version(ids, np.array([2, 3, 5])),
        rows_of(pairs).version(pl.Series(["ab", "", "c"]), counts),
    ]
    assert len({first, *others}) == 8
    shards = [rows_of({query: pairs[query]}).version(ids, counts) for query in pairs]
    assert sum_of_versions(shards) == sum_of_versions(reversed(shards)) == first
    assert sum_of_versions([]) == rows_of({}).version(ids, counts)


def test_what_is_not_in_order_is_not_stored() -> None:
    good = rows_of({1: {0: (5, 1), 2: (6, 1)}, 2: {1: (7, 3)}})
    for change in (
        {"documents": np.array([2, 2, 1], dtype=np.int32)},
        {"documents": np.array([2, 0, 1], dtype=np.int32)},
        {"documents": np.array([-1, 0, 1], dtype=np.int32)},
        {"queries": np.array([2, 1], dtype=np.int32)},
        {"queries": np.array([1, 1], dtype=np.int32)},
        {"queries": np.array([-1, 1], dtype=np.int32)},
    ):
        with pytest.raises(ValueError, match="ascending"):
            encode(SignalRows(**{**vars(good), **change}))


@pytest.mark.parametrize(
    "change",
    [
        {"query": [2, 2, 1]},
        {"query": [1, 2, 1]},
        {"query": [1, 1, 9]},
        {"gap": [0, 0, 1]},
        {"gap": [0, 9, 1]},
        {"gap": [1, 2**32 - 1, 1]},
        {"gap": [1, 2, 1], "query": [1, 1, 1]},
        {"topic": [5, 6, UNITS + 1]},
    ],
)
def test_a_damaged_frame_is_refused(change: dict[str, list[int]]) -> None:
    good = {"query": [1, 1, 2], "gap": [0, 2, 1], "topic": [5, 6, 7], "overlap": [1, 1, 3]}
    assert len(decode(pl.DataFrame(good, schema=SCHEMA), 4)) == 3
    with pytest.raises(SaberError, match="signal_shards"):
        decode(pl.DataFrame(good | change, schema=SCHEMA), 4)


def test_a_frame_of_other_columns_is_refused() -> None:
    good = {"query": [1], "gap": [0], "topic": [5], "overlap": [1]}
    with pytest.raises(SaberError, match="columns"):
        decode(pl.DataFrame(good), 4)
    with pytest.raises(SaberError, match="empty values"):
        decode(pl.DataFrame(good | {"topic": [None]}, schema=SCHEMA), 4)


def test_pairs_of_some_queries_of_another_index_are_not_read() -> None:
    index = pl.DataFrame({"doc_id": ["a", "b", "c"], "words": [["x"], ["x", "y"], ["x"]]})
    frame = pl.DataFrame([(3, 0, 5, 1)], schema=SCHEMA, orient="row")
    with pytest.raises(SaberError, match="not of 3 problems"):
        list(SignalShards([frame], index).of(np.array([True, True, True])))
