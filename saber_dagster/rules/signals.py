"""Rules of the signals: which pairs are stored, and what is high among them.

Pairs are numbered (:mod:`saber_dagster.signals.pairs`) and may come in parts, each with all pairs of its
queries. Violations name ids.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.sparse import coo_array, triu

from saber_dagster.contracts import GROUPS
from saber_dagster.rules.base import FIRST, Violation, violations
from saber_dagster.rules.high_pairs import Parts, group_sizes, parts_of
from saber_dagster.signals.pairs import SIGNALS, with_ids
from saber_dagster.signals.statistics import population

_PAIR = ("query_id", "doc_id")
_NUMBERS = ("query", "doc")
_MOST_MIRRORED = 1000
_PLACES = {"row": pl.Int64, "column": pl.Int64}


def numbered(rows: pl.DataFrame, index: pl.DataFrame) -> pl.DataFrame:
    """Few rows with ids, such as candidates, as numbered pairs.

    Args:
        rows: columns query_id and doc_id, and any others.
        index: table ``problem_index``.

    Returns:
        The rows with two more columns: query and doc, positions in the index. An id that the index
        lacks has the position after the last.
    """
    positions = index.select("doc_id").with_row_index("position")
    for name, number in zip(_PAIR, _NUMBERS, strict=True):
        of = positions.rename({"doc_id": name, "position": number})
        rows = rows.join(of, on=name, how="left", maintain_order="left")
    return rows.with_columns(pl.col(*_NUMBERS).fill_null(index.height))


def pairs_reach_a_floor(
    pairs: Parts, topic_floor: float, summary_floor: float, index: pl.DataFrame
) -> list[Violation]:
    """Every stored pair has a positive signal at or above its floor."""
    topic, summary = pl.col("topic"), pl.col("summary")
    kept = (topic > 0) & (topic >= topic_floor) | (summary > 0) & (summary >= summary_floor)
    what = f"pairs are below both floors (topic {topic_floor}, summary {summary_floor})"
    bad = _BadPairs(what, index["doc_id"])
    for part in parts_of(pairs):
        bad.add(part.filter(~kept))
    return bad.violations()


class _BadPairs:
    """Pairs that violate a rule: how many, and the first of each part."""

    def __init__(self, what: str, ids: pl.Series) -> None:
        self._what = what
        self._ids = ids
        self._count = 0
        self._first: list[pl.DataFrame] = []

    def add(self, bad: pl.DataFrame) -> None:
        if not bad.height:
            return
        self._count += bad.height
        named = set(_PAIR) <= set(bad.columns)
        key = _PAIR if named else _NUMBERS  # both give one order
        first = bad.select(key).unique().sort(key).head(FIRST)
        self._first.append(first if named else with_ids(first, self._ids))

    def violations(self) -> list[Violation]:
        if not self._count:
            return []
        (found,) = violations(pl.concat(self._first), self._what, _PAIR)
        return [replace(found, count=self._count)]


class NumberedPairs:
    """What several rules need of the pairs, from one look at each part.

    Args:
        pairs: numbered pairs; a frame of :func:`numbered` may have ids that the index lacks.
        asked: the queries that belong here, as (n_problems,) truth values or as positions.
        index: table ``problem_index``.
    """

    def __init__(self, pairs: Parts, asked: NDArray[Any], index: pl.DataFrame) -> None:
        # The arrays have a place more than the index, for ids that it lacks.
        size = index.height
        self._index = index
        self._asked = np.zeros(size + 1, dtype=np.bool_)
        self._asked[:size][asked] = True
        self._is_document = np.append(index["is_document"].to_numpy(), False)
        self._cluster = np.append(index["cluster_id"].rank("dense").to_numpy(), 0)
        self._mirrored = np.flatnonzero(self._asked & self._is_document)[:_MOST_MIRRORED]
        self._place = np.full(size + 1, -1, dtype=np.int64)
        self._place[self._mirrored] = np.arange(self._mirrored.size)
        self._strangers, self._barred, self._own = (
            _BadPairs(what, index["doc_id"])
            for what in (
                "pairs are of a query that does not belong here",
                "pairs have a document that may not be a candidate",
                "pairs are of a query and itself or its near-duplicate",
            )
        )
        self._sizes = {name: np.zeros(size + 1, np.int64) for name in ("pairs", *SIGNALS)}
        self._both = [pl.DataFrame(schema={**dict.fromkeys(SIGNALS, pl.Float64), **_PLACES})]
        for part in parts_of(pairs):
            self.add(part)

    def add(self, pairs: pl.DataFrame) -> None:
        """Look at another part."""
        query, doc = (pairs[name].to_numpy() for name in _NUMBERS)
        runs = pairs["query"].rle().struct.unnest()
        queries, lengths = runs["value"].to_numpy(), runs["len"].to_numpy().astype(np.int64)
        starts = np.cumsum(lengths) - lengths
        asked, document = np.repeat(self._asked[queries], lengths), self._is_document[doc]
        own = self._cluster[doc] == np.repeat(self._cluster[queries], lengths)
        own &= asked & document
        for bad, where in ((self._strangers, ~asked), (self._barred, ~document), (self._own, own)):
            if where.any():
                bad.add(pairs.filter(where))
        np.add.at(self._sizes["pairs"], queries, lengths)
        for name in SIGNALS:
            positive = np.add.reduceat(pairs[name].to_numpy() > 0, starts, dtype=np.int64)
            np.add.at(self._sizes[name], queries, positive)
        rows = np.flatnonzero(np.repeat(self._place[queries] >= 0, lengths))
        rows = rows[self._place[doc[rows]] >= 0]
        ends = {"row": self._place[query[rows]], "column": self._place[doc[rows]]}
        self._both.append(pairs.select(SIGNALS)[rows].with_columns(**_series(ends)))

    def are_of_others(self) -> list[Violation]:
        """A query is paired with documents outside its near-duplicate cluster only."""
        faults = (self._strangers, self._barred, self._own)
        return [violation for bad in faults for violation in bad.violations()]

    def are_symmetric(self, both_ways: bool = True) -> list[Violation]:
        """Where both are queries here, a pair is there both ways, with equal signals.

        Of many queries the first 1,000 by id are looked at; ids are hashes.

        Args:
            both_ways: if not, only pairs that are there both ways are compared.
        """
        both, size = pl.concat(self._both), self._mirrored.size
        place = both["row"].to_numpy(), both["column"].to_numpy()
        found: list[Violation] = []
        for signal in SIGNALS:
            # + 2, so that a pair that is there one way only differs by more than any signal
            values = both[signal].to_numpy() + 2.0
            way = coo_array((values, place), shape=(size, size)).tocsr()
            difference = triu(abs(way - way.T), k=1).tocoo()
            for bad, what in (
                (
                    (difference.data >= 2) & both_ways,
                    "pairs of two queries are there one way only",
                ),
                (
                    (difference.data > 0) & (difference.data < 2),
                    f"pairs of two queries have another {signal} signal the other way",
                ),
            ):
                ends = {"query": difference.row[bad], "doc": difference.col[bad]}
                numbers = {name: self._mirrored[place] for name, place in ends.items()}
                rows = with_ids(pl.DataFrame(numbers), self._index["doc_id"])
                found += violations(rows, what, _PAIR)
        return list(dict.fromkeys(found))

    def fit_the_population(self, counted: pl.DataFrame) -> list[Violation]:
        """No domain has more pairs than its population, which counts all its queries.

        Args:
            counted: what :func:`saber_dagster.signals.statistics.population` returned.
        """
        sizes = {name: column[:-1] for name, column in self._sizes.items()}
        rows = (
            self._index.select(pl.col("domains").alias("domain"))
            .with_columns(**_series(sizes))
            .filter(self._asked[:-1])
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


def _series(columns: dict[str, NDArray[Any]]) -> dict[str, pl.Series]:
    return {name: pl.Series(name, values) for name, values in columns.items()}


def threshold_counts_are_right(
    thresholds: pl.DataFrame, shards: Parts, index: pl.DataFrame, per_group: int
) -> list[Violation]:
    """What the table says of each domain is what a recount of the high pairs gives.

    Args:
        thresholds: table ``thresholds``, computed from the others.
        shards: the numbered pairs of all queries.
        index: table ``problem_index``.
        per_group: K.
    """
    sizes = group_sizes(shards, index, thresholds)
    queries, documents = index.filter("is_query"), index.filter("is_document")
    own = documents.group_by("cluster_id").agg(pl.len().cast(pl.Int64).alias("own"))
    topic_only, summary_only, both = (pl.col(group) for group in GROUPS)
    recount = (
        index.select("is_query", "cluster_id", pl.col("domains").alias("domain"))
        .with_row_index("query")
        .filter("is_query")
        .join(sizes, on="query", how="left")
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
