"""The exact topic similarity of a pair, compiled: the operations of ``topic.py`` in their order."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from saber_dagster.similarity.kernel import kernel
from saber_dagster.similarity.topic import UNITS, Floats, Ints, TopicSets

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
    """Lin's similarity of two nodes, as :func:`~saber_dagster.similarity.twins.lin`."""
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
    """Best-match average of two sets in units of 1e-6; ``best`` has room for ``y.size`` numbers."""
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
    """A sum of best matches as an average, in units of 1e-6, rounded once."""
    return int(np.rint(total / size * UNITS))


@kernel
def root_bits(sets: SetRows, nodes: Nodes) -> npt.NDArray[np.uint8]:
    """(n_sets,) a bit for the root of each topic, eight roots a round.

    Sets without a common bit have similarity 0.
    """
    bit = np.zeros(nodes.depth.size, dtype=np.uint8)
    roots = 0
    for node in range(nodes.depth.size):
        if nodes.depth[node] == 0:
            bit[node] = 1 << (roots & 7)
            roots += 1
    bits = np.zeros(sets.indptr.size - 1, dtype=np.uint8)
    for i in range(bits.size):
        for k in range(sets.indptr[i], sets.indptr[i + 1]):
            bits[i] |= bit[nodes.chains[sets.topics[k], 0]]
    return bits


@kernel
def complete_values(
    first: int,
    last: int,
    indptr: Ints,
    columns: Int32s,
    query_sets: Ints,
    document_sets: Ints,
    queries: SetRows,
    documents: SetRows,
    query_bits: npt.NDArray[np.uint8],
    document_bits: npt.NDArray[np.uint8],
    nodes: Nodes,
    values: npt.NDArray[np.uint32],
) -> None:
    """Fill in the values that are 0 of the pairs of queries ``first`` to ``last`` (without)."""
    longest = 0
    for doc in range(documents.indptr.size - 1):
        longest = max(longest, documents.indptr[doc + 1] - documents.indptr[doc])
    best = np.empty(longest)
    known_for = np.full(documents.indptr.size - 1, -1, dtype=np.int64)
    known = np.empty(documents.indptr.size - 1, dtype=np.uint32)
    for query in range(first, last):
        own, own_bits = query_sets[query], query_bits[query_sets[query]]
        x = queries.topics[queries.indptr[own] : queries.indptr[own + 1]]
        for at in range(indptr[query], indptr[query + 1]):
            if values[at] == 0 and own_bits & document_bits[columns[at]]:
                doc = document_sets[columns[at]]
                if known_for[doc] != own:
                    y = documents.topics[documents.indptr[doc] : documents.indptr[doc + 1]]
                    known[doc] = best_match_average(x, y, best, nodes)
                    known_for[doc] = own
                values[at] = known[doc]
