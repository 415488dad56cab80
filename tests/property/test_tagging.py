import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saber_dagster.contracts import TABLES
from saber_dagster.hashing import hash64
from saber_dagster.ledger import Outcome
from saber_dagster.ontology import OntologyTree
from saber_dagster.tagging import tag_documents

pytestmark = pytest.mark.property

GRID = (0.0, 0.0, 0.1, 0.4, 0.5, 0.85, 0.9, 1.0)
"""Few values, so that ties, zeros and shares of just the threshold are met."""


@st.composite
def trees(draw):
    """Children of each node id; "" stands above the roots. Labels repeat."""
    children = {"": []}
    for number in range(draw(st.integers(0, 12))):
        above = draw(st.sampled_from(sorted(children)))
        node = f"{above}/{number:02}".lstrip("/")
        children[above].append(node)
        children[node] = []
    return children


def to_tree(children):
    nodes = [node for node in children if node]
    rows = [
        (n, n, f"label {n[-1]}", [], n.rpartition("/")[0] or None, n.count("/"), None, n)
        for n in nodes
    ]
    frame = pl.DataFrame(rows, schema=TABLES["ontology_tree"].schema, orient="row")
    return OntologyTree.from_frame(frame)


class CallError(Exception):
    pass


def twin(children, doc, score, fails, threshold):
    """The paper's recursion, document by document and depth first."""
    kept = {}

    def visit(node):
        if fails(doc, node):
            raise CallError
        together = [node] * bool(node) + children[node]
        scores = {n: score(doc, node, n) for n in together}
        best = max(scores.values(), default=0.0)
        for n in together:
            if best > 0 and scores[n] / best > threshold:
                kept[n] = (scores[n], scores[n] / best)
                if n != node and children[n]:
                    visit(n)

    try:
        visit("")
    except CallError:
        return {}, "refused"
    topics = {
        node: value
        for node, value in kept.items()
        if not any(other.startswith(node + "/") for other in kept)
    }
    return topics, "ok" if topics else "no_topic"


@given(
    trees(),
    st.integers(0, 2**32),
    st.sampled_from([0.0, 0.4, 0.5, 0.85, 1.0]),
    st.sampled_from([0, 6]),
)
def test_level_by_level_is_the_recursion(children, seed, threshold, failures):
    def score(doc, node, n):
        return GRID[hash64(seed, doc, node, n) % len(GRID)]

    def fails(doc, node):
        return bool(failures) and hash64(seed, "fails", doc, node) % failures == 0

    def ask(calls, parse, guess):
        return [answer(call, parse) for call in calls]

    def answer(call, parse):
        doc, _, name = call.item.partition(" @ ")
        node = "" if name == "roots" else name
        if fails(doc, node):
            return Outcome("k", "refused", None)
        together = [node] * bool(node) + children[node]
        lines = [f'<score n="{i}">{score(doc, node, n)}</score>' for i, n in enumerate(together, 1)]
        return Outcome("k", "ok", parse(call, "\n".join(lines)))

    docs = ["d1", "d3", "d2"]
    frame, counts = tag_documents(
        pl.DataFrame({"doc_id": docs, "problem": docs, "solution": docs}),
        to_tree(children),
        ask,
        threshold,
    )
    expected = []
    for doc in sorted(docs):
        topics, status = twin(children, doc, score, fails, threshold)
        expected += [(doc, node, *topics[node], status) for node in sorted(topics)]
        expected += [] if topics else [(doc, None, None, None, status)]
    assert frame.rows() == expected
    statuses = {doc: status for doc, *_, status in expected}.values()
    assert counts.failed == sum(status == "refused" for status in statuses)
    assert counts.no_topic == sum(status == "no_topic" for status in statuses)
    assert counts.tagged == sum(status == "ok" for status in statuses)
