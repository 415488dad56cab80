"""Where a query comes to have K documents in each group, and where it loses them again.

A group is not monotone: a topic-only pair becomes one of both when its summary signal becomes high. So
each query's pairs are followed level by level, where a level is the rank of a share of the population.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from saber_dagster.similarity.kernel import kernel

Array = npt.NDArray[Any]

_TOPIC_ONLY, _SUMMARY_ONLY, _BOTH, _TOPIC_TO_BOTH, _SUMMARY_TO_BOTH = range(5)


@kernel
def _level(value: float, values: Array, levels: Array, never: np.int64) -> np.int64:
    """The level of a value; ``never`` if it is below all values."""
    at = np.searchsorted(values, value, side="right") - 1
    return levels[at] if at >= 0 else never


@kernel
def group_changes(
    first: int,
    last: int,
    queries: Array,
    indptr: Array,
    topic: Array,
    summary: Array,
    member_ptr: Array,
    members: Array,
    needed: Array,
    topic_ends: Array,
    topic_values: Array,
    topic_levels: Array,
    summary_ends: Array,
    summary_values: Array,
    summary_levels: Array,
) -> tuple[Array, Array]:
    """Follow each query from the lowest level on.

    Args:
        first: the first query.
        last: the query after the last.
        queries: (n_queries,) positions of the queries.
        indptr: (n_queries + 1,) the pairs of each query.
        topic: (n_pairs,) topic signals.
        summary: (n_pairs,) summary signals.
        member_ptr: (n_problems + 1,) the domains of each problem.
        members: (n_memberships,) numbers of domains.
        needed: (n_domains,) K; a domain with 0 is left out.
        topic_ends: (n_domains + 1,) domain d has the values ``topic_ends[d]`` to
            ``topic_ends[d + 1]`` (without).
        topic_values: (n_values,) all values that are looked at, ascending in each domain.
        topic_levels: (n_values,) the level from which on each value is high.
        summary_ends: the same of the summary signal.
        summary_values: the same of the summary signal.
        summary_levels: the same of the summary signal.

    Returns:
        Of each change the domain, and 2 × level + 1 if from that level on the query has K documents
        in each group, 2 × level if it no longer has them.
    """
    never = np.int64(1) << 59
    n = 0
    domains, changes = np.zeros(1024, dtype=np.int64), np.zeros(1024, dtype=np.int64)
    events = np.zeros(1024, dtype=np.int64)
    for i in range(first, last):
        start, stop = indptr[i], indptr[i + 1]
        for member in range(member_ptr[queries[i]], member_ptr[queries[i] + 1]):
            domain = members[member]
            k = needed[domain]
            of_topic = topic_values[topic_ends[domain] : topic_ends[domain + 1]]
            of_summary = summary_values[summary_ends[domain] : summary_ends[domain + 1]]
            if k == 0 or of_topic.size == 0 or of_summary.size == 0:
                continue
            # Fewer than these at the last level: fewer at each level before.
            high_topic, high_summary, high_both = 0, 0, 0
            for pair in range(start, stop):
                t, s = topic[pair] >= of_topic[0], summary[pair] >= of_summary[0]
                high_topic += t
                high_summary += s
                high_both += t & s
            if high_topic < 2 * k or high_summary < 2 * k or high_both < k:
                continue
            if high_topic + high_summary > events.size:
                events = np.zeros(2 * (high_topic + high_summary), dtype=np.int64)
            levels_topic = topic_levels[topic_ends[domain] : topic_ends[domain + 1]]
            levels_summary = summary_levels[summary_ends[domain] : summary_ends[domain + 1]]
            m = 0
            for pair in range(start, stop):
                if topic[pair] < of_topic[0] and summary[pair] < of_summary[0]:
                    continue
                t = _level(topic[pair], of_topic, levels_topic, never)
                s = _level(summary[pair], of_summary, levels_summary, never)
                if t == s:
                    events[m] = 8 * t + _BOTH
                    m += 1
                    continue
                events[m] = 8 * min(t, s) + (_TOPIC_ONLY if t < s else _SUMMARY_ONLY)
                m += 1
                if max(t, s) < never:
                    events[m] = 8 * max(t, s) + (_TOPIC_TO_BOTH if t < s else _SUMMARY_TO_BOTH)
                    m += 1
            mine = events[:m]
            mine.sort()
            topic_only, summary_only, both = 0, 0, 0
            full = False
            for j in range(m):
                kind = mine[j] & 7
                topic_only += (kind == _TOPIC_ONLY) - (kind == _TOPIC_TO_BOTH)
                summary_only += (kind == _SUMMARY_ONLY) - (kind == _SUMMARY_TO_BOTH)
                both += kind >= _BOTH
                level = mine[j] >> 3
                if j + 1 < m and mine[j + 1] >> 3 == level:
                    continue
                if (min(topic_only, summary_only, both) >= k) != full:
                    full = not full
                    if n == domains.size:
                        domains = np.concatenate((domains, np.zeros_like(domains)))
                        changes = np.concatenate((changes, np.zeros_like(changes)))
                    domains[n] = domain
                    changes[n] = 2 * level + full
                    n += 1
    return domains[:n].copy(), changes[:n].copy()
