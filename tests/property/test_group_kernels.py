"""Values, group sizes and changes of eligibility are counted as plain Python counts them."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saber_dagster.query_parts import QueryPart
from saber_dagster.similarity import twins, value_counts
from saber_dagster.similarity.group_changes import group_changes
from saber_dagster.similarity.group_sizes import domain_sizes, top_m_sizes
from saber_dagster.similarity.value_counts import count_values

pytestmark = pytest.mark.property

TOPICS = [0.0, 0.25, 0.3, 0.5, 0.75, 1.0]
SUMMARIES = [0.0, 0.05, 1 / 7, 1 / 3, 0.5]
PAIRS = st.lists(st.tuples(st.sampled_from(TOPICS), st.sampled_from(SUMMARIES)), max_size=25)
QUERIES = st.lists(st.tuples(PAIRS, st.sets(st.integers(0, 2))), max_size=5)
Query = tuple[list[tuple[float, float]], set[int]]


def arrays(queries: list[Query]) -> tuple[QueryPart, np.ndarray, np.ndarray]:
    """Query i has position 2 i; also the domains of each position."""
    pairs = np.array([pair for own, _ in queries for pair in own], dtype=np.float64).reshape(-1, 2)
    indptr = np.cumsum([0, *(len(own) for own, _ in queries)])
    counts = np.array([n for _, domains in queries for n in (len(domains), 0)], dtype=np.int64)
    members = [domain for _, domains in queries for domain in sorted(domains)]
    part = QueryPart(2 * np.arange(len(queries)), indptr, pairs[:, 0].copy(), pairs[:, 1].copy())
    return part, np.concatenate([[0], np.cumsum(counts)]), np.array(members, dtype=np.int64)


def size_at(pairs: list[tuple[float, float]], topic: float, summary: float) -> int:
    """The smallest group if all signals from these on are high."""
    high = [{i for i, pair in enumerate(pairs) if pair[k] >= (topic, summary)[k]} for k in (0, 1)]
    return twins.smallest_group(*high)


@given(queries=QUERIES, floor=st.sampled_from([0.0, 0.25, 0.3]))
def test_values_are_counted_by_domain(queries: list[Query], floor: float) -> None:
    part, member_ptr, members = arrays(queries)
    bits, counts = count_values(
        0, len(queries), part.queries, part.indptr, part.topic, part.topic.view(np.uint64), floor,
        member_ptr, members, 3,
    )  # fmt: skip
    expected = Counter(
        (topic, domain)
        for pairs, domains in queries
        for topic, _ in pairs
        for domain in domains
        if topic >= floor and topic > 0
    )
    found = {
        (float(value), domain): int(count)
        for value, row in zip(bits.view(np.float64), counts, strict=True)
        for domain, count in enumerate(row)
        if count
    }
    assert found == dict(expected)


def test_more_values_than_slots_are_counted() -> None:
    rng = np.random.default_rng(1)
    n = 3 * value_counts._SLOTS
    distinct = np.unique(rng.random(n))
    values = rng.permutation(np.concatenate([distinct, distinct[::2]]))
    bits, counts = count_values(
        0, 1, np.array([0]), np.array([0, values.size]), values, values.view(np.uint64), 0.0,
        np.array([0, 1]), np.array([0]), 1,
    )  # fmt: skip
    order = np.argsort(bits.view(np.float64))
    expected, times = np.unique(values, return_counts=True)
    assert (bits.view(np.float64)[order] == expected).all()
    assert (counts[order, 0] == times).all()


@given(
    queries=QUERIES,
    cuts=st.lists(
        st.tuples(
            st.sampled_from([*TOPICS[1:], np.inf]), st.sampled_from([*SUMMARIES[1:], np.inf])
        ),
        min_size=1,
        max_size=5,
    ),
)
def test_sizes_at_descending_cuts_are_those_of_the_twin(
    queries: list[Query], cuts: list[tuple[float, float]]
) -> None:
    part, member_ptr, members = arrays(queries)
    descending = np.sort(np.array(cuts), axis=0)[::-1].T
    by_domain = np.stack([descending, np.full_like(descending, np.inf), descending])
    found = domain_sizes(
        0, len(queries), part.queries, part.indptr, part.topic, part.summary,
        np.ascontiguousarray(by_domain), member_ptr, members, 3,
    )  # fmt: skip
    for domain in range(3):
        for step in range(len(cuts)):
            sizes = [
                min(size_at(pairs, *by_domain[domain, :, step]), 3)
                for pairs, domains in queries
                if domain in domains
            ]
            assert found[domain, step, 1:].tolist() == [sizes.count(k) for k in (1, 2, 3)]


@given(queries=QUERIES, ms=st.sets(st.integers(1, 30), min_size=1, max_size=4))
def test_sizes_with_the_m_largest_are_those_of_the_twin(queries: list[Query], ms: set[int]) -> None:
    part, _, _ = arrays(queries)
    floors = 0.3, 0.05
    found = top_m_sizes(
        0, len(queries), part.indptr, part.topic, part.summary, np.array(sorted(ms)), *floors
    )
    for (pairs, _), sizes in zip(queries, found, strict=True):
        for m, size in zip(sorted(ms), sizes, strict=True):
            high = [
                twins.top_m({str(i): pair[k] for i, pair in enumerate(pairs)}, m, floors[k])
                for k in (0, 1)
            ]
            assert size == twins.smallest_group(*high)


@given(
    queries=QUERIES,
    levels=st.permutations(range(len(TOPICS) + len(SUMMARIES) - 2)),
    shared=st.integers(1, 3),
    first=st.tuples(st.integers(1, 5), st.integers(1, 4)),
    k=st.integers(1, 3),
)
def test_queries_have_k_of_each_group_from_the_levels_at_which_the_twin_says_so(
    queries: list[Query], levels: list[int], shared: int, first: tuple[int, int], k: int
) -> None:
    part, member_ptr, members = arrays(queries)
    # values are high in descending order; both signals may have a level in common
    topic_levels = np.array(sorted(levels[:5], reverse=True)) // shared
    summary_levels = np.array(sorted(levels[5:], reverse=True)) // shared
    tables = []
    for values, own, low in (
        (TOPICS, topic_levels, first[0]),
        (SUMMARIES, summary_levels, first[1]),
    ):
        kept = len(values) - low
        tables += [
            np.array([0, kept, kept, 2 * kept]),
            np.array(2 * values[low:]),
            np.tile(own[low - 1 :], 2),
        ]
    domains, changes = group_changes(
        0, len(queries), part.queries, part.indptr, part.topic, part.summary, member_ptr, members,
        np.array([k, 9, 0]), *tables,
    )  # fmt: skip
    assert set(domains) <= {0}
    for level in range(9):
        topic, summary = (
            min((v for v, own in zip(values[low:], at[low - 1 :], strict=True) if own <= level),
                default=np.inf)
            for values, at, low in (
                (TOPICS, topic_levels, first[0]),
                (SUMMARIES, summary_levels, first[1]),
            )
        )  # fmt: skip
        expected = sum(size_at(pairs, topic, summary) >= k for pairs, own in queries if 0 in own)
        assert np.sum(2 * (changes[changes >> 1 <= level] & 1) - 1) == expected


def test_more_pairs_can_make_the_smallest_group_smaller() -> None:
    # Both at level 1, topic-only from 2, summary-only from 1; from 3 on none is topic-only.
    topic, summary = np.array([0.9, 0.8, 0.7]), np.array([0.9, 0.7, 0.9])
    tables = [np.array([0, 2]), np.array([0.8, 0.9]), np.array([2, 1])]
    tables += [np.array([0, 2]), np.array([0.7, 0.9]), np.array([3, 1])]
    domains, changes = group_changes(
        0, 1, np.array([0]), np.array([0, 3]), topic, summary, np.array([0, 1]), np.array([0]),
        np.array([1]), *tables,
    )  # fmt: skip
    assert (domains.tolist(), changes.tolist()) == ([0, 0], [2 * 2 + 1, 2 * 3])
