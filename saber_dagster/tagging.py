"""Topic assignment by top-down traversal of the ontology.

Source: SABER-Math, section "Scoring Problem Pair Relevance based on Ontologies", paragraph "Automatic
topic assignment".
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl

from saber_dagster.contracts import TABLES
from saber_dagster.engines import TOPIC_SCORES, Call
from saber_dagster.hashing import hash64
from saber_dagster.ledger import Outcome
from saber_dagster.ontology import OntologyTree
from saber_dagster.replies import parse_topic_scores

_TOP = -1
"""Stands for the whole ontology: its candidates are the roots, without a parent as reference."""
_ROOTS = "roots"
"""Its name where a node's id would stand."""

Guess = Callable[[Call], list[float]]
Ask = Callable[
    [Sequence[Call], Callable[[Call, str], list[float]], Guess], list[Outcome[list[float]]]
]


@dataclass(frozen=True)
class TagCounts:
    """What became of the documents of a shard."""

    documents: int
    tagged: int
    no_topic: int
    failed: int
    levels: int
    calls: int


def parse_scores(call: Call, text: str) -> list[float]:
    """The scores of a call's candidates."""
    return parse_topic_scores(text, len(call.inputs["candidates"]))


def guess_scores(call: Call) -> list[float]:
    """Scores that a dry run goes on with: one of the candidates below is right, drawn by the call.

    So the descent of every document ends at a leaf. An engine that stops earlier, or keeps several
    candidates, makes fewer or more calls.
    """
    n = len(call.inputs["candidates"])
    first = 0 if call.item.endswith(f" @ {_ROOTS}") else 1
    drawn = first + hash64("guess", call.item) % max(n - first, 1)
    return [float(number == drawn) for number in range(n)]


def tag_documents(
    documents: pl.DataFrame, tree: OntologyTree, ask: Ask, threshold: float
) -> tuple[pl.DataFrame, TagCounts]:
    """Assign the most specific topics to every document.

    All documents advance level by level, so that each level is one batch of calls (document × node).
    At a node the engine scores the node and its children together; scores are divided by their maximum,
    and those above ``threshold`` are kept. A kept child is visited next; the node itself, kept or not,
    is the reference that stops the descent where no child comes close. In the end topics that have a
    descendant among the topics are removed.

    Args:
        documents: ``doc_id``, ``problem``, ``solution``.
        tree: the ontology.
        ask: answers a batch of calls; see :meth:`saber_dagster.ledger.Session.ask`.
        threshold: tau; a normalized score must exceed it.

    Returns:
        The table ``topic_tags`` and counts. A document of which a call failed has no topics and the
        status of the failure; a document for which nothing scored above 0 has status ``no_topic``.
    """
    texts = {
        doc: {"problem": problem, "solution": solution}
        for doc, problem, solution in documents.select("doc_id", "problem", "solution").iter_rows()
    }
    candidates: dict[int, tuple[dict[str, object], ...]] = {}
    kept: dict[str, dict[int, tuple[float, float]]] = {doc: {} for doc in texts}
    failed: dict[str, str] = {}
    frontier = [(doc, _TOP) for doc in sorted(texts)]
    levels = n_calls = 0
    while frontier:
        levels += 1
        calls = []
        for doc, node in frontier:
            if node not in candidates:
                candidates[node] = tuple(_describe(tree, n) for n in _scored(tree, node))
            inputs = {**texts[doc], "candidates": candidates[node]}
            name = tree.node_ids[node] if node != _TOP else _ROOTS
            calls.append(Call(TOPIC_SCORES, inputs, f"{doc} @ {name}"))
        n_calls += len(calls)
        next_frontier = []
        for (doc, node), outcome in zip(
            frontier, ask(calls, parse_scores, guess_scores), strict=True
        ):
            if outcome.value is None:
                failed.setdefault(doc, outcome.status)
                continue
            for n, score, normalized in _keep(_scored(tree, node), outcome.value, threshold):
                kept[doc][n] = (score, normalized)
                if n != node and tree.children[n]:
                    next_frontier.append((doc, n))
        frontier = [(doc, node) for doc, node in next_frontier if doc not in failed]
    rows: list[tuple[str, str | None, float | None, float | None, str]] = []
    for doc in texts:
        topics = {} if doc in failed else _most_specific(tree, kept[doc])
        for node, (score, normalized) in topics.items():
            rows.append((doc, tree.node_ids[node], score, normalized, "ok"))
        if not topics:
            rows.append((doc, None, None, None, failed.get(doc, "no_topic")))
    table = TABLES["topic_tags"]
    frame = table.check(pl.DataFrame(rows, schema=table.schema, orient="row"))
    by_status: dict[str, int] = defaultdict(int)
    for status, n in frame.group_by("status").agg(pl.col("doc_id").n_unique()).iter_rows():
        by_status[status] = n
    counts = TagCounts(
        documents=len(texts),
        tagged=by_status["ok"],
        no_topic=by_status["no_topic"],
        failed=len(failed),
        levels=levels,
        calls=n_calls,
    )
    return frame, counts


def _scored(tree: OntologyTree, node: int) -> tuple[int, ...]:
    """The nodes that are scored together at ``node``: itself first, then its children."""
    if node == _TOP:
        return tuple(i for i in range(len(tree.node_ids)) if tree.parent[i] < 0)
    return (node, *tree.children[node])


def _describe(tree: OntologyTree, node: int) -> dict[str, object]:
    return {
        "label": tree.label[node],
        "synonyms": tuple(tree.synonyms[node]),
        "terms": tree.terms_below(node),
    }


def _keep(
    nodes: Sequence[int], scores: Sequence[float], threshold: float
) -> list[tuple[int, float, float]]:
    best = max(scores, default=0.0)
    if best <= 0.0:
        return []
    normalized = [score / best for score in scores]
    return [
        (node, score, share)
        for node, score, share in zip(nodes, scores, normalized, strict=True)
        if share > threshold
    ]


def _most_specific(
    tree: OntologyTree, kept: dict[int, tuple[float, float]]
) -> dict[int, tuple[float, float]]:
    ancestors = {a for node in kept for a in tree.ancestors(node) if a != node}
    return {node: value for node, value in kept.items() if node not in ancestors}
