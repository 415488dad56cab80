"""A batch of 32 queries against topic sets: bounds on the similarity, and its exact value.

Lane q of a vector belongs to query q of the batch; all its queries have m topics. What the lanes are
compared with is a row: a topic of the documents, or a subtree of the ontology that stands for all
document topics in it. A bound on Lin's similarity is an integer in units of 1 / scale, the next one
above what float32 makes of it; scale is such that no sum of bounds exceeds 16 bits.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from saber_dagster.similarity import lanes
from saber_dagster.similarity.kernel import kernel
from saber_dagster.similarity.lanes import LANES
from saber_dagster.similarity.topic import Floats, Ints
from saber_dagster.similarity.topic_exact import Int32s, Nodes, SetRows
from saber_dagster.similarity.topic_groups import BoundRows

Int16s = npt.NDArray[np.uint16]
_L = np.uint64(LANES)
_TINY = 1e-30
"""A smaller content may vanish in float32; what shares it is bounded by 1."""


class Batch(NamedTuple):
    """The topics of a batch, slot by slot: slot 32 j + q is topic j of query q.

    Args:
        above: (depths * slots,) the slot's ancestor at each depth; -1 if none.
        up: (depths * slots,) that ancestor's information content.
        own: (slots,) the topic's information content.
        up32: ``up`` in float32, infinite where that would be 0 wrongly.
        own32: ``own`` in float32.
    """

    above: Int32s
    up: Floats
    own: Floats
    up32: npt.NDArray[np.float32]
    own32: npt.NDArray[np.float32]


@kernel
def longest_set(starts: Ints, order: Ints, queries: SetRows) -> int:
    """The most topics of a query in any batch; at least 1. All of a batch have equally many."""
    longest = 1
    for b in range(starts.size - 1):
        query = order[starts[b]]
        longest = max(longest, queries.indptr[query + 1] - queries.indptr[query])
    return longest


@kernel
def empty_batch(m: int, depths: int) -> Batch:
    """Room for batches of queries with up to m topics."""
    n = m * LANES
    return Batch(
        np.empty(depths * n, np.int32),
        np.empty(depths * n),
        np.empty(n),
        np.empty(depths * n, np.float32),
        np.empty(n, np.float32),
    )


@kernel
def load_batch(batch: Batch, which: Ints, queries: SetRows, m: int, nodes: Nodes) -> None:
    """Put the topics of up to 32 queries into their slots; an unused lane is similar to nothing."""
    slots = m * LANES
    depths = nodes.chains.shape[1]
    batch.own[:slots] = 1.0
    batch.own32[:slots] = 1.0
    batch.above[: depths * slots] = -1
    batch.up[: depths * slots] = 0.0
    batch.up32[: depths * slots] = 0.0
    for q in range(which.size):
        for j in range(m):
            topic = queries.topics[queries.indptr[which[q]] + j]
            s = j * LANES + q
            batch.own[s] = nodes.content[topic]
            batch.own32[s] = nodes.content[topic]
            for d in range(nodes.depth[topic] + 1):
                node = nodes.chains[topic, d]
                content = nodes.content[node]
                batch.above[d * slots + s] = node
                batch.up[d * slots + s] = content
                batch.up32[d * slots + s] = np.inf if 0.0 < content < _TINY else content


@kernel
def slot_similarity(
    row: int, j: int, m: int, batch: Batch, bounds: BoundRows, epsilon: float
) -> Any:
    """Lin's similarity of a row and topic j of each lane, in float32; at least 1 may be infinite.

    Every operation has a relative error of 2 ** -24, and all five together less than 4e-7.
    """
    slots = np.uint64(m) * _L
    s = np.uint64(j) * _L
    shared = lanes.fill(np.float32(0.0))
    d = 0
    hit = True
    while hit and d <= bounds.depth[row]:
        place = np.uint64(d) * slots + s
        node = lanes.fill(bounds.chains[row, d])
        above = lanes.load(batch.above, place)
        hit = lanes.any_equal(above, node)
        shared = lanes.where_equal(above, node, lanes.load(batch.up32, place), shared)
        if bounds.is_subtree[row] and d == bounds.depth[row]:
            # the slot's topic lies in the subtree, perhaps as one of the documents' topics
            shared = lanes.where_equal(above, node, lanes.fill(np.float32(np.inf)), shared)
        d += 1
    if not hit and d == 1:
        return shared
    content = lanes.fill(np.float32(bounds.content[row] + epsilon))
    whole = lanes.add(lanes.load(batch.own32, s), content)
    return lanes.divide(lanes.multiply(lanes.fill(np.float32(2.0)), shared), whole)


@kernel
def fill_row(
    row: int,
    m: int,
    scale: int,
    batch: Batch,
    bounds: BoundRows,
    epsilon: float,
    best: Int16s,
    planes: Int16s,
) -> None:
    """Bound how similar a row is to each slot (into ``planes``) and to each query (``best``).

    Subtrees have no planes: the sets in a group are bounded from one side only.
    """
    scales = lanes.fill(np.float32(scale))
    highest = lanes.fill(np.uint16(0))
    for j in range(m):
        units = lanes.round_up(slot_similarity(row, j, m, batch, bounds, epsilon), scales)
        highest = lanes.larger(highest, units)
        if row < bounds.n_topics:
            lanes.store(planes, (np.uint64(row) * np.uint64(m) + np.uint64(j)) * _L, units)
    lanes.store(best, np.uint64(row) * _L, highest)


@kernel
def one_way_bound(rows: Int32s, start: int, k: int, m: int, best: Int16s) -> Any:
    """Per lane a bound on m + k times the similarity, from the best match of each of k rows.

    What is to be added for the other direction is at most m times the best of them.
    """
    first = lanes.load(best, np.uint64(rows[start]) * _L)
    total = first
    highest = first
    for i in range(start + 1, start + k):
        value = lanes.load(best, np.uint64(rows[i]) * _L)
        total = lanes.add(total, value)
        highest = lanes.larger(highest, value)
    return lanes.add(total, lanes.multiply(highest, lanes.fill(np.uint16(m))))


@kernel
def two_way_bound(rows: Int32s, start: int, k: int, m: int, best: Int16s, planes: Int16s) -> Any:
    """Per lane a bound on m + k times the similarity, from both directions."""
    slots = np.uint64(m) * _L
    total = lanes.load(best, np.uint64(rows[start]) * _L)
    for i in range(start + 1, start + k):
        total = lanes.add(total, lanes.load(best, np.uint64(rows[i]) * _L))
    for j in range(m):
        s = np.uint64(j) * _L
        highest = lanes.load(planes, np.uint64(rows[start]) * slots + s)
        for i in range(start + 1, start + k):
            value = lanes.load(planes, np.uint64(rows[i]) * slots + s)
            highest = lanes.larger(highest, value)
        total = lanes.add(total, highest)
    return total


@kernel
def exact_totals(
    y: Int32s, m: int, batch: Batch, nodes: Nodes, best: Floats, totals: Floats
) -> None:
    """Each lane's sum of best matches with a set, the operations of ``topic.py`` in their order.

    Args:
        y: the set, in its listed order.
        m: topics of a query.
        batch: the queries.
        nodes: the ontology.
        best: room for 32 numbers for each topic of y.
        totals: (32,) filled in: m + y.size times the similarity, not rounded.
    """
    slots = np.uint64(m) * _L
    epsilon = lanes.fill(nodes.epsilon)
    two = lanes.fill(2.0)
    one = lanes.fill(1.0)
    zero = lanes.fill(0.0)
    for i in range(y.size):
        lanes.store(best, np.uint64(i) * _L, zero)
    forth = zero
    for j in range(m):
        s = np.uint64(j) * _L
        own = lanes.load(batch.own, s)
        highest = zero
        for i in range(y.size):
            topic = y[i]
            shared = zero
            d = 0
            hit = True
            while hit and d <= nodes.depth[topic]:
                place = np.uint64(d) * slots + s
                node = lanes.fill(nodes.chains[topic, d])
                above = lanes.load(batch.above, place)
                hit = lanes.any_equal(above, node)
                shared = lanes.where_equal(above, node, lanes.load(batch.up, place), shared)
                d += 1
            if hit or d > 1:
                whole = lanes.add(lanes.add(own, lanes.fill(nodes.content[topic])), epsilon)
                value = lanes.divide(lanes.multiply(two, shared), whole)
                value = lanes.smaller(value, one)
                highest = lanes.larger(highest, value)
                place = np.uint64(i) * _L
                lanes.store(best, place, lanes.larger(lanes.load(best, place), value))
        forth = lanes.add(forth, highest)
    back = zero
    for i in range(y.size):
        back = lanes.add(back, lanes.load(best, np.uint64(i) * _L))
    lanes.store(totals, np.uint64(0), lanes.add(forth, back))
