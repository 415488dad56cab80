"""What all games of a judge say together: prior precision λ and position offset β.

Empirical Bayes: λ and β maximize the Laplace log evidence of all queries,

    L(λ, β) = Σ_q [ ℓ_q(θ̂_q) - λ/2 ‖θ̂_q‖² + n_q/2 ln λ - 1/2 ln det H_q ],

with θ̂_q the posterior mode and H_q the negative Hessian there (see :mod:`.bradley_terry`); β has a
flat prior. Each game counts 1/φ times (see :mod:`.dispersion`). λ sets the scale of the ratings and
the width of their intervals.

The Laplace approximation needs games: in simulations with 30 to 60 candidates (spread 1.5 logits,
β = 0.6) the mean of λ over its true value was 1.0 at 20 rounds, 1.1 at 10 and 2.4 at 6.

Source: MacKay, "Bayesian interpolation", 1992, for the method; Nocedal and Wright, "Numerical
Optimization", 2006, chapter 4, for the trust region; bounds and rounding are ours.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import product

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import expit

from saber_dagster.bradley_terry import Floats, Games, fit, judged_games
from saber_dagster.contracts import TABLES
from saber_dagster.dispersion import dispersion
from saber_dagster.errors import SaberError

PRECISION_BOUNDS = (1e-4, 1e3)
"""λ in 1 / logit². A deterministic judge drives it down, a judge without preferences up."""
POSITION_BOUND = 10.0
"""Largest |β| in logits. A judge that always names one slot drives β there."""
DIGITS = 6
"""Significant digits of λ and β, so that the last bits of a sum do not reach the ratings."""
_MAX_STEPS = 100
_GRADIENT_TOLERANCE = 1e-9
"""Where the search stops, in L per candidate, as the next."""
_ACCEPTED_GRADIENT = 1e-5
"""Where rounding may stop it."""
_ROUNDING = 1e-13
"""Relative error of L."""


@dataclass(frozen=True)
class RatingPrior:
    """Prior precision and position offset of a judge, and how they came about.

    Attributes:
        prior_precision: λ in 1 / logit², 6 significant digits.
        position: β in logits, 6 significant digits; positive if the judge favours the first shown.
        position_error: Laplace standard error of β at this λ, in logits; 0 where β is 0 because no
            game was judged in one order alone.
        log_evidence: L at the estimate.
        iterations: steps of the search.
        converged: always True; :func:`estimate_prior` raises otherwise.
        n_queries: queries with games that count.
        n_games: games that count.
        dispersion: φ; 1 for a judge that gives verdicts.
    """

    prior_precision: float
    position: float
    position_error: float
    log_evidence: float
    iterations: int
    converged: bool
    n_queries: int
    n_games: int
    dispersion: float = 1.0

    @property
    def at_bound(self) -> tuple[str, ...]:
        """Names of the estimates that lie at a bound: there the games settle no finite value.

        With ``prior_precision`` at its lower bound the judge is deterministic and logits have no
        scale, so that ``position`` says nothing by its size.
        """
        names = []
        if self.prior_precision in PRECISION_BOUNDS:
            names.append("prior_precision")
        if abs(self.position) == POSITION_BOUND:
            names.append("position")
        return tuple(names)

    def frame(self, judge: str) -> pl.DataFrame:
        """The prior as the one row of the ``rating_prior`` table."""
        table = TABLES["rating_prior"]
        row = {"judge": judge, **asdict(self)}
        return table.check(pl.DataFrame([row], schema=table.schema), judge)

    @classmethod
    def from_frame(cls, frame: pl.DataFrame) -> "RatingPrior":
        """The prior in a frame of the ``rating_prior`` table.

        Raises:
            SaberError: if the frame does not have exactly one row.
        """
        if frame.height != 1:
            raise SaberError(f"rating_prior has {frame.height} rows, expected one judge")
        row = frame.row(0, named=True)
        del row["judge"]
        return cls(**row)


@dataclass(frozen=True)
class Evidence:
    """Laplace log evidence of all queries at one (λ, β).

    Attributes:
        value: L(λ, β).
        gradient: derivatives by ln λ and β, shape (2,).
        position_information: minus the second derivative of the log joint posterior by β, with all
            log-strengths profiled out.
        modes: posterior mode of each query, shape (n_q,) each; a start for the next evaluation.
    """

    value: float
    gradient: NDArray[np.float64]
    position_information: float
    modes: tuple[Floats, ...]


def log_evidence(
    queries: Sequence[Games],
    prior_precision: float,
    position: float,
    starts: Sequence[Floats | None],
) -> Evidence:
    """Laplace log evidence with its exact gradient.

    The gradient contains the movement of the modes, not only the explicit dependence, so that its
    zero is the maximum of L.

    Args:
        queries: games of each query.
        prior_precision: λ.
        position: β in logits.
        starts: where to start each query's fit; None for zeros.
    """
    terms = []
    modes = []
    for games, start in zip(queries, starts, strict=True):
        result = fit(games, prior_precision, position, start)
        theta, covariance = result.log_strength, result.covariance
        first, second = games.first, games.second
        chance = expit(games.margins(theta, position))
        variance = games.weight * chance * (1.0 - chance)
        spread = covariance.diagonal()
        # d(ln det H)/d(margin) of each game: variance of its margin times the third derivative.
        bend = spread[first] + spread[second] - 2.0 * covariance[first, second]
        bend = bend * variance * (1.0 - 2.0 * chance)
        pull = games.sum_by_item(variance, -variance)
        by_precision, by_position = -covariance @ theta, -covariance @ pull
        terms.append(
            (
                result.log_evidence,
                0.5 * games.n_items
                - 0.5 * prior_precision * (theta @ theta + spread.sum())
                - 0.5 * prior_precision * (bend @ games.margins(by_precision, 0.0)),
                (games.weight * (games.outcome - chance)).sum()
                - 0.5 * (bend @ games.margins(by_position, 1.0)),
                variance.sum() + pull @ by_position,
            )
        )
        modes.append(theta)
    value, by_log_precision, by_position_, information = (
        math.fsum(column) for column in zip(*terms, strict=True)
    )
    return Evidence(value, np.array([by_log_precision, by_position_]), information, tuple(modes))


def estimate_prior(judgments: pl.DataFrame, prior_precision: float | None = None) -> RatingPrior:
    """Estimate λ and β from all games of a judge.

    Candidates without games that count do not matter: they add nothing to the evidence. β is 0 where
    every game was judged in both orders or document by document: the place cannot have mattered, and
    games that any β fits would leave it anywhere.

    Args:
        judgments: frame of the ``judgments`` table, all queries of the judge, rows in any order.
        prior_precision: λ if it is fixed by the settings; then only β is estimated.

    Raises:
        SaberError: if no game counts, λ is outside its bounds, or the search does not converge.
    """
    queries = [games for _, _, games in judged_games(judgments)]
    if not queries:
        raise SaberError(
            f"none of {judgments.height} games has an outcome, so no rating can be estimated. "
            "Look at the status column of the judgments for the reason"
        )
    scatter = dispersion(queries)
    queries = [games.weighted(1.0 / scatter) for games in queries]
    low, high = (math.log(bound) for bound in PRECISION_BOUNDS)
    reach = POSITION_BOUND if _has_order(judgments) else 0.0
    if prior_precision is not None:
        least, most = PRECISION_BOUNDS
        if not least <= prior_precision <= most:
            raise SaberError(
                f"ratings.prior_precision is {prior_precision}; set it between {least} and {most}"
            )
        low = high = math.log(prior_precision)
    point, found, steps = _maximum(queries, np.array([low, -reach]), np.array([high, reach]))
    precision = prior_precision or _bounded(math.exp(point[0]), *PRECISION_BOUNDS)
    position = _bounded(float(point[1]), -reach, reach)
    evidence = log_evidence(queries, precision, position, found.modes)
    return RatingPrior(
        prior_precision=precision,
        position=position,
        position_error=_significant(evidence.position_information**-0.5) if reach else 0.0,
        log_evidence=round(evidence.value, 3),
        iterations=steps,
        converged=True,
        n_queries=len(queries),
        n_games=sum(games.outcome.size for games in queries),
        dispersion=scatter,
    )


def _has_order(judgments: pl.DataFrame) -> bool:
    """Whether some game was judged in the order shown alone."""
    one_order = pl.col("as_shown").is_not_null() & pl.col("swapped").is_null()
    return not judgments.filter(one_order).is_empty()


def _maximum(queries: Sequence[Games], low: Floats, high: Floats) -> tuple[Floats, Evidence, int]:
    """Climb from λ = 1, β = 0 to a maximum of L, as (point, evidence there, steps).

    Newton steps in a trust region, over (ln λ, β) from ``low`` to ``high``. L has an inflection in
    ln λ, from which L-BFGS-B steps into a corner and stalls. Deterministic judges leave more than
    one maximum.
    """
    scale = sum(games.n_items for games in queries)
    point = np.clip(np.zeros(2), low, high)
    here = log_evidence(queries, math.exp(point[0]), point[1], [None] * len(queries))
    radius, steps = 1.0, 0
    while True:
        # The gradient without what pushes against a bound.
        inward = np.clip(point + here.gradient / scale, low, high) - point
        left = float(np.abs(inward).max())
        if left <= _GRADIENT_TOLERANCE or steps == _MAX_STEPS or radius < _GRADIENT_TOLERANCE:
            break
        curvature = _curvature(queries, point, here, low < high)
        rounding = _ROUNDING * (1.0 + abs(here.value))
        share = 0.0
        while share < 0.1 and radius >= _GRADIENT_TOLERANCE:
            least, most = np.maximum(low - point, -radius), np.minimum(high - point, radius)
            move, promise = _best_move(here.gradient, curvature, least, most)
            moved = np.clip(point + move, low, high)
            there = log_evidence(queries, math.exp(moved[0]), moved[1], here.modes)
            share = (there.value - here.value + rounding) / (promise + rounding)
            if share < 0.25:
                radius = 0.25 * float(np.abs(move).max())
            elif share > 0.75:
                radius *= 2.0
        if share >= 0.1:
            point, here = moved, there
        steps += 1
    if left > _ACCEPTED_GRADIENT:
        raise SaberError(
            f"the rating prior did not converge in {steps} steps: at precision "
            f"{math.exp(point[0]):.6g} and position {point[1]:.6g} the gradient is still "
            f"{left:.1e} per candidate. Set ratings.prior_precision in saber.yaml, for example to 1"
        )
    return point, here, steps


def _curvature(
    queries: Sequence[Games], point: Floats, here: Evidence, free: NDArray[np.bool_]
) -> Floats:
    """Second derivatives of L by (ln λ, β), shape (2, 2), from differences of its gradient."""
    step = 1e-4
    columns = np.zeros((2, 2))
    for axis in np.flatnonzero(free):
        beside = point.copy()
        beside[axis] += step
        there = log_evidence(queries, math.exp(beside[0]), beside[1], here.modes)
        columns[:, axis] = (there.gradient - here.gradient) / step
    return np.asarray(0.5 * (columns + columns.T), np.float64)


def _best_move(
    gradient: Floats, curvature: Floats, low: Floats, high: Floats
) -> tuple[Floats, float]:
    """The move between ``low`` and ``high`` with the largest gain in a quadratic, and this gain.

    The maximum lies at a corner, at the top of an edge or at the top of the whole.
    """
    moves = [np.array(corner) for corner in product(*zip(low, high, strict=True))]
    for free, fixed in ((0, 1), (1, 0)):
        if curvature[free, free] < 0.0:
            for edge in (low[fixed], high[fixed]):
                move = np.full(2, edge)
                move[free] = -(gradient[free] + curvature[free, fixed] * edge)
                move[free] /= curvature[free, free]
                moves.append(move)
    if curvature[0, 0] < 0.0 < np.linalg.det(curvature):
        moves.append(-np.linalg.solve(curvature, gradient))
    inside = np.clip(moves, low, high)
    gains = inside @ gradient + 0.5 * ((inside @ curvature) * inside).sum(axis=1)
    best = int(gains.argmax())
    return inside[best], float(gains[best])


def _significant(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def _bounded(value: float, low: float, high: float) -> float:
    return min(max(_significant(value), low), high)
