"""The leaderboard of one judge: figures and tables of every setting."""

from dataclasses import dataclass
from typing import Any

import polars as pl

from saber_dagster.leaderboard import OVERALL
from saber_dagster.plots.leaderboard import (
    board_domains_figure,
    order,
    reference_slugs,
    settings_figure,
)
from saber_dagster.report.figures import Album, Picture
from saber_dagster.report.overview import JudgeLabel
from saber_dagster.report.tables import MissingTableError, Tables

FEW_QUERIES = 10
"""A domain with fewer is named among the cautions."""


@dataclass(frozen=True)
class BoardRow:
    """A retriever in one setting: a row of ``leaderboard`` for each column, or none."""

    retriever: str
    revision: str
    reference: bool
    cells: tuple[dict[str, Any] | None, ...]


@dataclass(frozen=True)
class SettingBoard:
    """One setting: a column for all queries and for each domain, with its number of queries."""

    setting: str
    columns: tuple[tuple[str, int], ...]
    rows: tuple[BoardRow, ...]
    by_domain: Picture


@dataclass(frozen=True)
class BoardSection:
    """A judge's board."""

    metric: str
    revision: str
    release: str
    queries: int
    settings: tuple[SettingBoard, ...]
    overall: Picture
    best: tuple[str, ...]
    """Rivals of the first tied group in the main setting, overall."""
    thin: tuple[tuple[str, int], ...]
    """Domains with few queries."""
    missing: int
    """Queries that runs lack, in all rows of the main setting."""


def board_section(tables: Tables, album: Album, judge: JudgeLabel) -> BoardSection:
    """A judge's board.

    Raises:
        MissingTableError: if there is none.
    """
    board = tables.need("leaderboard").filter(pl.col("judge") == judge.slug)
    if board.is_empty():
        raise MissingTableError(f"the leaderboard has no rows of judge {judge.slug}")
    home = tables.home
    references = reference_slugs(home.retrievers)
    there = set(board["setting"])
    settings = [name for name in home.settings.evaluation.settings if name in there]
    settings += sorted(there - set(settings))
    main = board.filter((pl.col("setting") == settings[0]) & (pl.col("domain") == OVERALL))
    rivals = main.filter(~pl.col("retriever").is_in(list(references)))
    counts = dict(
        board.filter(pl.col("setting") == settings[0]).select("domain", "n_queries").iter_rows()
    )
    title = f"Judge {judge.slug}, release {board['release'][0]}"
    domains = home.settings.domains
    return BoardSection(
        metric=board["metric"][0],
        revision=board["judge_revision"][0],
        release=board["release"][0],
        queries=counts.get(OVERALL, 0),
        settings=tuple(
            _setting(board, setting, domains, references, album, title, judge.warning)
            for setting in settings
        ),
        overall=album.picture(
            f"Points with whiskers: every retriever by setting, judge {judge.slug}",
            "Each point is a mean over all queries; two whose whiskers overlap may still differ, and"
            " the tied groups in the tables say which do.",
            lambda narrow: settings_figure(
                board, settings, references, title, judge.warning, narrow
            ),
        ),
        best=tuple(
            rivals.filter(pl.col("tied_group") == 1)
            .sort(["value", "retriever"], descending=[True, False])["retriever"]
            .to_list()
        ),
        thin=tuple(
            (domain, counts[domain]) for domain in domains if counts.get(domain, 99) < FEW_QUERIES
        ),
        missing=int(main["n_missing"].sum()),
    )


def _setting(
    board: pl.DataFrame,
    setting: str,
    domains: tuple[str, ...],
    references: frozenset[str],
    album: Album,
    title: str,
    warning: str,
) -> SettingBoard:
    mine = board.filter(pl.col("setting") == setting)
    cells = {(row["retriever"], row["domain"]): row for row in mine.iter_rows(named=True)}
    counts = dict(mine.select("domain", "n_queries").iter_rows())
    columns = [(name, counts[name]) for name in (OVERALL, *domains) if name in counts]
    revisions = dict(mine.select("retriever", "retriever_revision").iter_rows())
    return SettingBoard(
        setting=setting,
        columns=tuple(columns),
        rows=tuple(
            BoardRow(
                name,
                revisions[name],
                name in references,
                tuple(cells.get((name, column)) for column, _ in columns),
            )
            for name in order(board, setting, references)
        ),
        by_domain=album.picture(
            f"Points with whiskers: every retriever by domain, {setting}",
            "A panel per domain, with its number of queries. Few queries make wide whiskers.",
            lambda narrow: board_domains_figure(
                board, setting, domains, references, f"{title}, {setting}", warning, narrow
            ),
        ),
    )
