"""How the similarities of all pairs of topic sets are distributed, for some batches of queries.

Similarities are summed in float32. Where a sum comes near an edge between two bins, closer than twice
what float32 can be wrong, the exact value decides.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from saber_dagster.similarity import lanes
from saber_dagster.similarity.kernel import kernel
from saber_dagster.similarity.lanes import LANES
from saber_dagster.similarity.topic import UNITS, Ints
from saber_dagster.similarity.topic_bounds import (
    Batch,
    empty_batch,
    exact_totals,
    load_batch,
    longest_set,
    slot_similarity,
)
from saber_dagster.similarity.topic_exact import Int32s, Nodes, SetRows, round_to_units
from saber_dagster.similarity.topic_groups import BoundRows, Groups

_Float32s = npt.NDArray[np.float32]
_L = np.uint64(LANES)
_ALWAYS = 2.0
"""No sum is farther from an edge: the exact value decides on every pair."""


@kernel
def fill_floats(
    row: int, m: int, batch: Batch, bounds: BoundRows, epsilon: float, table: _Float32s
) -> None:
    """A row's best similarity to each query, then its similarity to each slot."""
    one = lanes.fill(np.float32(1.0))
    highest = lanes.fill(np.float32(0.0))
    place = np.uint64(row) * np.uint64(m + 1) * _L
    for j in range(m):
        value = lanes.smaller(slot_similarity(row, j, m, batch, bounds, epsilon), one)
        highest = lanes.larger(highest, value)
        lanes.store(table, place + np.uint64(j + 1) * _L, value)
    lanes.store(table, place, highest)


@kernel
def best_sum(rows: Int32s, start: int, k: int, m: int, table: _Float32s) -> Any:
    """Each lane's sum of the best similarities of k rows."""
    total = lanes.fill(np.float32(0.0))
    for i in range(start, start + k):
        place = np.uint64(rows[i]) * np.uint64(m + 1) * _L
        total = lanes.add(total, lanes.load(table, place))
    return total


@kernel
def both_sums(rows: Int32s, start: int, k: int, m: int, table: _Float32s) -> Any:
    """Each lane's sum of best matches with a set, from both directions."""
    total = best_sum(rows, start, k, m, table)
    for j in range(1, m + 1):
        highest = lanes.fill(np.float32(0.0))
        for i in range(start, start + k):
            place = (np.uint64(rows[i]) * np.uint64(m + 1) + np.uint64(j)) * _L
            highest = lanes.larger(highest, lanes.load(table, place))
        total = lanes.add(total, highest)
    return total


@kernel
def margin_of(bins: int, size: int, float32_suffices: bool) -> float:
    """How near to an edge, in bins, a sum of ``size`` best matches is not trusted.

    A sum of n similarities is wrong by less than 4e-7 + 6e-8 n of it, and by 6e-8 once more where it is
    scaled; rounding to units moves it by half a unit, 5e-7. Twice the former and the latter are taken.
    """
    margin = bins * (1.6e-6 + 1.2e-7 * size)
    return margin if float32_suffices and margin < 0.25 else _ALWAYS


@kernel
def histogram(
    starts: Ints,
    order: Ints,
    queries: SetRows,
    documents: SetRows,
    nodes: Nodes,
    bounds: BoundRows,
    groups: Groups,
    weights: Ints,
    float32_suffices: bool,
    counts: Ints,
) -> None:
    """Count the document sets by similarity.

    Args:
        starts: (n_batches + 1,) where batches start in ``order``, as for the search.
        order: (n,) queries.
        queries: the query sets.
        documents: the document sets.
        nodes: the ontology.
        bounds: what topics are compared with.
        groups: the document sets, grouped by the roots of their topics.
        weights: (n_document_sets,) what each counts.
        float32_suffices: no number of ``nodes`` vanishes or overflows in float32.
        counts: (n_query_sets, bins), at least 2 bins, 0: the rows of these queries are filled in.
    """
    bins = counts.shape[1]
    k_max = groups.size[-1] if groups.size.size else 1
    m_max = longest_set(starts, order, queries)
    batch = empty_batch(m_max, nodes.chains.shape[1])
    table = np.empty(bounds.depth.size * (m_max + 1) * LANES, np.float32)
    made = np.full(bounds.depth.size, -1, np.int32)
    best_of_y = np.empty(k_max * LANES)
    totals = np.empty(LANES)
    place = np.empty(LANES, np.int32)
    found = np.empty(LANES * bins, np.int64)
    all_documents = weights.sum()
    first_edge = lanes.fill(np.float32(1.0))
    last_edge = lanes.fill(np.float32(bins - 1))
    half = lanes.fill(np.float32(0.5))
    lowest = lanes.fill(np.float32(0.0))
    for b in range(starts.size - 1):
        which = order[starts[b] : starts[b + 1]]
        m = queries.indptr[which[0] + 1] - queries.indptr[which[0]]
        load_batch(batch, which, queries, m, nodes)
        found[:] = 0
        counted = 0
        for z in range(groups.size.size):
            k = groups.size[z]
            factor = lanes.fill(np.float32(bins / (m + k)))
            margin = lanes.fill(np.float32(margin_of(bins, m + k, float32_suffices)))
            i = groups.start[z]
            while i < groups.start[z + 1]:
                start = groups.indptr[i]
                for at in range(start, start + k):
                    row = groups.rows[at]
                    if made[row] != b:
                        fill_floats(row, m, batch, bounds, nodes.epsilon, table)
                        made[row] = b
                doc = groups.doc[i]
                if doc < 0:
                    total = best_sum(groups.rows, start, k, m, table)
                    i = i + 1 if lanes.any_larger(total, lowest) else groups.skip[i]
                    continue
                i += 1
                total = lanes.multiply(both_sums(groups.rows, start, k, m, table), factor)
                lanes.store(place, np.uint64(0), lanes.truncate(lanes.smaller(total, last_edge)))
                edge = lanes.to_float(lanes.truncate(lanes.add(total, half)))
                edge = lanes.smaller(lanes.larger(edge, first_edge), last_edge)
                doubtful = lanes.nearer(total, edge, margin)
                if doubtful != 0:
                    y = documents.topics[documents.indptr[doc] : documents.indptr[doc + 1]]
                    exact_totals(y, m, batch, nodes, best_of_y, totals)
                    for q in range(LANES):
                        if (doubtful >> np.uint64(q)) & np.uint64(1):
                            value = round_to_units(totals[q], m + k) / UNITS
                            place[q] = min(int(value * bins), bins - 1)
                weight = weights[doc]
                counted += weight
                for q in range(_L):
                    found[q * np.uint64(bins) + np.uint64(place[q])] += weight
        for q in range(which.size):
            counts[which[q]] = found[q * bins : (q + 1) * bins]
            counts[which[q], 0] += all_documents - counted
