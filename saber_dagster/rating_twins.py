"""Plain twins of pairing and rating: slow, step by step, for tests and benchmarks."""

import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from saber_dagster.bradley_terry import Games
from saber_dagster.swiss import Pair, draw


def pair_round_twin(
    scores: Mapping[str, float],
    met: AbstractSet[Pair],
    round_number: int,
    seed: int,
    query_id: str,
) -> list[Pair]:
    """Twin of :func:`swiss.pair_round`: the paper's algorithm line by line."""

    def chance(doc: str) -> int:
        return draw(seed, query_id, round_number, doc)

    pairs: list[Pair] = []
    unpaired = set(scores)
    if round_number == 1:
        shuffled = sorted(unpaired, key=chance)
        for start in range(0, len(shuffled) - 1, 2):
            one, two = sorted(shuffled[start : start + 2])
            pairs.append((one, two))
        return pairs
    while len(unpaired) >= 2:
        i = min(unpaired, key=lambda doc: (scores[doc], chance(doc)))
        feasible = {j for j in unpaired - {i} if (min(i, j), max(i, j)) not in met}
        if not feasible:
            unpaired.remove(i)
            continue
        j = min(feasible, key=lambda k: (abs(scores[i] - scores[k]), chance(k)))
        pairs.append((min(i, j), max(i, j)))
        unpaired -= {i, j}
    return pairs


def log_posterior_twin(
    games: Games, log_strength: NDArray[np.float64], prior_precision: float, position: float
) -> float:
    """Log posterior of :mod:`.bradley_terry`, game by game, up to a constant."""
    total = 0.0
    for i, j, outcome, weight in zip(
        games.first, games.second, games.outcome, games.weight, strict=True
    ):
        chance = 1.0 / (1.0 + math.exp(-(log_strength[i] - log_strength[j] + position)))
        total += weight * (outcome * math.log(chance) + (1.0 - outcome) * math.log(1.0 - chance))
    return total - prior_precision / 2.0 * sum(float(value) ** 2 for value in log_strength)


def fit_twin(games: Games, prior_precision: float, position: float = 0.0) -> NDArray[np.float64]:
    """Twin of :func:`bradley_terry.fit`: a general optimizer without derivatives, shape (n,)."""
    found = minimize(
        lambda theta: -log_posterior_twin(games, theta, prior_precision, position),
        np.zeros(games.n_items),
        method="BFGS",
        options={"gtol": 1e-7},
    )
    return np.asarray(found.x - found.x.mean())


def log_evidence_twin(games: Games, prior_precision: float, position: float) -> float:
    """Twin of the Laplace log evidence of one query, with a Hessian filled in game by game."""
    theta = fit_twin(games, prior_precision, position)
    hessian = prior_precision * np.eye(games.n_items)
    for i, j, weight in zip(games.first, games.second, games.weight, strict=True):
        chance = 1.0 / (1.0 + math.exp(-(theta[i] - theta[j] + position)))
        direction = np.zeros(games.n_items)
        direction[i], direction[j] = 1.0, -1.0
        hessian += weight * chance * (1.0 - chance) * np.outer(direction, direction)
    return (
        log_posterior_twin(games, theta, prior_precision, position)
        + games.n_items / 2.0 * math.log(prior_precision)
        - 0.5 * math.log(np.linalg.det(hessian))
    )
