"""What a mathematician would find wrong with an ontology, and how well it covers a corpus."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import combinations
from statistics import median

from saber_dagster.ontology import OntologyGraph, OntologyTree
from saber_dagster.phrases import Phrases, phrase, read_text, stem
from saber_dagster.text import words

SAME_LABEL = 0.85
"""Two labels whose stems agree to this ratio are near-duplicates."""
SAME_WORD = 0.7
"""The words in which they differ agree to this ratio: "ring" and "rang", not "inverse" and "linear"."""
COMMON_WORD = 60
"""Labels are compared if they share a word that no more labels than these have."""
WIDEST = 25
"""Children above which a person, or a model that scores them together, loses the overview."""
SHARED_SYNONYM = 3
"""Topics from which on a synonym tells nothing any more."""
DEPTH_GAP = 1.5
"""Levels by which the median leaf of a domain may differ from that of all."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something to look at; ``nodes`` are source ids."""

    kind: str
    nodes: tuple[str, ...]
    problem: str
    remedy: str


@dataclass(frozen=True)
class Coverage:
    """How many texts name a topic below the top level, and which topics no text names."""

    texts: int
    named: int
    unnamed_topics: tuple[str, ...]

    @property
    def share(self) -> float:
        """Share of texts that name a topic; 1 without texts."""
        return self.named / self.texts if self.texts else 1.0


def check_ontology(graph: OntologyGraph, tree: OntologyTree) -> list[Finding]:
    """All findings, in the order of their kinds and then of node ids."""
    return [
        *_orphans(graph, tree),
        *_near_duplicates(graph),
        *_shared_names(graph),
        *_shape(graph),
        *_unbalanced(tree),
        *_bare(graph),
    ]


def coverage(tree: OntologyTree, texts: Iterable[str]) -> Coverage:
    """Look for the names and synonyms of all topics below the top level in texts."""
    numbers: dict[tuple[str, ...], int] = {}
    topics: dict[int, list[int]] = defaultdict(list)
    for node in range(len(tree.node_ids)):
        if tree.depth[node] == 0:
            continue
        for name in (tree.label[node], *tree.synonyms[node]):
            if found := phrase(name):
                topics[numbers.setdefault(found, len(numbers))].append(node)
    phrases = Phrases.compile(numbers)
    seen: set[str] = set()
    named = total = 0
    for text in texts:
        total += 1
        hits = phrases.count(read_text(text))
        named += bool(hits)
        seen.update(tree.label[node] for number in hits for node in topics[number])
    below = {tree.label[n] for n in range(len(tree.node_ids)) if tree.depth[n] > 0}
    return Coverage(total, named, tuple(sorted(below - seen)))


def _orphans(graph: OntologyGraph, tree: OntologyTree) -> list[Finding]:
    children = graph.children()
    lonely = [node for node in graph.roots if not children[node]]
    remedy = "Give it a parent, or leave it out"
    found = [
        Finding("orphan", (n,), f"{graph.nodes[n].label!r} has no parent and no child", remedy)
        for n in lonely
    ]
    for root in tree.roots:
        if tree.domain[root] is None and tree.children[root]:
            problem = f"{tree.label[root]!r} and what is below it belong to no domain"
            remedy = "Map it in ontology.root_domains, if its problems should become queries"
            found.append(Finding("no_domain", (tree.node_ids[root],), problem, remedy))
    return found


def _near_duplicates(graph: OntologyGraph) -> list[Finding]:
    stems = {
        node: tuple(sorted(stem(word) for word in words(topic.label)))
        for node, topic in graph.nodes.items()
    }
    holders: dict[str, list[str]] = defaultdict(list)
    for node, parts in stems.items():
        for part in set(parts):
            holders[part].append(node)
    pairs: set[tuple[str, str]] = set()
    for nodes in holders.values():
        if len(nodes) <= COMMON_WORD:
            pairs.update(combinations(nodes, 2))
    found = []
    for one, two in sorted(pairs):
        if _nearly_same(stems[one], stems[two]):
            labels = f"{graph.nodes[one].label!r} and {graph.nodes[two].label!r}"
            problem = f"{labels} are nearly the same label"
            remedy = "Make them one topic with two parents, or name the difference"
            found.append(Finding("near_duplicate", (one, two), problem, remedy))
    return found


def _nearly_same(one: tuple[str, ...], two: tuple[str, ...]) -> bool:
    """Whether labels agree as a whole, and so do the words that only one of them has, if both do."""
    whole = SequenceMatcher(None, " ".join(one), " ".join(two))
    if whole.quick_ratio() <= SAME_LABEL or whole.ratio() <= SAME_LABEL:
        return False
    left = " ".join((Counter(one) - Counter(two)).elements())
    right = " ".join((Counter(two) - Counter(one)).elements())
    return not (left and right) or SequenceMatcher(None, left, right).ratio() > SAME_WORD


def _shared_names(graph: OntologyGraph) -> list[Finding]:
    labels = {" ".join(words(topic.label)): node for node, topic in graph.nodes.items()}
    holders: dict[str, list[str]] = defaultdict(list)
    for node, topic in graph.nodes.items():
        for name in {" ".join(words(synonym)) for synonym in topic.synonyms}:
            holders[name].append(node)
    found = []
    for name, nodes in sorted(holders.items()):
        if len(nodes) >= SHARED_SYNONYM:
            problem = f"{name!r} is a synonym of {len(nodes)} topics"
            remedy = "Keep it where it is most telling"
            found.append(Finding("shared_synonym", tuple(nodes), problem, remedy))
        owner = labels.get(name)
        for node in nodes:
            if owner is not None and owner != node:
                label = graph.nodes[node].label
                problem = f"{name!r} is a topic of its own and a synonym of {label!r}"
                remedy = "Remove the synonym, or join the topics"
                found.append(Finding("label_as_synonym", (owner, node), problem, remedy))
    return found


def _shape(graph: OntologyGraph) -> list[Finding]:
    found = []
    for node, below in graph.children().items():
        label = graph.nodes[node].label
        if len(below) == 1:
            problem = f"{label!r} has one child only, {graph.nodes[below[0]].label!r}"
            found.append(Finding("single_child", (node,), problem, "Join them, or add a sibling"))
        if len(below) > WIDEST:
            problem = f"{label!r} has {len(below)} children, more than {WIDEST}"
            remedy = "Put a level between, as all are scored together"
            found.append(Finding("too_wide", (node,), problem, remedy))
    return found


def _unbalanced(tree: OntologyTree) -> list[Finding]:
    leaves: dict[int, list[int]] = defaultdict(list)
    for node, below in enumerate(tree.children):
        if not below and tree.parent[node] >= 0:
            leaves[tree.ancestors(node)[-1]].append(int(tree.depth[node]))
    if not leaves:
        return []
    middle = median(depth for depths in leaves.values() for depth in depths)
    found = []
    for root, depths in sorted(leaves.items()):
        own = median(depths)
        if abs(own - middle) > DEPTH_GAP:
            problem = (
                f"half of the leaves of {tree.label[root]!r} are at depth {own:g} or less; over all"
                f" top-level topics it is {middle:g}"
            )
            remedy = "Refine what is shallow, or flatten what is deep"
            found.append(Finding("unbalanced_depth", (tree.node_ids[root],), problem, remedy))
    return found


def _bare(graph: OntologyGraph) -> list[Finding]:
    bare = [node for node, topic in graph.nodes.items() if not topic.synonyms]
    if not bare:
        return []
    problem = f"{len(bare)} topics have no synonyms, the first {graph.nodes[bare[0]].label!r}"
    remedy = "Add other names and wordings: the embedded engine finds topics by them"
    return [Finding("no_synonyms", tuple(bare), problem, remedy)]


@dataclass(frozen=True)
class Shape:
    """The size of an ontology: ``by_domain`` and ``by_depth`` count nodes of the tree."""

    nodes: int
    edges: int
    several_parents: int
    tree_nodes: int
    by_domain: Mapping[str, int]
    by_depth: Sequence[int]


def shape(graph: OntologyGraph, tree: OntologyTree) -> Shape:
    """Count what there is."""
    parents = Counter(child for _, child in graph.edges)
    depths = Counter(int(depth) for depth in tree.depth)
    domains = Counter(domain or "no domain" for domain in tree.domain)
    return Shape(
        nodes=len(graph.nodes),
        edges=len(graph.edges),
        several_parents=sum(count > 1 for count in parents.values()),
        tree_nodes=len(tree.node_ids),
        by_domain=dict(sorted(domains.items())),
        by_depth=[depths[depth] for depth in range(max(depths, default=-1) + 1)],
    )
