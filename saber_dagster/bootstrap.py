"""Paired bootstrap over queries: intervals of means, and which systems cannot be told apart."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from saber_dagster.errors import SaberError
from saber_dagster.hashing import hash64
from saber_dagster.metrics import DECIMALS

_UNITS = 10**DECIMALS
_BLOCK = 1 << 22


@dataclass(frozen=True)
class Bootstrap:
    """Means of several systems over the same queries, with their bootstrap distributions.

    All arrays have one entry per system, in the order of the columns that came in.
    """

    mean: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    resampled: NDArray[np.float64]
    """Shape (resamples, systems): the means in each resample of the queries."""
    level: float
    n_queries: int
    n_resamples: int
    seed: int
    stream: str


def resample_counts(n_queries: int, n_resamples: int, seed: int, stream: str) -> NDArray[np.int64]:
    """How often each query is drawn in each resample, n_queries draws with replacement.

    The counter-based generator (Philox) is keyed by seed and stream, so that everything that is
    compared on the same queries sees the same resamples.

    Returns:
        Shape (n_resamples, n_queries); rows sum to n_queries.
    """
    generator = np.random.Generator(np.random.Philox(key=hash64("bootstrap", seed, stream)))
    counts = np.empty((n_resamples, n_queries), dtype=np.int64)
    step = max(1, _BLOCK // max(n_queries, 1))
    for start in range(0, n_resamples, step):
        rows = min(step, n_resamples - start)
        drawn = generator.integers(n_queries, size=(rows, n_queries))
        drawn += np.arange(rows)[:, None] * n_queries
        flat = np.bincount(drawn.ravel(), minlength=rows * n_queries)
        counts[start : start + rows] = flat.reshape(rows, n_queries)
    return counts


def paired_bootstrap(
    values: NDArray[np.float64],
    seed: int,
    stream: str,
    n_resamples: int = 1000,
    level: float = 0.95,
) -> Bootstrap:
    """Percentile intervals of systems' means over queries, all from the same resamples.

    Values are counted in units of 1e-12, their precision in our tables: sums of integers are exact,
    so no bit depends on the order of addition, threads or processor. For the resamples to depend on
    the queries alone, put them in a fixed order (sorted by id).

    Source: SABER-Math, appendix "Confidence Intervals" (1,000 resamples of the queries, 95 %).

    Args:
        values: shape (queries, systems), in [0, 1].
        seed: the seed.
        stream: names the query set, such as the domain; another stream has other resamples.
        n_resamples: number of resamples.
        level: coverage of the intervals.

    Raises:
        SaberError: if there are no queries or resamples, or a value is not in [0, 1].
    """
    n_queries = len(values)
    if n_queries == 0 or n_resamples < 1:
        raise SaberError(
            f"A bootstrap needs queries and resamples, not {n_queries}, {n_resamples}."
        )
    if not ((values >= 0) & (values <= 1)).all():  # NaN fails, too
        raise SaberError("A value to be averaged is not in [0, 1]. Compute the metrics again.")
    units = np.rint(values * _UNITS).astype(np.int64)
    counts = resample_counts(n_queries, n_resamples, seed, stream)
    resampled = (counts @ units) / (n_queries * _UNITS)
    low, high = _interval(resampled, level)
    return Bootstrap(
        mean=units.sum(axis=0) / (n_queries * _UNITS),
        low=low,
        high=high,
        resampled=resampled,
        level=level,
        n_queries=n_queries,
        n_resamples=n_resamples,
        seed=seed,
        stream=stream,
    )


def tied_groups(result: Bootstrap, names: Sequence[str]) -> NDArray[np.int32]:
    """Groups of systems that the bootstrap cannot separate, 1 for the best.

    Down the board (mean descending, then name), the first system leads group 1. A system belongs to
    the current group if the interval of its paired difference to the group's leader contains 0; the
    first that does not leads the next group. So groups are runs of the board, and being tied means
    "not separable from the leader", not "from each other".

    Returns:
        Shape (systems,), in the order of ``names``.
    """
    groups = np.zeros(len(names), dtype=np.int32)
    board = sorted(range(len(names)), key=lambda i: (-result.mean[i], names[i]))
    leader, group = -1, 0
    for system in board:
        if leader >= 0:
            gap = result.resampled[:, leader] - result.resampled[:, system]
            low, high = _interval(gap, result.level)
        if leader < 0 or not low <= 0 <= high:
            leader, group = system, group + 1
        groups[system] = group
    return groups


def _interval(
    samples: NDArray[np.float64], level: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    tail = (1 - level) / 2
    low, high = np.quantile(samples, [tail, 1 - tail], axis=0)
    return low, high
