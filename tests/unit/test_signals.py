import math

import polars as pl
import pytest
from pairs import joined

from saber_dagster.contracts import TABLES
from saber_dagster.errors import SaberError
from saber_dagster.ontology import OntologyTree
from saber_dagster.signals.join import SignalJoin
from saber_dagster.signals.statistics import information_content, population, topic_statistics
from trees import tree_of

EPSILON = 1e-12


def make_tree(*node_ids: str) -> OntologyTree:
    return tree_of(node_ids)


TREE = make_tree("a", "a/b", "a/b/c", "a/d", "z")


def make_index(*rows: dict[str, object]) -> pl.DataFrame:
    """Rows of doc_id, topics, words and whatever differs from a document that may be a query."""
    full = []
    for row in rows:
        default = {
            "cluster_id": row["doc_id"],
            "domains": ["algebra"] if row.get("topics") else [],
            "primary_domain": "algebra" if row.get("topics") else None,
            "shard": 0,
            "topics": [],
            "words": [],
            "topic_set_id": None,
            "word_set_id": None,
            "is_document": True,
            "is_query": True,
        }
        full.append(default | row)
    return pl.DataFrame(full, schema=TABLES["problem_index"].schema)


INDEX = make_index(
    {"doc_id": "p", "topics": ["a/b/c"], "words": ["x", "y"]},
    {"doc_id": "q", "topics": ["a/b/c", "a/d"], "words": ["x", "y", "v", "w"]},
    {"doc_id": "r", "topics": ["a/b"], "words": ["w"], "cluster_id": "p"},
    {"doc_id": "s", "topics": ["z"], "words": [], "is_query": False},
    {"doc_id": "t", "topics": ["z"], "words": ["x"], "is_document": False},
)


def signals(
    index: pl.DataFrame, ids: list[str], floor: float = 0.0, **kwargs: float
) -> pl.DataFrame:
    statistics = topic_statistics(index, TREE)
    floors = {"topic_floor": floor, "summary_floor": floor} | kwargs
    join = SignalJoin(index, TREE, statistics, epsilon=EPSILON, **floors)
    return joined(join, index, ids)


def test_statistics_count_a_topic_for_all_its_ancestors() -> None:
    statistics = topic_statistics(INDEX, TREE)
    counts = dict(statistics.select("node_id", "count").iter_rows())
    # t is no document: its z does not count
    assert counts == {"a": 4, "a/b": 3, "a/b/c": 2, "a/d": 1, "z": 1}
    content = dict(statistics.select("node_id", "information_content").iter_rows())
    assert content["a/b/c"] == pytest.approx(math.log(5 / 2))


def test_a_root_above_everything_has_information_zero_and_an_unused_topic_none() -> None:
    index = make_index({"doc_id": "p", "topics": ["a/b"]})
    statistics = topic_statistics(index, TREE)
    assert statistics["information_content"].to_list() == [0.0, 0.0, None, None, None]
    assert math.copysign(1, statistics["information_content"][0]) == 1


def test_a_topic_unknown_to_pinned_statistics_counts_once() -> None:
    pinned = topic_statistics(INDEX, TREE)
    grown = make_tree(*TREE.node_ids, "z/new")
    content = information_content(pinned, grown)
    assert content[grown.index["z/new"]] == pytest.approx(math.log(5))


def test_a_topic_is_never_more_informative_than_one_below_it() -> None:
    pinned = topic_statistics(INDEX, TREE)
    grown = make_tree("n", "n/a", "n/a/b", "n/z")  # a new topic above old ones with new ids
    content = information_content(pinned, grown)
    for node in range(len(grown.node_ids)):
        if grown.parent[node] >= 0:
            assert content[grown.parent[node]] <= content[node]
    mixed = pl.concat(
        [
            pinned.filter(pl.col("node_id") != "a"),
            pl.DataFrame(
                {"node_id": ["a"], "count": [1], "information_content": [9.0]}, schema=pinned.schema
            ),
        ]
    )
    content = information_content(mixed, TREE)
    assert content[TREE.index["a"]] == min(content[TREE.index["a/b"]], content[TREE.index["a/d"]])


def test_no_annotations_at_all() -> None:
    index = make_index({"doc_id": "p", "words": ["x"]}, {"doc_id": "q", "words": ["x"]})
    statistics = topic_statistics(index, TREE)
    assert statistics["information_content"].null_count() == 5
    assert signals(index, ["p"]).rows() == [("p", "q", 0.0, 1.0)]


def test_pairs_by_hand() -> None:
    found = signals(INDEX, ["p", "q"])
    c, b, a, d = (math.log(5 / n) for n in (2, 3, 4, 1))
    pq = (1 + 1 + 2 * a / (c + d)) / 3
    qr = (2 * b / (c + b) + 2 * a / (d + b) + 2 * b / (c + b)) / 3
    expected = [("p", "q", pq, 2 / 4), ("q", "p", pq, 2 / 4), ("q", "r", qr, 1 / 4)]
    # p and r are near-duplicates; s shares nothing; t is no document
    for row, (query, doc, topic, summary) in zip(found.iter_rows(), expected, strict=True):
        assert row[:2] == (query, doc)
        assert row[2] == pytest.approx(topic, abs=1e-6)
        assert row[3] == summary


def test_a_query_that_is_no_document_is_matched_but_is_no_candidate() -> None:
    found = signals(INDEX, ["t"])
    assert found["doc_id"].to_list() == ["p", "q", "s"]
    assert "t" not in signals(INDEX, ["p", "q"])["doc_id"]


def test_a_pair_at_a_floor_is_stored_with_both_signals() -> None:
    exact = signals(INDEX, ["q"]).row(0)
    at = signals(INDEX, ["q"], topic_floor=exact[2], summary_floor=1.0)
    assert at.row(0) == exact
    above = math.nextafter(exact[2], 1)
    assert signals(INDEX, ["q"], topic_floor=above, summary_floor=1.0).is_empty()
    assert signals(INDEX, ["q"], topic_floor=1.0, summary_floor=0.5).rows() == [exact]


def test_shards_and_row_order_do_not_matter() -> None:
    whole = signals(INDEX, ["p", "q", "t"])
    shuffled = INDEX.sample(fraction=1.0, shuffle=True, seed=3)
    parts = pl.concat([signals(shuffled, [query]) for query in ("p", "q", "t")])
    assert parts.sort("query_id", "doc_id").equals(whole)


def test_population_counts_pairs_by_membership() -> None:
    index = INDEX.with_columns(
        pl.when(pl.col("doc_id") == "q")
        .then(pl.lit(["algebra", "geometry"]))
        .otherwise(pl.col("domains"))
        .alias("domains")
    )
    sizes = population(index.filter("is_query"), index.filter("is_document"))
    # documents: p r (one cluster), q, s; s has no words; queries p, q, r, t
    assert sizes.rows() == [
        ("algebra", 4, 2 + 3 + 2 + 4, 2 + 3 + 2 + 4, 1 + 2 + 1 + 3, 1 + 2 + 1 + 3),
        ("geometry", 1, 3, 3, 2, 2),
    ]


def test_no_query_and_no_document() -> None:
    assert signals(INDEX, []).is_empty()
    index = make_index({"doc_id": "p", "topics": ["a"], "words": ["x"], "is_document": False})
    assert signals(index, ["p"]).is_empty()


def test_an_id_that_is_no_query_is_an_error() -> None:
    with pytest.raises(SaberError, match="'s'"):
        signals(INDEX, ["p", "s"])


def test_epsilon_must_be_positive() -> None:
    with pytest.raises(SaberError, match="epsilon"):
        SignalJoin(INDEX, TREE, topic_statistics(INDEX, TREE), 0.0, 0.0, 0.0)


def test_a_topic_two_levels_below_counts_too() -> None:
    pinned = pl.DataFrame(
        {"node_id": ["a", "a/b", "a/b/c"], "count": 100, "information_content": [9.0, 9.0, 1.0]},
        schema_overrides=dict(TABLES["topic_statistics"].schema),
    )
    content = information_content(pinned, TREE)
    assert [content[TREE.index[node]] for node in ("a", "a/b", "a/b/c")] == [1.0, 1.0, 1.0]
