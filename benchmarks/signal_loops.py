"""Baselines of the signals: the plain double loops compiled by numba, and SciPy's sparse product."""

import numpy as np
import numpy.typing as npt
from numba import njit
from scipy import sparse

from saber_dagster.similarity.topic import UNITS

Ints = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]


@njit(cache=True)
def topic_loop(
    queries: Ints,
    ends: Ints,
    topics: Int32s,
    parent: Int32s,
    depth: Int32s,
    content: Floats,
    epsilon: float,
    out: Floats,
) -> None:
    """The topic signal of some problems with all, as it is written down: (n_queries, n_problems)."""
    for i in range(queries.size):
        x = topics[ends[queries[i]] : ends[queries[i] + 1]]
        for j in range(out.shape[1]):
            y = topics[ends[j] : ends[j + 1]]
            total = 0.0
            for left, right in ((x, y), (y, x)):
                part = 0.0
                for t in left:
                    best = 0.0
                    for u in right:
                        a, b = t, u
                        while a != b and a >= 0 and b >= 0:
                            if depth[a] >= depth[b]:
                                a = parent[a]
                            else:
                                b = parent[b]
                        shared = content[a] if a == b and a >= 0 else 0.0
                        best = max(best, 2 * shared / (content[t] + content[u] + epsilon))
                    part += min(best, 1.0)
                total += part
            both = x.size > 0 and y.size > 0
            out[i, j] = np.rint(total / (x.size + y.size) * UNITS) / UNITS if both else 0.0


@njit(cache=True)
def summary_loop(queries: Ints, ends: Ints, words: Int32s, out: Floats) -> None:
    """The summary signal of some problems with all, by merging sorted lists of words."""
    for i in range(queries.size):
        x = words[ends[queries[i]] : ends[queries[i] + 1]]
        for j in range(out.shape[1]):
            y = words[ends[j] : ends[j + 1]]
            a = b = common = 0
            while a < x.size and b < y.size:
                if x[a] == y[b]:
                    common += 1
                    a += 1
                    b += 1
                elif x[a] < y[b]:
                    a += 1
                else:
                    b += 1
            out[i, j] = common / max(x.size + y.size - common, 1)


def scipy_summary(
    incidence: sparse.csr_array, transposed: sparse.csr_array, sizes: Ints, queries: Ints
) -> sparse.csr_array:
    """The summary signal of some problems with all: a sparse product, then a division per entry."""
    common = incidence[queries] @ transposed
    rows = np.repeat(sizes[queries], np.diff(common.indptr))
    common.data = common.data / (rows + sizes[common.indices] - common.data)
    return common


def incidence_of(ends: Ints, words: Int32s, n_words: int) -> sparse.csr_array:
    """Which problem has which word: (n_problems, n_words) of 0 and 1."""
    ones = np.ones(words.size, dtype=np.int32)
    return sparse.csr_array((ones, words, ends), shape=(ends.size - 1, n_words))
