"""The pairs of topic sets whose similarity reaches a floor, for some batches of queries."""

import numpy as np
import numpy.typing as npt

from saber_dagster.similarity import lanes
from saber_dagster.similarity.kernel import kernel
from saber_dagster.similarity.lanes import LANES
from saber_dagster.similarity.topic import UNITS, Ints
from saber_dagster.similarity.topic_bounds import (
    empty_batch,
    exact_totals,
    fill_row,
    load_batch,
    longest_set,
    one_way_bound,
    two_way_bound,
)
from saber_dagster.similarity.topic_exact import (
    Int32s,
    Nodes,
    SetRows,
    round_to_units,
)
from saber_dagster.similarity.topic_groups import BoundRows, Groups

_LANE_BITS = 5
_VALUE_BITS = 30
_DIGIT_BITS = 11
_UINT32 = npt.NDArray[np.uint32]


@kernel
def aligned_units(n: int) -> npt.NDArray[np.uint16]:
    """Room for n numbers, from the start of a cache line."""
    room = np.empty(n + LANES, np.uint16)
    start = (-room.ctypes.data % 64) // 2
    return room[start : start + n]


@kernel
def least_units(least: int, m: int, k: int, scale: int) -> int:
    """The least bound of a pair that may reach ``least``, in units of 1 / scale; 1 at least.

    A pair's bounds together lie less than 0.03 units below its exact sum, because of float32, and the
    exact sum may lie half a unit of the similarity times (m + k) below ``least``, because of its
    rounding. One unit of each is given for that. A bound of a similarity above 0 is never 0.
    """
    return max(int(np.floor((least - 1) / UNITS * (m + k) * scale)) - 1, 1)


@kernel
def sorted_keys(keys: npt.NDArray[np.uint64], n: int, n_bits: int) -> npt.NDArray[np.uint64]:
    """The first n keys, sorted by the ``n_bits`` bits above the value."""
    source = keys[:n]
    target = np.empty(n, np.uint64)
    passes = (n_bits + _DIGIT_BITS - 1) // _DIGIT_BITS
    for i in range(passes):
        shift = np.uint64(_VALUE_BITS + i * _DIGIT_BITS)
        mask = np.uint64((1 << _DIGIT_BITS) - 1)
        place = np.zeros((1 << _DIGIT_BITS) + 1, np.int64)
        for j in range(n):
            place[np.int64((source[j] >> shift) & mask) + 1] += 1
        for j in range(1 << _DIGIT_BITS):
            place[j + 1] += place[j]
        for j in range(n):
            digit = np.int64((source[j] >> shift) & mask)
            target[place[digit]] = source[j]
            place[digit] += 1
        source, target = target, source
    return source


@kernel
def search(
    starts: Ints,
    order: Ints,
    queries: SetRows,
    documents: SetRows,
    nodes: Nodes,
    bounds: BoundRows,
    groups: Groups,
    least: int,
) -> tuple[Ints, Int32s, _UINT32]:
    """Search batch by batch: leave out the groups that no lane can reach, then the sets.

    Args:
        starts: (n_batches + 1,) where batches start in ``order``; a batch has up to 32 sets of one
            size, and no empty one.
        order: (n,) queries.
        queries: the query sets.
        documents: the document sets.
        nodes: the ontology.
        bounds: what topics are compared with.
        groups: the document sets, as a tree.
        least: of a stored similarity, in units of 1e-6; positive.

    Returns:
        The number of pairs of each query, in the order of ``order[starts[0] : starts[-1]]``; and
        their documents, ascending for each query, and values.
    """
    doc_bits = 1
    while documents.indptr.size - 1 > 1 << doc_bits:
        doc_bits += 1
    k_max = groups.size[-1] if groups.size.size else 1
    m_max = longest_set(starts, order, queries)
    batch = empty_batch(m_max, nodes.chains.shape[1])
    best = aligned_units(bounds.depth.size * LANES)
    planes = aligned_units(bounds.n_topics * m_max * LANES)
    made = np.full(bounds.depth.size, -1, np.int32)
    best_of_y = np.empty(k_max * LANES)
    totals = np.empty(LANES)
    keys = np.empty(1024, np.uint64)
    found = np.zeros(starts[-1] - starts[0], np.int64)
    docs = np.empty(1024, np.int32)
    values = np.empty(1024, np.uint32)
    n = 0
    for b in range(starts.size - 1):
        which = order[starts[b] : starts[b + 1]]
        m = queries.indptr[which[0] + 1] - queries.indptr[which[0]]
        scale = 65535 // (m + k_max) - 1
        load_batch(batch, which, queries, m, nodes)
        n_keys = 0
        for z in range(groups.size.size):
            k = groups.size[z]
            needed = lanes.fill(np.uint16(least_units(least, m, k, scale)))
            i = groups.start[z]
            while i < groups.start[z + 1]:
                start = groups.indptr[i]
                for at in range(start, start + k):
                    row = groups.rows[at]
                    if made[row] != b:
                        fill_row(row, m, scale, batch, bounds, nodes.epsilon, best, planes)
                        made[row] = b
                bound = one_way_bound(groups.rows, start, k, m, best)
                if lanes.at_least(bound, needed) == 0:
                    i = groups.skip[i]
                    continue
                doc = groups.doc[i]
                i += 1
                if doc < 0:
                    continue
                bound = two_way_bound(groups.rows, start, k, m, best, planes)
                alive = lanes.at_least(bound, needed)
                if alive == 0:
                    continue
                if n_keys + LANES > keys.size:
                    keys = np.concatenate((keys, keys))
                y = documents.topics[documents.indptr[doc] : documents.indptr[doc + 1]]
                exact_totals(y, m, batch, nodes, best_of_y, totals)
                for q in range(which.size):
                    if (alive >> np.uint64(q)) & np.uint64(1):
                        value = round_to_units(totals[q], m + k)
                        if value >= least:
                            keys[n_keys] = (((q << doc_bits) | doc) << _VALUE_BITS) | value
                            n_keys += 1
        if n + n_keys > docs.size:
            room = 2 * (n + n_keys) - docs.size
            docs = np.concatenate((docs, np.empty(room, np.int32)))
            values = np.concatenate((values, np.empty(room, np.uint32)))
        for key in sorted_keys(keys, n_keys, doc_bits + _LANE_BITS):
            pair = np.int64(key >> np.uint64(_VALUE_BITS))
            docs[n] = pair & ((1 << doc_bits) - 1)
            values[n] = np.int64(key) & ((1 << _VALUE_BITS) - 1)
            found[starts[b] - starts[0] + (pair >> doc_bits)] += 1
            n += 1
    return found, docs[:n].copy(), values[:n].copy()
