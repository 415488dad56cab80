from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saber_dagster.contracts import TABLES
from saber_dagster.ontology import OntologyGraph, OntologyNode, OntologyTree, build_tree, find_cycle
from saber_dagster.ontology_files import read_ontology

pytestmark = pytest.mark.property

NAMES = ["a", "b", "c/d", "c", "d", "%", "e f", "é", "50%", "c%2Fd", "g", "h"]


@st.composite
def dags(draw) -> list[tuple[str, str]]:
    """Edges of a DAG over names in a random topological order, at least one."""
    names = draw(st.permutations(NAMES))[: draw(st.integers(2, 9))]
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    return draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=16, unique=True))


def as_graph(edges: list[tuple[str, str]]) -> OntologyGraph:
    nodes = sorted({node for edge in edges for node in edge})
    return OntologyGraph(
        {node: OntologyNode(node.upper()) for node in nodes},
        tuple(sorted(edges)),
        {},
        Path("o.tsv"),
    )


def root_paths(edges: list[tuple[str, str]]) -> list[tuple[str, ...]]:
    """Every path from a top-level topic, by plain recursion."""
    nodes = {node for edge in edges for node in edge}
    top = [node for node in nodes if node not in {child for _, child in edges}]
    if len(top) == 1:
        top = [child for parent, child in edges if parent == top[0]]

    def below(path: tuple[str, ...]) -> list[tuple[str, ...]]:
        longer = [(*path, child) for parent, child in edges if parent == path[-1]]
        return [path] + [found for each in longer for found in below(each)]

    return [path for node in top for path in below((node,))]


@given(dags(), st.integers(0, 9))
def test_tree_nodes_are_root_paths(edges, max_depth):
    built = build_tree(as_graph(edges), {}, [], max_depth)
    paths = root_paths(edges)
    kept = [path for path in paths if len(path) <= max_depth + 1]
    assert built.frame.height == len(kept)
    assert set(built.frame["path"]) == {" > ".join(path).upper() for path in kept}
    assert built.repairs.get("beyond_max_depth", 0) == len(paths) - len(kept)


@given(dags())
def test_tree_edges_are_graph_edges(edges):
    frame = build_tree(as_graph(edges), {}, [], max_depth=20).frame
    TABLES["ontology_tree"].check(frame)
    source = dict(zip(frame["node_id"], frame["source_node"], strict=True))
    depth = dict(zip(frame["node_id"], frame["depth"], strict=True))
    inner = frame.filter(pl.col("parent_id").is_not_null())
    for node, parent in zip(inner["node_id"], inner["parent_id"], strict=True):
        assert (source[parent], source[node]) in edges
        assert depth[node] == depth[parent] + 1
        assert node.rpartition("/")[0] == parent
    seen = {
        (source[p], source[n]) for n, p in zip(inner["node_id"], inner["parent_id"], strict=True)
    }
    tops = set(frame.filter(pl.col("parent_id").is_null())["source_node"])
    assert {edge for edge in edges if edge not in seen} <= {e for e in edges if e[1] in tops}


@given(st.data(), dags())
def test_order_of_rows_does_not_matter(tmp_path_factory, data, edges):
    folder = tmp_path_factory.getbasetemp()
    frames = []
    for name in ("one.tsv", "two.tsv"):
        rows = data.draw(st.permutations(edges))
        text = "\n".join(["parent\tchild", *("\t".join(row) for row in rows)])
        (folder / name).write_text(text, encoding="utf-8")
        frames.append(build_tree(read_ontology(folder / name), {}, [], max_depth=20).frame)
    assert frames[0].equals(frames[1])
    assert TABLES["ontology_tree"].version(frames[0]) == TABLES["ontology_tree"].version(frames[1])


@given(st.data(), dags())
def test_lca_and_ancestors_agree_with_paths(data, edges):
    frame = build_tree(as_graph(edges), {}, [], max_depth=20).frame
    tree = OntologyTree.from_frame(frame.sample(fraction=1.0, shuffle=True, seed=3))
    nodes = st.integers(0, len(tree.node_ids) - 1)
    first, second = data.draw(nodes), data.draw(nodes)
    one, two = (tree.node_ids[node].split("/") for node in (first, second))
    shared = [a for i, a in enumerate(one) if two[: i + 1] == one[: i + 1]]
    assert tree.lca(first, second) == (tree.index["/".join(shared)] if shared else -1)
    assert tree.lca(first, second) == tree.lca(second, first)
    assert tree.ancestors(first) == tuple(
        tree.index["/".join(one[:i])] for i in range(len(one), 0, -1)
    )
    below = {
        tree.label[i]
        for i, node in enumerate(tree.node_ids)
        if node.startswith(tree.node_ids[first] + "/")
    }
    assert tree.terms_below(first) == tuple(sorted(below))


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef")), max_size=12))
def test_find_cycle_agrees_with_reachability(edges):
    reach = set(edges)
    while more := {(a, d) for a, b in reach for c, d in reach if b == c} - reach:
        reach |= more
    cycle = find_cycle(edges)
    assert bool(cycle) == any(a == b for a, b in reach)
    assert all(pair in edges for pair in pairwise(cycle))
    assert not cycle or cycle[0] == cycle[-1]
