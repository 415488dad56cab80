"""The signals and the threshold rules as they are written down: slow, plain, for comparison."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import reduce
from operator import add

from saber_dagster.ontology import OntologyTree
from saber_dagster.similarity.topic import UNITS

Signals = tuple[float | None, float | None]
"""Topic and summary signal of a pair; None if one of the two problems lacks the feature."""


def information_content(problems: Sequence[Sequence[int]], tree: OntologyTree) -> list[float]:
    """-ln(c(t) / N) of every node, from the topics of every problem; c(t) = 0 counts as 1."""
    annotations = [topic for topics in problems for topic in topics]
    content = []
    for node in range(len(tree.node_ids)):
        count = sum(node in tree.ancestors(topic) for topic in annotations)
        content.append(abs(math.log(max(count, 1) / max(len(annotations), 1))))
    return content


def lin(t: int, u: int, tree: OntologyTree, content: Sequence[float], epsilon: float) -> float:
    """Lin's similarity 2 IC(LCA) / (IC(t) + IC(u) + epsilon) of two nodes, in [0, 1].

    Nodes of different roots have similarity 0: their common ancestor would be a virtual root, whose
    IC is 0. A node with IC 0 has similarity 0 to every node, itself included, by the formula.

    Source: SABER-Math, "Topic similarity over ontologies", second equation.
    """
    lca = tree.lca(t, u)
    shared = content[lca] if lca >= 0 else 0.0
    return min(max(2 * shared / (content[t] + content[u] + epsilon), 0.0), 1.0)


def best_match_average(
    x: Sequence[int], y: Sequence[int], tree: OntologyTree, content: Sequence[float], epsilon: float
) -> float:
    """Best-match average of two topic sets, rounded to 1e-6; 0 if one is empty.

    Source: SABER-Math, "Topic set matching".
    """
    if not x or not y:
        return 0.0
    forth = total(max(lin(t, u, tree, content, epsilon) for u in y) for t in x)
    back = total(max(lin(t, u, tree, content, epsilon) for t in x) for u in y)
    return round((forth + back) / (len(x) + len(y)) * UNITS) / UNITS


def total(values: Iterable[float]) -> float:
    """The sum, one after the other: from Python 3.12 on ``sum`` makes up for what rounding loses."""
    return reduce(add, values, 0.0)


def jaccard(x: Collection[str], y: Collection[str]) -> float:
    """Jaccard similarity of two word sets; 0 if both are empty.

    Source: SABER-Math, "Summary-based relevance estimation".
    """
    union = set(x) | set(y)
    return len(set(x) & set(y)) / len(union) if union else 0.0


def top_m(signals: Mapping[str, float], m: int, floor: float) -> set[str]:
    """The documents whose signal is at least the m-th largest of the query, and the floor."""
    ordered = sorted(signals.values(), reverse=True)
    least = ordered[m - 1] if m <= len(ordered) else 0.0
    return {doc for doc, value in signals.items() if value >= max(least, floor) and value > 0}


def smallest_group(topic: Collection[str], summary: Collection[str]) -> int:
    """The size of the smallest of topic-only, summary-only and both."""
    topics, summaries = set(topic), set(summary)
    return min(len(topics - summaries), len(summaries - topics), len(topics & summaries))


def percentile(
    queries: Sequence[Mapping[str, Signals]],
    floors: tuple[float, float],
    queries_required: int,
    per_group: int,
) -> tuple[float, float, float] | None:
    """The percentile rule in one domain, by trying every share.

    Args:
        queries: the signals of each query with every document of its population.
        floors: the lowest thresholds there may be.
        queries_required: eligible queries that the domain needs.
        per_group: K.

    Returns:
        The smallest share that leaves enough eligible queries and the two thresholds at it.
    """
    pairs = [signals for documents in queries for signals in documents.values()]
    topics = sorted((t for t, _ in pairs if t is not None), reverse=True)
    summaries = sorted((s for _, s in pairs if s is not None), reverse=True)

    def threshold(population: Sequence[float], share: float) -> float:
        size = len(population)
        allowed = sum(k / size <= share for k in range(1, size + 1))
        return population[allowed] if allowed < size else 0.0

    shares = {k / len(values) for values in (topics, summaries) for k in range(1, len(values) + 1)}
    for share in sorted(shares):
        topic, summary = threshold(topics, share), threshold(summaries, share)
        if topic < floors[0] or summary < floors[1]:
            return None
        eligible = sum(
            smallest_group(
                [d for d, (t, _) in documents.items() if t is not None and t > topic],
                [d for d, (_, s) in documents.items() if s is not None and s > summary],
            )
            >= per_group
            for documents in queries
        )
        if eligible >= queries_required:
            return share, topic, summary
    return None
