"""How often each value of a signal occurs in each domain."""

from typing import Any

import numpy as np
import numpy.typing as npt

from saber_dagster.similarity.kernel import kernel

Array = npt.NDArray[Any]

_SLOTS = 1 << 14
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


@kernel
def _slot(keys: Array, key: np.uint64, shift: np.uint64) -> np.int64:
    """Where a key is, or belongs, in an open-addressing table."""
    at = np.int64((key * _MULTIPLIER) >> shift)
    while keys[at] != np.uint64(0) and keys[at] != key:
        at = (at + 1) & (keys.size - 1)
    return at


@kernel
def count_values(
    first: int,
    last: int,
    queries: Array,
    indptr: Array,
    values: Array,
    bits: Array,
    floor: float,
    member_ptr: Array,
    members: Array,
    n_domains: int,
) -> tuple[Array, Array]:
    """Count the positive values from a floor on, by domain of their query.

    Args:
        first: the first query.
        last: the query after the last.
        queries: (n_queries,) positions of the queries.
        indptr: (n_queries + 1,) the values of each query.
        values: (n_pairs,) finite numbers.
        bits: (n_pairs,) the same memory as uint64.
        floor: lowest value that counts.
        member_ptr: (n_problems + 1,) the domains of each problem.
        members: (n_memberships,) numbers of domains.
        n_domains: number of domains.

    Returns:
        The bits of the distinct values, in no order, and their counts, (n_values, n_domains).
    """
    keys = np.zeros(_SLOTS, dtype=np.uint64)
    counts = np.zeros((_SLOTS, n_domains), dtype=np.int64)
    shift = np.uint64(50)
    kept = np.zeros(1024, dtype=np.uint64)
    used = 0
    for i in range(first, last):
        begin, end = member_ptr[queries[i]], member_ptr[queries[i] + 1]
        if begin == end:
            continue
        start, stop = indptr[i], indptr[i + 1]
        if stop - start > kept.size:
            kept = np.zeros(2 * (stop - start), dtype=np.uint64)
        n = 0
        for pair in range(start, stop):  # without branches, which nothing could predict
            kept[n] = bits[pair]
            n += (values[pair] >= floor) & (values[pair] > 0)
        for key in kept[:n]:
            at = _slot(keys, key, shift)
            if keys[at] == np.uint64(0):
                keys[at] = key
                used += 1
                if 2 * used > keys.size:
                    shift -= np.uint64(1)
                    more_keys = np.zeros(2 * keys.size, dtype=np.uint64)
                    more_counts = np.zeros((2 * keys.size, n_domains), dtype=np.int64)
                    for old in range(keys.size):
                        if keys[old] != np.uint64(0):
                            new = _slot(more_keys, keys[old], shift)
                            more_keys[new] = keys[old]
                            more_counts[new] = counts[old]
                    keys, counts = more_keys, more_counts
                    at = _slot(keys, key, shift)
            for member in range(begin, end):
                counts[at, members[member]] += 1
    found = np.flatnonzero(keys)
    return keys[found], counts[found]
