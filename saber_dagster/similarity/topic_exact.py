"""The exact topic similarity of a pair, compiled: the operations of ``topic.py`` in their order."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from saber_dagster.similarity.kernel import kernel
from saber_dagster.similarity.topic import DECIMALS, Floats, Ints, TopicSets

UNITS = 10**DECIMALS
"""A similarity of 1 in units of the stored precision."""

_LARGEST = 1e30
Int32s = npt.NDArray[np.int32]


class Nodes(NamedTuple):
    """The ontology as the kernels read it.

    Args:
        chains: (n_nodes, depths) the table of :func:`~saber_dagster.similarity.topic.ancestor_table`.
        depth: (n_nodes,) 0 at a root.
        content: (n_nodes,) information content, not negative.
        epsilon: of Lin's similarity; positive.
    """

    chains: Int32s
    depth: Int32s
    content: Floats
    epsilon: float


def nodes_of(ancestors: Ints, content: Floats, epsilon: float) -> Nodes:
    """Take over the tables that the plain definition uses.

    Raises:
        ValueError: epsilon is not positive, a content is negative, or one of them is above 1e30,
            where float32 ends to hold their sums.
    """
    if not 0 < epsilon <= _LARGEST:
        raise ValueError(f"epsilon must be positive and at most {_LARGEST}, not {epsilon}")
    content = np.ascontiguousarray(content, dtype=np.float64)
    if not ((content >= 0) & (content <= _LARGEST)).all():
        raise ValueError(f"information content must be at least 0 and at most {_LARGEST}")
    chains = np.ascontiguousarray(ancestors, dtype=np.int32)
    depth = (chains >= 0).sum(axis=1, dtype=np.int32) - np.int32(1)
    return Nodes(chains, depth, content, float(epsilon))


class SetRows(NamedTuple):
    """Topic sets as compressed rows.

    Args:
        indptr: (n_sets + 1,).
        topics: (n_members,) nodes, each set's in its listed order.
    """

    indptr: Ints
    topics: Int32s

    @property
    def sizes(self) -> Ints:
        """(n_sets,) how many topics each set has."""
        return np.diff(self.indptr)


def set_rows(sets: TopicSets) -> SetRows:
    """The sets without their padding."""
    filled = np.arange(sets.members.shape[1]) < sets.sizes[:, None]
    topics = sets.nodes[sets.members[filled]].astype(np.int32)
    return SetRows(np.concatenate(([0], np.cumsum(sets.sizes))).astype(np.int64), topics)


@kernel
def lin(t: int, u: int, nodes: Nodes) -> float:
    """Lin's similarity of two nodes, as :func:`~saber_dagster.similarity.topic.lin_similarity`."""
    shared = 0.0
    d = min(nodes.depth[t], nodes.depth[u])
    while d >= 0:
        above = nodes.chains[t, d]
        if above == nodes.chains[u, d]:
            shared = nodes.content[above]
            break
        d -= 1
    value: float = 2.0 * shared / (nodes.content[t] + nodes.content[u] + nodes.epsilon)
    return min(value, 1.0)


@kernel
def best_match_average(x: Int32s, y: Int32s, best: Floats, nodes: Nodes) -> int:
    """Best-match average of two sets in units of 1e-9; ``best`` has room for ``y.size`` numbers."""
    if x.size == 0 or y.size == 0:
        return 0
    best[: y.size] = 0.0
    forth = 0.0
    for i in range(x.size):
        highest = 0.0
        for k in range(y.size):
            value = lin(x[i], y[k], nodes)
            highest = max(highest, value)
            best[k] = max(best[k], value)
        forth += highest
    back = 0.0
    for k in range(y.size):
        back += best[k]
    return round_to_units(forth + back, x.size + y.size)


@kernel
def round_to_units(total: float, size: int) -> int:
    """A sum of best matches as an average, in units of 1e-9, rounded once."""
    return int(np.rint(total / size * 1e9))


@kernel
def pair_values(
    first: int,
    last: int,
    indptr: Ints,
    columns: Int32s,
    queries: SetRows,
    documents: SetRows,
    nodes: Nodes,
    values: npt.NDArray[np.uint32],
) -> None:
    """Fill in the values of the pairs of queries ``first`` to ``last`` (without)."""
    longest = 0
    for doc in range(documents.indptr.size - 1):
        longest = max(longest, documents.indptr[doc + 1] - documents.indptr[doc])
    best = np.empty(longest)
    for query in range(first, last):
        x = queries.topics[queries.indptr[query] : queries.indptr[query + 1]]
        for at in range(indptr[query], indptr[query + 1]):
            doc = columns[at]
            y = documents.topics[documents.indptr[doc] : documents.indptr[doc + 1]]
            values[at] = best_match_average(x, y, best, nodes)
