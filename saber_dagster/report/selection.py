"""From topics to queries: domains, signals, thresholds, and who became a query."""

from dataclasses import dataclass
from typing import Any

import polars as pl

from saber_dagster.contracts import GROUPS
from saber_dagster.plots.candidates import candidates_figure
from saber_dagster.plots.signals import eligible_figure, tail_lines, tails_figure
from saber_dagster.plots.topics import domains_figure, tags_of, topic_weights, topics_figure
from saber_dagster.report.figures import Album, Picture
from saber_dagster.report.tables import Tables
from saber_dagster.signals.tails import signal_tails


@dataclass(frozen=True)
class Topics:
    """How the problems lie over domains and topics."""

    documents: int
    without_topic: int
    without_words: int
    domains: Picture
    topics: Picture


@dataclass(frozen=True)
class Signals:
    """How rare high signals are, and what counts as high."""

    rule: str
    rows: tuple[dict[str, Any], ...]
    """Rows of ``thresholds``."""
    tails: Picture | None
    """None where not all pairs above the floors are stored."""


@dataclass(frozen=True)
class DomainRow:
    """The queries of a domain."""

    domain: str
    possible: int
    eligible: int
    selected: int
    shortest: str
    """The group that most queries are short of; empty if the domain has enough."""


@dataclass(frozen=True)
class Queries:
    """Who became a query, and why the candidates are candidates."""

    total: int
    required: int
    per_group: int
    rows: tuple[DomainRow, ...]
    eligible: Picture
    candidates: Picture


def topics(tables: Tables, album: Album) -> Topics:
    """Domains and topics.

    Raises:
        MissingTableError: if a table is not there.
    """
    index, tree = tables.need("problem_index"), tables.need("ontology_tree")
    documents = index.filter("is_document")
    weights = topic_weights(tags_of(index), tree)
    domains = tables.home.settings.domains
    count = f"{documents.height:,} problems"
    return Topics(
        documents=documents.height,
        without_topic=documents["topic_set_id"].null_count(),
        without_words=documents["word_set_id"].null_count(),
        domains=album.picture(
            "Bars: how many problems lie in each domain",
            "A longer bar: more problems. A problem with several topics is shared equally among them.",
            lambda narrow: domains_figure(weights, domains, f"Domains of {count}", narrow),
        ),
        topics=album.picture(
            "Bars in a panel per domain: how many problems lie in each first-level topic",
            "The largest topics of each domain. Finer topics are counted in the one they belong to.",
            lambda narrow: topics_figure(weights, domains, f"Topics of {count}", narrow),
        ),
    )


def signals(tables: Tables, album: Album) -> Signals:
    """Signals and thresholds.

    Raises:
        MissingTableError: if a table is not there.
    """
    thresholds, index = tables.need("thresholds"), tables.need("problem_index")
    stored = tables.home.settings.signals
    domains = tables.home.settings.domains
    floors = {"topic": stored.topic_floor, "summary": stored.summary_floor}
    whole = stored.keep == "floor"
    tails = tail_lines(signal_tails(tables.shards(), index, domains, floors) if whole else {})
    return Signals(
        rule=thresholds["rule"][0] if thresholds.height else "",
        rows=tuple(_in_order(thresholds, domains)),
        tails=album.picture(
            "Lines: the share of pairs whose topic or summary signal is at least a value, by domain",
            "A line that falls early: few pairs are alike by this signal. The scale is logarithmic.",
            lambda narrow: tails_figure(
                tails, domains, "How rare high signals are", thresholds, narrow
            ),
        )
        if whole
        else None,
    )


def queries(tables: Tables, album: Album) -> Queries:
    """Queries and candidates.

    Raises:
        MissingTableError: if a table is not there.
    """
    settings = tables.home.settings
    thresholds, query_set = tables.need("thresholds"), tables.need("query_set")
    candidate_sets = tables.need("candidate_sets")
    required, per_group = settings.thresholds.queries_required, settings.candidates.per_group
    rows = []
    for row in _in_order(thresholds, settings.domains):
        short = max(reversed(GROUPS), key=lambda group: row[f"short_{group}"])
        mine = query_set.filter(pl.col("domains").list.contains(row["domain"]))
        rows.append(
            DomainRow(
                domain=row["domain"],
                possible=row["n_queries"],
                eligible=row["eligible_queries"],
                selected=mine.height,
                shortest=short if row["eligible_queries"] < required else "",
            )
        )
    return Queries(
        total=query_set.height,
        required=required,
        per_group=per_group,
        rows=tuple(rows),
        eligible=album.picture(
            "Bars: eligible queries of each domain, and queries that are short of documents by group",
            "Of the problems that may be queries, how many have enough related documents; and for"
            " each group, how many lack documents in it.",
            lambda narrow: eligible_figure(
                thresholds, settings.domains, required, per_group, narrow
            ),
        ),
        candidates=album.picture(
            "Points: topic and summary signal of each candidate, by group",
            "To the right: related by topic. Up: related by the idea of the solution.",
            lambda narrow: candidates_figure(candidate_sets, "Candidates of all queries", narrow),
        ),
    )


def _in_order(thresholds: pl.DataFrame, domains: tuple[str, ...]) -> list[dict[str, Any]]:
    """Rows of ``thresholds`` in the order of the settings."""
    rows = {row["domain"]: row for row in thresholds.iter_rows(named=True)}
    return [rows[domain] for domain in domains if domain in rows]
