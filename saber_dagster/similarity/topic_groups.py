"""Document topic sets as a tree of groups: sets whose topics lie in the same subtrees stand together.

A group of depth d holds the sets of one size whose topics have the same ancestors at depth d. A bound
for a group is a bound for each of its sets, so that a search leaves out all of them at once.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from saber_dagster.similarity.topic import Floats, Ints
from saber_dagster.similarity.topic_exact import Int32s, Nodes, SetRows


class BoundRows(NamedTuple):
    """What topics are compared with: the documents' topics themselves, then subtrees of them.

    Args:
        chains: (n_rows, depths) ancestors of the topic or of the subtree's top, -2 below it.
        depth: (n_rows,) of the topic or the subtree's top.
        content: (n_rows,) the least information content of a document topic in the row.
        is_subtree: (n_rows,) whether deeper topics count too.
        n_topics: rows that are topics themselves; they come first.
    """

    chains: Int32s
    depth: Int32s
    content: Floats
    is_subtree: npt.NDArray[np.bool_]
    n_topics: int


class Groups(NamedTuple):
    """Groups and sets in preorder: a group stands before its parts.

    Args:
        size: (n_sizes,) set sizes that occur, ascending; empty sets are left out.
        start: (n_sizes + 1,) where each size's entries start.
        indptr: (n_entries + 1,) of ``rows``.
        rows: the bound rows of an entry, as many as the sets have topics.
        skip: (n_entries,) the entry after the last part of this one.
        doc: (n_entries,) position of the set; -1 for a group.
    """

    size: Ints
    start: Ints
    indptr: Ints
    rows: Int32s
    skip: Int32s
    doc: Int32s


def preorder(nodes: Nodes) -> Ints:
    """(n_nodes,) rank of each node so that subtrees are contiguous and ancestors come first."""
    order = np.lexsort(nodes.chains.T[::-1]) if nodes.chains.size else np.arange(nodes.depth.size)
    rank = np.empty(order.size, dtype=np.int64)
    rank[order] = np.arange(order.size)
    return rank


def coarse(topics: Int32s, depth: int, nodes: Nodes) -> Int32s:
    """The ancestor at a depth, or the topic itself if it is not that deep."""
    above = nodes.chains[topics, depth]
    return np.where(above >= 0, above, topics).astype(np.int32)


def sorted_sets(sets: SetRows, nodes: Nodes, depths: list[int]) -> Iterator[tuple[Ints, Int32s]]:
    """The sets that are not empty, size by size, so that each group of every depth is contiguous.

    Args:
        sets: topic sets.
        nodes: the ontology.
        depths: of the groups, ascending.

    Yields:
        For each size that occurs, ascending: positions of the sets, (n,), and their topics sorted by
        their place in the tree, (n, size).
    """
    rank = preorder(nodes)
    sizes = sets.sizes
    for size in np.unique(sizes[sizes > 0]):
        which = np.flatnonzero(sizes == size)
        topics = sets.topics[sets.indptr[which][:, None] + np.arange(size)]
        by_rank = np.argsort(rank[topics], axis=1, kind="stable")
        topics = np.take_along_axis(topics, by_rank, axis=1)
        keys = [rank[coarse(topics[:, k], d, nodes)] for d in depths for k in range(size)]
        keys += [rank[topics[:, k]] for k in range(size)]
        order = np.lexsort(keys[::-1])
        yield which[order], topics[order]


def build_groups(sets: SetRows, nodes: Nodes, depths: list[int]) -> tuple[BoundRows, Groups]:
    """Group the documents' sets by the ancestors of their topics at some depths, ascending."""
    bounds, row_of = _bound_rows(np.unique(sets.topics), nodes, depths)
    parts: list[tuple[Int32s, Int32s, Int32s]] = []
    sizes, start = [], [0]
    for which, topics in sorted_sets(sets, nodes, depths):
        sizes.append(topics.shape[1])
        parts.append(_entries(which, topics, depths, row_of, start[-1]))
        start.append(start[-1] + parts[-1][1].size)
    nothing = np.empty(0, dtype=np.int32)
    rows, skip, doc = (
        (np.concatenate((nothing, *column)) for column in zip(*parts, strict=True))
        if parts
        else (nothing,) * 3
    )
    size = np.array(sizes, dtype=np.int64)
    lengths = np.repeat(size, np.diff(start))
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    return bounds, Groups(size, np.array(start, dtype=np.int64), indptr, rows, skip, doc)


def _bound_rows(
    topics: Int32s, nodes: Nodes, depths: list[int]
) -> tuple[BoundRows, dict[int, Int32s]]:
    """The rows, and for each depth (and -1: the topic itself) the row of each node."""
    tops, least = [topics], [nodes.content[topics]]
    subtree = [np.zeros(topics.size, dtype=np.bool_)]
    row_of = {-1: np.full(nodes.depth.size, -1, dtype=np.int32)}
    row_of[-1][topics] = np.arange(topics.size)
    n_rows = topics.size
    for d in depths:
        groups, which = np.unique(coarse(topics, d, nodes), return_inverse=True)
        content = np.full(groups.size, np.inf)
        np.minimum.at(content, which, nodes.content[topics])
        row_of[d] = np.full(nodes.depth.size, -1, dtype=np.int32)
        row_of[d][topics] = n_rows + which
        tops.append(groups)
        least.append(content)
        subtree.append(nodes.depth[groups] == d)
        n_rows += groups.size
    top = np.concatenate(tops)
    chains = nodes.chains[top]
    bounds = BoundRows(
        np.where(chains < 0, np.int32(-2), chains),
        nodes.depth[top],
        np.concatenate(least),
        np.concatenate(subtree),
        topics.size,
    )
    return bounds, row_of


def _entries(
    which: Ints,
    members: Int32s,
    depths: list[int],
    row_of: dict[int, Int32s],
    base: int,
) -> tuple[Int32s, Int32s, Int32s]:
    """Rows, skips and documents of the entries of one size."""
    n = which.size
    levels = [row_of[d][members] for d in depths]
    extents = []  # of each depth: where its groups start, and where each ends
    for rows in levels:
        first = np.flatnonzero(np.r_[True, (rows[1:] != rows[:-1]).any(axis=1)])
        extents.append((first, np.r_[first[1:], n]))
    # a group that is no larger than a finer one, or holds a single set, is left out
    kept: list[tuple[Ints, Ints]] = []
    finer = np.arange(1, n + 1)  # end of the finest kept entry that starts at a set
    for first, end in reversed(extents):
        worth = end > finer[first]
        first, end = first[worth], end[worth]
        finer = finer.copy()
        finer[first] = end
        kept.append((first, end))
    kept.reverse()
    counts = np.ones(n, dtype=np.int64)
    for first, _ in kept:
        counts[first] += 1
    offset = np.concatenate(([0], np.cumsum(counts)))
    rows_out = np.empty((offset[-1], members.shape[1]), dtype=np.int32)
    skip = np.empty(offset[-1], dtype=np.int32)
    doc = np.full(offset[-1], -1, dtype=np.int32)
    place = offset[:-1].copy()
    for rows, (first, end) in zip(levels, kept, strict=True):
        rows_out[place[first]] = rows[first]
        skip[place[first]] = base + offset[end]
        place[first] += 1
    rows_out[place] = row_of[-1][members]
    skip[place] = base + offset[1:]
    doc[place] = which
    return rows_out.ravel(), skip, doc
