"""The leaderboard as points with whiskers, by setting and by domain."""

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from saber_dagster.leaderboard import OVERALL
from saber_dagster.plots.style import (
    INK,
    MUTED,
    PAPER,
    TITLE,
    domain_colours,
    domain_names,
    finish,
    nothing,
    panels,
    shortened,
    styled,
)
from saber_dagster.settings import ORACLE, RetrieverEntry

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_READING = (
    "Whiskers: 95 % intervals over the choice of queries. Filled: not separable from the best."
    " Grey, below: reference points, not rivals."
)


def reference_slugs(retrievers: Iterable[RetrieverEntry]) -> frozenset[str]:
    """The rows of a board that are no rivals: the oracle, and what ranks at random."""
    return frozenset({ORACLE, *(r.slug for r in retrievers if r.retriever == "random")})


def order(
    board: pl.DataFrame, setting: str, references: Collection[str], most: int | None = None
) -> list[str]:
    """The retrievers of a board: rivals from the best down, then references likewise.

    Args:
        board: rows of ``leaderboard`` of one judge.
        setting: the setting whose overall figures decide.
        references: slugs that are no rivals, such as the oracle.
        most: rivals to keep; None for all.
    """
    rows = board.filter((pl.col("setting") == setting) & (pl.col("domain") == OVERALL))
    ranked = rows.sort(["value", "retriever"], descending=[True, False])["retriever"].to_list()
    rivals = [slug for slug in ranked if slug not in references]
    return [*rivals[:most], *(slug for slug in ranked if slug in references)]


@styled
def settings_figure(
    board: pl.DataFrame,
    settings: Sequence[str],
    references: Collection[str],
    title: str,
    note: str = "",
    narrow: bool = False,
    most: int | None = None,
) -> "Figure":
    """A panel per setting: the overall figures of every retriever.

    Args:
        board: rows of ``leaderboard`` of one judge.
        settings: the settings, the main one first; it decides the order.
        references: slugs that are no rivals, such as the oracle.
        title: whose board it is.
        note: what must stand beside the figure, such as a warning.
        narrow: for a phone.
        most: rivals to show; None for all.
    """
    names = order(board, settings[0], references, most) if settings else []
    overall = board.filter(pl.col("domain") == OVERALL)
    figure, every = panels([_height(names)] * len(settings), narrow, sharey=True)
    if not names:
        nothing(every[0], "no figures")
    for setting, axes in zip(settings if names else (), every, strict=False):
        rows = overall.filter(pl.col("setting") == setting)
        _board(axes, rows, names, references, INK)
        axes.set_title(setting)
        axes.set_xlabel(_metric(board))
    finish(figure, title, _READING, _left_out(board, names), note)
    return figure


@styled
def board_domains_figure(
    board: pl.DataFrame,
    setting: str,
    domains: Sequence[str],
    references: Collection[str],
    title: str,
    note: str = "",
    narrow: bool = False,
    most: int | None = None,
) -> "Figure":
    """A panel per domain: the figures of every retriever in one setting.

    Args:
        board: rows of ``leaderboard`` of one judge.
        setting: the setting.
        domains: the configured domains; those without a query have no panel.
        references: slugs that are no rivals, such as the oracle.
        title: whose board it is.
        note: what must stand beside the figure, such as a warning.
        narrow: for a phone.
        most: rivals to show; None for all.
    """
    names = order(board, setting, references, most)
    mine = board.filter(pl.col("setting") == setting)
    shown = [domain for domain in domains if (mine["domain"] == domain).any()]
    sizes = dict(mine.select("domain", "n_queries").iter_rows())
    counts = {name: f"({sizes[name]:,} {_queries(sizes[name])})" for name in shown}
    room = TITLE - 1 - max(map(len, counts.values()), default=0)
    known = domain_names(domains, max(room, 14))
    figure, every = panels([_height(names)] * len(shown), narrow, sharey=True)
    if not shown:
        nothing(every[0], "no figures")
    for domain, axes in zip(shown, every, strict=False):
        rows = mine.filter(pl.col("domain") == domain)
        _board(axes, rows, names, references, domain_colours(domains)[domain])
        axes.set_title(f"{known[domain]} {counts[domain]}")
        axes.set_xlabel(_metric(board))
    finish(figure, title, _READING, _left_out(board, names), note)
    return figure


def _queries(count: int) -> str:
    return "query" if count == 1 else "queries"


def _left_out(board: pl.DataFrame, names: Sequence[str]) -> str:
    count = board["retriever"].n_unique() - len(names)
    return f"{count} more retrievers are in the table." if names and count else ""


def _height(names: Sequence[str]) -> float:
    return 0.23 * len(names) + 0.75


def _metric(board: pl.DataFrame) -> str:
    return str(board["metric"][0])


def _is_best(row: dict[str, Any], references: Collection[str]) -> bool:
    return row["retriever"] not in references and row["tied_group"] == 1


def _board(
    axes: "Axes",
    rows: pl.DataFrame,
    names: Sequence[str],
    references: Collection[str],
    colour: str,
) -> None:
    """Points with whiskers, a line per retriever, references apart from the rivals."""
    found: dict[str, dict[str, Any]] = {row["retriever"]: row for row in rows.to_dicts()}
    rivals = sum(name not in references for name in names)
    places = [place + (0.6 if name in references else 0.0) for place, name in enumerate(names)]
    there = [
        (place, found[name]) for place, name in zip(places, names, strict=True) if name in found
    ]
    best = [(p, row) for p, row in there if _is_best(row, references)]
    beaten = [
        (p, row)
        for p, row in there
        if row["retriever"] not in references and not _is_best(row, references)
    ]
    apart = [(p, row) for p, row in there if row["retriever"] in references]
    for kind, marker, shade, face in (
        (best, "o", colour, colour),
        (beaten, "o", colour, PAPER),
        (apart, "d", MUTED, PAPER),
    ):
        axes.errorbar(
            [row["value"] for _, row in kind],
            [place for place, _ in kind],
            xerr=np.array(
                [
                    [row["value"] - row["low"] for _, row in kind],
                    [row["high"] - row["value"] for _, row in kind],
                ]
            ),
            fmt=marker,
            color=shade,
            markerfacecolor=face,
            ms=5.5,
            elinewidth=1.3,
        )
    if 0 < rivals < len(names):
        axes.axhline(rivals - 0.2, color=MUTED, linewidth=0.6)
    axes.set_yticks(places, [shortened(name, 26) for name in names])
    axes.set_ylim((places[-1] if places else 0) + 0.6, -0.6)
    axes.set_xlim(-0.02, 1.03)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x")
