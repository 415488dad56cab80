import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import kendalltau

from saber_dagster.bradley_terry import Games, fit, judged_games
from saber_dagster.dispersion import LEAST, LEAST_FREEDOM, dispersion
from saber_dagster.tournament import GameResult, run_tournament


def simulated(noise, queries=4, docs=20, rounds=8, seed=3):
    """True log-strengths and games whose outcomes are sigmoids of noisy differences."""
    rng = np.random.default_rng(seed)
    strengths, made = [], []
    for _ in range(queries):
        theta = 1.5 * rng.normal(size=docs)
        pairs = [rng.permutation(docs).reshape(-1, 2) for _ in range(rounds)]
        first, second = np.concatenate(pairs).T
        odds = theta[first] - theta[second] + noise * rng.normal(size=first.size)
        strengths.append(theta - theta.mean())
        made.append(Games.of(docs, first, second, expit(odds)))
    return strengths, made


@pytest.mark.parametrize("step", [1.0, 0.5, 0.25])
def test_verdicts_and_means_of_two_have_the_dispersion_of_coins(step):
    outcomes = np.arange(0, 1 + step, step)
    n = outcomes.size
    games = Games.of(n + 1, np.arange(n), np.arange(1, n + 1), outcomes)
    assert dispersion([games, games]) == 1.0


def test_it_grows_with_the_noise_and_is_that_of_the_noise():
    """By the delta method var(y) is noise² p² (1 - p)², and φ is its sum over that of p (1 - p)."""
    found = [dispersion(simulated(noise)[1]) for noise in (0.0, 0.1, 0.3, 1.0)]
    assert found == sorted(found)
    assert found[0] == LEAST
    for noise, value in zip((0.1, 0.3), found[1:], strict=False):
        chances = np.concatenate([games.outcome for games in simulated(noise)[1]])
        coins = chances * (1 - chances)
        assert value == pytest.approx(noise**2 * (coins**2).sum() / coins.sum(), rel=0.25)


def test_few_games_and_wild_ones_count_as_coins():
    def cycle_and(chords):
        """Documents in a cycle, which is one game more than parameters, and some games across."""
        n = 2 * LEAST_FREEDOM
        pairs = [*((i, (i + 1) % n) for i in range(n)), *((i, i + 2) for i in range(chords))]
        first, second = np.array(pairs).T
        return Games.of(n, first, second, expit(0.1 * (second - first)))

    assert dispersion([cycle_and(LEAST_FREEDOM - 2)]) == 1.0
    assert dispersion([cycle_and(LEAST_FREEDOM - 1)]) < 0.1
    first, second = np.array([(i, j) for i in range(12) for j in range(i)]).T
    upset = (first == 11) & (second == 0)
    wild = np.where(upset, 1e-4, 1 - 1e-4)
    assert dispersion([Games.of(12, first, second, wild)]) > 0.5


@pytest.mark.parametrize(
    ("docs", "rounds", "queries", "least"),
    [(12, 3, 1, 1.0), (12, 2, 5, 1.0), (12, 3, 5, 0.5), (40, 6, 5, 0.9)],
    ids=str,
)
def test_a_coin_at_the_clamp_is_a_coin_however_few_its_games(docs, rounds, queries, least):
    """With few games the fit explains nearly all of them: that is no sure judge."""
    for seed in range(3 if docs > 12 else 8):
        rng = np.random.default_rng(seed)

        def toss(games, rng=rng):
            odds = np.where(rng.random(len(games)) < 0.5, -10.0, 10.0)
            return [GameResult(float(y), "ok", ("k",), float(y), float(y)) for y in expit(odds)]

        candidates = {f"q{q}": [f"d{n:02}" for n in range(docs)] for q in range(queries)}
        games = run_tournament(candidates, rounds, seed, toss)
        assert dispersion([games for _, _, games in judged_games(games)]) >= least


def test_a_soft_judge_is_known_by_as_few_games():
    for seed in range(4):
        made = simulated(0.3, queries=5, docs=12, rounds=3, seed=seed)[1]
        assert 0.005 < dispersion(made) < 0.03


def test_soft_preferences_keep_the_order_that_coins_would_lose():
    """The prior that suits coins shrinks small log-odds to nothing."""
    strengths, made = simulated(0.1)
    phi = dispersion(made)
    for theta, games in zip(strengths, made, strict=True):
        result = fit(games.weighted(1 / phi), 1 / 1.5**2)
        assert kendalltau(theta, result.log_strength)[0] > 0.9
        assert np.abs(result.log_strength - theta).max() < 0.3
        assert logit(games.outcome).std() > 1
