"""Topic similarity: Lin's measure between ontology nodes, best-match average between topic sets."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from saber_dagster.ontology import OntologyTree

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

DECIMALS = 9
"""Stored precision of the topic signal: rounded once, then every comparison uses that value."""


@dataclass(frozen=True)
class TopicSets:
    """The distinct topic sets of some problems, longest first.

    Args:
        nodes: (n_nodes,) the nodes that occur, ascending.
        members: (n_sets, size of the longest set) positions in ``nodes``; a row counts up to its
            size, in the order in which the problem lists its topics.
        sizes: (n_sets,) descending; 0 for the empty set.
        set_of: (n_problems,) position of each problem's set.
    """

    nodes: Ints
    members: Ints
    sizes: Ints
    set_of: Ints

    @classmethod
    def of(cls, problems: Iterable[Sequence[int]]) -> "TopicSets":
        """Collect the distinct sets; a problem's topics are node positions without repetition."""
        rows = [tuple(topics) for topics in problems]
        distinct = sorted(set(rows), key=lambda topics: (-len(topics), topics))
        position = {topics: i for i, topics in enumerate(distinct)}
        sizes = np.array([len(topics) for topics in distinct], dtype=np.int64)
        padded = np.zeros((len(distinct), int(sizes.max(initial=0))), dtype=np.int64)
        filled = np.arange(padded.shape[1]) < sizes[:, None]
        padded[filled] = [node for topics in distinct for node in topics]
        nodes = np.unique(padded[filled])
        members = np.where(filled, np.searchsorted(nodes, padded), 0)
        return cls(nodes, members, sizes, np.array([position[row] for row in rows], dtype=np.int64))

    def take(self, sets: Ints) -> "TopicSets":
        """The sets at these positions, ascending, as the sets of as many problems."""
        return TopicSets(self.nodes, self.members[sets], self.sizes[sets], np.arange(sets.size))

    def reduce(self, ufunc: Callable[..., Floats], values: Floats) -> Floats:
        """Reduce over each set's members, one after the other from 0, in every row of ``values``.

        The order is part of the result: numpy's own reductions choose theirs by memory layout, and
        with it the last bit of a sum.

        Args:
            ufunc: ``np.add`` or ``np.maximum``.
            values: (n_rows, n_nodes), not negative.

        Returns:
            (n_rows, n_sets); 0 for the empty set.
        """
        out = np.zeros((values.shape[0], self.sizes.size))
        for k in range(self.members.shape[1]):
            longer = int(np.searchsorted(-self.sizes, -k, side="left"))
            part = out[:, :longer]
            ufunc(part, values[:, self.members[:longer, k]], out=part)
        return out


def ancestor_table(tree: OntologyTree) -> Ints:
    """The ancestor of each node, itself included, at each depth: (n_nodes, depths), -1 if none."""
    depth = np.asarray(tree.depth, dtype=np.int64)
    parent = np.asarray(tree.parent, dtype=np.int64)
    table = np.full((depth.size, int(depth.max(initial=-1)) + 1), -1, dtype=np.int64)
    rows = nodes = np.arange(depth.size)
    while rows.size:
        table[rows, depth[nodes]] = nodes
        nodes = parent[nodes]
        rows, nodes = rows[nodes >= 0], nodes[nodes >= 0]
    return table


def lin_similarity(
    left: Ints, right: Ints, ancestors: Ints, content: Floats, epsilon: float
) -> Floats:
    """Lin's similarity 2 IC(LCA) / (IC(t) + IC(u) + epsilon) of nodes, in [0, 1].

    Nodes of different roots have similarity 0: their common ancestor would be a virtual root, whose
    IC is 0. A node with IC 0 has similarity 0 to every node, itself included, by the formula.

    Args:
        left: (n_left,) nodes.
        right: (n_right,) nodes.
        ancestors: the table of :func:`ancestor_table`.
        content: (n_nodes,) information content, not decreasing from parent to child.
        epsilon: positive; the paper's is 1e-12.

    Returns:
        (n_left, n_right).

    Source: SABER-Math, "Topic similarity over ontologies", second equation.
    """
    shared = np.zeros((left.size, right.size))
    for depth in range(ancestors.shape[1]):
        above = ancestors[left, depth][:, None]
        same = (above == ancestors[right, depth]) & (above >= 0)
        np.copyto(shared, content[above], where=same)
    total = content[left][:, None] + content[right] + epsilon
    return np.clip(2.0 * shared / total, 0.0, 1.0)


def topic_similarity(
    left: TopicSets, right: TopicSets, ancestors: Ints, content: Floats, epsilon: float
) -> Floats:
    """Best-match average of the Lin similarities of topic sets, rounded to ``DECIMALS``.

    A pair's value is the same bit for bit whatever else is in ``left`` and ``right``, and for the
    pair turned round, if both sides list their topics in one order. It is 0 if a set is empty.

    Returns:
        (n_left, n_right) by distinct set; ``[left.set_of][:, right.set_of]`` is by problem.

    Source: SABER-Math, "Topic set matching".
    """
    lin = lin_similarity(left.nodes, right.nodes, ancestors, content, epsilon)
    forth = left.reduce(np.add, right.reduce(np.maximum, lin).T).T
    back = right.reduce(np.add, left.reduce(np.maximum, lin.T).T)
    sizes = np.maximum(left.sizes[:, None] + right.sizes, 1)
    scale = 10.0**DECIMALS
    rounded: Floats = np.rint((forth + back) / sizes * scale) / scale
    return rounded
