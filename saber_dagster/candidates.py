"""Queries and candidates: who has enough related documents, and which of them are judged."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import polars as pl

from saber_dagster.contracts import GROUPS, TABLES
from saber_dagster.errors import SaberError
from saber_dagster.hashing import hash64


def rank_in_query(signal: str) -> pl.Expr:
    """1 + the number of the query's documents with a larger signal: equals share the best rank."""
    return pl.col(signal).rank("min", descending=True).over("query_id")


def group_pairs(pairs: pl.DataFrame, index: pl.DataFrame, thresholds: pl.DataFrame) -> pl.DataFrame:
    """Sort the pairs of every query into topic-only, summary-only and both.

    Under the percentile rule a signal is high if it exceeds the threshold, strictly. Under the
    top-M rule it is high if it is at least the query's M-th largest and at least the floor. A
    signal of 0 is never high. A query of several domains follows the row of its primary domain.

    Args:
        pairs: table ``signal_shards``, all pairs of each query in it.
        index: table ``problem_index``.
        thresholds: table ``thresholds``.

    Returns:
        Columns query_id, doc_id, topic, summary, group: the pairs with a high signal, in order of
        their ids.

    Raises:
        SaberError: a query's primary domain has no row in ``thresholds``.

    Source: SABER-Math, section "Selecting Queries and Document Sets".
    """
    rows = thresholds.select(
        pl.col("domain").alias("primary_domain"),
        "rule",
        "m",
        pl.col("topic", "summary").name.suffix("_limit"),
    )
    queries = index.filter("is_query").select(pl.col("doc_id").alias("query_id"), "primary_domain")
    lost = sorted(set(queries["primary_domain"]) - set(rows["primary_domain"]))
    if lost:
        raise SaberError(f"thresholds: no row for domain {lost[0]!r}. Materialize thresholds again")
    joined = pairs.join(queries.join(rows, on="primary_domain"), on="query_id")
    joined = joined.with_columns(
        pl.when(pl.col("rule") == "percentile")
        .then(pl.col(signal) > pl.col(f"{signal}_limit"))
        .otherwise(
            (pl.col(signal) >= pl.col(f"{signal}_limit")) & (rank_in_query(signal) <= pl.col("m"))
        )
        .and_(pl.col(signal) > 0)
        .alias(f"{signal}_high")
        for signal in ("topic", "summary")
    )
    topic_only, summary_only, both = GROUPS
    group = (
        pl.when(pl.col("topic_high") & pl.col("summary_high"))
        .then(pl.lit(both))
        .when("topic_high")
        .then(pl.lit(topic_only))
        .otherwise(pl.lit(summary_only))
    )
    return (
        joined.filter(pl.col("topic_high") | pl.col("summary_high"))
        .select("query_id", "doc_id", "topic", "summary", group.alias("group"))
        .sort("query_id", "doc_id")
    )


def group_counts(groups: pl.DataFrame, index: pl.DataFrame) -> pl.DataFrame:
    """Count the related documents of every query, 0 included.

    Args:
        groups: what :func:`group_pairs` returned.
        index: table ``problem_index``.

    Returns:
        Columns query_id, domains, topic_only, summary_only, both; one row per query, sorted.
    """
    sizes = [(pl.col("group") == group).sum().cast(pl.Int64).alias(group) for group in GROUPS]
    return (
        index.filter("is_query")
        .select(pl.col("doc_id").alias("query_id"), "domains")
        .join(groups.group_by("query_id").agg(sizes), on="query_id", how="left")
        .with_columns(pl.col(*GROUPS).fill_null(0))
        .sort("query_id")
    )


class SmallestGroup:
    """The smallest group of each query as a function of a level, as more pairs become high.

    A group is not monotone: a topic-only pair becomes one of both. So all states are kept: arrays
    ``query``, ``level`` and ``size``, each (n_states,), sorted by the first two; from that level on
    until its next state, each group of the query has at least ``size`` documents.

    Args:
        query: (n_pairs,) position of each pair's query.
        topic: (n_pairs,) the level from which on the pair is topic-high; infinite if never.
        summary: (n_pairs,) the same of the summary signal.
        n_queries: number of queries.
        end: levels from here on are not looked at.
    """

    def __init__(
        self,
        query: npt.NDArray[np.int64],
        topic: npt.NDArray[np.float64],
        summary: npt.NDArray[np.float64],
        n_queries: int,
        end: float = np.inf,
    ) -> None:
        self.n_queries = n_queries
        near = np.minimum(topic, summary) < end
        query, topic, summary = query[near], topic[near], summary[near]
        n = query.size
        # First a pair enters the group of one signal (columns 0 and 1), then it moves to both (2).
        change = np.zeros((2 * n, 3), dtype=np.int32)
        change[:n, 0] = topic < summary
        change[:n, 1] = summary < topic
        change[n:, :2] = -change[:n, :2]
        change[n:, 2] = 1
        level = np.concatenate([np.minimum(topic, summary), np.maximum(topic, summary)])
        seen = np.flatnonzero(level < end)
        query, level = np.concatenate([query, query])[seen], level[seen]
        order = np.lexsort((level, query))
        query, level = query[order], level[order]
        last = np.ones(query.size, dtype=np.bool_)
        last[:-1] = (query[1:] != query[:-1]) | (level[1:] != level[:-1])
        total = np.vstack([np.zeros((1, 3), np.int32), np.cumsum(change[seen][order], axis=0)])
        begin = np.searchsorted(query, query[last], side="left")
        self.query, self.level = query[last], level[last]
        self.size = (total[1:][last] - total[begin]).min(axis=1)

    def at(self, level: float) -> npt.NDArray[np.int64]:
        """(n_queries,) size of the smallest group of each query at a level."""
        sizes = np.zeros(self.n_queries, dtype=np.int64)
        reached = self.level <= level
        sizes[self.query[reached]] = self.size[reached]  # of equal queries the last one stays
        return sizes

    def eligible(self, per_group: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        """Levels in ascending order, and how many queries have K in each group from each on."""
        full = self.size >= per_group
        before = np.zeros(full.size, dtype=np.bool_)
        before[1:] = full[:-1] & (self.query[1:] == self.query[:-1])
        order = np.argsort(self.level, kind="stable")
        level, change = self.level[order], (full.astype(np.int64) - before)[order]
        last = np.ones(level.size, dtype=np.bool_)
        last[:-1] = level[1:] != level[:-1]
        return level[last], np.cumsum(change)[last]


def eligible_queries(groups: pl.DataFrame, per_group: int) -> list[str]:
    """The ids of the queries with at least K = ``per_group`` documents in each group, sorted."""
    sizes = groups.group_by("query_id", "group").len().filter(pl.col("len") >= per_group)
    full = sizes.group_by("query_id").len().filter(pl.col("len") == len(GROUPS))
    return sorted(full["query_id"])


def select_queries(
    eligible: Iterable[str],
    index: pl.DataFrame,
    per_domain: int,
    seed: int,
    own_queries: bool = False,
) -> pl.DataFrame:
    """Choose the queries of the benchmark.

    In each domain the ``per_domain`` eligible members with the smallest hash of (seed, query). The
    hash is the query's alone: a new query takes the place of at most one other in each domain, and
    a query of several domains tends to be chosen by all of them, which saves tournaments.

    Args:
        eligible: ids of eligible queries.
        index: table ``problem_index``.
        per_domain: most queries of a domain's sample.
        seed: of the sample.
        own_queries: the user brought the queries; then all eligible ones are taken.

    Returns:
        Table ``query_set``: the union of the domains' samples.
    """
    queries = index.filter(pl.col("is_query") & pl.col("doc_id").is_in(sorted(set(eligible))))
    order = sorted(queries["doc_id"], key=lambda query: (hash64(seed, "query", query), query))
    domains = dict(queries.select("doc_id", "domains").iter_rows())
    taken: dict[str, int] = {}
    selected: dict[str, list[str]] = {}
    for query in order:
        for domain in sorted(domains[query]):
            if own_queries or taken.get(domain, 0) < per_domain:
                taken[domain] = taken.get(domain, 0) + 1
                selected.setdefault(query, []).append(domain)
    table = TABLES["query_set"]
    chosen = pl.DataFrame(
        {"doc_id": list(selected), "selected_for": list(selected.values())},
        schema={"doc_id": pl.String, "selected_for": pl.List(pl.String)},
    )
    return table.check(
        chosen.join(queries, on="doc_id").rename({"doc_id": "query_id"}).select(list(table.columns))
    )


def sample_candidates(
    groups: pl.DataFrame, query_ids: Iterable[str], per_group: int, seed: int
) -> pl.DataFrame:
    """Sample K = ``per_group`` documents of each group for each query.

    They are those with the smallest hash of (seed, query, document): a uniform sample that a new
    document disturbs least. A query with fewer than K documents in a group is left out.

    Args:
        groups: what :func:`group_pairs` returned.
        query_ids: the queries to sample for.
        per_group: K.
        seed: of the sample.

    Returns:
        Table ``candidate_sets``, 3 K rows per query.
    """
    wanted = sorted(set(query_ids) & set(eligible_queries(groups, per_group)))
    pairs = groups.filter(pl.col("query_id").is_in(wanted))
    ids = pairs.select("query_id", "doc_id").iter_rows()
    order = pl.Series("order", [hash64(seed, query, doc) for query, doc in ids], dtype=pl.UInt64)
    sample = (
        pairs.with_columns(order)
        .sort("query_id", "group", "order", "doc_id")
        .group_by("query_id", "group", maintain_order=True)
        .head(per_group)
    )
    table = TABLES["candidate_sets"]
    return table.check(sample.select(list(table.columns)))
