"""How much less real-valued preferences scatter than verdicts do.

A verdict is a coin toss: its variance is p (1 - p). A preference from log-odds is the same each time it
is asked, and lies much nearer to its expectation. Counted as a coin toss it would carry too little, and
empirical Bayes would take small differences for none. So each game counts 1/φ times, with

    φ = Σ (y - p) (y - p°) / Σ p (1 - p),

from a fit with hardly any prior. p° is what the other games say of a game, by one step from the fit: in
a linear model the two residuals make the sum unbiased, however many parameters there are. Residuals of
the fit alone would have games explain themselves: few log-odds at the clamp are nearly separable, and a
coin among them would pass for a sure judge.

In simulated tournaments with 40 candidates, log-strengths of spread 1.5 and noise 0.3 in the log-odds,
counting so took Kendall's τ from 0.73 to 0.94 at 6 rounds and from 0.88 to 0.97 at 20 (3 queries), and λ
from its bound and 11 times its true value to within an eighth of it. A coin at the clamp of ±10 has φ
from 0.59 to 1 with 5 queries of 12 candidates and 3 rounds, and 1 with 40 and 6. Swiss pairing takes part
in that: with pairs at random it has 0.9 and more.

Source: McCullagh and Nelder, "Generalized Linear Models", 1989, sections 4.5 and 9.2.4; Pregibon,
"Logistic regression diagnostics", 1981, for the step. Their product is ours.
"""

from collections.abc import Sequence

import numpy as np
from scipy.special import expit

from saber_dagster.bradley_terry import Games, fit

LEAST = 1e-3
"""Smallest φ: log-odds that a model of strengths explains to the last digit."""
LEAST_FREEDOM = 20
"""Fewer games than this beyond the parameters do not tell φ: a coin had 0.23 with 7 and 0.28 with 13."""
_WEAK = 0.01
"""Prior precision of the fit, in 1 / logit²."""
_MOST_LEVERAGE = 1.0 - 1e-9
"""So that rounding does not make a game its own only witness."""


def dispersion(queries: Sequence[Games]) -> float:
    """φ of a judge's games, between :data:`LEAST` and 1, to 6 significant digits.

    It is 1 where every outcome is one verdict or the mean of two (0, ¼, ½, ¾, 1), where the games are
    too few to tell, and where they scatter as much as coins or more.

    Args:
        queries: games of each query.
    """
    outcomes = np.concatenate([games.outcome for games in queries])
    if (outcomes * 4 == np.round(outcomes * 4)).all():
        return 1.0
    scatter, coins, freedom = [], [], 0
    for games in queries:
        first, second = games.first, games.second
        result = fit(games, _WEAK)
        margin = games.margins(result.log_strength, 0.0)
        chance = expit(margin)
        variance = chance * (1.0 - chance)
        surprise = games.outcome - chance
        spread = result.covariance.diagonal()
        of_margin = spread[first] + spread[second] - 2.0 * result.covariance[first, second]
        leverage = np.minimum(of_margin * variance, _MOST_LEVERAGE)
        by_others = expit(margin - of_margin * surprise / (1.0 - leverage))
        scatter.append(float((surprise * (games.outcome - by_others)).sum()))
        coins.append(float(variance.sum()))
        freedom += games.outcome.size - (np.union1d(first, second).size - 1)
    if freedom < LEAST_FREEDOM:
        return 1.0
    return min(1.0, max(LEAST, float(f"{sum(sorted(scatter)) / sum(sorted(coins)):.6g}")))
