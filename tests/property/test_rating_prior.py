import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saber_dagster.bradley_terry import judged_games
from saber_dagster.contracts import TABLES
from saber_dagster.hashing import hash64
from saber_dagster.rating_prior import (
    POSITION_BOUND,
    PRECISION_BOUNDS,
    estimate_prior,
    log_evidence,
)

pytestmark = pytest.mark.property

JUDGES = {
    "noisy": lambda margin, draw: float(draw < 1 / (1 + math.exp(-margin))),
    "ties": lambda margin, draw: 0.5 if abs(margin) < 1 else float(margin > 0),
    "deterministic": lambda margin, draw: float(margin > 0),
    "always first": lambda margin, draw: 1.0,
    "never decides": lambda margin, draw: 0.5,
    "coin": lambda margin, draw: float(draw < 0.5),
    "log-odds": lambda margin, draw: 1 / (1 + math.exp(-max(-10, min(10, margin + draw)))),
    "exact log-odds": lambda margin, draw: 1 / (1 + math.exp(-max(-10, min(10, margin)))),
    "fractions": lambda margin, draw: round(1 / (1 + math.exp(-margin)), 2),
}


@st.composite
def tournaments(draw):
    """Judgments of a few queries; the games of each are a function of the drawn seed."""
    judge = JUDGES[draw(st.sampled_from(sorted(JUDGES)))]
    queries, docs = draw(st.integers(1, 3)), draw(st.integers(2, 12))
    games = draw(st.sampled_from([1, 2, 5, 40]))
    sigma, position = (
        draw(st.sampled_from([0.3, 1.5, 6.0])),
        draw(st.sampled_from([0.0, 0.5, -3.0])),
    )
    both_orders = draw(st.booleans())
    rng = np.random.Generator(np.random.PCG64(hash64(draw(st.integers(0, 999)))))
    rows = []
    for query in range(queries):
        strength = sigma * rng.normal(size=docs)
        for number in range(1, games + 1):
            first, second = rng.choice(docs, 2, replace=False)
            won = judge(strength[first] - strength[second] + position, rng.random())
            a, b = sorted((first, second))
            outcome = won if first == a else 1.0 - won
            ids = (f"d{a:02}", f"d{b:02}", f"d{first:02}")
            rows.append(
                (
                    f"q{query}",
                    number,
                    *ids,
                    outcome,
                    1.0,
                    "ok",
                    ["k"],
                    outcome,
                    outcome if both_orders else None,
                )
            )
    table = TABLES["judgments"]
    return table.check(pl.DataFrame(rows, schema=table.schema, orient="row"))


@settings(max_examples=60, deadline=None)
@given(tournaments(), st.integers(0, 9))
def test_any_games_give_a_finite_maximum_whatever_their_order(judgments, seed):
    prior = estimate_prior(judgments)
    assert prior.converged
    assert PRECISION_BOUNDS[0] <= prior.prior_precision <= PRECISION_BOUNDS[1]
    assert math.isfinite(prior.log_evidence)
    assert prior.position_error < math.inf
    reach = POSITION_BOUND if judgments["swapped"].null_count() else 0.0
    assert (prior.position_error > 0) == (reach > 0)
    assert abs(prior.position) <= reach
    assert estimate_prior(judgments.sample(fraction=1.0, shuffle=True, seed=seed)) == prior

    assert 0 < prior.dispersion <= 1
    weight = 1.0 / prior.dispersion
    queries = [games.weighted(weight) for _, _, games in judged_games(judgments)]
    nothing = [None] * len(queries)
    assert prior.log_evidence >= log_evidence(queries, 1.0, 0.0, nothing).value - 1e-3
    found = log_evidence(queries, prior.prior_precision, prior.position, nothing)
    point = np.array([math.log(prior.prior_precision), prior.position])
    low, high = np.array(
        [[math.log(x), y] for x, y in zip(PRECISION_BOUNDS, (-reach, reach), strict=True)]
    )
    inward = np.clip(point + found.gradient, low, high) - point
    assert np.abs(inward).max() < 1e-4 * weight * sum(games.n_items for games in queries)


@settings(max_examples=20, deadline=None)
@given(tournaments(), st.sampled_from([1e-4, 0.03, 1.0, 1e3]))
def test_any_games_give_a_position_at_a_fixed_precision(judgments, precision):
    prior = estimate_prior(judgments, precision)
    assert (prior.converged, prior.prior_precision) == (True, precision)
    assert abs(prior.position) <= POSITION_BOUND
    assert 0 <= prior.position_error < math.inf
