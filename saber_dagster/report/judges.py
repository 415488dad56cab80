"""What a judge did: games, coverage, prior, position effect, and which groups it ranks high."""

from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.special import expit

from saber_dagster.plots.judging import Z, rank_curves_figure, rounds_figure
from saber_dagster.rating_prior import RatingPrior
from saber_dagster.report.figures import Album, Picture
from saber_dagster.report.overview import JudgeLabel
from saber_dagster.report.tables import MissingTableError, Tables


@dataclass(frozen=True)
class Position:
    """The prior, and how much it matters which document is shown first.

    Attributes:
        prior: as it was estimated.
        first_wins: probability that the first shown wins between equals.
        low: lower end of its 95 % interval.
        high: upper end.
    """

    prior: RatingPrior
    first_wins: float
    low: float
    high: float

    @classmethod
    def of(cls, prior: RatingPrior) -> "Position":
        """From log-odds to probabilities."""
        ends = expit(prior.position + np.array([0, -Z, Z]) * prior.position_error)
        return cls(prior, *(float(end) for end in ends))


@dataclass(frozen=True)
class JudgeSection:
    """One judge; where its games were not rated, they are all there is."""

    games: int
    judged: int
    failures: tuple[tuple[str, int], ...]
    queries: int
    rounds: int
    played: Picture
    position: Position | None
    curves: Picture | None
    unrated: str
    """Why there is no position effect or there are no curves; empty if there are."""


def judge_section(tables: Tables, album: Album, judge: JudgeLabel) -> JudgeSection:
    """One judge's games and what was made of them.

    Raises:
        MissingTableError: if its games are not there.
    """
    lane = f"judge/{judge.slug}"
    judgments = tables.need(f"{lane}/tournament_rounds")
    failed = judgments.filter(pl.col("outcome").is_null())
    position, curves, unrated = None, None, ""
    try:
        position = Position.of(RatingPrior.from_frame(tables.need(f"{lane}/rating_prior")))
        curves = _curves(tables.need(f"{lane}/benchmark"), album, judge)
    except MissingTableError as error:
        unrated = str(error)
    return JudgeSection(
        games=judgments.height,
        judged=judgments.height - failed.height,
        failures=tuple(failed.group_by("status").len().sort("status").iter_rows()),
        queries=judgments["query_id"].n_unique(),
        rounds=0 if judgments.is_empty() else int(judgments.select(pl.max("round")).item()),
        played=album.picture(
            f"Points: how often the document shown first wins, by round, judge {judge.slug}",
            "At one half, it does not matter which document is shown first.",
            lambda narrow: rounds_figure(
                judgments, f"Games of judge {judge.slug}", judge.warning, narrow
            ),
        ),
        position=position,
        curves=curves,
        unrated=unrated,
    )


def _curves(benchmark: pl.DataFrame, album: Album, judge: JudgeLabel) -> Picture:
    title = f"Which candidates judge {judge.slug} ranks high"
    return album.picture(
        f"Lines: how early each group comes in the order of judge {judge.slug}",
        "The group whose line is highest comes earliest in the judge's order.",
        lambda narrow: rank_curves_figure(benchmark, title, judge.warning, narrow),
    )
