"""Each rule finds a frame that violates it, says how often and where, and passes a sound one."""

import itertools
import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assets.rules import OTHERS, Rule
from saber_dagster.contracts import GROUPS, TABLES
from saber_dagster.corpus import Problem, build_corpus
from saber_dagster.metrics import expected_random_ndcg, query_metrics
from saber_dagster.pair_groups import PairGroups
from saber_dagster.rules import boards, candidates, corpus, high_pairs, judging, signals, topics
from saber_dagster.rules.base import Violation, low_share, violations
from saber_dagster.signals.pairs import SCHEMA, with_ids
from saber_dagster.signals.statistics import population
from saber_dagster.thresholds.fit import fit_thresholds
from saber_dagster.thresholds.rule import ThresholdRule

DOMAINS = ("algebra", "geometry")


def frame(table, *rows):
    """Rows of a table as dictionaries; columns that are not named have a value of their type."""
    schema = TABLES[table].schema
    empty = {pl.String: "", pl.Boolean: False, pl.Int32: 0, pl.Int64: 0, pl.Float64: 0.0}
    fill = {name: empty.get(dtype, []) for name, dtype in schema.items()}
    return pl.DataFrame([fill | row for row in rows], schema=schema)


def change(table, row, **values):
    """The table with other values in one row."""
    rows = table.to_dicts()
    rows[row] |= values
    return pl.DataFrame(rows, schema=table.schema)


def said(found):
    return "; ".join(map(str, found))


# what rules return


def test_a_violation_says_what_how_often_and_the_first_three():
    rows = pl.DataFrame({"doc_id": ["d", "b", "a", "c"], "depth": [4, 2, 1, 3]})
    names = pl.DataFrame(
        {"doc_id": ["a", "x"], "source": ["mine", "mine"], "source_id": ["17", "1"]}
    )
    (found,) = violations(rows, "documents are odd", ("doc_id", "depth"), names)
    assert str(found) == (
        "4 documents are odd, such as document '17' of mine (a), depth 1; document b, depth 2;"
        " document c, depth 3"
    )
    assert violations(rows.clear(), "documents are odd", "doc_id") == []


def test_a_check_says_the_remedy():
    check = Rule("r", "Holds.", remedy="mend it").verdict(
        [Violation("are odd", 2), Violation("x", 3)]
    )
    assert (check.passed, check.description) == (False, "2 are odd; 3 x. Remedy: mend it")
    assert check.metadata == {"violations": 5}
    assert Rule("r", "Holds.").verdict([]).passed
    assert OTHERS.pinned("r1").passed


@pytest.mark.parametrize(("part", "whole", "low"), [(8, 10, 0), (7, 10, 3), (0, 0, 0), (0, 4, 4)])
def test_a_share_is_low_below_its_level(part, whole, low):
    assert sum(v.count for v in low_share(part, whole, 0.8, "have none")) == low


# corpus

PROBLEMS = [
    Problem("s", str(n), problem, solution, None, "en", "MIT", None)
    for n, (problem, solution) in enumerate([("Show A", "x"), ("show  a", "y"), ("B", "z")])
]
CORPUS = build_corpus(PROBLEMS).frame.sort("source_id")


def test_a_sound_corpus_passes():
    assert corpus.ids_are_content_hashes(CORPUS) == []
    assert corpus.equal_problems_share_a_cluster(CORPUS) == []
    assert corpus.licences_are_known(CORPUS) == []
    assert CORPUS["cluster_id"].n_unique() == 2


@pytest.mark.parametrize(
    "bad", [{"problem": "C"}, {"solution": ""}, {"sha256": "0"}, {"doc_id": "other"}]
)
def test_an_id_that_is_not_the_hash_of_the_texts_is_found(bad):
    (found,) = corpus.ids_are_content_hashes(change(CORPUS, 2, **bad))
    assert found.count == 1
    assert "'2' of s" in str(found)


def test_equal_problems_in_two_clusters_are_found():
    (found,) = corpus.equal_problems_share_a_cluster(change(CORPUS, 0, cluster_id="c1"))
    assert found.count == 2


def test_problems_that_differ_by_a_space_in_a_word_are_not_equal():
    texts = ["a b", "ab", "A  B", " a\nb "]
    frame = build_corpus([
        Problem("s", str(n), text, f"proof {n}", None, "en", "MIT", None)
        for n, text in enumerate(texts)
    ]).frame.sort("source_id")  # fmt: skip
    one, other, *same = frame["cluster_id"]
    assert one != other
    assert same == [one, one]
    assert corpus.equal_problems_share_a_cluster(frame) == []


def test_documents_without_licence_are_counted_by_source():
    (found,) = corpus.licences_are_known(change(CORPUS, 0, licence="unknown"))
    assert "1 documents have no licence (s: 1), such as document '0' of s" in str(found)


def test_documents_that_no_shard_or_another_has_are_found():
    def rule(assigned, mine):
        cut = pl.Series(assigned)
        return corpus.shards_are_a_partition(CORPUS, cut, ["c00", "c01"], "c00", mine)

    cut = ["c00", "c01", "c00"]
    mine = CORPUS.filter(pl.Series([True, False, True]))
    assert rule(cut, mine) == []
    assert "1 documents of raw_sources are in no shard" in said(rule(["c00", "c02", "c00"], mine))
    assert "1 documents of shard c00 are missing" in said(rule(cut, mine.head(1)))
    assert "1 documents of other shards" in said(rule(cut, CORPUS))


# ontology, tags, summaries

TREE = frame(
    "ontology_tree",
    {"node_id": "a", "path": "A", "label": "A", "parent_id": None, "domain": "algebra"},
    {"node_id": "a/b", "path": "A > B", "label": "B", "parent_id": "a", "depth": 1, "domain": "algebra"},
    {"node_id": "a/b/c", "path": "A > B > C", "label": "C", "parent_id": "a/b", "depth": 2,
     "domain": "algebra"},
    {"node_id": "g", "path": "G", "label": "G", "parent_id": None, "domain": "geometry"},
)  # fmt: skip
TAGS = frame(
    "topic_tags",
    {"doc_id": "1", "node_id": "a/b/c", "score": 0.5, "normalized": 1.0, "status": "ok"},
    {"doc_id": "1", "node_id": "g", "score": 0.45, "normalized": 0.9, "status": "ok"},
    {"doc_id": "2", "node_id": "a/b", "score": 0.5, "normalized": 1.0, "status": "ok"},
    {"doc_id": "3", "node_id": None, "score": None, "normalized": None, "status": "no_topic"},
)


@pytest.mark.parametrize(
    ("row", "bad", "what"),
    [
        (1, {"parent_id": "z"}, "a parent that is not in the tree"),
        (1, {"depth": 2}, "not one level below"),
        (0, {"depth": 1}, "not one level below"),
        (2, {"path": "A > C"}, "does not continue"),
        (2, {"domain": "geometry"}, "another domain"),
        (2, {"domain": None}, "another domain"),
        (0, {"parent_id": "a/b"}, "not one level below"),  # a cycle
    ],
)
def test_a_tree_that_contradicts_itself_is_found(row, bad, what):
    assert topics.tree_is_consistent(TREE) == []
    assert what in said(topics.tree_is_consistent(change(TREE, row, **bad)))


def test_domains_without_topics_and_lost_topics_are_found():
    assert topics.domains_have(TREE["domain"], DOMAINS, "topic") == []
    (found,) = topics.domains_have(TREE["domain"], (*DOMAINS, "logic"), "topic")
    assert str(found) == "1 of 3 domains have no topic, such as domain logic"
    assert topics.ontology_is_whole({"root_dropped": 1, "beyond_max_depth": 4}) == []
    assert topics.ontology_is_whole({"source_nodes_lost": 4})[0].count == 4


@pytest.mark.parametrize("above", ["a", "a/b"])
def test_a_topic_beside_one_below_it_is_found(above):
    assert topics.topics_are_most_specific(TAGS, TREE, CORPUS) == []
    bad = change(TAGS, 1, node_id=above)
    (found,) = topics.topics_are_most_specific(bad, TREE, CORPUS)
    assert found.examples == (f"document 1, topic {above}",)


@pytest.mark.parametrize(
    ("row", "bad", "what"),
    [
        (0, {"normalized": 0.85}, "no normalized score above 0.85"),
        (0, {"score": None}, "no normalized score"),
        (0, {"node_id": None}, "no normalized score"),
        (0, {"status": "refused"}, "without the status ok"),
        (3, {"doc_id": "2"}, "said to have no topic beside one"),
    ],
)
def test_tags_below_the_threshold_or_of_failed_calls_are_found(row, bad, what):
    assert topics.tag_scores_exceed_the_threshold(TAGS, 0.85, CORPUS) == []
    found = topics.tag_scores_exceed_the_threshold(change(TAGS, row, **bad), 0.85, CORPUS)
    assert what in said(found)


@pytest.mark.parametrize(
    "bad",
    [
        {"core_idea": "one  two\nthree four"},
        {"core_idea": None},
        {"no_core_idea": True},
        {"status": "truncated"},
    ],
)
def test_core_ideas_that_are_long_or_contradict_their_status_are_found(bad):
    sound = frame(
        "summaries",
        {"doc_id": "1", "core_idea": "one two three", "status": "ok"},
        {"doc_id": "2", "core_idea": None, "no_core_idea": True, "status": "ok"},
        {"doc_id": "3", "core_idea": None, "status": "no_solution"},
    )
    assert topics.core_ideas_are_short(sound, 3, CORPUS) == []
    (found,) = topics.core_ideas_are_short(change(sound, 0, **bad), 3, CORPUS)
    assert found.count == 1


# index and statistics

INDEX = frame(
    "problem_index",
    *(
        {
            "doc_id": doc,
            "cluster_id": f"c{doc}",
            "domains": domains,
            "primary_domain": domains[0] if domains else None,
            "shard": 0 if domains else None,
            "topics": topic_set,
            "words": ["w"],
            "is_document": True,
            "is_query": bool(domains),
        }
        for doc, domains, topic_set in [
            ("1", ["algebra", "geometry"], ["a/b/c", "g"]),
            ("2", ["algebra"], ["a/b"]),
            ("3", [], []),
            ("4", ["algebra"], ["a/b/c"]),
        ]
    ),
)
OWNERS = frame(
    "corpus", *({"doc_id": d, "is_document": True, "is_query": True} for d in ("1", "2", "3", "4"))
)


@pytest.mark.parametrize(
    ("row", "bad", "what"),
    [
        (1, {"domains": ["algebra", "geometry"]}, "other domains"),
        (0, {"domains": ["algebra"]}, "other domains"),
        (1, {"primary_domain": "geometry"}, "none of theirs"),
        (1, {"primary_domain": None}, "none of theirs"),
        (2, {"primary_domain": "algebra"}, "none of theirs"),
    ],
)
def test_domains_that_do_not_follow_from_topics_are_found(row, bad, what):
    def rule(index):
        return topics.domains_follow_from_topics(index, TREE, DOMAINS, OWNERS)

    assert rule(INDEX) == []
    assert what in said(rule(change(INDEX, row, **bad)))


@pytest.mark.parametrize(
    ("row", "bad", "what"),
    [
        (2, {"is_query": True}, "no domain"),
        (0, {"words": []}, "no words"),
        (0, {"is_document": False}, "differ from the corpus"),
        (0, {"doc_id": "9"}, "documents are missing"),
    ],
)
def test_queries_that_may_not_be_asked_are_found(row, bad, what):
    assert topics.queries_may_be_asked(INDEX, OWNERS) == []
    assert what in said(topics.queries_may_be_asked(change(INDEX, row, **bad), OWNERS))


def test_a_query_that_the_user_did_not_bring_is_found():
    own = change(OWNERS, 0, is_query=False)
    assert "ruled out by the corpus" in said(topics.queries_may_be_asked(INDEX, own))


@pytest.mark.parametrize(
    ("idea", "words", "count"),
    [
        ("Use parity and descent.", ["descent", "parity"], 0),
        ("Use parity and descent.", ["descent", "parity", "keyword"], 1),
        ("Use parity and descent.", ["descent"], 1),
        ("Use parity.", ["parity"], 1),
        ("Use parity.", [], 0),
        (None, [], 0),
        (None, ["parity"], 1),
    ],
)
def test_words_that_are_not_of_the_core_idea_are_found(idea, words, count):
    index = change(INDEX.head(1), 0, words=words)
    summaries = frame("summaries", {"doc_id": "1", "core_idea": idea, "keywords": ["keyword"]})
    found = topics.words_are_of_core_ideas(index, summaries, 2, OWNERS)
    assert sum(violation.count for violation in found) == count


STATISTICS = frame(
    "topic_statistics",
    *(
        {"node_id": n, "count": c, "information_content": -math.log(c / 4)}
        for n, c in [("a", 3), ("a/b", 3), ("a/b/c", 2), ("g", 1)]
    ),
)


@pytest.mark.parametrize(
    ("row", "bad", "what"),
    [
        (0, {"count": 2}, "not the sum"),
        (1, {"count": 2}, "not the sum"),
        (3, {"count": 0}, "another information content"),
        (2, {"information_content": 0.1}, "another information content"),
        (2, {"information_content": None}, "another information content"),
        (2, {"node_id": "z"}, "topics are missing"),
    ],
)
def test_counts_that_do_not_add_up_the_tree_are_found(row, bad, what):
    assert topics.statistics_add_up(STATISTICS, TREE, INDEX) == []
    assert what in said(topics.statistics_add_up(change(STATISTICS, row, **bad), TREE, INDEX))


# signals

ENDS = {"query_id": pl.String, "doc_id": pl.String}


def pairs_of(*rows):
    """Pairs as rows of the ids of query and document, topic signal and summary signal."""
    schema = ENDS | {"topic": pl.Float64, "summary": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


PAIRS = pairs_of(
    ("1", "2", 0.5, 0.1),
    ("1", "3", 0.0, 0.2),
    ("1", "4", 0.9, 0.0),
    ("2", "1", 0.5, 0.1),
    ("2", "3", 0.4, 0.3),
)
ASKED = np.array([0, 1])
"""Queries 1 and 2."""


def numbers(pairs):
    """Pairs with ids as a part of the signal shards."""
    return signals.numbered(pairs, INDEX).select(list(SCHEMA)).sort("query", "doc")


def in_parts(pairs, cuts=()):
    """Numbered pairs in parts that end after the queries at these positions."""
    ends = [-1, *sorted(set(cuts)), 1 << 31]
    return [
        pairs.filter(pl.col("query") > low, pl.col("query") <= high)
        for low, high in itertools.pairwise(ends)
    ]


def rows_of(pairs):
    """The ids of numbered pairs."""
    return with_ids(pairs, INDEX["doc_id"]).select("query_id", "doc_id").rows()


NUMBERED = numbers(PAIRS)
SHARDS = in_parts(NUMBERED, [0])


def test_rows_with_ids_get_numbers_and_unknown_ids_the_one_after_the_last():
    rows = frame("candidate_sets", *({"query_id": q, "doc_id": d} for q, d in ["2z", "z1", "13"]))
    found = signals.numbered(rows, INDEX)
    assert found.select("query", "doc").rows() == [(1, 4), (4, 0), (0, 2)]
    assert found.drop("query", "doc").equals(rows)


@pytest.mark.parametrize("shards", [NUMBERED, SHARDS], ids=["frame", "parts"])
def test_pairs_below_both_floors_are_found(shards):
    def rule(*floors, pairs=shards):
        return signals.pairs_reach_a_floor(pairs, *floors, INDEX)

    assert rule(0.3, 0.2) == []
    assert rule(0.5, 0.2) == []
    (found,) = rule(0.51, 0.2)
    assert (found.count, found.examples) == (2, ("query 1, document 2", "query 2, document 1"))
    assert rule(0.0, 0.0, pairs=numbers(change(PAIRS, 1, summary=0.0)))[0].count == 1


def test_examples_are_the_first_of_all_parts_in_any_order():
    (found,) = signals.pairs_reach_a_floor(SHARDS[::-1], 1.0, 1.0, INDEX)
    assert (found.count, len(found.examples)) == (5, 3)
    assert found == signals.pairs_reach_a_floor(NUMBERED, 1.0, 1.0, INDEX)[0]
    assert found.examples[0] == "query 1, document 2"


@pytest.mark.parametrize(
    ("row", "bad", "what"),
    [
        (0, {"query_id": "4"}, "query that does not belong here"),
        (0, {"query_id": "zz"}, "query that does not belong here"),
        (0, {"doc_id": "zz"}, "may not be a candidate"),
        (0, {"doc_id": "1"}, "itself or its near-duplicate"),
    ],
)
def test_pairs_with_oneself_or_strangers_are_found(row, bad, what):
    for asked in (ASKED, np.array([True, True, False, False])):
        assert signals.NumberedPairs(SHARDS, asked, INDEX).are_of_others() == []
        rows = change(PAIRS, row, **bad)
        found = signals.NumberedPairs(signals.numbered(rows, INDEX), asked, INDEX).are_of_others()
        assert what in said(found)
        assert sum(v.count for v in found) == 1
        assert f"query {rows['query_id'][row]}, document {rows['doc_id'][row]}" in said(found)


def test_pairs_with_near_duplicates_or_texts_that_are_no_documents_are_found():
    near = change(INDEX, 1, cluster_id="c1")
    (found,) = signals.NumberedPairs(SHARDS, ASKED, near).are_of_others()
    assert (found.count, found.examples) == (2, ("query 1, document 2", "query 2, document 1"))
    text = change(INDEX, 3, is_document=False)
    found = signals.NumberedPairs(SHARDS, ASKED, text).are_of_others()
    assert "1 pairs have a document that may not be a candidate" in said(found)


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        ({"topic": 0.5 + 1e-12}, "another topic signal"),
        ({"summary": 0.0}, "another summary signal"),
        ({"doc_id": "4"}, "one way only"),
    ],
)
def test_pairs_that_differ_the_other_way_are_found(bad, what):
    assert signals.NumberedPairs(SHARDS, ASKED, INDEX).are_symmetric() == []
    pairs = in_parts(numbers(change(PAIRS, 3, **bad)), [0])
    found = signals.NumberedPairs(pairs, ASKED, INDEX).are_symmetric()
    assert [v.what for v in found] == [f"pairs of two queries {found[0].what[21:]}"]
    assert what in said(found)
    assert found[0].examples == ("query 1, document 2",)


def test_a_query_that_lost_all_its_pairs_is_found_by_the_other_way():
    lost = NUMBERED.filter(pl.col("query") == 0)
    assert "one way only" in said(signals.NumberedPairs(lost, ASKED, INDEX).are_symmetric())


def test_the_text_of_a_user_that_is_no_document_has_no_other_way():
    text = change(INDEX, 0, is_document=False)
    one_way = NUMBERED.filter(pl.col("doc") != 0)
    assert signals.NumberedPairs(one_way, ASKED, text).are_symmetric() == []


def test_of_many_queries_the_first_are_looked_at_for_the_other_way(monkeypatch):
    monkeypatch.setattr(signals, "_MOST_MIRRORED", 2)
    rows = numbers(pairs_of(("1", "2", 0.5, 0.0), ("1", "4", 0.5, 0.0)))
    (found,) = signals.NumberedPairs(rows, np.arange(4), INDEX).are_symmetric()
    assert (found.count, found.examples) == (1, ("query 1, document 2",))
    (found,) = signals.NumberedPairs(rows, np.array([0, 3]), INDEX).are_symmetric()
    assert (found.count, found.examples) == (1, ("query 1, document 4",))


def test_more_pairs_than_the_population_are_found():
    numbered = signals.NumberedPairs(SHARDS, ASKED, INDEX)
    counted = population(INDEX[ASKED], INDEX)
    assert numbered.fit_the_population(counted) == []
    for name in ("n_pairs", "topic_pairs", "summary_pairs"):
        few = counted.with_columns(pl.lit(1, pl.Int64).alias(name))
        assert "more pairs than their population" in said(numbered.fit_the_population(few))
    other = counted.with_columns(pl.col("n_queries") + 1)
    assert "another number of queries" in said(numbered.fit_the_population(other))
    assert numbered.fit_the_population(counted.clear())


@pytest.mark.parametrize(("name", "n"), [("n_pairs", 5), ("topic_pairs", 4), ("summary_pairs", 4)])
def test_the_pairs_of_all_parts_are_counted(name, n):
    """Algebra has both queries: 5 pairs, 4 with a topic signal and 4 with a summary signal."""
    numbered = signals.NumberedPairs(SHARDS, ASKED, INDEX)
    counted = population(INDEX[ASKED], INDEX)
    for most, violated in ((n - 1, True), (n, False)):
        limit = pl.when(domain="algebra").then(most).otherwise(name).alias(name)
        assert bool(numbered.fit_the_population(counted.with_columns(limit))) is violated


RULES = {
    "top_m": ThresholdRule("top_m", 1, 1, 0.3, 0.1, (2.0,)),
    "percentile": ThresholdRule("percentile", 1, 1, 0.0, 0.0),
}


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_counts_of_a_table_that_a_recount_contradicts_are_found(rule):
    fitted = fit_thresholds(SHARDS, INDEX, DOMAINS, rule).frame

    def recount(table):
        return signals.threshold_counts_are_right(table, SHARDS, INDEX, 1)

    assert recount(fitted) == []
    for name in ("n_queries", "n_pairs", "eligible_queries", "short_topic_only", "short_both"):
        (found,) = recount(fitted.with_columns(pl.col(name) + 1))
        assert str(found).startswith(f"2 domains have another {name} than a recount gives")
    (found,) = recount(fitted.with_columns(density_topic=pl.col("density_topic") + 0.3))
    assert "density_topic" in str(found)


def test_equal_to_a_percentile_threshold_is_not_high_and_equal_to_the_mth_largest_is():
    columns = {"domain": "algebra", "topic": 0.5, "summary": 0.1}
    above = frame("thresholds", columns | {"rule": "percentile"})
    high = pl.concat(high_pairs.high_pairs(SHARDS, INDEX, above))
    assert rows_of(high.filter("topic_high")) == [("1", "4")]
    assert rows_of(high.filter("summary_high")) == [("1", "3"), ("2", "3")]
    top = frame("thresholds", columns | {"rule": "top_m", "m": 2})
    high = pl.concat(high_pairs.high_pairs(SHARDS, INDEX, top))
    assert rows_of(high.filter("topic_high")) == [("1", "2"), ("1", "4"), ("2", "1")]
    only = pl.concat(high_pairs.high_pairs(SHARDS, INDEX, top, pl.Series(["2", "zz"])))
    assert rows_of(only) == [("2", "1"), ("2", "3")]


LEVELS = st.sampled_from([0.0, 0.1, 0.2, 0.3])
CUTS = st.lists(st.integers(0, 3))


def grid(signal, kept):
    """Some of the 16 pairs of four queries and documents, numbered."""
    ends = [(q, d) for q in "1234" for d in "1234"]
    rows = [(*e, *s) for e, s, keep in zip(ends, signal, kept, strict=True) if keep]
    return numbers(pairs_of(*rows))


@pytest.mark.property
@given(
    signal=st.lists(st.tuples(LEVELS, LEVELS), min_size=16, max_size=16),
    kept=st.lists(st.booleans(), min_size=16, max_size=16),
    rules=st.tuples(*[st.sampled_from(["top_m", "percentile"])] * 2),
    m=st.tuples(st.integers(1, 5), st.integers(1, 5)),
    limits=st.tuples(LEVELS, LEVELS),
    cuts=CUTS,
)
def test_the_groups_of_a_recount_are_those_of_the_stage(signal, kept, rules, m, limits, cuts):
    pairs = grid(signal, kept)
    index = change(INDEX, 1, primary_domain="geometry")
    table = frame(
        "thresholds",
        *(
            {"domain": d, "rule": r, "m": n, "topic": limits[0], "summary": limits[1]}
            for d, r, n in zip(DOMAINS, rules, m, strict=True)
        ),
    )
    parts = in_parts(pairs, cuts)
    own = pl.concat(high_pairs.high_pairs(parts, index, table))
    own = own.with_columns(group=high_pairs.group_of()).drop_nulls("group")
    codes = PairGroups(index, table).codes(pairs)
    named = pl.Series(["", *GROUPS], dtype=pl.String).gather(codes)
    found = pairs.with_columns(group=named).filter(codes > 0)
    assert own.select(found.columns).equals(found)
    sizes = high_pairs.group_sizes(parts, index, table)
    for query, *counts in sizes.iter_rows():
        mine = found.filter(pl.col("query") == query)["group"]
        assert counts == [(mine == group).sum() for group in GROUPS]
    assert set(found["query"]) <= set(sizes["query"])


@pytest.mark.property
@given(
    signal=st.lists(st.tuples(LEVELS, LEVELS), min_size=16, max_size=16),
    kept=st.lists(st.booleans(), min_size=16, max_size=16),
    asked=st.sets(st.integers(0, 3)),
    cuts=CUTS,
)
def test_what_is_found_does_not_depend_on_the_parts(signal, kept, asked, cuts):
    pairs = grid(signal, kept)
    places = np.array(sorted(asked), dtype=np.int64)
    counted = population(INDEX[places], INDEX)
    whole, parts = (
        signals.NumberedPairs(shards, places, INDEX) for shards in (pairs, in_parts(pairs, cuts))
    )
    assert whole.are_of_others() == parts.are_of_others()
    assert whole.are_symmetric() == parts.are_symmetric()
    assert whole.fit_the_population(counted) == parts.fit_the_population(counted)


@pytest.mark.property
@given(
    rows=st.dictionaries(
        st.tuples(st.sampled_from("124"), st.sampled_from("1234")), st.tuples(LEVELS, LEVELS)
    )
)
def test_pairs_that_differ_the_other_way_are_those_of_a_plain_look(rows):
    queries = INDEX["is_query"].to_numpy()
    pairs = pairs_of(*((*ends, *values) for ends, values in rows.items()))
    both = {tuple(sorted(pair)) for pair in rows if pair[0] != pair[1] and pair[1] != "3"}
    alone = {pair for pair in both if (pair in rows) != (pair[::-1] in rows)}
    uneven = [
        sum(rows[pair][signal] != rows[pair[::-1]][signal] for pair in both - alone)
        for signal in (0, 1)
    ]
    found = signals.NumberedPairs(numbers(pairs), queries, INDEX).are_symmetric()
    assert sum(v.count for v in found if "one way only" in v.what) == len(alone)
    for signal, count in zip(("topic", "summary"), uneven, strict=True):
        assert sum(v.count for v in found if f"another {signal}" in v.what) == count


# queries, candidates, release

LIMITS = frame(
    "thresholds", {"domain": "algebra", "rule": "percentile", "topic": 0.3, "summary": 0.1}
)
QUERY_SET = frame(
    "query_set",
    {
        "query_id": "2",
        "domains": ["algebra"],
        "primary_domain": "algebra",
        "selected_for": ["algebra"],
    },
)
CHOSEN = frame(
    "candidate_sets",
    {"query_id": "2", "doc_id": "1", "group": "topic_only", "topic": 0.5, "summary": 0.1},
    {"query_id": "2", "doc_id": "3", "group": "both", "topic": 0.4, "summary": 0.3},
)


def test_queries_without_full_groups_are_found():
    more = pl.concat([PAIRS, change(PAIRS, 4, doc_id="4", topic=0.0).slice(4)])

    def rule(shards):
        return candidates.queries_are_eligible(QUERY_SET, shards, INDEX, LIMITS, 1)

    assert rule(in_parts(numbers(more), [0])) == []
    for few in (SHARDS, SHARDS[:1], []):
        (found,) = rule(few)
        assert (found.count, found.examples) == (1, ("query 2",))


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        ({"query_id": "3"}, "may not be queries"),
        ({"domains": ["algebra", "geometry"]}, "other domains"),
        ({"primary_domain": "geometry"}, "other domains"),
        ({"selected_for": ["geometry"]}, "no domain of theirs"),
        ({"selected_for": []}, "no domain of theirs"),
    ],
)
def test_queries_that_are_none_or_of_other_domains_are_found(bad, what):
    assert candidates.query_domains_are_right(QUERY_SET, INDEX) == []
    assert what in said(candidates.query_domains_are_right(change(QUERY_SET, 0, **bad), INDEX))


def test_samples_that_are_too_large_are_found():
    assert candidates.samples_have_their_size(QUERY_SET, 1) == []
    twice = pl.concat([QUERY_SET, QUERY_SET])
    assert "1 domains have more than 1 queries" in said(
        candidates.samples_have_their_size(twice, 1)
    )


@pytest.mark.parametrize(
    ("row", "bad", "what"),
    [
        (0, {"group": "both"}, "a group that is not theirs"),  # 0.1 is not above 0.1
        (1, {"group": "summary_only"}, "a group that is not theirs"),
        (0, {"topic": 0.6}, "other signals"),
        (0, {"doc_id": "4"}, "other signals"),
        (0, {"doc_id": "zz"}, "other signals"),
        (0, {"query_id": "zz"}, "other signals"),
    ],
)
def test_candidates_in_a_group_of_others_are_found(row, bad, what):
    def rule(chosen):
        return candidates.groups_follow_the_thresholds(chosen, SHARDS, INDEX, LIMITS)

    assert rule(CHOSEN) == []
    assert what in said(rule(change(CHOSEN, row, **bad)))


def test_texts_that_a_release_lacks_are_found():
    texts = frame("release_texts", *({"doc_id": d, "is_document": d != "2"} for d in "123"))
    assert candidates.every_text_is_there(texts, QUERY_SET, CHOSEN) == []
    for doc, what in (("1", "1 candidates lack a text"), ("2", "1 queries lack a text")):
        few = texts.filter(pl.col("doc_id") != doc)
        assert what in said(candidates.every_text_is_there(few, QUERY_SET, CHOSEN))
    barred = change(texts, 0, is_document=False)
    assert "may not be candidates" in said(
        candidates.every_text_is_there(barred, QUERY_SET, CHOSEN)
    )


# judges

FOUR = frame("candidate_sets", *({"query_id": "q", "doc_id": d} for d in "abcd"))
GAMES = frame(
    "judgments",
    *(
        {"query_id": "q", "round": r, "doc_a": a, "doc_b": b, "shown_first": a, "outcome": 1.0,
         "status": "ok"}
        for r, a, b in [(1, "a", "b"), (1, "c", "d"), (2, "a", "c"), (2, "b", "d"), (3, "a", "d"),
                        (3, "b", "c")]
    ),
)  # fmt: skip


def test_rounds_that_are_missing_are_found_but_not_those_after_all_have_met():
    def rule(games, rounds, of=FOUR):
        return said(judging.rounds_are_complete(games, of, rounds, CORPUS))

    assert rule(GAMES, 3) == ""
    assert rule(GAMES, 20) == "", "all six pairs have met"
    assert "fewer than 3 rounds" in rule(GAMES.filter(pl.col("round") < 3), 3)
    assert "lack a round between others" in rule(GAMES.filter(pl.col("round") != 2), 3)
    assert "more than 2 rounds" in rule(GAMES, 2)
    assert "1 queries have no game" in rule(GAMES.clear(), 3)


@pytest.mark.parametrize(
    ("row", "bad", "what"),
    [
        (2, {"doc_b": "b"}, "met before or after"),
        (1, {"doc_a": "b"}, "play twice in a round"),
        (0, {"doc_b": "z"}, "no candidate of the query"),
        (0, {"doc_a": "b", "doc_b": "a"}, "wrong order"),
        (0, {"shown_first": "c"}, "showed another one first"),
    ],
)
def test_games_that_cannot_be_are_found(row, bad, what):
    assert judging.games_are_sound(GAMES, FOUR, CORPUS) == []
    assert what in said(judging.games_are_sound(change(GAMES, row, **bad), FOUR, CORPUS))


@pytest.mark.parametrize("bad", [{"outcome": None}, {"status": "refused"}])
def test_an_outcome_without_success_or_the_reverse_is_found(bad):
    failed = change(GAMES, 1, outcome=None, status="truncated")
    assert judging.failures_have_no_outcome(failed, CORPUS) == []
    assert judging.failures_have_no_outcome(change(failed, 0, **bad), CORPUS)[0].count == 1


@pytest.mark.parametrize(
    ("first", "n", "sound"),
    [
        (50, 100, True),
        (70, 100, True),
        (71, 100, False),
        (29, 100, False),
        (6, 6, True),
        (0, 0, True),
    ],
)
def test_an_order_that_no_coin_would_give_is_found(first, n, sound):
    rows = [
        {"doc_a": "a", "doc_b": "b", "shown_first": "a" if i < first else "b"} for i in range(n)
    ]
    found = judging.order_shown_is_balanced(frame("judgments", *rows))
    assert (found == []) is sound


RATINGS = frame(
    "ratings",
    *(
        {"query_id": "q", "doc_id": d, "rating": r, "rank": n}
        for d, r, n in [("a", 2.0, 2), ("b", 2.0, 3), ("c", 5.0, 1), ("d", 0.0, 4)]
    ),
)


def test_ratings_that_are_missing_shrunk_or_ranked_otherwise_are_found():
    assert judging.every_candidate_is_rated(RATINGS, FOUR) == []
    assert "1 ratings of candidates are missing" in said(
        judging.every_candidate_is_rated(RATINGS.head(3), FOUR)
    )
    assert "should not be there" in said(judging.every_candidate_is_rated(RATINGS, FOUR.head(3)))
    assert judging.ratings_span_the_scale(RATINGS) == []
    assert judging.ratings_span_the_scale(RATINGS.with_columns(rating=pl.lit(2.5))) == []
    for bad in (RATINGS.head(3), RATINGS.tail(1), RATINGS.with_columns(rating=pl.lit(2.0))):
        assert judging.ratings_span_the_scale(bad)[0].count == 1
    assert judging.ranks_follow(RATINGS, ("query_id",), "rating") == []
    swapped = change(change(RATINGS, 0, rank=3), 1, rank=2)
    assert judging.ranks_follow(swapped, ("query_id",), "rating")[0].count == 2


def test_a_benchmark_that_lacks_rows_or_ids_is_found():
    whole = frame(
        "benchmark",
        *(
            {"query_id": "q", "doc_id": d, "query_source_id": "1", "doc_source_id": f"{d}-own"}
            for d in "abcd"
        ),
    )
    asked = frame("query_set", {"query_id": "q"})
    assert judging.benchmark_is_complete(whole, RATINGS, asked) == []
    assert "1 rows are missing" in said(
        judging.benchmark_is_complete(whole.head(3), RATINGS, asked)
    )
    more = frame("query_set", {"query_id": "q"}, {"query_id": "r"})
    assert "1 queries are missing" in said(judging.benchmark_is_complete(whole, RATINGS, more))
    assert judging.own_ids_are_there(whole) == []
    assert judging.own_ids_are_there(change(whole, 0, doc_source_id=" "))[0].count == 1


# runs and boards

SHOWN = ("full-full", "statement-full")
SCORES = frame(
    "run",
    *(
        {"setting": s, "query_id": "q", "doc_id": d, "score": score, "rank": n}
        for s in SHOWN
        for d, score, n in [("a", 1.0, 2), ("b", 1.0, 3), ("c", 2.0, 1), ("d", 0.5, 4)]
    ),
)


def test_scores_that_are_missing_ranked_otherwise_or_all_equal_are_found():
    assert boards.every_pair_is_scored(SCORES, FOUR, SHOWN, CORPUS) == []
    assert "1 scores are missing" in said(
        boards.every_pair_is_scored(SCORES.head(7), FOUR, SHOWN, CORPUS)
    )
    assert "should not be there" in said(
        boards.every_pair_is_scored(SCORES, FOUR, SHOWN[:1], CORPUS)
    )
    assert judging.ranks_follow(SCORES, ("setting", "query_id"), "score") == []
    assert judging.ranks_follow(change(SCORES, 3, score=9.0), ("setting", "query_id"), "score")
    assert boards.scores_tell_documents_apart(SCORES) == []
    constant = SCORES.with_columns(score=pl.when(setting="full-full").then(1.0).otherwise("score"))
    (found,) = boards.scores_tell_documents_apart(constant)
    assert str(found) == "1 of 1 queries have equal scores for all documents in full-full"
    half = pl.concat([constant, SCORES.with_columns(query_id=pl.lit("r"))])
    assert boards.scores_tell_documents_apart(half) == []


N = 16
BENCH = frame(
    "benchmark",
    *(
        {"query_id": f"q{q:02}", "doc_id": d, "rating": r, "domains": ["algebra"]}
        for q in range(N)
        for d, r in zip("abcd", (0.0, 1.0, 3.0, 5.0), strict=True)
    ),
)


def _metrics(retriever, order):
    """Metrics of a retriever that ranks documents in an order of each query."""
    rows = [
        {"setting": "full-full", "query_id": f"q{q:02}", "doc_id": d, "score": float(-i)}
        for q in range(N)
        for i, d in enumerate(order(q))
    ]
    return query_metrics(frame("run", *rows), BENCH, "j", retriever)


METRICS = pl.concat([_metrics("r", lambda q: "abcd"), _metrics("oracle", lambda q: "dcba")])


def test_metrics_that_are_missing_or_not_0_for_a_missing_query_are_found():
    def rule(metrics):
        return boards.every_query_is_measured(metrics, {"j": BENCH}, ["r", "oracle"], ["full-full"])

    assert rule(METRICS) == []
    assert "1 values are missing" in said(rule(METRICS.tail(-1)))
    assert "1 values should not be there" in said(rule(change(METRICS, 0, retriever="other")))
    assert "not 0" in said(rule(change(METRICS, 0, missing=True)))
    assert rule(change(METRICS, 0, missing=True, value=0.0)) == []


def test_a_random_ranking_that_is_too_good_is_found():
    shuffled = [
        "".join(order) for order in zip("abcd" * 4, "bcda" * 4, "cdab" * 4, "dabc" * 4, strict=True)
    ]
    fair = _metrics("r", lambda q: shuffled[q])
    assert boards.random_is_random(fair, {"j": BENCH}, {"r"}, 10) == []
    best = _metrics("r", lambda q: "dcba" if q % 8 else "dcab")
    (found,) = boards.random_is_random(best, {"j": BENCH}, {"r"}, 10)
    assert f"theory {expected_random_ndcg([0.0, 1.0, 3.0, 5.0]):.3f}" in str(found)
    assert boards.random_is_random(best, {"j": BENCH}, set(), 10) == []


@pytest.mark.parametrize(("second_best", "errors", "found"), [(3, 10.4, 1), (11, 4.6, 0)])
def test_a_random_mean_may_be_five_standard_errors_off(second_best, errors, found):
    metrics = _metrics("r", lambda q: "cdba" if q < second_best else "dcba")
    off = metrics["value"].mean() - expected_random_ndcg([0.0, 1.0, 3.0, 5.0])
    assert off / (metrics["value"].std() / math.sqrt(N)) == pytest.approx(errors, abs=0.1)
    assert len(boards.random_is_random(metrics, {"j": BENCH}, {"r"}, 10)) == found


def _board():
    mean = METRICS.filter(retriever="r")["value"].mean()
    common = {"judge": "j", "setting": "full-full", "metric": "nDCG@10", "n_queries": N}
    return frame(
        "leaderboard",
        *(
            common
            | {"retriever": name, "domain": domain, "value": value, "low": value, "high": value,
               "tied_group": group}
            for domain in ("overall", "algebra")
            for name, value, group in (("oracle", 1.0, None), ("r", mean, 1))
        ),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        ({"value": 0.1}, "not the mean"),
        ({"n_queries": N + 1}, "another number of queries"),
        ({"n_missing": 1}, "another number of queries"),
        ({"domain": "geometry"}, "cells are missing"),
    ],
)
def test_cells_that_are_not_the_mean_of_their_queries_are_found(bad, what):
    def rule(board):
        return boards.board_agrees_with_metrics(board, METRICS, DOMAINS)

    assert rule(_board()) == []
    assert what in said(rule(change(_board(), 1, **bad)))


def test_values_outside_their_interval_and_groups_that_start_late_are_found():
    assert boards.intervals_hold_their_values(_board()) == []
    for bad in ({"low": 1.0}, {"high": 0.0}):
        assert boards.intervals_hold_their_values(change(_board(), 1, **bad))[0].count == 1
    assert boards.tied_groups_start_at_one(_board()) == []
    for row, group, what in (
        (1, 2, "no first"),
        (1, None, "no tied group"),
        (0, 1, "the oracle's"),
    ):
        found = boards.tied_groups_start_at_one(change(_board(), row, tied_group=group))
        assert what in said(found)


def test_a_partition_without_queries_violates_nothing():
    none = {name: frame(name) for name in TABLES}
    pairs = signals.NumberedPairs([], np.array([], dtype=np.int64), INDEX)
    found = [
        pairs.are_of_others(),
        pairs.are_symmetric(),
        pairs.fit_the_population(population(INDEX.clear(), INDEX)),
        candidates.groups_follow_the_thresholds(none["candidate_sets"], [], INDEX, LIMITS),
        judging.rounds_are_complete(none["judgments"], none["candidate_sets"], 3, CORPUS),
        judging.games_are_sound(none["judgments"], none["candidate_sets"], CORPUS),
        judging.every_candidate_is_rated(none["ratings"], none["candidate_sets"]),
        judging.ratings_span_the_scale(none["ratings"]),
        boards.every_pair_is_scored(none["run"], none["candidate_sets"], SHOWN, CORPUS),
        boards.scores_tell_documents_apart(none["run"]),
        topics.topics_are_most_specific(none["topic_tags"], TREE, CORPUS),
    ]
    assert found == [[]] * len(found)
