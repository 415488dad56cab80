import math

import numpy as np
import pytest

from saber_dagster.bradley_terry import Games, fit
from saber_dagster.errors import SaberError


def test_published_example():
    """The four-player table of Wikipedia's article on the model, by maximum likelihood."""
    wins = np.array([[0, 2, 0, 1], [3, 0, 5, 0], [0, 3, 0, 1], [4, 0, 3, 0]])
    i, j = np.nonzero(wins)
    result = fit(Games.of(4, i, j, np.ones(i.size), wins[i, j]), 1e-6)
    assert np.exp(result.log_strength) == pytest.approx([0.640, 1.043, 0.660, 2.270], abs=5e-4)


def test_two_items_solve_the_stationary_equation():
    result = fit(Games.of(2, [0], [1], [1.0]), 0.5, position=0.3)
    theta = result.log_strength[0]
    assert 1 / (1 + math.exp(2 * theta + 0.3)) == pytest.approx(0.5 * theta, abs=1e-12)
    chance = 1 / (1 + math.exp(-2 * theta - 0.3))
    v, lam = chance * (1 - chance), 0.5
    assert result.covariance[0, 0] == pytest.approx((v + lam) / (lam**2 + 2 * v * lam))
    assert result.standard_error[0] == pytest.approx(math.sqrt(result.covariance[0, 0]))


def test_chain_is_ordered_and_symmetric():
    n = 60
    result = fit(Games.of(n, np.arange(n - 1), np.arange(1, n), np.ones(n - 1)), 0.01)
    assert (np.diff(result.log_strength) < 0).all()
    assert result.log_strength == pytest.approx(-result.log_strength[::-1], abs=1e-9)


@pytest.mark.parametrize("precision", [1e-4, 1e-2, 1.0, 1e3])
@pytest.mark.parametrize("position", [-10.0, 0.0, 10.0])
def test_undefeated_items_are_finite_and_the_fit_converges(precision, position):
    i, j = np.triu_indices(25, 1)
    result = fit(Games.of(25, i, j, np.ones(i.size), np.full(i.size, 3.0)), precision, position)
    assert result.converged
    assert result.gradient_norm < 1e-9
    assert np.isfinite(result.log_strength).all()
    assert (np.diff(result.log_strength) < 0).all()
    assert (result.standard_error <= precision**-0.5 + 1e-9).all()


def test_an_unplayed_item_keeps_the_prior():
    result = fit(Games.of(3, [0], [1], [1.0]), 0.25)
    assert result.log_strength[2] == pytest.approx(0.0, abs=1e-12)
    assert result.standard_error[2] == pytest.approx(2.0)


def test_no_games_and_no_items():
    none = Games.of(2, [], [], [])
    assert fit(none, 4.0).log_strength.tolist() == [0.0, 0.0]
    assert fit(none, 4.0).log_evidence == pytest.approx(0.0)
    assert fit(Games.of(0, [], [], []), 1.0).log_strength.shape == (0,)


def test_position_offset_explains_games_won_by_the_first_shown():
    games = Games.of(2, [0, 1], [1, 0], [1.0, 1.0])
    assert fit(games, 0.1, position=2.0).log_strength == pytest.approx([0, 0], abs=1e-12)
    once = Games.of(2, [0], [1], [1.0])
    assert 0 < fit(once, 0.1, 2.0).log_strength[0] < fit(once, 0.1, 0.0).log_strength[0]


def test_wins_and_losses_are_sums_of_outcomes():
    games = Games.of(3, [0, 1], [1, 2], [0.75, 0.0])
    assert games.wins.tolist() == [0.75, 0.25, 1.0]
    assert games.losses.tolist() == [0.25, 1.75, 0.0]


@pytest.mark.parametrize(
    ("games", "message"),
    [
        ((2, [0], [2], [1.0]), "outside 0 to 1"),
        ((2, [-1], [1], [1.0]), "outside 0 to 1"),
        ((2, [1], [1], [1.0]), "against itself"),
        ((2, [0], [1], [1.5]), "outcome"),
        ((2, [0], [1], [math.nan]), "outcome"),
        ((2, [0], [1], [1.0], [-1.0]), "weight"),
        ((2, [0], [1], [1.0], [math.inf]), "weight"),
        ((2, [0, 1], [1], [1.0]), "length"),
    ],
)
def test_bad_games_are_named(games, message):
    with pytest.raises(SaberError, match=message):
        Games.of(*games)


@pytest.mark.parametrize(
    ("precision", "position"), [(0.0, 0.0), (-1.0, 0.0), (math.nan, 0.0), (1.0, math.inf)]
)
def test_bad_parameters_are_named(precision, position):
    with pytest.raises(SaberError, match="must be finite"):
        fit(Games.of(2, [0], [1], [1.0]), precision, position)


def test_a_fit_that_does_not_converge_is_an_error(monkeypatch):
    monkeypatch.setattr("saber_dagster.bradley_terry.MAX_ITERATIONS", 1)
    with pytest.raises(SaberError, match="did not converge in 1 steps"):
        fit(Games.of(2, [0], [1], [1.0]), 0.1)
