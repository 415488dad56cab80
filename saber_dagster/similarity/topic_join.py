"""All pairs of topic sets by similarity, exactly, without comparing most of them."""

from functools import cached_property

import numpy as np
import numpy.typing as npt

from saber_dagster.similarity.blocks import in_blocks
from saber_dagster.similarity.kernel import kernel
from saber_dagster.similarity.lanes import LANES
from saber_dagster.similarity.sparse_rows import SparseRows
from saber_dagster.similarity.topic import UNITS, Floats, Ints, TopicSets
from saber_dagster.similarity.topic_exact import (
    Int32s,
    SetRows,
    complete_values,
    nodes_of,
    root_bits,
    set_rows,
)
from saber_dagster.similarity.topic_groups import BoundRows, Groups, build_groups, sorted_sets
from saber_dagster.similarity.topic_histogram import histogram
from saber_dagster.similarity.topic_search import search

_DEPTHS = 4
"""Document sets are grouped by the ancestors of their topics at so many depths, from the roots on."""
_BATCHES_PER_TASK = 64
_QUERIES_PER_TASK = 1024
_LONGEST = 16_000

_Part = tuple[Ints, Ints, Int32s, npt.NDArray[np.uint32]]
"""Queries, how many pairs each has, and the documents and values of the pairs."""


class TopicJoin:
    """The topic similarities of query sets with the document sets.

    A similarity is the one of :func:`~saber_dagster.similarity.twins.best_match_average`, bit for bit,
    as an integer in units of 1e-6. Results depend on nothing but the pair: not on the number of
    threads (``numba.get_num_threads()``), the order, or what else is in the input.

    Args:
        documents: the document sets.
        ancestors: the table of :func:`~saber_dagster.similarity.topic.ancestor_table`.
        content: (n_nodes,) information content, not decreasing from parent to child.
        epsilon: of Lin's similarity; positive.
        floor: lowest similarity that :meth:`rows` returns.

    Raises:
        ValueError: epsilon is not positive, a content is negative, the floor is not a number, or a
            set has more than 16,000 topics.

    Source: SABER-Math, "Topic similarity over ontologies" and "Topic set matching".
    """

    def __init__(
        self, documents: TopicSets, ancestors: Ints, content: Floats, epsilon: float, floor: float
    ) -> None:
        self._nodes = nodes_of(ancestors, content, epsilon)
        self._documents = _checked(documents)
        self._depths = list(range(min(_DEPTHS, ancestors.shape[1])))
        self._least = least_value(floor)

    def rows(self, queries: TopicSets, floor: float | None = None) -> SparseRows:
        """The pairs whose similarity is positive and reaches the floor.

        Args:
            queries: the query sets, over the same ontology.
            floor: in place of that of the join.

        Returns:
            By distinct query set; columns are document sets, values uint32 in units of 1e-6.
        """
        least = self._least if floor is None else least_value(floor)
        sets = _checked(queries)
        order, starts = self._batches(sets)
        bounds, groups = self._groups

        def task(first: int, last: int) -> _Part:
            cuts = starts[first : last + 1]
            which = order[cuts[0] : cuts[-1]]
            found = search(cuts, order, sets, self._documents, self._nodes, bounds, groups, least)
            return which, *found

        parts = in_blocks(starts.size - 1, _BATCHES_PER_TASK, task)
        indptr = np.zeros(sets.indptr.size, dtype=np.int64)
        for which, found, _, _ in parts:
            indptr[which + 1] = found
        np.cumsum(indptr, out=indptr)
        columns = np.empty(indptr[-1], dtype=np.int32)
        values = np.empty(indptr[-1], dtype=np.uint32)
        while parts:
            _place(*parts.pop(), indptr, columns, values)
        return SparseRows(indptr, columns, values)

    def histogram(self, queries: TopicSets, weights: Ints, bins: int) -> Ints:
        """Count all document sets by their similarity.

        Args:
            queries: the query sets, over the same ontology.
            weights: (n_document_sets,) what each counts, such as how many documents have it.
            bins: number of bins; a similarity v is in bin ``min(int(v * bins), bins - 1)``.

        Returns:
            (n_query_sets, bins).
        """
        weights = np.ascontiguousarray(weights, dtype=np.int64)
        if bins < 1 or weights.size != self._documents.indptr.size - 1:
            raise ValueError(f"{bins} bins, {weights.size} weights: one weight per document set")
        sets = _checked(queries)
        counts = np.zeros((sets.indptr.size - 1, bins), dtype=np.int64)
        if bins == 1:
            counts[:] = weights.sum()
            return counts
        bounds, groups = self._root_groups
        numbers = np.append(self._nodes.content, self._nodes.epsilon)
        float32_suffices = bool(((numbers == 0) | (numbers > 1e-30) & (numbers < 1e30)).all())

        order, starts = self._batches(sets)

        def task(first: int, last: int) -> None:
            histogram(
                starts[first : last + 1],
                order,
                sets,
                self._documents,
                self._nodes,
                bounds,
                groups,
                weights,
                float32_suffices,
                counts,
            )

        counts[sets.sizes == 0, 0] = weights.sum()
        in_blocks(starts.size - 1, _BATCHES_PER_TASK, task)
        return counts

    def complete(self, queries: TopicSets, document_sets: Ints, pairs: SparseRows) -> None:
        """Fill in the similarities of pairs of problems that another signal alone has found.

        Args:
            queries: the query sets, over the same ontology, and the set of each query.
            document_sets: (n_documents,) the set of each document.
            pairs: a row per query; columns are documents, values uint32 in units of 1e-6. Values that
                are 0 are changed in place; they stay 0 where the similarity is.
        """
        sets = _checked(queries)
        bits = root_bits(sets, self._nodes)
        document_bits = root_bits(self._documents, self._nodes)[document_sets]

        def task(first: int, last: int) -> None:
            complete_values(
                first, last, pairs.indptr, pairs.columns, queries.set_of, document_sets, sets,
                self._documents, bits, document_bits, self._nodes, pairs.values,
            )  # fmt: skip

        in_blocks(len(pairs), _QUERIES_PER_TASK, task)

    @cached_property
    def _groups(self) -> tuple[BoundRows, Groups]:
        return build_groups(self._documents, self._nodes, self._depths)

    @cached_property
    def _root_groups(self) -> tuple[BoundRows, Groups]:
        return build_groups(self._documents, self._nodes, [0])

    def _batches(self, queries: SetRows) -> tuple[Ints, Ints]:
        """The queries that are not empty, in an order, and where their batches start in it."""
        order, starts = [np.empty(0, dtype=np.int64)], [0]
        for which, _ in sorted_sets(queries, self._nodes, self._depths):
            order.append(which)
            ends = range(LANES, which.size + LANES, LANES)
            starts += [starts[-1] + min(end, which.size) for end in ends]
        return np.concatenate(order), np.array(starts, dtype=np.int64)


def least_value(floor: float) -> int:
    """The least positive similarity, in units of 1e-6, that as a float64 reaches a floor.

    Raises:
        ValueError: the floor is not a number.
    """
    if np.isnan(floor):
        raise ValueError("the floor is not a number")
    least = max(int(min(max(floor, 0.0), 2.0) * UNITS) - 1, 1)
    while least / UNITS < floor and least <= UNITS:
        least += 1
    return least


def _checked(sets: TopicSets) -> SetRows:
    longest = int(sets.sizes.max(initial=0))
    if longest > _LONGEST:
        raise ValueError(f"a topic set has {longest:,} topics; at most {_LONGEST:,} are possible")
    return set_rows(sets)


@kernel
def _place(
    which: Ints,
    found: Ints,
    docs: Int32s,
    similarities: npt.NDArray[np.uint32],
    indptr: Ints,
    columns: Int32s,
    values: npt.NDArray[np.uint32],
) -> None:
    """Copy the pairs of some queries to where their rows are."""
    start = 0
    for i in range(which.size):
        place = indptr[which[i]]
        end = place + found[i]
        columns[place:end] = docs[start : start + found[i]]
        values[place:end] = similarities[start : start + found[i]]
        start += found[i]
