"""Both signals agree exactly with their plain twins."""

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pairs import joined

from saber_dagster.contracts import TABLES
from saber_dagster.ontology import OntologyTree
from saber_dagster.signals.growth import _DECIDES, Before, compute_signals
from saber_dagster.signals.join import SignalJoin, query_positions
from saber_dagster.signals.statistics import information_content, population, topic_statistics
from saber_dagster.signals.storage import decode, encode
from saber_dagster.signals.top import Top
from saber_dagster.similarity import twins
from trees import tree_of

EPSILON = 1e-12


@st.composite
def trees(draw: st.DrawFn) -> OntologyTree:
    """Up to three roots; one alone covers every annotation and has information content 0."""
    nodes = [f"r{i}" for i in range(draw(st.integers(1, 3)))]
    for i in range(draw(st.integers(0, 9))):
        nodes.append(f"{draw(st.sampled_from(nodes))}/{i}")
    return tree_of(nodes)


@st.composite
def indexes(draw: st.DrawFn, tree: OntologyTree) -> pl.DataFrame:
    """Few topics and words, so that sets are empty, equal, nested, and hold ancestors together."""
    topic_sets = st.sets(st.sampled_from(tree.node_ids), max_size=5)
    word_sets = st.sets(st.sampled_from("abcdefgh"), max_size=6)
    rows = []
    for i in range(draw(st.integers(1, 9))):
        topics, words = sorted(draw(topic_sets)), sorted(draw(word_sets))
        rows.append(
            {
                "doc_id": f"p{i}",
                "cluster_id": draw(st.sampled_from(["c", f"p{i}", f"p{i}"])),
                "domains": ["algebra"],
                "primary_domain": "algebra",
                "shard": 0,
                "topics": topics,
                "words": words,
                "topic_set_id": None,
                "word_set_id": None,
                "is_document": draw(st.sampled_from([True, True, False])),
                "is_query": draw(st.sampled_from([True, True, False])),
            }
        )
    return pl.DataFrame(rows, schema=TABLES["problem_index"].schema)


@pytest.mark.property
@settings(max_examples=120, deadline=None)
@given(
    data=st.data(),
    tree=trees(),
    topic_floor=st.sampled_from([0.0, 0.3, 0.5, 1.0]),
    summary_floor=st.sampled_from([0.0, 0.25, 0.5, 1.0]),
    block=st.sampled_from([1, 2, 5, 100]),
)
def test_signals_are_those_of_the_twins(
    data: st.DataObject, tree: OntologyTree, topic_floor: float, summary_floor: float, block: int
) -> None:
    index = data.draw(indexes(tree))
    documents = index.filter("is_document").to_dicts()
    queries = index.filter("is_query").to_dicts()
    annotations = [[tree.index[topic] for topic in row["topics"]] for row in documents]
    content = twins.information_content(annotations, tree)
    statistics = topic_statistics(index, tree)
    assert information_content(statistics, tree).tolist() == content

    expected, every = {}, {}
    for x in queries:
        for y in documents:
            if x["cluster_id"] == y["cluster_id"]:
                continue
            sets = ([tree.index[topic] for topic in row["topics"]] for row in (x, y))
            topic = twins.best_match_average(*sets, tree, content, EPSILON)
            summary = twins.jaccard(x["words"], y["words"])
            every[x["doc_id"], y["doc_id"]] = topic, summary
            if 0 < topic >= topic_floor or 0 < summary >= summary_floor:
                expected[x["doc_id"], y["doc_id"]] = (topic, summary)
    ids = [row["doc_id"] for row in queries]
    join = SignalJoin(index, tree, statistics, topic_floor, summary_floor, EPSILON, block=block)
    found = joined(join, index, ids)
    assert {(q, d): (t, s) for q, d, t, s in found.iter_rows()} == expected
    assert found.select("query_id", "doc_id").rows() == sorted(expected)
    values = {pair: signals for pair, signals in expected.items() if pair[::-1] in expected}
    assert all(values[d, q] == signals for (q, d), signals in values.items())

    most = data.draw(st.integers(1, 4))
    kept = {
        (query, doc)
        for query in ids
        for i, floor in enumerate((topic_floor, summary_floor))
        for doc in twins.top_m(
            {d: values[i] for (q, d), values in every.items() if q == query}, most, floor
        )
    }
    top = SignalJoin(
        index, tree, statistics, topic_floor, summary_floor, EPSILON, most=most, block=block
    )
    piece = data.draw(st.sampled_from([1, 2, 100]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("saber_dagster.signals.top.QUERIES_PER_PIECE", piece)
        largest = joined(top, index, ids)
    assert {(q, d): (t, s) for q, d, t, s in largest.iter_rows()} == {
        pair: every[pair] for pair in kept
    }

    for bins in (1, 4, 256):
        counts = join.histograms(query_positions(index, ids), bins)
        for i, signal in enumerate(("topic", "summary")):
            binned = [min(int(values[i] * bins), bins - 1) for values in every.values()]
            assert counts[signal].tolist() == np.bincount(binned, minlength=bins).tolist()

    pairs = [(x, y) for x in queries for y in documents if x["cluster_id"] != y["cluster_id"]]
    with_topics = [(x, y) for x, y in pairs if x["topics"] and y["topics"]]
    with_words = [(x, y) for x, y in pairs if x["words"] and y["words"]]
    with_both = [(x, y) for x, y in with_topics if x["words"] and y["words"]]
    sizes = [len(queries), len(pairs), len(with_topics), len(with_words), len(with_both)]
    counted = population(index.filter("is_query"), index.filter("is_document"))
    assert counted.rows() == ([("algebra", *sizes)] if queries else [])


@pytest.mark.property
@settings(max_examples=80, deadline=None)
@given(
    data=st.data(),
    tree=trees(),
    floor=st.sampled_from([0.0, 0.3]),
    most=st.sampled_from([None, 1, 2, 3]),
)
def test_a_grown_corpus_has_the_pairs_of_one_computed_anew(
    data: st.DataObject, tree: OntologyTree, floor: float, most: int | None
) -> None:
    """Problems come, go and change between two indexes; statistics are those of the first."""
    old, new = data.draw(indexes(tree)), data.draw(indexes(tree))
    stays = set(data.draw(st.sets(st.sampled_from(old["doc_id"].to_list()))))
    new = pl.concat(
        [new.filter(~pl.col("doc_id").is_in(stays)), old.filter(pl.col("doc_id").is_in(stays))]
    ).sort("doc_id")
    statistics = topic_statistics(old, tree)
    asked = [
        query_positions(index, data.draw(st.sets(st.sampled_from(ids))) if ids else [])
        for index in (old, new)
        for ids in [index.filter("is_query")["doc_id"].to_list()]
    ]

    def join(index: pl.DataFrame, documents: npt.NDArray[np.bool_] | None = None) -> SignalJoin:
        return SignalJoin(index, tree, statistics, floor, floor, EPSILON, documents, most)

    stored = encode(join(old).rows(asked[0]))
    before = Before(decode(stored, old.height), asked[0], old)
    top = None if most is None else Top(most, floor, floor)
    made = compute_signals(lambda documents: join(new, documents), new, asked[1], before, top)
    grown = made.rows
    after = {row[0]: row for row in new.select("doc_id", *_DECIDES).iter_rows()}
    gone = [
        row
        for row in old.filter("is_document").select("doc_id", *_DECIDES).iter_rows()
        if after.get(row[0]) != row
    ]
    assert made.taken_over == (top is None or not gone)
    anew = join(new).rows(asked[1])
    for name in ("queries", "indptr", "documents", "topics", "overlaps"):
        assert getattr(grown, name).tolist() == getattr(anew, name).tolist()
        assert getattr(grown, name).dtype == getattr(anew, name).dtype


@pytest.mark.parametrize(
    ("place", "change"),
    [
        (2, {"is_document": True}),
        (1, {"is_document": False}),
        (1, {"cluster_id": "p0"}),
        (1, {"topics": ["b"]}),
        (1, {"words": ["y"]}),
    ],
)
def test_pairs_of_a_problem_that_changed_in_one_column_are_not_taken_over(
    place: int, change: dict[str, object]
) -> None:
    tree = tree_of(["a", "b"])
    rows: list[dict[str, object]] = [
        {
            "doc_id": f"p{i}",
            "cluster_id": f"p{i}",
            "topics": ["a"],
            "words": ["x"],
            "is_document": i != 2,
            "is_query": True,
        }
        for i in range(4)
    ]
    schema = TABLES["problem_index"].schema
    old = pl.DataFrame(rows, schema=schema)
    rows[place] |= change
    new = pl.DataFrame(rows, schema=schema)
    queries = np.arange(4, dtype=np.int32)

    def join(index: pl.DataFrame, documents: npt.NDArray[np.bool_] | None = None) -> SignalJoin:
        return SignalJoin(index, tree, topic_statistics(old, tree), 0.0, 0.0, EPSILON, documents)

    before = Before(join(old).rows(queries), queries, old)
    made = compute_signals(lambda documents: join(new, documents), new, queries, before)
    assert made.taken_over
    grown = made.rows
    anew = join(new).rows(queries)
    for name in ("indptr", "documents", "topics", "overlaps"):
        assert getattr(grown, name).tolist() == getattr(anew, name).tolist()
