import numpy as np
import polars as pl
import pytest

from saber_dagster.candidates import (
    SmallestGroup,
    eligible_queries,
    group_counts,
    group_pairs,
    sample_candidates,
    select_queries,
)
from saber_dagster.contracts import TABLES
from saber_dagster.errors import SaberError
from saber_dagster.hashing import hash64

PAIRS = TABLES["signal_shards"].schema


def make_index(**domains: list[str]) -> pl.DataFrame:
    """One query for each name; the first of its domains is the primary one."""
    rows = [
        {
            "doc_id": query,
            "cluster_id": query,
            "domains": sorted(names),
            "primary_domain": names[0],
            "shard": 0,
            "topics": ["t"],
            "words": ["w"],
            "topic_set_id": "t",
            "word_set_id": "w",
            "is_document": True,
            "is_query": True,
        }
        for query, names in domains.items()
    ]
    return pl.DataFrame(rows, schema=TABLES["problem_index"].schema)


def make_thresholds(rule: str, topic: float, summary: float, **m: int | None) -> pl.DataFrame:
    rows = [
        {"domain": domain, "rule": rule, "m": value, "topic": topic, "summary": summary}
        for domain, value in m.items()
    ]
    schema = TABLES["thresholds"].schema
    return pl.DataFrame(
        rows, schema={k: schema[k] for k in ("domain", "rule", "m", "topic", "summary")}
    )


def make_pairs(query: str, *signals: tuple[float, float]) -> pl.DataFrame:
    rows = [(query, f"d{i}", topic, summary) for i, (topic, summary) in enumerate(signals)]
    return pl.DataFrame(rows, schema=PAIRS, orient="row")


def groups_of(frame: pl.DataFrame) -> dict[str, str]:
    return dict(frame.select("doc_id", "group").iter_rows())


def test_the_percentile_threshold_is_exceeded_strictly() -> None:
    pairs = make_pairs("q", (0.8, 0.2), (0.9, 0.2), (0.8, 0.3), (0.9, 0.3), (0.0, 0.3))
    thresholds = make_thresholds("percentile", 0.8, 0.2, algebra=None)
    groups = group_pairs(pairs, make_index(q=["algebra"]), thresholds)
    expected = {"d1": "topic_only", "d2": "summary_only", "d3": "both", "d4": "summary_only"}
    assert groups_of(groups) == expected


def test_a_signal_of_zero_is_never_high() -> None:
    pairs = make_pairs("q", (0.5, 0.0), (0.0, 0.5))
    for rule in ("percentile", "top_m"):
        thresholds = make_thresholds(rule, 0.0, 0.0, algebra=9)
        groups = group_pairs(pairs, make_index(q=["algebra"]), thresholds)
        assert groups_of(groups) == {"d0": "topic_only", "d1": "summary_only"}


def test_top_m_takes_ties_and_needs_the_floor() -> None:
    pairs = make_pairs("q", (0.9, 0.0), (0.7, 0.0), (0.7, 0.0), (0.6, 0.05), (0.3, 0.04))
    index = make_index(q=["algebra"])
    two = group_pairs(pairs, index, make_thresholds("top_m", 0.3, 0.05, algebra=2))
    assert groups_of(two) == {
        "d0": "topic_only",
        "d1": "topic_only",
        "d2": "topic_only",
        "d3": "summary_only",
    }
    nine = group_pairs(pairs, index, make_thresholds("top_m", 0.3, 0.05, algebra=9))
    assert groups_of(nine) == {
        "d0": "topic_only",
        "d1": "topic_only",
        "d2": "topic_only",
        "d3": "both",
        "d4": "topic_only",
    }


def test_a_query_of_several_domains_follows_its_primary_domain() -> None:
    pairs = pl.concat([make_pairs(q, (0.9, 0), (0.8, 0), (0.7, 0)) for q in ("p", "q")])
    index = make_index(p=["algebra", "geometry"], q=["geometry", "algebra"])
    groups = group_pairs(pairs, index, make_thresholds("top_m", 0.3, 0.05, algebra=1, geometry=2))
    assert groups.select("query_id", "doc_id").rows() == [("p", "d0"), ("q", "d0"), ("q", "d1")]
    with pytest.raises(SaberError, match="geometry"):
        group_pairs(pairs, index, make_thresholds("top_m", 0.3, 0.05, algebra=1))


def make_groups(query: str, topic_only: int, summary_only: int, both: int) -> pl.DataFrame:
    names = ["topic_only"] * topic_only + ["summary_only"] * summary_only + ["both"] * both
    rows = [(query, f"d{i:03}", 0.5, 0.5, group) for i, group in enumerate(names)]
    return pl.DataFrame(rows, schema=PAIRS | {"group": pl.String}, orient="row")


GROUPS = pl.concat(
    [make_groups("p", 3, 3, 3), make_groups("q", 9, 9, 2), make_groups("r", 5, 4, 3)]
)


def test_eligible_queries_have_k_in_each_group() -> None:
    assert eligible_queries(GROUPS, 3) == ["p", "r"]
    assert eligible_queries(GROUPS, 2) == ["p", "q", "r"]
    assert eligible_queries(GROUPS, 4) == []
    assert eligible_queries(make_groups("p", 5, 5, 0), 1) == []


def test_counts_include_queries_without_any_candidate() -> None:
    index = make_index(q=["algebra"], s=["algebra"])
    assert group_counts(GROUPS, index).rows() == [
        ("q", ["algebra"], 9, 9, 2),
        ("s", ["algebra"], 0, 0, 0),
    ]


def test_queries_are_the_smallest_hashes_of_each_domain() -> None:
    index = make_index(
        **{f"a{i}": ["algebra"] for i in range(20)},
        **{f"g{i}": ["geometry"] for i in range(3)},
        **{f"m{i}": ["geometry", "algebra"] for i in range(4)},
    )
    chosen = select_queries(index["doc_id"], index, per_domain=5, seed=7)
    for domain in ("algebra", "geometry"):
        members = index.filter(pl.col("domains").list.contains(domain))["doc_id"]
        expected = sorted(members, key=lambda query: hash64(7, "query", query))[:5]
        sample = chosen.filter(pl.col("selected_for").list.contains(domain))["query_id"]
        assert sorted(sample) == sorted(expected)
    assert chosen["selected_for"].list.len().min() == 1
    assert TABLES["query_set"].check(chosen).equals(chosen)


def test_a_new_query_takes_the_place_of_at_most_one_other() -> None:
    domains = {f"a{i}": ["algebra"] for i in range(30)}
    before = select_queries(domains, make_index(**domains), per_domain=10, seed=1)
    moved = 0
    for i in range(100, 120):
        index = make_index(**domains, **{f"a{i}": ["algebra"]})
        after = select_queries(index["doc_id"], index, per_domain=10, seed=1)
        lost = set(before["query_id"]) - set(after["query_id"])
        assert len(lost) <= 1
        moved += len(lost)
    assert moved > 0


def test_own_queries_are_all_taken_if_they_are_eligible() -> None:
    index = make_index(**{f"a{i}": ["algebra", "geometry"] for i in range(9)})
    eligible = [f"a{i}" for i in range(1, 9)]
    chosen = select_queries(eligible, index, per_domain=2, seed=1, own_queries=True)
    assert chosen["query_id"].to_list() == eligible
    assert set(chosen["selected_for"].list.join(",")) == {"algebra,geometry"}


def test_no_eligible_query_makes_an_empty_query_set() -> None:
    chosen = select_queries([], make_index(q=["algebra"]), per_domain=2, seed=1)
    assert chosen.equals(TABLES["query_set"].empty())


def test_candidates_are_the_smallest_hashes_of_each_group() -> None:
    sample = sample_candidates(
        GROUPS.sample(fraction=1, shuffle=True, seed=2), ["p", "q", "r"], 3, 7
    )
    # q has too few of both
    assert sample["query_id"].unique().sort().to_list() == ["p", "r"]
    for group in ("topic_only", "summary_only", "both"):
        rows = GROUPS.filter((pl.col("query_id") == "r") & (pl.col("group") == group))
        expected = sorted(rows["doc_id"], key=lambda doc: hash64(7, "r", doc))[:3]
        drawn = sample.filter((pl.col("query_id") == "r") & (pl.col("group") == group))
        assert sorted(drawn["doc_id"]) == sorted(expected)
    assert sample_candidates(GROUPS, [], 3, 7).equals(TABLES["candidate_sets"].empty())


def test_smallest_group_follows_pairs_from_one_group_to_another() -> None:
    # Query 0: document 0 is topic-only from 1 and both from 5, document 1 is topic-only from 2,
    # document 2 is summary-only from 3. Query 1 has one pair that is both at once.
    query = np.array([0, 0, 0, 1])
    topic = np.array([1.0, 2.0, np.inf, 4.0])
    summary = np.array([5.0, np.inf, 3.0, 4.0])
    groups = SmallestGroup(query, topic, summary, n_queries=3)
    assert [groups.at(level).tolist() for level in (4.9, 5.0)] == [[0, 0, 0], [1, 0, 0]]
    level, eligible = groups.eligible(1)
    assert dict(zip(level, eligible, strict=True)) == {1: 0, 2: 0, 3: 0, 4: 0, 5: 1}
    assert SmallestGroup(query, topic, summary, 3, end=5.0).at(9).tolist() == [0, 0, 0]


def test_more_pairs_can_make_the_smallest_group_smaller() -> None:
    query = np.zeros(3, dtype=np.int64)
    groups = SmallestGroup(query, np.array([1.0, 2.0, 1.0]), np.array([1.0, 1.0, 3.0]), 1)
    assert [int(groups.at(level)[0]) for level in (1, 2, 3)] == [1, 0, 0]
