"""The ontology of topics: a graph as it is read, and the tree that tagging and similarity use."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt
import polars as pl

from saber_dagster.contracts import TABLES
from saber_dagster.errors import SaberError
from saber_dagster.text import words

_Place = tuple[str, str | None, str, str | None]  # source id, parent's node id, its path, domain


@dataclass(frozen=True, slots=True)
class OntologyNode:
    """One topic of the source file."""

    label: str
    synonyms: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class OntologyGraph:
    """An ontology as it was read: a directed acyclic graph from general to specific.

    Nodes and edges are sorted, so that the order of rows in the file does not matter. ``repairs``
    counts what the reader mended: ``byte_order_mark``, ``whitespace``, ``composed_characters``,
    ``repeated_edges``, ``nodes_without_edges``.
    """

    nodes: Mapping[str, OntologyNode]
    edges: tuple[tuple[str, str], ...]
    repairs: Mapping[str, int]
    source: Path

    @property
    def roots(self) -> list[str]:
        """Ids of the nodes that are nobody's child, sorted."""
        inner = {child for _, child in self.edges}
        return [node for node in self.nodes if node not in inner]

    def children(self) -> dict[str, list[str]]:
        """Ids of each node's children, sorted; a leaf has an empty list."""
        below: dict[str, list[str]] = {node: [] for node in self.nodes}
        for parent, child in self.edges:
            below[parent].append(child)
        return below


def find_cycle(edges: Iterable[tuple[str, str]]) -> list[str]:
    """One cycle of a directed graph, such as ``["a", "b", "c", "a"]``; empty if there is none.

    Which one does not depend on the order of the edges.
    """
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for parent, child in sorted(edges):
        sorter.add(child, parent)
    try:
        sorter.prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@dataclass(frozen=True)
class OntologyBuild:
    """The tree of an ontology, and what it took to make it.

    ``repairs`` are the reader's and: ``root_dropped`` (the single root was no topic of its own),
    ``beyond_max_depth`` (tree nodes cut), ``source_nodes_lost`` (source nodes of which no copy is
    left), ``top_level_without_domain``.
    """

    frame: pl.DataFrame
    repairs: Mapping[str, int]
    n_source_nodes: int
    n_source_edges: int


def build_tree(
    graph: OntologyGraph,
    root_domains: Mapping[str, str],
    domains: Sequence[str],
    max_depth: int,
    max_nodes: int = 200_000,
) -> OntologyBuild:
    """Turn the graph into a tree: a node once per path from a root.

    Top-level topics, at depth 0, are the roots; or, if there is one root that is mapped to no
    domain, its children, and the root is dropped. Top-level topics without a domain are kept.

    Args:
        graph: what :func:`ontology_files.read_ontology` returned.
        root_domains: id or label of top-level topics (in any case) to domain slug; if empty, a
            topic belongs to the domain whose slug spells its label ("Calculus and Analysis",
            ``calculus_analysis``).
        domains: the domain slugs there are.
        max_depth: nodes deeper than this are cut and counted.
        max_nodes: most nodes the tree may have.

    Returns:
        A frame by the contract ``ontology_tree``. A node id is the source ids from the top joined
        by "/", with "%" and "/" inside them percent-escaped; a path is the labels joined by " > ".

    Raises:
        SaberError: on a cycle; on a mapping to an unknown domain, of an unknown topic or of one
            topic to two domains; if no topic has a domain; if the tree gets too large.

    Source: SABER-Math, "Ontology tree construction" (the paper's tree has depth 5).
    """
    if cycle := find_cycle(graph.edges):
        raise SaberError(f"{graph.source}: topics form a cycle: {' → '.join(cycle)}")
    children = graph.children()
    top = graph.roots
    domain_of, problems = _map_domains(graph, top, root_domains, domains)
    dropped = len(top) == 1 and not domain_of and bool(children[top[0]])
    if dropped:
        top = children[top[0]]
        domain_of, problems = _map_domains(graph, top, root_domains, domains)
    if domains and not domain_of and not problems:
        labels = [graph.nodes[node].label for node in top][:20]
        problems = [f"no top-level topic has a domain; map some of {labels} to {list(domains)}"]
    if problems:
        why = "; ".join(problems)
        raise SaberError(f"{graph.source}: mend root_domains (top-level topic to domain): {why}")
    levels = _tree_nodes_per_level(children, top)
    size = sum(levels[: max_depth + 1])
    if size > max_nodes:
        raise SaberError(
            f"{graph.source}: {len(graph.nodes)} topics become {size} tree nodes, more than "
            f"{max_nodes}: a topic is repeated for each of its root paths. Lower the maximum depth "
            f"(nodes at depths 0, 1, …: {levels[: max_depth + 1][:10]}) or remove links"
        )
    rows: list[tuple[object, ...]] = []
    level: list[_Place] = [(node, None, "", domain_of.get(node)) for node in top]
    for depth in range(max_depth + 1):
        below: list[_Place] = []
        for source, parent, path, domain in level:
            topic = graph.nodes[source]
            name = source.replace("%", "%25").replace("/", "%2F")
            node = name if parent is None else f"{parent}/{name}"
            path = f"{path} > {topic.label}" if path else topic.label
            synonyms = list(topic.synonyms)
            rows.append((node, path, topic.label, synonyms, parent, depth, domain, source))
            below += [(child, node, path, domain) for child in children[source]]
        level = below
    repairs = Counter(graph.repairs)
    repairs["root_dropped"] += dropped
    repairs["beyond_max_depth"] += sum(levels[max_depth + 1 :])
    repairs["source_nodes_lost"] += len(graph.nodes) - dropped - len({row[-1] for row in rows})
    repairs["top_level_without_domain"] += len(top) - len(domain_of)
    table = TABLES["ontology_tree"]
    return OntologyBuild(
        frame=table.check(pl.DataFrame(rows, schema=table.schema, orient="row")),
        repairs={name: count for name, count in sorted(repairs.items()) if count},
        n_source_nodes=len(graph.nodes),
        n_source_edges=len(graph.edges),
    )


def _tree_nodes_per_level(children: Mapping[str, list[str]], top: Iterable[str]) -> list[int]:
    """How many tree nodes each level has, counted without making them."""
    counts = Counter(top)
    levels: list[int] = []
    while counts:
        levels.append(counts.total())
        below: Counter[str] = Counter()
        for node, paths in counts.items():
            for child in children[node]:
                below[child] += paths
        counts = below
    return levels


def _map_domains(
    graph: OntologyGraph, top: list[str], root_domains: Mapping[str, str], domains: Sequence[str]
) -> tuple[dict[str, str], list[str]]:
    """The domain of each top-level topic that has one, and what is wrong with the mapping."""
    labels = {node: graph.nodes[node].label for node in top}
    if not root_domains:
        spelled = {frozenset(words(domain)) - {"and"}: domain for domain in domains}
        same = {node: frozenset(words(label)) - {"and"} for node, label in labels.items()}
        return {node: spelled[name] for node, name in same.items() if name in spelled}, []
    found: dict[str, str] = {}
    problems = []
    names = sorted({*top, *labels.values()})
    for name, domain in root_domains.items():
        hits = [node for node in top if _fold(name) in (_fold(node), _fold(labels[node]))]
        if not hits:
            problems.append(f"{name!r} is no top-level topic{_nearest(name, names)}")
        if domain not in domains:
            problems.append(f"{domain!r} (of {name!r}) is no domain{_nearest(domain, domains)}")
        for node in hits:
            if found.setdefault(node, domain) != domain:
                problems.append(f"{labels[node]!r} maps to both {found[node]!r} and {domain!r}")
    return found, problems


def _fold(name: str) -> str:
    return " ".join(name.casefold().split())


def _nearest(name: str, known: Sequence[str]) -> str:
    by_fold = {_fold(other): other for other in known}
    near = get_close_matches(_fold(name), sorted(by_fold), n=3, cutoff=0.5)
    return f"; the nearest are {[by_fold[other] for other in near] or list(known)[:20]}"


@dataclass(frozen=True, eq=False)
class OntologyTree:
    """The tree as arrays and lists over node positions, in node_id order."""

    node_ids: list[str]
    index: dict[str, int]
    parent: npt.NDArray[np.int32]
    """Shape (nodes,); -1 at a root."""
    depth: npt.NDArray[np.int32]
    """Shape (nodes,); 0 at a root."""
    children: list[tuple[int, ...]]
    roots: tuple[int, ...]
    label: list[str]
    synonyms: list[tuple[str, ...]]
    domain: list[str | None]
    _terms: dict[int, tuple[str, ...]] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def from_frame(cls, frame: pl.DataFrame) -> Self:
        """Build it from a table ``ontology_tree``, in any row order.

        Raises:
            ContractError: if the frame does not follow the contract.
        """
        frame = TABLES["ontology_tree"].check(frame)
        node_ids = frame["node_id"].to_list()
        index = {node: i for i, node in enumerate(node_ids)}
        parent = np.full(len(node_ids), -1, dtype=np.int32)
        children: list[list[int]] = [[] for _ in node_ids]
        for i, above in enumerate(frame["parent_id"]):
            if above is not None:
                parent[i] = index[above]
                children[index[above]].append(i)
        return cls(
            node_ids=node_ids,
            index=index,
            parent=parent,
            depth=frame["depth"].to_numpy().astype(np.int32),
            children=[tuple(below) for below in children],
            roots=tuple(np.flatnonzero(parent < 0).tolist()),
            label=frame["label"].to_list(),
            synonyms=[tuple(names) for names in frame["synonyms"].to_list()],
            domain=frame["domain"].to_list(),
        )

    def ancestors(self, node: int) -> tuple[int, ...]:
        """The node itself, its parent, and so on up to its root."""
        chain = []
        while node >= 0:
            chain.append(node)
            node = int(self.parent[node])
        return tuple(chain)

    def lca(self, first: int, second: int) -> int:
        """The lowest common ancestor of two nodes; -1 if they have different roots."""
        while first != second:
            # The deeper one goes up, so that neither passes a common ancestor.
            if first < 0 or second < 0:
                return -1
            if self.depth[first] >= self.depth[second]:
                first = int(self.parent[first])
            else:
                second = int(self.parent[second])
        return first

    def terms_below(self, node: int) -> tuple[str, ...]:
        """Labels and synonyms of everything strictly below a node, sorted, each once."""
        if node not in self._terms:
            found: set[str] = set()
            todo = list(self.children[node])
            while todo:
                below = todo.pop()
                found.update((self.label[below], *self.synonyms[below]))
                todo += self.children[below]
            self._terms[node] = tuple(sorted(found))
        return self._terms[node]
