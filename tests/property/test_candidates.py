"""Grouping agrees with its plain twin; samples change as little as they can."""

import itertools

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saber_dagster.candidates import sample_candidates
from saber_dagster.contracts import GROUPS, TABLES
from saber_dagster.near_duplicates import are_near_duplicates, word_runs
from saber_dagster.pair_groups import PairGroups, eligible_queries, group_counts
from saber_dagster.signals.pairs import SCHEMA
from saber_dagster.similarity import twins
from saber_dagster.similarity.mth_largest import mth_largest
from saber_dagster.text import words

DOMAINS = ("algebra", "geometry")
QUERIES = 4
INDEX = pl.DataFrame(
    [
        {
            "doc_id": f"d{i:02}",
            "cluster_id": f"d{i:02}",
            "domains": list(DOMAINS),
            "primary_domain": DOMAINS[i % 2],
            "shard": 0,
            "topics": ["t"],
            "words": ["w"],
            "topic_set_id": "t",
            "word_set_id": "w",
            "is_document": True,
            "is_query": i < QUERIES,
        }
        for i in range(40)
    ],
    schema=TABLES["problem_index"].schema,
)
IDS = INDEX["doc_id"]
BELOW, ABOVE = np.nextafter(0.3, 0.0), np.nextafter(0.3, 1.0)
LIMITS = st.tuples(
    st.sampled_from([0.0, BELOW, 0.3, ABOVE, 1.0]), st.sampled_from([0.0, 0.05, 1 / 3])
)
VALUES = st.tuples(
    st.sampled_from([0.0, 0.2, BELOW, 0.3, ABOVE, 0.8, 1.0]),
    st.sampled_from([0.0, 5e-324, 0.04, 0.05, 0.2, 1 / 3]),
)
PAIRS = st.dictionaries(
    st.tuples(st.integers(0, QUERIES), st.integers(5, 30)), VALUES.filter(any), max_size=60
)
CUTS = st.lists(st.integers(0, QUERIES))


def make_pairs(values: dict[tuple[int, int], tuple[float, float]]) -> pl.DataFrame:
    rows = [(*ends, *values[ends]) for ends in sorted(values)]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def in_parts(pairs: pl.DataFrame, cuts: list[int]) -> list[pl.DataFrame]:
    """Parts that end after these queries."""
    ends = [-1, *sorted(set(cuts)), QUERIES + 1]
    return [
        pairs.filter(pl.col("query") > low, pl.col("query") <= high)
        for low, high in itertools.pairwise(ends)
    ]


@pytest.mark.property
@settings(max_examples=200, deadline=None)
@given(
    values=PAIRS,
    rules=st.tuples(*[st.sampled_from(["percentile", "top_m"])] * 2),
    m=st.tuples(st.integers(1, 5), st.integers(1, 5)),
    limits=LIMITS,
    cuts=CUTS,
    per_group=st.integers(0, 4),
)
def test_groups_and_their_sizes_are_those_of_the_twins(
    values: dict[tuple[int, int], tuple[float, float]],
    rules: tuple[str, str],
    m: tuple[int, int],
    limits: tuple[float, float],
    cuts: list[int],
    per_group: int,
) -> None:
    """Position 4 is a document that is no query; queries 1 and 3 follow the second domain."""
    thresholds = pl.DataFrame(
        {"domain": DOMAINS, "rule": rules, "m": m, "topic": limits[0], "summary": limits[1]}
    )
    expected = dict.fromkeys(sorted(values), 0)
    sizes = []
    for q in range(QUERIES):
        high = []
        for i in (0, 1):
            signal = {d: s[i] for (query, d), s in values.items() if query == q}
            if rules[q % 2] == "top_m":
                high.append(twins.top_m(signal, m[q % 2], limits[i]))
            else:
                high.append({d for d, value in signal.items() if value > max(limits[i], 0.0)})
        for d in high[0] | high[1]:
            group = GROUPS[2] if d in high[0] & high[1] else GROUPS[d not in high[0]]
            expected[q, d] = 1 + GROUPS.index(group)
        found = [code for (query, _), code in expected.items() if query == q]
        sizes.append([found.count(code) for code in (1, 2, 3)])
    pairs = make_pairs(values)
    parts = in_parts(pairs, cuts)
    assert PairGroups(INDEX, thresholds).codes(pairs).tolist() == list(expected.values())
    apart = [code for part in parts for code in PairGroups(INDEX, thresholds).codes(part).tolist()]
    assert apart == list(expected.values())
    counts = group_counts(parts[::-1], INDEX, thresholds)
    assert counts["query"].to_list() == list(range(QUERIES))
    assert [list(row) for row in counts.select(GROUPS).iter_rows()] == sizes
    full = [IDS[q] for q in range(QUERIES) if min(sizes[q]) >= per_group]
    assert eligible_queries(counts, INDEX, per_group) == full


@pytest.mark.property
@settings(max_examples=200, deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            st.lists(st.one_of(st.sampled_from([0.0, 0.3, ABOVE, 1.0]), st.floats(0, 1))),
            st.integers(0, 12),
        )
    )
)
def test_the_mth_largest_is_that_of_a_sorted_row(rows: list[tuple[list[float], int]]) -> None:
    expected = [
        sorted(values, reverse=True)[m - 1] if 0 < m <= len(values) else 0.0 for values, m in rows
    ]
    ends = np.cumsum([0, *(len(values) for values, _ in rows)])
    flat = np.array([value for values, _ in rows for value in values], dtype=np.float64)
    m = np.array([m for _, m in rows], dtype=np.int64)
    assert mth_largest(flat, ends.astype(np.int64), m).tolist() == expected


@pytest.mark.property
@pytest.mark.parametrize("order", ["ascending", "descending", "random", "equal", "two values"])
@pytest.mark.parametrize("m", [1, 7, 500, 999, 1000, 1001])
def test_long_rows_in_any_order_have_the_same_mth_largest(order: str, m: int) -> None:
    values = np.random.default_rng(1).random(1000)
    if order == "equal":
        values[:] = 0.5
    elif order == "two values":
        values = np.round(values)
    elif order != "random":
        values = np.sort(values)[:: 1 if order == "ascending" else -1].copy()
    expected = np.sort(values)[::-1][m - 1] if m <= 1000 else 0.0
    assert mth_largest(values, np.array([0, 1000]), np.array([m])).tolist() == [expected]


TEXTS = pl.DataFrame(
    {"doc_id": IDS, "problem": [" ".join(f"{d}x{i}" for i in range(9)) for d in IDS]}
)
LOW = pl.DataFrame(
    {"domain": DOMAINS, "rule": "percentile", "m": None, "topic": 0.2, "summary": 0.04},
    schema_overrides={"m": pl.Int64},
)


@pytest.mark.property
@settings(max_examples=100, deadline=None)
@given(values=PAIRS, k=st.integers(1, 3), seed=st.integers(0, 3), new=VALUES.filter(any), cuts=CUTS)
def test_a_new_document_replaces_at_most_one_candidate(
    values: dict[tuple[int, int], tuple[float, float]],
    k: int,
    seed: int,
    new: tuple[float, float],
    cuts: list[int],
) -> None:
    def sample(pairs: pl.DataFrame) -> dict[str, set[str]]:
        rows = sample_candidates([pairs], INDEX, LOW, IDS, k, seed, TEXTS).frame
        apart = sample_candidates(in_parts(pairs, cuts), INDEX, LOW, IDS, k, seed, TEXTS).frame
        assert apart.equals(rows)
        sizes = rows.group_by("query_id", "group").len()
        assert (sizes["len"] == k).all()
        assert sizes.height == len(GROUPS) * rows["query_id"].n_unique()
        return {str(q): set(docs["doc_id"]) for (q,), docs in rows.group_by("query_id")}

    before = sample(make_pairs(values))
    after = sample(make_pairs(values | {(0, 39): new}))
    assert set(before) <= set(after)
    for query, candidates in before.items():
        assert len(candidates - after[query]) <= 1
        assert after[query] - candidates <= {"d39"}


@pytest.mark.property
@settings(max_examples=200, deadline=None)
@given(
    values=PAIRS,
    k=st.integers(1, 2),
    seed=st.integers(0, 3),
    near=st.sets(st.integers(5, 30)),
)
def test_a_sample_is_that_of_the_corpus_without_near_duplicates(
    values: dict[tuple[int, int], tuple[float, float]], k: int, seed: int, near: set[int]
) -> None:
    """All queries have one text, and so have the documents of ``near``."""
    copied = [d < QUERIES or d in near for d in range(INDEX.height)]
    corpus = TEXTS.with_columns(
        problem=pl.when(pl.Series(copied)).then(pl.lit("One and the same text of words"))
        .otherwise("problem")
    )  # fmt: skip
    found = sample_candidates([make_pairs(values)], INDEX, LOW, IDS, k, seed, corpus)
    others = {ends: signals for ends, signals in values.items() if ends[1] not in near}
    plain = sample_candidates([make_pairs(others)], INDEX, LOW, IDS, k, seed, TEXTS)
    assert found.frame.equals(plain.frame)
    assert found.left_out == plain.left_out
    assert found.near_duplicates <= len(values) - len(others)
    assert plain.near_duplicates == 0


@pytest.mark.property
@given(*[st.lists(st.sampled_from("ab"), max_size=12)] * 2)
def test_near_duplicates_are_those_of_a_plain_count(left: list[str], right: list[str]) -> None:
    sets = []
    for text in (left, right):
        found = words(" ".join(text))
        sets.append({" ".join(found[i : i + 5]) for i in range(len(found) - 4)})
    union = len(sets[0] | sets[1])
    expected = union > 0 and len(sets[0] & sets[1]) * 10 >= union * 8
    runs = [word_runs(" ".join(text)) for text in (left, right)]
    assert are_near_duplicates(*runs) is expected
