"""Bradley-Terry log-strengths of one query's candidates, by maximum a posteriori.

The probability that document i, shown first, is preferred to document j, shown second, is
σ(θ_i - θ_j + β): log-strengths θ = ln π in natural logits, and one position offset β for all games
of a judge. Each θ has the prior N(0, 1/λ), without which the maximum does not exist as soon as a
candidate is undefeated. Outcomes may be fractions and enter the log-likelihood linearly.

At the maximum the gradient of the likelihood and so Σθ is 0: the estimate is centred by itself.

Source: SABER-Math, section "Tournament-based Document Relevance Ratings" (the model without prior
and offset); Ford, "Solution of a ranking problem from binary comparisons", 1957 (existence).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit

from saber_dagster.errors import SaberError

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

MAX_ITERATIONS = 200
STEP_TOLERANCE = 1e-8
"""The last Newton step in logits; convergence is quadratic, so the error is far below."""


@dataclass(frozen=True)
class Games:
    """The games of one query that count, over items 0 to n - 1, in an order of their own.

    Build it with :meth:`of`, which sorts, so that sums do not depend on the order of the rows.

    Attributes:
        n_items: n.
        first: item shown first, shape (games,).
        second: item shown second, shape (games,).
        outcome: in [0, 1], 1 = the first one is preferred, shape (games,).
        weight: how often the game counts, shape (games,).
    """

    n_items: int
    first: Indices
    second: Indices
    outcome: Floats
    weight: Floats

    @classmethod
    def of(
        cls,
        n_items: int,
        first: ArrayLike,
        second: ArrayLike,
        outcome: ArrayLike,
        weight: ArrayLike | None = None,
    ) -> "Games":
        """Check and sort games.

        Raises:
            SaberError: on an item outside 0 to n - 1 or against itself, an outcome outside [0, 1],
                a negative or infinite weight, or NaN.
        """
        one, two = np.asarray(first, np.int64), np.asarray(second, np.int64)
        won = np.asarray(outcome, np.float64)
        times = np.ones(won.shape) if weight is None else np.asarray(weight, np.float64)
        if not one.shape == two.shape == won.shape == times.shape == (one.size,):
            raise SaberError("first, second, outcome and weight differ in length")
        if one.size and (min(one.min(), two.min()) < 0 or max(one.max(), two.max()) >= n_items):
            raise SaberError(f"a game names an item outside 0 to {n_items - 1}")
        if (one == two).any():
            raise SaberError("a game of an item against itself")
        if not ((won >= 0) & (won <= 1)).all():
            raise SaberError("an outcome is not in [0, 1]")
        if not ((times >= 0) & (times < np.inf)).all():
            raise SaberError("a weight is negative or not finite")
        order = np.lexsort((times, won, two, one))
        return cls(n_items, one[order], two[order], won[order], times[order])

    @property
    def wins(self) -> Floats:
        """Weighted sum of each item's outcomes, shape (n,)."""
        return self.sum_by_item(self.weight * self.outcome, self.weight * (1.0 - self.outcome))

    @property
    def losses(self) -> Floats:
        """Weighted sum of each item's lost outcomes, shape (n,)."""
        return self.sum_by_item(self.weight * (1.0 - self.outcome), self.weight * self.outcome)

    def weighted(self, factor: float) -> "Games":
        """The same games, each counting ``factor`` times as often."""
        return replace(self, weight=self.weight * factor)

    def sum_by_item(self, to_first: Floats, to_second: Floats) -> Floats:
        """Add one value per game to its first and one to its second item, shape (n,)."""
        by_first = np.bincount(self.first, to_first, self.n_items)
        by_second = np.bincount(self.second, to_second, self.n_items)
        return np.asarray(by_first + by_second, np.float64)

    def margins(self, log_strength: Floats, position: float) -> Floats:
        """Log-odds of each game's first item, shape (games,)."""
        return log_strength[self.first] - log_strength[self.second] + position


@dataclass(frozen=True)
class BradleyTerryFit:
    """Log-strengths of one query's candidates, and how they came about.

    Attributes:
        log_strength: centred posterior mode θ in natural logits, shape (n,).
        covariance: inverse Hessian of the negative log posterior at the mode (Laplace), shape
            (n, n). It includes the common level of all items, which adds 1 / (n λ) to each entry
            and cancels in differences.
        log_evidence: Laplace approximation of the log probability of the outcomes.
        prior_precision: λ.
        position: β.
        iterations: Newton steps.
        gradient_norm: largest absolute entry of the gradient at the mode.
        converged: always True; :func:`fit` raises otherwise.
    """

    log_strength: Floats
    covariance: Floats
    log_evidence: float
    prior_precision: float
    position: float
    iterations: int
    gradient_norm: float
    converged: bool

    @property
    def standard_error(self) -> Floats:
        """Posterior standard deviation of each log-strength in logits, shape (n,).

        1 / √λ for an item without games.
        """
        return np.sqrt(self.covariance.diagonal())


def fit(
    games: Games, prior_precision: float, position: float = 0.0, start: Floats | None = None
) -> BradleyTerryFit:
    """Fit one query by damped Newton steps on the log posterior, which is strictly concave.

    Args:
        games: the query's games; there may be none.
        prior_precision: λ > 0 in 1 / logit².
        position: β in logits.
        start: log-strengths to start from, shape (n,); zeros if not given.

    Raises:
        SaberError: if λ is not positive, β not finite, or the steps do not converge.
    """
    if not (0 < prior_precision < np.inf and np.isfinite(position)):
        raise SaberError(
            f"prior precision {prior_precision} and position {position} must be finite, "
            "and the precision positive"
        )
    theta = np.zeros(games.n_items) if start is None else start
    value = _log_posterior(games, theta, prior_precision, position)
    iterations, moved = 0, np.inf
    while moved > STEP_TOLERANCE and iterations < MAX_ITERATIONS:
        gradient, factor = _curvature(games, theta, prior_precision, position)
        step = cho_solve(factor, gradient)
        theta, value = _climb(games, theta, value, step, gradient, prior_precision, position)
        iterations, moved = iterations + 1, float(np.abs(step).max(initial=0.0))
    gradient, factor = _curvature(games, theta, prior_precision, position)
    norm = float(np.abs(gradient).max(initial=0.0))
    if moved > STEP_TOLERANCE:
        raise SaberError(
            f"the Bradley-Terry fit did not converge in {iterations} steps (gradient {norm:.1e}, "
            f"precision {prior_precision}, {games.first.size} games). Raise the prior precision"
        )
    half_log_det = float(np.log(factor[0].diagonal()).sum())
    return BradleyTerryFit(
        log_strength=theta - (theta.mean() if theta.size else 0.0),
        covariance=cho_solve(factor, np.eye(games.n_items)),
        log_evidence=value + 0.5 * games.n_items * float(np.log(prior_precision)) - half_log_det,
        prior_precision=prior_precision,
        position=position,
        iterations=iterations,
        gradient_norm=norm,
        converged=True,
    )


def judged_games(
    judgments: pl.DataFrame, candidates: Mapping[str, list[str]] | None = None
) -> Iterator[tuple[str, list[str], Games]]:
    """Split a frame of judgments into (query, its document ids, its games), in id order.

    Games without an outcome or with weight 0 are left out.

    Args:
        judgments: frame of the ``judgments`` table, rows in any order.
        candidates: sorted document ids of each query that is to be returned; without it, queries
            with games that count and the documents that played them.

    Raises:
        SaberError: if a game's query or document is not among the candidates, or ``shown_first``
            is neither of its documents.
    """
    counted = judgments.filter(pl.col("outcome").is_not_null() & (pl.col("weight") > 0))
    by_query = {str(key[0]): rows for key, rows in counted.group_by("query_id")}
    if candidates is not None and (unknown := sorted(by_query.keys() - candidates.keys())):
        raise SaberError(f"judgments of {len(unknown)} queries without candidates: {unknown[:3]}")
    for query in sorted(by_query if candidates is None else candidates):
        rows = by_query.get(query, counted.clear())
        doc_a, doc_b, shown = (rows[name].to_list() for name in ("doc_a", "doc_b", "shown_first"))
        docs = sorted({*doc_a, *doc_b}) if candidates is None else candidates[query]
        index = {doc: position for position, doc in enumerate(docs)}
        if strangers := sorted({*doc_a, *doc_b} - index.keys()):
            raise SaberError(f"query {query} has games of {strangers[:3]}, not its candidates")
        a_first = np.array([x == a for x, a in zip(shown, doc_a, strict=True)], bool)
        if any(x not in (a, b) for x, a, b in zip(shown, doc_a, doc_b, strict=True)):
            raise SaberError(f"query {query} has a game whose shown_first is not in the game")
        a, b = (np.array([index[doc] for doc in side], np.int64) for side in (doc_a, doc_b))
        outcome = rows["outcome"].to_numpy()
        yield (
            query,
            docs,
            Games.of(
                len(docs),
                np.where(a_first, a, b),
                np.where(a_first, b, a),
                np.where(a_first, outcome, 1.0 - outcome),
                rows["weight"].to_numpy(),
            ),
        )


def _log_posterior(games: Games, theta: Floats, precision: float, position: float) -> float:
    margin = games.margins(theta, position)
    likelihood = games.weight * (games.outcome * margin - np.logaddexp(0.0, margin))
    return float(likelihood.sum() - 0.5 * precision * (theta**2).sum())


def _curvature(
    games: Games, theta: Floats, precision: float, position: float
) -> tuple[Floats, tuple[Any, bool]]:
    """Gradient of the log posterior and Cholesky factor of its negative Hessian."""
    n = games.n_items
    chance = expit(games.margins(theta, position))
    surprise = games.weight * (games.outcome - chance)
    gradient = games.sum_by_item(surprise, -surprise) - precision * theta
    variance = games.weight * chance * (1.0 - chance)
    mixed: Floats = np.zeros((n, n))
    np.add.at(mixed, (games.first, games.second), variance)
    hessian = -(mixed + mixed.T)
    hessian[np.diag_indices(n)] += games.sum_by_item(variance, variance) + precision
    return gradient, cho_factor(hessian, lower=True, check_finite=False)


def _climb(
    games: Games,
    theta: Floats,
    value: float,
    step: Floats,
    gradient: Floats,
    precision: float,
    position: float,
) -> tuple[Floats, float]:
    """Halve the Newton step until it gains a share of what the gradient promises."""
    promise = float(gradient @ step)
    margin = np.abs(games.margins(theta, position))
    rounding = 1e-13 * (1.0 + abs(value)) + 1e-15 * float(games.weight @ margin)
    length = 1.0
    while True:
        moved = theta + length * step
        gained = _log_posterior(games, moved, precision, position)
        if gained >= value + 1e-4 * length * promise - rounding or length < 1e-9:
            return moved, gained
        length /= 2.0
