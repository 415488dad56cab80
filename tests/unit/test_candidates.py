import numpy as np
import polars as pl
import pytest

from saber_dagster.candidates import choose_queries, sample_candidates, select_queries
from saber_dagster.contracts import GROUPS, TABLES
from saber_dagster.errors import SaberError
from saber_dagster.hashing import hash64
from saber_dagster.pair_groups import PairGroups, eligible_queries, group_counts
from saber_dagster.signals.pairs import SCHEMA


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


def make_pairs(query: int, *signals: tuple[float, float]) -> pl.DataFrame:
    """The pairs of a query with the documents from 0 on."""
    rows = [(query, doc, *values) for doc, values in enumerate(signals)]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def groups_of(
    pairs: pl.DataFrame, index: pl.DataFrame, thresholds: pl.DataFrame
) -> dict[tuple[int, int], str]:
    codes = PairGroups(index, thresholds).codes(pairs)
    rows = zip(pairs["query"], pairs["doc"], codes, strict=True)
    return {(query, doc): GROUPS[code - 1] for query, doc, code in rows if code}


def test_the_percentile_threshold_is_exceeded_strictly() -> None:
    pairs = make_pairs(0, (0.8, 0.2), (0.9, 0.2), (0.8, 0.3), (0.9, 0.3), (0.0, 0.3))
    thresholds = make_thresholds("percentile", 0.8, 0.2, algebra=None)
    codes = PairGroups(make_index(q=["algebra"]), thresholds).codes(pairs)
    assert codes.tolist() == [0, 1, 2, 3, 2]
    assert codes.dtype == np.uint8
    assert GROUPS == ("topic_only", "summary_only", "both")


def test_a_signal_of_zero_is_never_high() -> None:
    pairs = make_pairs(0, (0.5, 0.0), (0.0, 0.5))
    for rule in ("percentile", "top_m"):
        for m in (2, 9):
            thresholds = make_thresholds(rule, 0.0, 0.0, algebra=m)
            assert PairGroups(make_index(q=["algebra"]), thresholds).codes(pairs).tolist() == [1, 2]


def test_top_m_takes_ties_and_needs_the_floor() -> None:
    pairs = make_pairs(0, (0.9, 0.0), (0.7, 0.0), (0.7, 0.0), (0.6, 0.05), (0.3, 0.04))
    index = make_index(q=["algebra"])
    two = PairGroups(index, make_thresholds("top_m", 0.3, 0.05, algebra=2)).codes(pairs)
    assert two.tolist() == [1, 1, 1, 2, 0]
    nine = PairGroups(index, make_thresholds("top_m", 0.3, 0.05, algebra=9)).codes(pairs)
    assert nine.tolist() == [1, 1, 1, 3, 1]


def test_a_query_of_several_domains_follows_its_primary_domain() -> None:
    pairs = pl.concat([make_pairs(q, (0.9, 0), (0.8, 0), (0.7, 0)) for q in (0, 1)])
    index = make_index(p=["algebra", "geometry"], q=["geometry", "algebra"])
    thresholds = make_thresholds("top_m", 0.3, 0.05, algebra=1, geometry=2)
    assert list(groups_of(pairs, index, thresholds)) == [(0, 0), (1, 0), (1, 1)]
    for function in (
        lambda limits: PairGroups(index, limits).codes(pairs),
        lambda limits: group_counts([pairs], index, limits),
        lambda limits: sample_candidates([pairs], index, limits, [], 1, 7, texts(index)),
    ):
        with pytest.raises(SaberError, match="geometry"):
            function(make_thresholds("top_m", 0.3, 0.05, algebra=1))


def test_what_is_no_query_has_no_group() -> None:
    index = make_index(p=["algebra"], q=["algebra"]).with_columns(is_query=pl.Series([True, False]))
    pairs = pl.concat([make_pairs(q, (0.9, 0.9)) for q in (0, 1)])
    thresholds = make_thresholds("percentile", 0.5, 0.5, algebra=None)
    assert PairGroups(index, thresholds).codes(pairs).tolist() == [3, 0]
    assert group_counts([pairs], index, thresholds)["query"].to_list() == [0]


def test_pairs_out_of_order_are_refused() -> None:
    pairs = pl.concat([make_pairs(q, (0.9, 0.9)) for q in (1, 0)])
    index = make_index(p=["algebra"], q=["algebra"])
    thresholds = make_thresholds("top_m", 0.3, 0.05, algebra=1)
    with pytest.raises(ValueError, match="order"):
        PairGroups(index, thresholds).codes(pairs)


LIMITS = make_thresholds("percentile", 0.5, 0.5, algebra=None)
SIGNALS_OF = {"topic_only": (0.9, 0.1), "summary_only": (0.1, 0.9), "both": (0.9, 0.9)}
BY_NAME = make_index(**{f"d{i:02}": ["algebra"] for i in range(30)})
NAMES = BY_NAME["doc_id"]


def make_groups(query: int, **sizes: int) -> pl.DataFrame:
    """Pairs of a query of which the first are topic-only, and so on."""
    return make_pairs(query, *(SIGNALS_OF[group] for group, n in sizes.items() for _ in range(n)))


def texts(index: pl.DataFrame, **problems: str) -> pl.DataFrame:
    """A corpus of problems that share no run of words, but for those given."""
    ids = index["doc_id"].to_list()
    rows = [problems.get(doc, " ".join(f"{doc} {i}" for i in range(9))) for doc in ids]
    return pl.DataFrame({"doc_id": ids, "problem": rows}).reverse()


SHARDS = [
    make_groups(0, topic_only=3, summary_only=3, both=3),
    pl.concat(
        [
            make_groups(2, topic_only=9, summary_only=9, both=2),
            make_groups(3, topic_only=5, summary_only=4, both=3),
        ]
    ),
]


@pytest.mark.parametrize(
    ("per_group", "expected"), [(3, ["p", "r"]), (2, ["p", "q", "r"]), (4, []), (0, list("psqr"))]
)
def test_eligible_queries_have_k_in_each_group(per_group: int, expected: list[str]) -> None:
    index = make_index(**{query: ["algebra"] for query in "psqr"})
    counts = group_counts(SHARDS, index, LIMITS)
    assert eligible_queries(counts, index, per_group) == sorted(expected)
    one_empty = group_counts([make_groups(0, topic_only=5, summary_only=5)], index, LIMITS)
    assert eligible_queries(one_empty, index, 1) == []


def test_counts_include_queries_without_any_candidate() -> None:
    index = make_index(**{query: ["algebra"] for query in "psqru"})
    index = index.with_columns(is_query=pl.Series([True] * 4 + [False]))
    counts = group_counts(SHARDS, index, LIMITS)
    assert counts.rows() == [
        (0, ["algebra"], 3, 3, 3),
        (1, ["algebra"], 0, 0, 0),
        (2, ["algebra"], 9, 9, 2),
        (3, ["algebra"], 5, 4, 3),
    ]
    assert list(counts.schema.values()) == [pl.UInt32, pl.List(pl.String), *[pl.Int64] * 3]
    assert group_counts([], index, LIMITS)["both"].to_list() == [0] * 4


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
    shards = [pairs.with_columns(pl.col("query") + 20) for pairs in SHARDS]
    asked = ["d23", "d20", "d22", "zz"]
    sample = sample_candidates(shards, BY_NAME, LIMITS, asked, 3, 7, texts(BY_NAME))
    frame = sample.frame
    # d22 has too few of both, zz is no query
    assert frame["query_id"].unique(maintain_order=True).to_list() == ["d20", "d23"]
    assert (sample.left_out, sample.near_duplicates) == (("d22", "zz"), 0)
    assert TABLES["candidate_sets"].check(frame).equals(frame)
    for group, docs in (("topic_only", NAMES[:5]), ("summary_only", NAMES[5:9])):
        expected = sorted(docs, key=lambda doc: hash64(7, "d23", doc))[:3]
        drawn = frame.filter(pl.col("query_id") == "d23", pl.col("group") == group)
        assert sorted(drawn["doc_id"]) == sorted(expected)
        assert set(drawn.select("topic", "summary").rows()) == {SIGNALS_OF[group]}
    none = sample_candidates(shards, BY_NAME, LIMITS, [], 3, 7, texts(BY_NAME))
    assert none.frame.equals(TABLES["candidate_sets"].empty())


TEN = "Find all positive integers n such that n + 1 divides n squared."


def test_near_duplicates_of_the_query_are_no_candidates() -> None:
    pairs = [make_groups(29, topic_only=5, summary_only=5, both=5)]
    first, *others = sorted(NAMES[:5], key=lambda doc: hash64(7, "d29", doc))
    near = texts(BY_NAME, d29=TEN, **{first: TEN.upper().replace(" ", "  ")})
    sample = sample_candidates(pairs, BY_NAME, LIMITS, ["d29"], 3, 7, near)
    drawn = sample.frame.filter(group="topic_only")["doc_id"].to_list()
    assert drawn == sorted(others[:3])
    assert (sample.near_duplicates, sample.left_out) == (1, ())
    full = sample_candidates(pairs, BY_NAME, LIMITS, ["d29"], 5, 7, near)
    assert (full.frame.height, full.near_duplicates, full.left_out) == (0, 1, ("d29",))
    # nothing is looked at beyond the K that are taken
    late = texts(BY_NAME, d29=TEN, **{others[-1]: TEN})
    assert sample_candidates(pairs, BY_NAME, LIMITS, ["d29"], 4, 7, late).near_duplicates == 0


def test_a_query_that_near_duplicates_leave_short_is_replaced_by_the_next_one() -> None:
    queries = ["d26", "d27", "d28", "d29"]
    pairs = [make_groups(int(query[1:]), topic_only=3, summary_only=3, both=3) for query in queries]
    index = BY_NAME.with_columns(is_query=pl.col("doc_id").is_in(queries))
    order = sorted(queries, key=lambda query: (hash64(7, "query", query), query))

    def choose(per_domain: int, corpus: pl.DataFrame) -> tuple[list[str], tuple[str, ...]]:
        choice = choose_queries(pairs, index, LIMITS, per_domain, 3, 7, corpus)
        return choice.frame["query_id"].to_list(), choice.left_out

    assert choose(2, texts(index)) == (sorted(order[:2]), ())
    # the first and the third are copies of a document; the third is looked at as the first is left out
    copied = texts(index, **{order[0]: TEN, order[2]: TEN, "d01": TEN})
    assert choose(1, copied) == ([order[1]], (order[0],))
    assert choose(2, copied) == (sorted([order[1], order[3]]), tuple(sorted([order[0], order[2]])))
    assert choose(4, copied) == (sorted([order[1], order[3]]), tuple(sorted([order[0], order[2]])))
    every = texts(index, **dict.fromkeys([*queries, "d01"], TEN))
    assert choose(4, every) == ([], tuple(queries))


def test_a_document_that_the_corpus_lacks_is_an_error() -> None:
    pairs = [make_groups(29, topic_only=1, summary_only=1, both=1)]
    few = texts(BY_NAME).filter(pl.col("doc_id") != "d01")
    with pytest.raises(SaberError, match="no document d01"):
        sample_candidates(pairs, BY_NAME, LIMITS, ["d29"], 1, 7, few)
