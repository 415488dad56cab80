"""What a judge did: its games round by round, the ratings of a query, and which groups rank high."""

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from saber_dagster.contracts import GROUPS
from saber_dagster.plots.style import (
    GRID,
    GROUP_COLOURS,
    GROUP_MARKERS,
    GROUP_NAMES,
    INK,
    MUTED,
    finish,
    nothing,
    panels,
    styled,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Z = 1.96
"""Standard errors on each side of a 95 % interval."""

_FAILURE_COLOURS = {"parse_error": "#8c5a2b", "refused": "#c05a7a", "truncated": "#5d6b75"}


def games_by_round(judgments: pl.DataFrame) -> pl.DataFrame:
    """How often the document that was shown first was preferred, and what failed, by round.

    Args:
        judgments: table ``judgments``.

    Returns:
        Columns round, games, judged, first (mean outcome for the document shown first), error (its
        standard error), sorted; the last two are empty where no game was judged.
    """
    first = (
        pl.when(pl.col("shown_first") == pl.col("doc_a"))
        .then(pl.col("outcome"))
        .otherwise(1.0 - pl.col("outcome"))
    )
    return (
        judgments.with_columns(first=first)
        .sort("first")  # sums of floats depend on the order
        .group_by("round", maintain_order=True)
        .agg(
            games=pl.len(),
            judged=pl.col("first").is_not_null().sum(),
            first=pl.mean("first"),
            error=pl.std("first", ddof=0) / pl.col("first").count().sqrt(),
        )
        .with_columns(
            pl.col("first").round(9), pl.when(pl.col("judged") > 0).then("error").round(9)
        )
        .sort("round")
    )


def failures_by_round(judgments: pl.DataFrame) -> pl.DataFrame:
    """Columns round, status, games: the games without a verdict, sorted."""
    failed = judgments.filter(pl.col("outcome").is_null())
    return failed.group_by("round", "status").agg(games=pl.len()).sort("round", "status")


@styled
def rounds_figure(
    judgments: pl.DataFrame, title: str, note: str = "", narrow: bool = False
) -> "Figure":
    """Points and bars: preference for what is shown first, and failed games, by round.

    Args:
        judgments: table ``judgments``.
        title: whose games they are.
        note: what must stand beside the figure, such as a warning.
        narrow: for a phone.
    """
    from matplotlib.ticker import MaxNLocator

    failures = failures_by_round(judgments)
    figure, every = panels([2.4] * (2 if failures.height else 1), narrow)
    rounds = games_by_round(judgments)
    _first_shown(every[0], rounds)
    verdicts = "all with a verdict" if judgments.height else "none"
    if failures.height:
        _failures(every[1], failures, dict(rounds.select("round", "games").iter_rows()))
        verdicts = f"{int(failures['games'].sum()):,} without a verdict"
    for axes in every:
        if axes.axison:
            axes.set_xlabel("round")
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            axes.grid(axis="y")
    reading = (
        f"{judgments.height:,} games, {verdicts}. Whiskers: 95 % intervals, as if games were"
        " independent; the judge sees a document again and again."
    )
    finish(figure, title, reading, note, legend=every[-1:])
    return figure


def _first_shown(axes: "Axes", rounds: pl.DataFrame) -> None:
    judged = rounds.filter(pl.col("judged") > 0)
    if not judged.height:
        nothing(axes, "no game was judged")
        return
    axes.axhline(0.5, color=MUTED, linewidth=0.9, linestyle=(0, (2, 2)))
    axes.errorbar(
        judged["round"].to_numpy(),
        judged["first"].to_numpy(),
        yerr=Z * judged["error"].to_numpy(),
        fmt="o",
        color=INK,
        ms=4,
        elinewidth=1,
    )
    axes.set_ylim(0, 1)
    axes.set_title("the document shown first wins")
    axes.set_ylabel("share of judged games")


def _failures(axes: "Axes", failures: pl.DataFrame, games: dict[int, int]) -> None:
    """Stacked bars: the share of a round's games that failed, by status."""
    base = dict.fromkeys(games, 0.0)
    for status in failures["status"].unique().sort():
        mine = dict(failures.filter(pl.col("status") == status).select("round", "games").rows())
        shares = {number: mine.get(number, 0) / total for number, total in games.items()}
        axes.bar(
            list(games),
            list(shares.values()),
            bottom=list(base.values()),
            color=_FAILURE_COLOURS.get(status, MUTED),
            label=f"{status} ({sum(mine.values()):,})",
        )
        base = {number: base[number] + shares[number] for number in games}
    axes.set_title("games without a verdict")
    axes.set_ylabel("share of games")


def rank_curves(benchmark: pl.DataFrame) -> pl.DataFrame:
    """The share of a group's candidates that are ranked at most so low.

    Args:
        benchmark: table ``benchmark``.

    Returns:
        Columns group, rank, share, for every rank from 1 to the largest; groups without a candidate
        have no rows.

    Source: SABER-Math, figure "Cumulative rank distribution of candidates".
    """
    largest = 0 if benchmark.is_empty() else int(benchmark.select(pl.max("rank")).item())
    rows = []
    for group in GROUPS:
        ranks = np.sort(benchmark.filter(pl.col("group") == group)["rank"].to_numpy())
        if ranks.size:
            counts = np.searchsorted(ranks, np.arange(1, largest + 1), side="right")
            rows += [(group, rank, n / ranks.size) for rank, n in enumerate(counts.tolist(), 1)]
    schema = {"group": pl.String, "rank": pl.Int64, "share": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


@styled
def rank_curves_figure(
    benchmark: pl.DataFrame, title: str, note: str = "", narrow: bool = False
) -> "Figure":
    """Lines: how early the candidates of each group come in the judge's order.

    Args:
        benchmark: table ``benchmark``.
        title: whose order it is.
        note: what must stand beside the figure, such as a warning.
        narrow: for a phone.
    """
    figure, (axes,) = panels([3.2], narrow)
    curves = rank_curves(benchmark)
    if not curves.height:
        nothing(axes, "no candidates")
    else:
        largest = int(curves.select(pl.max("rank")).item())
        axes.plot([0, largest], [0, 1], color=MUTED, linewidth=1, linestyle=(0, (2, 2)))
        for group in GROUPS:
            mine = curves.filter(pl.col("group") == group)
            axes.plot(
                [0, *mine["rank"]],
                [0, *mine["share"]],
                color=GROUP_COLOURS[group],
                marker=GROUP_MARKERS[group],
                markevery=max(1, largest // 8),
                ms=4.5,
                label=GROUP_NAMES[group],
            )
        axes.set_xlabel("rank in the judge's order")
        axes.set_ylabel("share of the group up to that rank")
        axes.set_xlim(0, largest)
        axes.set_ylim(0, 1.02)
        axes.grid(axis="both")
    reading = "A higher line: the group comes earlier. Dashed: where groups do not matter."
    finish(figure, title, reading, note, legend=[axes])
    return figure


def rating_intervals(ratings: pl.DataFrame) -> pl.DataFrame:
    """Ratings with 95 % intervals on the scale of the ratings.

    A standard error of the log-strength is rescaled as the ratings of its query are, so that the
    widths compare candidates of one query. The ends of the scale have an interval, too, as they
    were estimated before they became 0 and 5.

    Args:
        ratings: table ``ratings``.

    Returns:
        The table with a column ``margin``: half the interval's width; 0 if all candidates of the
        query are equal.
    """
    spread = (pl.max("log_strength") - pl.min("log_strength")).over("query_id")
    scale = pl.when(spread > 0).then(
        (pl.max("rating") - pl.min("rating")).over("query_id") / spread
    )
    return ratings.with_columns(margin=(scale.fill_null(0.0) * Z * pl.col("standard_error")))


@styled
def ratings_figure(
    ratings: pl.DataFrame,
    groups: pl.DataFrame,
    title: str,
    note: str = "",
    narrow: bool = False,
) -> "Figure":
    """Points with whiskers: the candidates of one query in the judge's order.

    Args:
        ratings: rows of ``ratings`` of one query.
        groups: columns doc_id and group, of that query.
        title: which query it is.
        note: what must stand beside the figure, such as a warning.
        narrow: for a phone.
    """
    from matplotlib.ticker import MaxNLocator

    figure, (axes,) = panels([2.9], narrow)
    rows = rating_intervals(ratings).join(groups, on="doc_id", how="left").sort("rank", "doc_id")
    if not rows.height:
        nothing(axes, "no candidates")
    else:
        for group in GROUPS:
            mine = rows.filter(pl.col("group") == group)
            axes.errorbar(
                mine["rank"].to_numpy(),
                mine["rating"].to_numpy(),
                yerr=mine["margin"].to_numpy(),
                fmt=GROUP_MARKERS[group],
                color=GROUP_COLOURS[group],
                ms=5,
                elinewidth=1,
                label=GROUP_NAMES[group],
            )
        axes.axhspan(0, 5, color=GRID, alpha=0.25, linewidth=0)
        axes.set_ylim(-1, 6)
        axes.set_yticks(range(6))
        axes.set_xlim(0, rows.height + 1)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("rank")
        axes.set_ylabel("rating")
        axes.grid(axis="y")
    reading = "Whiskers: 95 % intervals of the rating; those that leave the picture are cut."
    finish(figure, title, reading, note, legend=[axes])
    return figure
