"""The groups of pairs: which signals of a document are high for a query, and how many there are."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import polars as pl

from saber_dagster.contracts import GROUPS
from saber_dagster.errors import SaberError
from saber_dagster.signals.pairs import SIGNALS
from saber_dagster.similarity.mth_largest import mth_largest

_SMALLEST = np.nextafter(0.0, 1.0)


class PairGroups:
    """The group of each pair of a query and a document, by the thresholds.

    By percentile and by fixed thresholds a signal is high if it exceeds the threshold, strictly.
    Under the top-M rule it is high if it is at least the query's M-th largest and at least the floor. A
    signal of 0 is never high. A query of several domains follows the row of its primary domain.

    Args:
        index: table ``problem_index``.
        thresholds: table ``thresholds``.

    Raises:
        SaberError: a query's primary domain has no row in ``thresholds``.

    Source: SABER-Math, section "Selecting Queries and Document Sets".
    """

    def __init__(self, index: pl.DataFrame, thresholds: pl.DataFrame) -> None:
        domain = thresholds["domain"]
        lost = sorted(set(index.filter("is_query")["primary_domain"].unique()) - set(domain))
        if lost:
            said = f"thresholds: no row for domain {lost[0]!r}. Materialize thresholds again"
            raise SaberError(said)
        # One more row than domains: what is no query has no high signal.
        row = (
            index.select(pl.when("is_query").then("primary_domain").alias("domain"))
            .join(domain.to_frame().with_row_index("row"), "domain", "left", maintain_order="left")
            .select(pl.col("row").fill_null(domain.len()))
            .to_series()
            .to_numpy()
        )
        above = (thresholds["rule"] != "top_m").to_numpy()
        limits = np.maximum(thresholds.select(SIGNALS).to_numpy(), 0.0)
        limits[above] = np.nextafter(limits[above], np.inf)
        limits = np.vstack([np.maximum(limits, _SMALLEST), [[np.inf] * len(SIGNALS)]])
        m = np.append(np.where(above, 0, thresholds["m"].fill_null(0).to_numpy()), 0)
        self._least = limits[row].T  # (signals, problems) lowest high value, M aside
        self._m = m[row].astype(np.int64)

    def codes(self, pairs: pl.DataFrame) -> npt.NDArray[np.uint8]:
        """The group of each pair, as a number.

        Args:
            pairs: numbered pairs in order of their queries, all pairs of each query in it.

        Returns:
            (n_pairs,) 0 if no signal is high, else 1 + the group's position in ``GROUPS``.

        Raises:
            ValueError: the pairs are not in order of their queries.
        """
        queries, starts = _runs(pairs)
        if (queries[1:] < queries[:-1]).any():
            raise ValueError("pairs are not in order of their queries")
        indptr = np.append(starts, pairs.height)
        m, lengths = self._m[queries], np.diff(indptr)
        codes = np.zeros(pairs.height, dtype=np.uint8)
        for bit, (signal, lowest) in enumerate(zip(SIGNALS, self._least, strict=True)):
            values, least = pairs[signal].to_numpy(), lowest[queries]
            if m.any():
                np.maximum(least, mth_largest(values, indptr, m), out=least)
            high = values >= np.repeat(least, lengths)
            # Topic-only is 1, summary-only 2 and both 3.
            codes |= np.left_shift(high.view(np.uint8), bit, dtype=np.uint8)
        return codes


def _runs(pairs: pl.DataFrame) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
    """The query of each run of equal queries, and where the run starts."""
    query = pairs["query"].to_numpy()
    first = np.ones(query.size, dtype=np.bool_)
    np.not_equal(query[1:], query[:-1], out=first[1:])
    starts = np.flatnonzero(first)
    return query[starts], starts


def group_counts(
    shards: Iterable[pl.DataFrame], index: pl.DataFrame, thresholds: pl.DataFrame
) -> pl.DataFrame:
    """Count the related documents of every query, 0 included.

    Args:
        shards: frames of numbered pairs, each with all pairs of its queries; they are read once.
        index: table ``problem_index``.
        thresholds: table ``thresholds``.

    Returns:
        Columns query (its position), domains, topic_only, summary_only, both; one row per query of
        the index, in its order.

    Raises:
        SaberError: a query's primary domain has no row in ``thresholds``.
    """
    groups = PairGroups(index, thresholds)
    sizes = {group: np.zeros(index.height, dtype=np.int64) for group in GROUPS}
    for pairs in shards:
        codes = groups.codes(pairs)
        queries, starts = _runs(pairs)
        for code, size in enumerate(sizes.values(), start=1):
            size[queries] += np.add.reduceat(codes == code, starts, dtype=np.int64)
    return (
        index.select("is_query", "domains")
        .with_row_index("query")
        .with_columns(**{group: pl.Series(size) for group, size in sizes.items()})
        .filter("is_query")
        .drop("is_query")
    )


def eligible_queries(counts: pl.DataFrame, index: pl.DataFrame, per_group: int) -> list[str]:
    """The ids of the queries with at least K = ``per_group`` documents in each group, sorted.

    Args:
        counts: what :func:`group_counts` returned.
        index: table ``problem_index``, the one that they were counted with.
        per_group: K.
    """
    full = counts.filter(pl.min_horizontal(GROUPS) >= per_group)["query"]
    return sorted(index["doc_id"].gather(full))
