"""From a figure of the leaderboard to the queries, rankings, ratings and games behind it."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from saber_dagster.errors import SaberError
from saber_dagster.freshness import Key
from saber_dagster.home import Home
from saber_dagster.settings import ORACLE
from saber_dagster.trace.names import Document, Documents, nearest
from saber_dagster.trace.tables import TracedTables

OVERALL = "overall"
_MOST_RANKED = 10
"""Documents of a ranking that are listed; the one that is traced is among them in any case."""


class Chain:
    """Walks down the tables of one judge's lane.

    Args:
        home: the home.
        judge: its slug; default: the first in judges.yaml.

    Raises:
        SaberError: if there is no such judge, or its tables are not made yet.
    """

    def __init__(self, home: Home, judge: str | None = None) -> None:
        slugs = [entry.slug for entry in home.judges]
        self.judge = slugs[0] if judge is None else nearest(judge, slugs, "judge")
        self.tables = TracedTables(home)
        self.documents = Documents(self.tables.need("release_texts", ("release",)))
        self._home = home
        self._queries = self.tables.need("query_set", ("query_set",)).sort("query_id")

    def find_query(self, text: str) -> Document:
        """The query that a person means."""
        return self.documents.find(text, self._queries["query_id"].to_list(), "query")

    def find_candidate(self, query: Document, text: str) -> Document:
        """The candidate of a query that a person means."""
        candidates = self._of(self._candidates(query), query)["doc_id"].to_list()
        return self.documents.find(text, candidates, f"candidate of query {query.source_id}")

    def figure(self, retriever: str, domain: str, setting: str | None) -> dict[str, Any]:
        """A cell of the leaderboard.

        Raises:
            SaberError: if there is no such cell.
        """
        board = self.tables.need("leaderboard", ("leaderboard",)).filter(judge=self.judge)
        if board.is_empty():
            raise SaberError(
                f"the leaderboard has no rows of judge {self.judge}; `saber build` brings it up to date"
            )
        shown = self._home.settings.evaluation.settings
        row = {
            "retriever": nearest(retriever, _values(board, "retriever"), "retriever"),
            "domain": nearest(domain, _values(board, "domain"), "domain"),
            "setting": nearest(setting or shown[0], _values(board, "setting"), "setting"),
        }
        return board.filter(**row).row(0, named=True)

    def metrics(self, figure: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The metric of every query in a figure, worst first."""
        rows = self.tables.need("query_metrics", ("query_metrics",)).filter(
            judge=self.judge,
            retriever=figure["retriever"],
            setting=figure["setting"],
            metric=figure["metric"],
        )
        if figure["domain"] != OVERALL:
            rows = rows.filter(pl.col("domains").list.contains(figure["domain"]))
        return [
            {**ids(self.documents[row["query_id"]], "query"), **row}
            for row in rows.select("query_id", "value", "missing", "domains")
            .sort("value", "query_id")
            .iter_rows(named=True)
        ]

    def ranking(self, figure: Mapping[str, Any], query: Document) -> list[dict[str, Any]]:
        """A retriever's ranking of a query, with the judge's rating of each document, in order."""
        benchmark = self.benchmark(query)
        if figure["retriever"] == ORACLE:
            ranked = benchmark.with_columns(pl.col("rating").alias("score"))
        else:
            key: Key = ("retriever", figure["retriever"], "run")
            run = self.tables.need("run", key, self._partition(query))
            ranked = (
                self._of(run, query)
                .filter(setting=figure["setting"])
                .join(benchmark.select("doc_id", "rating", "rank"), on="doc_id", suffix="_by_judge")
            )
        rows = ranked.sort("rank").iter_rows(named=True)
        return [
            {
                **ids(self.documents[row["doc_id"]], "doc"),
                "rank": row["rank"],
                "score": row["score"],
                "rating": row["rating"],
                "rank_by_judge": row.get("rank_by_judge", row["rank"]),
            }
            for row in rows
        ]

    def benchmark(self, query: Document) -> pl.DataFrame:
        """The judge's ratings of a query's candidates."""
        key = ("judge", self.judge, "benchmark")
        return self._of(self.tables.need("benchmark", key), query)

    def candidate(self, query: Document, doc: Document) -> dict[str, Any]:
        """What is known of a candidate: why it is one, how it is rated, and its record."""
        mine = {"query_id": query.doc_id, "doc_id": doc.doc_id}
        lane = ("judge", self.judge)
        partition = self._partition(query)
        why = self._candidates(query).filter(**mine)
        rated = self.tables.need("ratings", (*lane, "ratings"), partition).filter(**mine)
        if rated.is_empty():
            raise SaberError(
                f"judge {self.judge} has no rating of {doc} for query {query}; `saber build` brings its"
                " lane up to date"
            )
        prior = self.tables.need("rating_prior", (*lane, "rating_prior")).row(0, named=True)
        return {
            "candidate": why.select("group", "topic", "summary").row(0, named=True),
            "rating": {
                **rated.drop("query_id", "doc_id").row(0, named=True),
                "of": self.benchmark(query).height,
            },
            "rating_prior": prior,
        }

    def games(self, query: Document, doc: Document) -> list[dict[str, Any]]:
        """The games of a document in the order of rounds, from its side."""
        key = ("judge", self.judge, "tournament_rounds")
        games = self._of(self.tables.need("judgments", key, self._partition(query)), query)
        rows = games.filter((pl.col("doc_a") == doc.doc_id) | (pl.col("doc_b") == doc.doc_id))
        return [self._game(row, doc) for row in rows.sort("round").iter_rows(named=True)]

    def _game(self, row: Mapping[str, Any], doc: Document) -> dict[str, Any]:
        is_a = row["doc_a"] == doc.doc_id
        outcome = row["outcome"]
        return {
            "round": row["round"],
            **ids(self.documents[row["doc_b"] if is_a else row["doc_a"]], "opponent"),
            "shown_first": row["shown_first"] == doc.doc_id,
            "outcome": outcome if outcome is None or is_a else 1.0 - outcome,
            "status": row["status"],
            "weight": row["weight"],
            "call_keys": row["call_keys"],
        }

    def _candidates(self, query: Document) -> pl.DataFrame:
        return self.tables.need("candidate_sets", ("candidate_sets",), self._partition(query))

    def _partition(self, query: Document) -> str:
        row = self._queries.filter(query_id=query.doc_id).row(0, named=True)
        return f"{row['primary_domain']}|s{row['shard']:02d}"

    @staticmethod
    def _of(frame: pl.DataFrame, query: Document) -> pl.DataFrame:
        return frame.filter(query_id=query.doc_id)


def shortened(ranking: Sequence[dict[str, Any]], doc: Document) -> list[dict[str, Any]]:
    """The top of a ranking, and the document that is traced."""
    return [row for row in ranking if row["rank"] <= _MOST_RANKED or row["doc_id"] == doc.doc_id]


def ids(document: Document, what: str) -> dict[str, str]:
    """Both ids of a document: ``query_id`` and ``query_source_id``."""
    return {f"{what}_id": document.doc_id, f"{what}_source_id": document.source_id}


def _values(frame: pl.DataFrame, column: str) -> list[str]:
    return frame[column].unique(maintain_order=True).to_list()
