import polars as pl
import pytest

from saber_dagster.contracts import TABLES
from saber_dagster.errors import SaberError
from saber_dagster.hashing import digest, hash64
from saber_dagster.ontology import OntologyTree
from saber_dagster.problem_index import build_index
from trees import tree_of

DOMAINS = ("geometry", "algebra")
IDEA = "Reflect triangle across bisector, invoke Ptolemy inequality"


def make_tree() -> OntologyTree:
    domains = {"alg": "algebra", "geo": "geometry", "his": "history", "mis": None}
    nodes = ["alg", "alg/group", "alg/ring", "geo", "geo/circle", "his", "his/euler", "mis"]
    return tree_of(nodes, lambda node: domains[node[:3]])


def make_index(
    tags: list[tuple[str | None, float | None, str]],
    idea: str | None = IDEA,
    *,
    is_query: bool = True,
    min_summary_words: int = 4,
) -> dict[str, object]:
    corpus = pl.DataFrame(
        {"doc_id": ["d"], "cluster_id": ["d"], "is_document": [True], "is_query": [is_query]}
    )
    topic_tags = pl.DataFrame(
        [{"doc_id": "d", "node_id": n, "normalized": s, "status": status} for n, s, status in tags],
        schema={
            k: TABLES["topic_tags"].schema[k] for k in ("doc_id", "node_id", "normalized", "status")
        },
    )
    summaries = pl.DataFrame({"doc_id": ["d", "gone"], "core_idea": [idea, "of no document"]})
    index = build_index(corpus, topic_tags, summaries, make_tree(), DOMAINS, 8, min_summary_words)
    return index.row(0, named=True)


def test_a_problem_belongs_to_the_domains_of_its_topics() -> None:
    row = make_index([("geo/circle", 0.9, "ok"), ("alg/ring", 0.6, "ok"), ("alg/group", 0.5, "ok")])
    assert row["topics"] == ["alg/group", "alg/ring", "geo/circle"]
    assert row["domains"] == ["algebra", "geometry"]
    assert row["primary_domain"] == "algebra"  # 1.1 > 0.9
    assert row["shard"] == hash64("query-shard", "d") % 8
    assert row["topic_set_id"] == digest(row["topics"])
    assert row["word_set_id"] == digest(row["words"])
    assert row["words"] == sorted(set(row["words"]))
    assert {"reflect", "ptolemy"} <= set(row["words"])
    assert row["is_query"]


def test_the_primary_domain_of_equal_sums_is_the_first_configured() -> None:
    row = make_index([("alg/ring", 0.7, "ok"), ("geo/circle", 0.7, "ok")])
    assert row["primary_domain"] == "geometry"


@pytest.mark.parametrize("node", ["his/euler", "mis"])
def test_a_topic_of_no_configured_domain_counts_as_a_topic_only(node: str) -> None:
    row = make_index([(node, 1.0, "ok")])
    assert row["topics"] == [node]
    assert row["domains"] == []
    assert row["primary_domain"] is row["shard"] is None
    assert not row["is_query"]


def test_failed_calls_and_no_topic_rows_give_no_topics() -> None:
    row = make_index([(None, None, "no_topic"), ("alg/ring", 0.9, "refused")])
    assert row["topics"] == []
    assert row["topic_set_id"] is None


def test_a_query_needs_enough_distinct_content_words() -> None:
    tags = [("alg/ring", 1.0, "ok")]
    three = "Reflect triangle, reflect the triangle; invoke"
    assert not make_index(tags, three)["is_query"]
    assert make_index(tags, three)["words"] == [], "too short to overlap with anything"
    assert len(make_index(tags, three, min_summary_words=3)["words"]) == 3
    assert make_index(tags, three, min_summary_words=3)["is_query"]
    row = make_index(tags, None)
    assert row["words"] == []
    assert row["word_set_id"] is None
    assert not row["is_query"]
    assert row["is_document"]


def test_a_document_that_may_not_be_a_query_stays_none() -> None:
    assert not make_index([("alg/ring", 1.0, "ok")], is_query=False)["is_query"]


def test_a_tag_outside_the_ontology_is_an_error() -> None:
    with pytest.raises(SaberError, match="alg/field"):
        make_index([("alg/field", 1.0, "ok")])
