"""Why candidates are candidates: both signals, by group."""

from typing import TYPE_CHECKING

import polars as pl

from saber_dagster.contracts import GROUPS
from saber_dagster.plots.style import (
    GROUP_COLOURS,
    GROUP_MARKERS,
    GROUP_NAMES,
    finish,
    nothing,
    panels,
    styled,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_POINTS = 1200
"""More points would hide each other."""


@styled
def candidates_figure(candidate_sets: pl.DataFrame, title: str, narrow: bool = False) -> "Figure":
    """Points: topic and summary signal of each candidate, coloured by group.

    Args:
        candidate_sets: table ``candidate_sets``; of many rows, every n-th is drawn.
        title: whose candidates they are.
        narrow: for a phone.
    """
    figure, (axes,) = panels([3.4], narrow)
    step = -(-candidate_sets.height // _MOST_POINTS) or 1
    drawn = candidate_sets.sort("query_id", "doc_id").gather_every(step)
    if not drawn.height:
        nothing(axes, "no candidates")
    else:
        for group in GROUPS:
            mine = drawn.filter(pl.col("group") == group)
            axes.plot(
                mine["topic"].to_numpy(),
                mine["summary"].to_numpy(),
                GROUP_MARKERS[group],
                color=GROUP_COLOURS[group],
                ms=4.5,
                alpha=0.6,
                markeredgewidth=0,
                label=f"{GROUP_NAMES[group]} ({(candidate_sets['group'] == group).sum():,})",
            )
        axes.set_xlabel("topic signal")
        axes.set_ylabel("summary signal")
        axes.set_xlim(-0.02, 1.02)
        axes.set_ylim(bottom=-0.02)
        axes.grid(axis="both")
    queries = candidate_sets["query_id"].n_unique()
    points = "Each point is a candidate of a query."
    if step > 1:
        points = f"Each point is a candidate of a query; one in {step} is drawn."
    count = f"{queries:,} queries, {candidate_sets.height:,} candidates."
    finish(figure, title, f"{points} {count}", legend=[axes])
    return figure
