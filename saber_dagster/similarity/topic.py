"""What the topic signal is computed from: distinct sets of topics, and the ancestors of each topic."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from saber_dagster.ontology import OntologyTree

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

UNITS = 10**6
"""A topic signal of 1. It is rounded once to a whole number of units, which is what is compared."""


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
