import polars as pl
import pytest

from saber_dagster.contracts import TABLES
from saber_dagster.ledger import Outcome
from saber_dagster.ontology import OntologyTree
from saber_dagster.replies import ParseError
from saber_dagster.tagging import parse_scores, tag_documents

TREE = ["alg", "alg/lin", "alg/lin/det", "alg/lin/eig", "alg/poly", "geo", "geo/tri"]
LABELS = {"alg/lin/det": "same", "alg/lin/eig": "same", "geo/tri": "same"}


def tree_of(nodes, labels=None):
    rows = [
        (
            node,
            node.replace("/", " > "),
            (labels or {}).get(node, node.split("/")[-1]),
            [f"{node}'s other name"],
            node.rpartition("/")[0] or None,
            node.count("/"),
            None,
            node,
        )
        for node in nodes
    ]
    frame = pl.DataFrame(rows, schema=TABLES["ontology_tree"].schema, orient="row")
    return OntologyTree.from_frame(frame)


def documents(*ids):
    return pl.DataFrame({"doc_id": ids, "problem": ["p"] * len(ids), "solution": ["s"] * len(ids)})


class Scripted:
    """Scores by node id; ``calls`` holds the batches."""

    def __init__(self, scores, failures=None):
        self.scores = scores
        self.failures = failures or {}
        self.batches = []

    def __call__(self, calls, parse, guess):
        self.batches.append([call.item for call in calls])
        return [self.outcome(call, parse) for call in calls]

    def outcome(self, call, parse):
        doc, _, node = call.item.partition(" @ ")
        if (doc, node) in self.failures:
            return Outcome("key", self.failures[doc, node], None, "why")
        given = self.scores[doc][node] if doc in self.scores else self.scores[node]
        text = "\n".join(f'<score n="{i}">{s!r}</score>' for i, s in enumerate(given, 1))
        return Outcome("key", "ok", parse(call, text))


def tags(frame, doc="d"):
    rows = frame.filter(pl.col("doc_id") == doc)
    return {
        node: (s, n) for node, s, n in rows.select("node_id", "score", "normalized").iter_rows()
    }


def test_the_descent_goes_level_by_level_to_the_most_specific_topics():
    ask = Scripted(
        {
            "roots": [0.9, 0.8],
            "alg": [0.1, 0.8, 0.75],
            "alg/lin": [0.2, 0.3, 0.5],
            "geo": [0.5, 0.6],
        }
    )
    frame, counts = tag_documents(documents("d"), tree_of(TREE), ask, 0.85)
    assert tags(frame) == {
        "alg/lin/eig": (0.5, 1.0),
        "alg/poly": (0.75, 0.75 / 0.8),
        "geo/tri": (0.6, 1.0),
    }
    assert ask.batches == [["d @ roots"], ["d @ alg", "d @ geo"], ["d @ alg/lin"]]
    assert (counts.documents, counts.tagged, counts.no_topic, counts.failed) == (1, 1, 0, 0)
    assert (counts.levels, counts.calls) == (3, 4)
    assert set(frame["status"]) == {"ok"}


def test_a_parent_that_beats_its_children_ends_the_descent():
    ask = Scripted({"roots": [0.9, 0.1], "alg": [0.8, 0.3, 0.2]})
    frame, counts = tag_documents(documents("d"), tree_of(TREE), ask, 0.85)
    assert tags(frame) == {"alg": (0.8, 1.0)}
    assert counts.levels == 2


def test_a_parent_stays_where_its_own_call_scores_nothing():
    ask = Scripted({"roots": [0.9, 0.1], "alg": [0.0, 0.0, 0.0]})
    frame, _ = tag_documents(documents("d"), tree_of(TREE), ask, 0.85)
    assert tags(frame) == {"alg": (0.9, 1.0)}


@pytest.mark.parametrize(
    ("score", "kept"),
    [(0.85, ["alg"]), (0.8500000000000001, ["alg", "geo"]), (0.9, ["alg", "geo"])],
)
def test_the_threshold_is_exceeded_strictly(score, kept):
    ask = Scripted({"roots": [1.0, score], "alg": [1.0, 0, 0], "geo": [1.0, 0]})
    frame, _ = tag_documents(documents("d"), tree_of(TREE), ask, 0.85)
    assert sorted(tags(frame)) == kept


def test_scores_are_divided_by_the_largest_of_their_call():
    ask = Scripted({"roots": [0.02, 0.0171], "alg": [1e-300, 0, 0], "geo": [0.3, 0.1]})
    frame, _ = tag_documents(documents("d"), tree_of(TREE), ask, 0.85)
    assert tags(frame) == {"alg": (1e-300, 1.0), "geo": (0.3, 1.0)}


def test_nothing_above_zero_is_no_topic():
    frame, counts = tag_documents(documents("d"), tree_of(TREE), Scripted({"roots": [0, 0]}), 0.0)
    assert frame.rows() == [("d", None, None, None, "no_topic")]
    assert (counts.no_topic, counts.tagged, counts.failed) == (1, 0, 0)


@pytest.mark.parametrize("node", ["roots", "alg", "alg/lin"])
@pytest.mark.parametrize("status", ["parse_error", "refused", "truncated"])
def test_a_failed_call_is_no_finding_about_topics(node, status):
    scores = {"roots": [1, 1], "alg": [0, 1, 0], "alg/lin": [0, 1, 0], "geo": [1, 0]}
    ask = Scripted(scores, {("bad", node): status})
    frame, counts = tag_documents(documents("good", "bad"), tree_of(TREE), ask, 0.85)
    assert frame.filter(pl.col("doc_id") == "bad").rows() == [("bad", None, None, None, status)]
    assert sorted(tags(frame, "good")) == ["alg/lin/det", "geo"]
    assert (counts.failed, counts.tagged, counts.no_topic) == (1, 1, 0)


def test_a_failed_document_is_not_asked_about_any_further():
    scores = {"roots": [1, 1], "alg": [0, 1, 0], "geo": [1, 0]}
    ask = Scripted(scores, {("d", "geo"): "refused"})
    _, counts = tag_documents(documents("d"), tree_of(TREE), ask, 0.85)
    assert ask.batches == [["d @ roots"], ["d @ alg", "d @ geo"]]
    assert counts.calls == 3


def test_nodes_with_one_label_are_nodes_of_their_own():
    ask = Scripted({"roots": [1, 0.9], "alg": [0, 1, 0], "alg/lin": [0, 0.9, 1], "geo": [0, 1]})
    frame, _ = tag_documents(documents("d"), tree_of(TREE, LABELS), ask, 0.85)
    assert sorted(tags(frame)) == ["alg/lin/det", "alg/lin/eig", "geo/tri"]


def test_a_call_describes_the_node_and_its_children():
    asked = []

    def ask(calls, parse, guess):
        asked.extend(calls)
        return [
            Outcome("k", "ok", [1.0] + [0.0] * (len(c.inputs["candidates"]) - 1)) for c in calls
        ]

    tag_documents(documents("d"), tree_of(TREE), ask, 0.85)
    roots, alg = asked
    assert [c["label"] for c in roots.inputs["candidates"]] == ["alg", "geo"]
    assert [c["label"] for c in alg.inputs["candidates"]] == ["alg", "lin", "poly"]
    assert alg.inputs["candidates"][1] == {
        "label": "lin",
        "synonyms": ("alg/lin's other name",),
        "terms": ("alg/lin/det's other name", "alg/lin/eig's other name", "det", "eig"),
    }
    assert (alg.inputs["problem"], alg.inputs["solution"]) == ("p", "s")
    with pytest.raises(ParseError, match="no score"):
        parse_scores(alg, '<score n="1">1</score>')


def test_rows_and_sharding_do_not_matter():
    scores = {
        "a": {"roots": [1, 0.9], "alg": [1, 0, 0], "geo": [0, 1]},
        "b": {"roots": [0, 0]},
        "c": {"roots": [0, 1], "geo": [1, 0]},
    }
    tree = tree_of(TREE)
    whole, _ = tag_documents(documents("a", "b", "c"), tree, Scripted(scores), 0.85)
    other, _ = tag_documents(documents("c", "a", "b"), tree, Scripted(scores), 0.85)
    parts = [tag_documents(documents(d), tree, Scripted(scores), 0.85)[0] for d in ("c", "b", "a")]
    assert whole.equals(other)
    assert TABLES["topic_tags"].version(pl.concat(parts)) == TABLES["topic_tags"].version(whole)


@pytest.mark.parametrize("nodes", [[], TREE])
def test_no_documents_are_no_calls(nodes):
    frame, counts = tag_documents(documents().cast(pl.String), tree_of(nodes), Scripted({}), 0.85)
    assert frame.height == 0
    assert counts.calls == 0


def test_a_guess_leads_every_document_down_one_path_to_a_leaf():
    batches = []

    def ask(calls, parse, guess):
        batches.append([call.item for call in calls])
        return [Outcome("k", "ok", guess(call)) for call in calls]

    docs = [f"d{number}" for number in range(20)]
    frame, _ = tag_documents(documents(*docs), tree_of(TREE), ask, 0.85)
    leaves = set(frame["node_id"])
    assert leaves == {"alg/lin/det", "alg/lin/eig", "alg/poly", "geo/tri"}, "they spread"
    assert frame.height == 20
    assert len(batches[0]) == len(batches[1]) == 20
