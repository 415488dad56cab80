"""A handful of queries with their candidates, as the judge ranked them."""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl
from markupsafe import Markup

from saber_dagster.plots.judging import rating_intervals, ratings_figure
from saber_dagster.plots.style import shortened
from saber_dagster.report.figures import Album, Picture
from saber_dagster.report.mathematics import Mathematics
from saber_dagster.report.overview import JudgeLabel
from saber_dagster.report.tables import MissingTableError, Tables

FIRST, LAST = 20, 10
"""Of longer rankings, so many candidates are shown from the top and from the bottom."""


@dataclass(frozen=True)
class Document:
    """A problem with its solution, ready for the page."""

    source: str
    source_id: str
    problem: Markup
    solution: Markup
    core_idea: Markup


@dataclass(frozen=True)
class Candidate:
    """A candidate as the judge ranked it."""

    rank: int
    rating: float
    margin: float
    group: str
    topic: float
    summary: float
    wins: float
    losses: float
    others: tuple[int | None, ...]
    """Its rank by the other judges."""
    document: Document


@dataclass(frozen=True)
class Example:
    """A query: why it is one, and the order of its candidates."""

    query_id: str
    domains: tuple[str, ...]
    topics: tuple[str, ...]
    document: Document
    picture: Picture
    candidates: tuple[Candidate, ...]
    left_out: int
    """Candidates between the first and the last that are shown."""


@dataclass(frozen=True)
class Examples:
    """The examples, and whose order they are in."""

    judge: str
    warning: str
    others: tuple[str, ...]
    queries: tuple[Example, ...]
    first_shown: int = FIRST


def chosen_queries(query_set: pl.DataFrame, domains: Sequence[str], count: int) -> list[str]:
    """Queries to show: of each domain in turn the smallest id that is not chosen yet.

    Ids are hashes of the texts, so the choice says nothing about the queries.

    Args:
        query_set: table ``query_set``.
        domains: the configured domains.
        count: how many.
    """
    waiting = {
        domain: sorted(
            query_set.filter(pl.col("primary_domain") == domain)["query_id"], reverse=True
        )
        for domain in domains
    }
    chosen: list[str] = []
    while len(chosen) < count and any(waiting.values()):
        for domain in domains:
            if waiting[domain] and len(chosen) < count:
                chosen.append(waiting[domain].pop())
    return chosen


def examples(
    tables: Tables,
    album: Album,
    mathematics: Mathematics,
    judges: Sequence[JudgeLabel],
    count: int | None,
) -> Examples:
    """Example queries in the order of the first judge that has ratings.

    Args:
        tables: of the home.
        album: makes the figures.
        mathematics: makes the texts.
        judges: the judges of the report.
        count: how many queries; None for one of each domain.

    Raises:
        MissingTableError: if a table is not there, or no judge has ratings.
    """
    rated = {
        judge.slug: frame
        for judge in judges
        if (frame := tables.get(f"judge/{judge.slug}/ratings")) is not None
    }
    if not rated:
        names = ", ".join(f"judge/{judge.slug}/ratings" for judge in judges)
        raise MissingTableError(f"none of these tables is there: {names}")
    first = next(judge for judge in judges if judge.slug in rated)
    others = [slug for slug in rated if slug != first.slug]
    domains = tables.home.settings.domains
    query_set = tables.need("query_set")
    ids = chosen_queries(query_set, domains, len(domains) if count is None else count)
    library = _Library(tables, mathematics)
    candidate_sets = tables.need("candidate_sets")
    made = []
    for query in ids:
        mine = pl.col("query_id") == query
        ranks = [
            dict(rated[slug].filter(mine).select("doc_id", "rank").iter_rows()) for slug in others
        ]
        rows = (
            rating_intervals(rated[first.slug].filter(mine))
            .join(candidate_sets.filter(mine), on=("query_id", "doc_id"), how="inner")
            .sort("rank", "doc_id")
        )
        made.append(
            _example(
                query_set.filter(mine).row(0, named=True)["domains"],
                query,
                rows,
                ranks,
                library,
                album,
                first,
            )
        )
    return Examples(first.slug, first.warning, tuple(others), tuple(made))


def _example(
    domains: list[str],
    query: str,
    rows: pl.DataFrame,
    ranks: list[dict[str, int]],
    library: "_Library",
    album: Album,
    judge: JudgeLabel,
) -> Example:
    shown = rows
    if rows.height > FIRST + LAST:
        shown = pl.concat([rows.head(FIRST), rows.tail(LAST)])
    document = library.document(query)
    name = f"{document.source} {document.source_id}"
    title = f"Candidates of query {shortened(name, 40)}, judge {judge.slug}"
    return Example(
        query_id=query,
        domains=tuple(domains),
        topics=library.topics(query),
        document=document,
        picture=album.picture(
            f"Points with whiskers: the ratings of the candidates of query {name}",
            "The judge's order from left to right. Where whiskers overlap, the order is not certain.",
            lambda narrow: ratings_figure(
                rows, rows.select("doc_id", "group"), title, judge.warning, narrow
            ),
        ),
        candidates=tuple(
            Candidate(
                rank=row["rank"],
                rating=row["rating"],
                margin=row["margin"],
                group=row["group"],
                topic=row["topic"],
                summary=row["summary"],
                wins=row["wins"],
                losses=row["losses"],
                others=tuple(rank.get(row["doc_id"]) for rank in ranks),
                document=library.document(row["doc_id"], in_line=True),
            )
            for row in shown.iter_rows(named=True)
        ),
        left_out=rows.height - shown.height,
    )


class _Library:
    """Texts and topics by document."""

    def __init__(self, tables: Tables, mathematics: Mathematics) -> None:
        self._mathematics = mathematics
        columns = ("doc_id", "source", "source_id", "problem", "solution")
        texts = tables.need("release").select(columns)
        self._texts = {row[0]: row[1:] for row in texts.iter_rows()}
        self._ideas: dict[str, str | None] = {}
        summaries = tables.get("summaries")
        if summaries is not None:
            self._ideas = dict(summaries.select("doc_id", "core_idea").iter_rows())
        self._topics: dict[str, list[str]] = {}
        tags, tree = tables.get("topic_tags"), tables.get("ontology_tree")
        if tags is not None and tree is not None:
            named = tags.join(tree.select("node_id", "path"), on="node_id").sort("path")
            self._topics = dict(
                named.group_by("doc_id", maintain_order=True).agg("path").iter_rows()
            )

    def document(self, doc: str, in_line: bool = False) -> Document:
        """The texts of a document; ``in_line``: the problem without paragraphs."""
        source, source_id, problem, solution = self._texts.get(doc, ("", doc, "", ""))
        return Document(
            source,
            source_id,
            (self._mathematics.line if in_line else self._mathematics.html)(problem),
            self._mathematics.html(solution),
            self._mathematics.line(self._ideas.get(doc) or ""),
        )

    def topics(self, doc: str) -> tuple[str, ...]:
        """The paths of a document's topics."""
        return tuple(self._topics.get(doc, ()))
