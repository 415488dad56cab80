"""Which signals of a pair are high: a recount, by other code than the stages'."""

from collections.abc import Iterable, Iterator

import polars as pl

from saber_dagster.contracts import GROUPS
from saber_dagster.signals.pairs import SIGNALS, pairs_of

Parts = pl.DataFrame | Iterable[pl.DataFrame]
"""Numbered pairs as one frame, or in parts of which each has all pairs of its queries."""


def parts_of(pairs: Parts) -> Iterable[pl.DataFrame]:
    """The parts; a frame is one."""
    return [pairs] if isinstance(pairs, pl.DataFrame) else pairs


def high_pairs(
    pairs: Parts, index: pl.DataFrame, thresholds: pl.DataFrame, only: pl.Series | None = None
) -> Iterator[pl.DataFrame]:
    """Which signals of each pair are high, by the thresholds as they stand.

    Percentile and fixed: above the threshold, strictly. Top M: at least the query's M-th largest, and
    the floor.

    Args:
        pairs: numbered pairs, all of each query.
        index: table ``problem_index``.
        thresholds: table ``thresholds``.
        only: ids of queries; by default all.

    Yields:
        Of each part the pairs of queries with a threshold, with columns topic_high and summary_high.
    """
    limits = _limits(index, thresholds)
    if only is not None:
        asked = index["doc_id"].is_in(only.unique().implode())
        pairs = pairs_of(parts_of(pairs), asked.to_numpy())
    for part in parts_of(pairs):
        yield _high(part, limits)


def _limits(index: pl.DataFrame, thresholds: pl.DataFrame) -> pl.DataFrame:
    """Of each problem the row of its primary domain; empty for what is no query or has none."""
    rows = thresholds.select(
        "domain",
        (pl.col("rule") != "top_m").alias("above"),
        "m",
        *(pl.col(name).alias(f"{name}_limit") for name in SIGNALS),
    )
    domain = index.select(pl.when("is_query").then("primary_domain").alias("domain"))
    return domain.join(rows, on="domain", how="left", maintain_order="left").drop("domain")


def _high(pairs: pl.DataFrame, limits: pl.DataFrame) -> pl.DataFrame:
    known = limits["above"].is_not_null().gather(pairs["query"])
    mine = pairs if known.all() else pairs.filter(known)
    if mine["query"].is_sorted():  # then groups are found faster
        mine = mine.with_columns(pl.col("query").set_sorted())
    limits = _with_mth_largest(mine, limits)
    above = limits["above"].gather(mine["query"])
    flags = []
    for name in SIGNALS:
        value, limit = mine[name], limits[f"{name}_limit"].gather(mine["query"])
        high = (value > limit) | (~above & (value == limit))
        flags.append((high & (value > 0)).alias(f"{name}_high"))
    return mine.hstack(flags)


def _with_mth_largest(pairs: pl.DataFrame, limits: pl.DataFrame) -> pl.DataFrame:
    """The limits, raised to the M-th largest signals of the queries of these pairs under top M."""
    m = limits.select(pl.when(~pl.col("above")).then("m")).to_series().gather(pairs["query"])
    if m.null_count() == m.len():
        return limits
    ranked = pairs.with_columns(m.alias("m"))
    if m.has_nulls():
        ranked = ranked.drop_nulls("m")
    first = pl.col("m").first()
    largest = ranked.group_by("query").agg(
        pl.when(pl.len() >= first).then(pl.col(name).top_k(first).min()).alias(f"{name}_least")
        for name in SIGNALS
    )
    joined = limits.with_row_index("query").join(
        largest, on="query", how="left", maintain_order="left"
    )
    return joined.with_columns(
        pl.max_horizontal(f"{name}_limit", f"{name}_least").alias(f"{name}_limit")
        for name in SIGNALS
    )


def group_of() -> pl.Expr:
    """The group of a pair by topic_high and summary_high; empty if neither is."""
    topic_only, summary_only, both = GROUPS
    topic, summary = pl.col("topic_high"), pl.col("summary_high")
    return (
        pl.when(topic & summary).then(pl.lit(both))
        .when(topic).then(pl.lit(topic_only))
        .when(summary).then(pl.lit(summary_only))
    )  # fmt: skip


def group_sizes(
    pairs: Parts, index: pl.DataFrame, thresholds: pl.DataFrame, only: pl.Series | None = None
) -> pl.DataFrame:
    """How many documents each query has in each group, by :func:`high_pairs`.

    Returns:
        Columns query, topic_only, summary_only, both: a row per query that has a pair.
    """
    topic_only, summary_only, both = GROUPS
    topic, summary = pl.col("topic_high"), pl.col("summary_high")
    flags = {topic_only: topic & ~summary, summary_only: ~topic & summary, both: topic & summary}
    sizes = [flag.sum().cast(pl.Int64).alias(group) for group, flag in flags.items()]
    none = pl.DataFrame(schema={"query": pl.UInt32, **dict.fromkeys(GROUPS, pl.Int64)})
    parts = high_pairs(pairs, index, thresholds, only)
    return pl.concat([none, *(part.group_by("query").agg(sizes) for part in parts)])
