"""How large the smallest group of a query is when more and more of its pairs are high.

A pair is high in a signal from a cut on: the signals that are at least ``cuts[g]`` are high at step g,
and the cuts descend. Topic-only, summary-only and both are the groups.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from saber_dagster.similarity.kernel import kernel

Array = npt.NDArray[Any]


@kernel
def smallest_groups(
    topic: Array,
    summary: Array,
    topic_cuts: Array,
    summary_cuts: Array,
    change: Array,
    sizes: Array,
) -> None:
    """The size of the smallest group of one query at each step.

    Args:
        topic: (n_pairs,) topic signals of the query.
        summary: (n_pairs,) summary signals.
        topic_cuts: (n_steps,) descending, positive; infinite where no pair is high.
        summary_cuts: (n_steps,) the same of the summary signal.
        change: (3, n_steps + 1) working memory.
        sizes: (n_steps,) is overwritten with the sizes.
    """
    n = topic_cuts.size
    change[:] = 0
    for pair in range(topic.size):
        t = n
        while t > 0 and topic[pair] >= topic_cuts[t - 1]:
            t -= 1
        s = n
        while s > 0 and summary[pair] >= summary_cuts[s - 1]:
            s -= 1
        # From the first step on it is in the group of one signal, from the second on in both.
        if t < s:
            change[0, t] += 1
            change[0, s] -= 1
            change[2, s] += 1
        else:
            change[1, s] += 1
            change[1, t] -= 1
            change[2, t] += 1
    topic_only, summary_only, both = 0, 0, 0
    for step in range(n):
        topic_only += change[0, step]
        summary_only += change[1, step]
        both += change[2, step]
        sizes[step] = min(topic_only, summary_only, both)


@kernel
def domain_sizes(
    first: int,
    last: int,
    queries: Array,
    indptr: Array,
    topic: Array,
    summary: Array,
    cuts: Array,
    member_ptr: Array,
    members: Array,
    most: int,
) -> Array:
    """How many queries of each domain have a smallest group of each size at each step.

    Args:
        first: the first query.
        last: the query after the last.
        queries: (n_queries,) positions of the queries.
        indptr: (n_queries + 1,) the pairs of each query.
        topic: (n_pairs,) topic signals.
        summary: (n_pairs,) summary signals.
        cuts: (n_domains, 2, n_steps) cuts of both signals in each domain.
        member_ptr: (n_problems + 1,) the domains of each problem.
        members: (n_memberships,) numbers of domains.
        most: larger groups count as this large.

    Returns:
        (n_domains, n_steps, most + 1) numbers of queries; those of size 0 are not counted.
    """
    n_domains, _, n = cuts.shape
    found = np.zeros((n_domains, n, most + 1), dtype=np.int64)
    change = np.zeros((3, n + 1), dtype=np.int64)
    sizes = np.zeros(n, dtype=np.int64)
    for i in range(first, last):
        start, stop = indptr[i], indptr[i + 1]
        for member in range(member_ptr[queries[i]], member_ptr[queries[i] + 1]):
            domain = members[member]
            if max(cuts[domain, 0, n - 1], cuts[domain, 1, n - 1]) == np.inf:
                continue
            smallest_groups(
                topic[start:stop], summary[start:stop], cuts[domain, 0], cuts[domain, 1],
                change, sizes,
            )  # fmt: skip
            for step in range(n):
                if sizes[step] > 0:
                    found[domain, step, min(sizes[step], most)] += 1
    return found


@kernel
def _top_cuts(values: Array, ms: Array, floor: float, kept: Array, cuts: Array) -> None:
    """The m-th largest value of those from the floor on; if they are fewer, the smallest."""
    n = 0
    for value in values:
        if value >= floor and value > 0:
            kept[n] = value
            n += 1
    if n == 0:
        cuts[:] = np.inf
        return
    top = min(n, ms[-1])
    largest = np.sort(np.partition(kept[:n], n - top)[n - top :])
    for step in range(ms.size):
        cuts[step] = largest[top - min(ms[step], top)]


@kernel
def top_m_sizes(
    first: int,
    last: int,
    indptr: Array,
    topic: Array,
    summary: Array,
    ms: Array,
    topic_floor: float,
    summary_floor: float,
) -> Array:
    """The size of the smallest group of each query if its m largest signals are high.

    Of equal signals all are high or none is. A signal below its floor, or 0, never is.

    Args:
        first: the first query.
        last: the query after the last.
        indptr: (n_queries + 1,) the pairs of each query.
        topic: (n_pairs,) topic signals.
        summary: (n_pairs,) summary signals.
        ms: (n_steps,) ascending, positive.
        topic_floor: lowest high topic signal.
        summary_floor: lowest high summary signal.

    Returns:
        (last - first, n_steps).
    """
    n = ms.size
    found = np.zeros((last - first, n), dtype=np.int64)
    change = np.zeros((3, n + 1), dtype=np.int64)
    topic_cuts, summary_cuts = np.zeros(n), np.zeros(n)
    longest = 0
    for i in range(first, last):
        longest = max(longest, indptr[i + 1] - indptr[i])
    kept = np.zeros(longest)
    for i in range(first, last):
        topics, summaries = topic[indptr[i] : indptr[i + 1]], summary[indptr[i] : indptr[i + 1]]
        _top_cuts(topics, ms, topic_floor, kept, topic_cuts)
        _top_cuts(summaries, ms, summary_floor, kept, summary_cuts)
        smallest_groups(topics, summaries, topic_cuts, summary_cuts, change, found[i - first])
    return found
