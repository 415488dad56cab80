"""Rules of the signals: which pairs are stored, and what is high among them."""

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.sparse import coo_array, triu

from saber_dagster.contracts import GROUPS
from saber_dagster.rules.base import Violation, violations
from saber_dagster.signals import population

SIGNALS = ("topic", "summary")
_PAIR = ("query_id", "doc_id")
_MOST_MIRRORED = 1000


def pairs_reach_a_floor(
    pairs: pl.DataFrame, topic_floor: float, summary_floor: float
) -> list[Violation]:
    """Every stored pair has a positive signal at or above its floor."""
    topic, summary = pl.col("topic"), pl.col("summary")
    kept = (topic > 0) & (topic >= topic_floor) | (summary > 0) & (summary >= summary_floor)
    what = f"pairs are below both floors (topic {topic_floor}, summary {summary_floor})"
    return violations(pairs.filter(~kept), what, _PAIR)


class NumberedPairs:
    """Pairs of signals by number, so that several rules look their ids up once.

    Args:
        pairs: table ``signal_shards`` or ``candidate_sets``.
        queries: the rows of ``problem_index`` that are queries here.
        index: table ``problem_index``.
    """

    def __init__(self, pairs: pl.DataFrame, queries: pl.DataFrame, index: pl.DataFrame) -> None:
        self.pairs = pairs
        self.queries = queries
        self.ids = index["doc_id"]
        number = pl.Enum(self.ids)
        self._asked = self.ids.is_in(queries["doc_id"].implode()).to_numpy()
        self._is_document = index["is_document"].to_numpy()
        self._cluster = index["cluster_id"].rank("dense").to_numpy()
        runs = pairs["query_id"].rle().struct.unnest()  # a table is sorted by query: few runs
        query = _positions(runs["value"], number)
        query = np.repeat(np.where(self._asked[query], query, -1), runs["len"].to_numpy())
        doc = _positions(pairs["doc_id"], number)
        self.query: NDArray[np.int64] = query
        """(n_pairs,) position of each query in the index; -1 for what is no query here."""
        self.doc: NDArray[np.int64] = np.where(self._is_document[doc], doc, -1)
        """(n_pairs,) position of each document; -1 for what may not be a candidate."""

    def are_of_others(self) -> list[Violation]:
        """A query is paired with documents outside its near-duplicate cluster only."""
        known = (self.query >= 0) & (self.doc >= 0)
        own = known & (self._cluster[self.query] == self._cluster[self.doc])
        faults = {
            "pairs are of a query that does not belong here": self.query < 0,
            "pairs have a document that may not be a candidate": self.doc < 0,
            "pairs are of a query and itself or its near-duplicate": own,
        }
        return [
            violation
            for what, bad in faults.items()
            for violation in violations(self.pairs.filter(bad), what, _PAIR)
        ]

    def are_symmetric(self) -> list[Violation]:
        """Where both are queries here, a pair is there both ways, with equal signals.

        Of many queries the first 1,000 by id are looked at; ids are hashes.
        """
        size = len(self.ids)
        some = np.flatnonzero(self._asked & self._is_document)
        some = some[self.ids.gather(some).arg_sort().to_numpy()][:_MOST_MIRRORED]
        looked_at = np.zeros(size, dtype=np.bool_)
        looked_at[some] = True
        both = np.flatnonzero((self.query >= 0) & looked_at[self.query])
        both = both[(self.doc[both] >= 0) & looked_at[self.doc[both]]]
        place = self.query[both], self.doc[both]
        found: list[Violation] = []
        for signal in SIGNALS:
            # + 2, so that a pair that is there one way only differs by more than any signal
            values = self.pairs[signal].gather(both).to_numpy() + 2.0
            way = coo_array((values, place), shape=(size, size)).tocsr()
            difference = triu(abs(way - way.T), k=1).tocoo()
            for bad, what in (
                (difference.data >= 2, "pairs of two queries are there one way only"),
                (
                    (difference.data > 0) & (difference.data < 2),
                    f"pairs of two queries have another {signal} signal the other way",
                ),
            ):
                ends = {"query_id": difference.row[bad], "doc_id": difference.col[bad]}
                rows = {name: self.ids.gather(position) for name, position in ends.items()}
                found += violations(pl.DataFrame(rows), what, _PAIR)
        return list(dict.fromkeys(found))

    def fit_the_population(self, counted: pl.DataFrame) -> list[Violation]:
        """No domain has more pairs than its population, which counts all its queries.

        Args:
            counted: what :func:`saber_dagster.signals.population` returned.
        """
        known = self.query >= 0
        kinds = {"pairs": known} | {
            name: known & (self.pairs[name] > 0).to_numpy() for name in SIGNALS
        }
        sizes = {
            name: np.bincount(self.query[kept], minlength=len(self.ids))
            for name, kept in kinds.items()
        }
        rows = (
            self.queries.select("doc_id", pl.col("domains").alias("domain"))
            .join(pl.DataFrame({"doc_id": self.ids, **sizes}), on="doc_id")
            .explode("domain", empty_as_null=True)
            .drop_nulls("domain")
            .group_by("domain")
            .agg(pl.len().cast(pl.Int64).alias("queries"), pl.sum("pairs", *SIGNALS))
            .join(counted, on="domain", how="left")
        )
        over = pl.any_horizontal(
            pl.col(stored) > pl.col(possible).fill_null(0)
            for stored, possible in (
                ("pairs", "n_pairs"),
                ("topic", "topic_pairs"),
                ("summary", "summary_pairs"),
            )
        )
        other = pl.col("queries").ne_missing(pl.col("n_queries"))
        what = "domains have more pairs than their population"
        return [
            *violations(rows.filter(over), what, "domain"),
            *violations(rows.filter(other), "domains have another number of queries", "domain"),
        ]


def _positions(ids: pl.Series, number: pl.Enum) -> NDArray[np.int64]:
    codes = ids.cast(number, strict=False).to_physical().cast(pl.Int64)
    return codes.fill_null(-1).to_numpy()


def high_pairs(pairs: pl.DataFrame, index: pl.DataFrame, thresholds: pl.DataFrame) -> pl.DataFrame:
    """Which signals of each pair are high, by the thresholds as they stand.

    Percentile: above the threshold, strictly. Top M: at least the query's M-th largest, and the floor.

    Returns:
        The pairs of queries with a threshold, with columns topic_high and summary_high.
    """
    rows = thresholds.select(
        pl.col("domain").alias("primary_domain"),
        "rule",
        "m",
        *(pl.col(name).alias(f"{name}_limit") for name in SIGNALS),
    )
    queries = index.filter("is_query").select(pl.col("doc_id").alias("query_id"), "primary_domain")
    joined = pairs.join(queries.join(rows, on="primary_domain"), on="query_id")
    parts = [joined.filter(pl.col("rule") == "percentile").with_columns(_above())]
    for m in joined.filter(pl.col("rule") != "percentile")["m"].unique():
        part = joined.filter((pl.col("rule") != "percentile") & (pl.col("m") == m))
        least = part.group_by("query_id").agg(
            pl.when(pl.len() >= m).then(pl.col(name).top_k(m).min()).otherwise(0.0)
            .alias(f"{name}_least")
            for name in SIGNALS
        )  # fmt: skip
        part = part.join(least, on="query_id").with_columns(
            (
                (pl.col(name) >= pl.col(f"{name}_least"))
                & (pl.col(name) >= pl.col(f"{name}_limit"))
                & (pl.col(name) > 0)
            ).alias(f"{name}_high")
            for name in SIGNALS
        )
        parts.append(part.select(parts[0].columns))
    return pl.concat(parts)


def _above() -> list[pl.Expr]:
    return [
        ((pl.col(name) > pl.col(f"{name}_limit")) & (pl.col(name) > 0)).alias(f"{name}_high")
        for name in SIGNALS
    ]


def group_of() -> pl.Expr:
    """The group of a pair by topic_high and summary_high; empty if neither is."""
    topic_only, summary_only, both = GROUPS
    topic, summary = pl.col("topic_high"), pl.col("summary_high")
    return (
        pl.when(topic & summary).then(pl.lit(both))
        .when(topic).then(pl.lit(topic_only))
        .when(summary).then(pl.lit(summary_only))
    )  # fmt: skip


def threshold_counts_are_right(
    thresholds: pl.DataFrame, pairs: pl.DataFrame, index: pl.DataFrame, per_group: int
) -> list[Violation]:
    """What the table says of each domain is what a recount of the high pairs gives.

    Args:
        thresholds: table ``thresholds``, computed from the others.
        pairs: table ``signal_shards``.
        index: table ``problem_index``.
        per_group: K.
    """
    sizes = (
        high_pairs(pairs, index, thresholds)
        .with_columns(group_of().alias("group"))
        .drop_nulls("group")
        .group_by("query_id")
        .agg((pl.col("group") == group).sum().cast(pl.Int64).alias(group) for group in GROUPS)
    )
    queries, documents = index.filter("is_query"), index.filter("is_document")
    own = documents.group_by("cluster_id").agg(pl.len().cast(pl.Int64).alias("own"))
    topic_only, summary_only, both = (pl.col(group) for group in GROUPS)
    recount = (
        queries.select(
            pl.col("doc_id").alias("query_id"), "cluster_id", pl.col("domains").alias("domain")
        )
        .join(sizes, on="query_id", how="left")
        .join(own, on="cluster_id", how="left")
        .with_columns(pl.col(*GROUPS, "own").fill_null(0))
        .explode("domain", empty_as_null=True)
        .group_by("domain")
        .agg(
            pl.len().cast(pl.Int64).alias("n_queries"),
            (documents.height - pl.col("own")).sum().alias("n_pairs"),
            (topic_only + both).sum().alias("topic_hits"),
            (summary_only + both).sum().alias("summary_hits"),
            (pl.min_horizontal(GROUPS) >= per_group).sum().cast(pl.Int64).alias("eligible_queries"),
            *((pl.col(g) < per_group).sum().cast(pl.Int64).alias(f"short_{g}") for g in GROUPS),
        )
    )
    counted = [name for name in recount.columns if name in thresholds.columns and name != "domain"]
    rows = (
        thresholds.join(recount, on="domain", how="left", suffix="_found")
        .join(population(queries, documents).drop("n_queries", "n_pairs"), on="domain", how="left")
        .fill_null(0)
    )
    faults = {name: pl.col(name) != pl.col(f"{name}_found") for name in counted}
    for name in SIGNALS:
        said = pl.col(f"density_{name}") * pl.max_horizontal(f"{name}_pairs", pl.lit(1))
        faults[f"density_{name}"] = (said - pl.col(f"{name}_hits")).abs() > 0.5
    return [
        violation
        for name, bad in faults.items()
        for violation in violations(
            rows.filter(bad), f"domains have another {name} than a recount gives", "domain"
        )
    ]
