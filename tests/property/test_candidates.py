"""Grouping agrees with its plain twin; samples change as little as they can."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saber_dagster.candidates import group_pairs, sample_candidates
from saber_dagster.contracts import GROUPS, TABLES
from saber_dagster.similarity import twins

DOMAINS = ("algebra", "geometry")
INDEX = pl.DataFrame(
    [
        {
            "doc_id": f"q{i}",
            "cluster_id": f"q{i}",
            "domains": list(DOMAINS),
            "primary_domain": DOMAINS[i % 2],
            "shard": 0,
            "topics": ["t"],
            "words": ["w"],
            "topic_set_id": "t",
            "word_set_id": "w",
            "is_document": False,
            "is_query": True,
        }
        for i in range(4)
    ],
    schema=TABLES["problem_index"].schema,
)
VALUES = st.tuples(
    st.sampled_from([0.0, 0.2, 0.3, 0.5, 0.8]), st.sampled_from([0.0, 0.04, 0.05, 0.2, 1 / 3])
)
PAIRS = st.dictionaries(
    st.tuples(st.integers(0, 3), st.integers(0, 30)), VALUES.filter(any), max_size=40
)


def make_pairs(values: dict[tuple[int, int], tuple[float, float]]) -> pl.DataFrame:
    rows = [(f"q{q}", f"d{d:02}", *signals) for (q, d), signals in values.items()]
    return pl.DataFrame(rows, schema=TABLES["signal_shards"].schema, orient="row")


@pytest.mark.property
@settings(max_examples=150, deadline=None)
@given(
    values=PAIRS,
    rule=st.sampled_from(["percentile", "top_m"]),
    m=st.tuples(st.integers(1, 5), st.integers(1, 5)),
)
def test_groups_are_those_of_the_twins(
    values: dict[tuple[int, int], tuple[float, float]], rule: str, m: tuple[int, int]
) -> None:
    limits = (0.3, 0.05)
    thresholds = pl.DataFrame(
        {"domain": DOMAINS, "rule": rule, "m": m, "topic": limits[0], "summary": limits[1]}
    )
    expected = {}
    for q in range(4):
        high = []
        for i in (0, 1):
            signal = {f"d{d:02}": s[i] for (query, d), s in values.items() if query == q}
            if rule == "top_m":
                high.append(twins.top_m(signal, m[q % 2], limits[i]))
            else:
                high.append({doc for doc, value in signal.items() if value > limits[i]})
        for doc in high[0] | high[1]:
            group = GROUPS[2] if doc in high[0] & high[1] else GROUPS[doc not in high[0]]
            expected[f"q{q}", doc] = group
    groups = group_pairs(make_pairs(values), INDEX, thresholds)
    found = {(q, d): g for q, d, g in groups.select("query_id", "doc_id", "group").iter_rows()}
    assert found == expected
    assert list(found) == sorted(found)


@pytest.mark.property
@settings(max_examples=100, deadline=None)
@given(values=PAIRS, k=st.integers(1, 3), seed=st.integers(0, 3), new=VALUES.filter(any))
def test_a_new_document_replaces_at_most_one_candidate(
    values: dict[tuple[int, int], tuple[float, float]], k: int, seed: int, new: tuple[float, float]
) -> None:
    thresholds = pl.DataFrame(
        {"domain": DOMAINS, "rule": "percentile", "m": None, "topic": 0.2, "summary": 0.04},
        schema_overrides={"m": pl.Int64},
    )

    def sample(pairs: pl.DataFrame) -> dict[str, set[str]]:
        groups = group_pairs(pairs, INDEX, thresholds)
        rows = sample_candidates(groups, INDEX["doc_id"], k, seed)
        sizes = rows.group_by("query_id", "group").len()
        assert (sizes["len"] == k).all()
        assert sizes.height == len(GROUPS) * rows["query_id"].n_unique()
        return {str(q): set(docs["doc_id"]) for (q,), docs in rows.group_by("query_id")}

    before = sample(make_pairs(values))
    after = sample(pl.concat([make_pairs(values), make_pairs({(0, 99): new})]))
    assert set(before) <= set(after)
    for query, candidates in before.items():
        assert len(candidates - after[query]) <= 1
        assert after[query] - candidates <= {"d99"}
