import math
from dataclasses import replace
from functools import cache

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy.special import expit, ndtri

from saber_dagster import rating_prior
from saber_dagster.bradley_terry import Games, judged_games
from saber_dagster.contracts import TABLES
from saber_dagster.errors import SaberError
from saber_dagster.hashing import hash64
from saber_dagster.rating_prior import Evidence, RatingPrior, estimate_prior, log_evidence
from saber_dagster.ratings import connectivity, rate
from saber_dagster.tournament import GameResult, run_tournament

PRIOR = RatingPrior(0.5, 0.0, 0.1, -1.0, 3, True, 1, 1)


def uniform(*parts):
    return (hash64("test", *parts) + 0.5) / 2**64


@cache
def strength(query, doc, sigma):
    return sigma * float(ndtri(uniform(query, doc)))


def simulated(sigma, position, sharpness=1.0):
    """A judge that follows the model, with log-strengths from N(0, sigma²)."""

    def judge(games):
        results = []
        for g in games:
            margin = strength(g.query_id, g.shown_first, sigma) - strength(
                g.query_id, g.shown_second, sigma
            )
            chance = expit(sharpness * margin + position)
            won = uniform(g.query_id, g.shown_first, g.shown_second) < chance
            preference = float(won == (g.shown_first == g.doc_a))
            results.append(GameResult(preference, "ok", ("k",), preference))
        return results

    return judge


def candidates(queries, docs):
    return {f"q{q:03}": [f"d{d:03}" for d in range(docs)] for q in range(queries)}


def judgments(*rows):
    """Rows of (query, doc_a, doc_b, outcome), the smaller id shown first."""
    table = TABLES["judgments"]
    full = [
        (
            q,
            n,
            a,
            b,
            a,
            outcome,
            1.0,
            "ok" if outcome is not None else "refused",
            ["k"],
            outcome,
            None,
        )
        for n, (q, a, b, outcome) in enumerate(rows, 1)
    ]
    return table.check(pl.DataFrame(full, schema=table.schema, orient="row"))


@pytest.fixture(scope="module")
def played():
    return run_tournament(candidates(30, 50), 20, 5, simulated(1.5, 0.6))


@pytest.fixture(scope="module")
def prior(played):
    return estimate_prior(played)


# --- rating_prior ---------------------------------------------------------------------------------


def test_simulated_prior_and_position_are_recovered(played, prior):
    assert prior.converged
    assert prior.at_bound == ()
    assert prior.prior_precision == pytest.approx(1 / 1.5**2, rel=0.15)
    assert 0.01 < prior.position_error < 0.05
    assert abs(prior.position - 0.6) < 3 * prior.position_error
    assert (prior.n_queries, prior.n_games) == (30, played.height)


def test_estimated_prior_gives_intervals_that_cover(played, prior):
    ratings = rate(played, candidates(30, 50), prior)
    truth = pl.Series(
        [strength(q, d, 1.5) for q, d in ratings.select("query_id", "doc_id").iter_rows()]
    )
    inside = (ratings["log_strength"] - truth).abs() < 1.96 * ratings["standard_error"]
    assert 0.92 < inside.mean() < 0.97


def test_prior_does_not_depend_on_row_order_or_failed_games(played, prior):
    failed = played.head(50).with_columns(
        round=pl.col("round") + 90, outcome=pl.lit(None, pl.Float64), status=pl.lit("refused")
    )
    assert (
        estimate_prior(pl.concat([played, failed]).sample(fraction=1.0, shuffle=True, seed=1))
        == prior
    )


def test_deterministic_judge_has_a_small_precision_and_no_position():
    def judge(games):
        return [GameResult(1.0, "ok", (), 1.0) for _ in games]

    played = run_tournament(candidates(3, 100), 20, 5, judge)
    prior = estimate_prior(played)
    assert prior.converged
    assert 1e-4 <= prior.prior_precision < 1e-3
    assert abs(prior.position) < prior.position_error < 1.0
    queries = [games for _, _, games in judged_games(played)]
    at_bound = log_evidence(queries, 1e-4, prior.position, [None] * 3)
    assert prior.log_evidence > at_bound.value + 1.0


@pytest.mark.parametrize(
    ("curvature", "pull"), [(1.0, 0.0628), (1.0, 0.067), (3.0, 0.0362), (3.0, 0.037)]
)
def test_search_passes_an_inflection_of_the_evidence(monkeypatch, curvature, pull):
    """L-BFGS-B stalls on each of these surfaces after a jump into a corner of the bounds."""

    def surface(queries, precision, position, starts):
        x = math.log(precision) + 3.0
        value = -0.4 * math.log1p(x * x) - 0.5 * curvature * position**2 + pull * position
        gradient = np.array([-0.8 * x / (1.0 + x * x), pull - curvature * position])
        return Evidence(value, gradient, 1.0, ())

    monkeypatch.setattr(rating_prior, "log_evidence", surface)
    bound = np.array([7.0, 10.0])
    point, _, steps = rating_prior._maximum([Games.of(1, [], [], [])], -bound, bound)
    assert point == pytest.approx([-3.0, pull / curvature], abs=1e-7)
    assert steps < 20


def test_quadratic_step_is_the_best_in_its_box():
    draws = np.random.Generator(np.random.PCG64(hash64("box")))
    for _ in range(50):
        half = draws.normal(size=(2, 2))
        gradient, curvature = draws.normal(size=2), half + half.T
        low, high = -draws.random(2), draws.random(2)
        move, gain = rating_prior._best_move(gradient, curvature, low, high)
        grid = np.stack(np.meshgrid(*np.linspace(low, high, 41).T), axis=-1).reshape(-1, 2)
        gains = grid @ gradient + 0.5 * ((grid @ curvature) * grid).sum(axis=1)
        assert gains.max() <= gain + 1e-12
        assert gain == pytest.approx(gains.max(), abs=0.02)
        assert ((low <= move) & (move <= high)).all()


def test_search_that_runs_out_of_steps_names_the_setting(monkeypatch, played):
    monkeypatch.setattr(rating_prior, "_MAX_STEPS", 1)
    with pytest.raises(SaberError, match=r"in 1 steps.*ratings\.prior_precision in saber\.yaml"):
        estimate_prior(played)


def test_fixed_precision_leaves_only_the_position(played, prior):
    fixed = estimate_prior(played, 2.0)
    assert (fixed.prior_precision, fixed.converged) == (2.0, True)
    assert fixed.log_evidence < prior.log_evidence
    queries = [games for _, _, games in judged_games(played)]
    gradient = log_evidence(queries, 2.0, fixed.position, [None] * len(queries)).gradient
    assert gradient[1] == pytest.approx(0.0, abs=1e-2)
    assert abs(gradient[0]) > 10


def test_a_judge_without_preferences_pushes_the_precision_to_its_upper_bound():
    def judge(games):
        return [GameResult(0.5, "ok", (), 0.5) for _ in games]

    prior = estimate_prior(run_tournament(candidates(3, 20), 6, 5, judge))
    assert (prior.converged, prior.prior_precision) == (True, 1e3)
    assert prior.position == pytest.approx(0.0, abs=1e-5)


def test_a_judge_that_always_names_one_slot_has_a_position_at_the_bound():
    def judge(games):
        wins = [float(g.shown_first == g.doc_a) for g in games]
        return [GameResult(won, "ok", (), won) for won in wins]

    played = run_tournament(candidates(3, 20), 6, 5, judge)
    prior = estimate_prior(played)
    assert prior.position == 10.0
    assert "position" in prior.at_bound
    ratings = rate(played, candidates(3, 20), prior)
    assert ratings["log_strength"].abs().max() < 0.01, "position alone says nothing of relevance"


@pytest.mark.parametrize("outcome", [0.0, 0.3, 0.5, 1.0])
def test_one_game_gives_a_finite_prior(outcome):
    prior = estimate_prior(judgments(("q", "a", "b", outcome)))
    assert prior.converged
    assert 1e-4 <= prior.prior_precision <= 1e3
    assert abs(prior.position) <= 10
    assert all(math.isfinite(x) for x in (prior.position_error, prior.log_evidence))


def test_prior_has_six_significant_digits_and_survives_its_table(prior):
    assert prior.prior_precision == float(f"{prior.prior_precision:.6g}")
    assert RatingPrior.from_frame(prior.frame("judge-a")) == prior
    assert prior.frame("judge-a")["judge"].to_list() == ["judge-a"]
    with pytest.raises(SaberError, match="2 rows"):
        RatingPrior.from_frame(pl.concat([prior.frame("a"), prior.frame("b")]))


@pytest.mark.parametrize("rows", [(), (("q", "a", "b", None),)])
def test_no_game_that_counts_is_an_error(rows):
    with pytest.raises(SaberError, match=f"none of {len(rows)} games"):
        estimate_prior(judgments(*rows))


# --- ratings --------------------------------------------------------------------------------------


def test_ratings_span_the_scale_and_follow_the_games():
    games = judgments(("q", "a", "b", 1.0), ("q", "b", "c", 1.0), ("q", "a", "c", 1.0))
    ratings = rate(games, {"q": ["c", "b", "a"]}, PRIOR)
    assert ratings["doc_id"].to_list() == ["a", "b", "c"]
    assert ratings["rating"].to_list() == pytest.approx([5.0, 2.5, 0.0])
    assert ratings["rank"].to_list() == [1, 2, 3]
    assert ratings["wins"].to_list() == [2.0, 1.0, 0.0]
    assert ratings["losses"].to_list() == [0.0, 1.0, 2.0]
    assert rate(games, {"q": ["a", "b", "c"]}, PRIOR, scale_max=1.0)["rating"].max() == 1.0


def test_equal_candidates_get_the_middle_and_rank_by_id():
    games = judgments(("q", "a", "b", 0.5), ("q", "b", "c", None))
    ratings = rate(games, {"q": ["b", "c", "a"], "p": ["x", "y"]}, PRIOR)
    assert ratings["rating"].unique().to_list() == [2.5]
    assert ratings["query_id"].to_list() == ["p", "p", "q", "q", "q"]
    assert ratings["rank"].to_list() == [1, 2, 1, 2, 3]


def test_candidates_that_never_played_keep_the_prior():
    ratings = rate(judgments(("q", "a", "b", 1.0)), {"q": ["a", "b", "idle"]}, PRIOR)
    idle = ratings.row(2, named=True)
    assert (idle["doc_id"], idle["log_strength"], idle["wins"], idle["losses"]) == ("idle", 0, 0, 0)
    assert idle["standard_error"] == pytest.approx(math.sqrt(2), abs=1e-8)
    assert idle["rating"] == pytest.approx(2.5)


def test_shown_first_carries_the_position_effect():
    prior = RatingPrior(0.5, 2.0, 0.1, -1.0, 3, True, 1, 1)
    shown_a = judgments(("q", "a", "b", 1.0))
    shown_b = shown_a.with_columns(shown_first=pl.lit("b"))
    expected, surprising = (rate(g, {"q": ["a", "b"]}, prior) for g in (shown_a, shown_b))
    assert surprising["log_strength"][0] > 2 * expected["log_strength"][0] > 0


def test_ratings_depend_neither_on_order_nor_on_sharding(played):
    docs = candidates(30, 50)
    whole = rate(played, docs, PRIOR)
    shuffled = played.sample(fraction=1.0, shuffle=True, seed=3)
    backwards = {q: docs[q][::-1] for q in reversed(docs)}
    assert_frame_equal(whole, rate(shuffled, backwards, PRIOR), check_exact=True)
    halves = [
        rate(played.filter(pl.col("query_id").is_in(part)), {q: docs[q] for q in part}, PRIOR)
        for part in (sorted(docs)[:11], sorted(docs)[11:])
    ]
    assert_frame_equal(whole, pl.concat(halves), check_exact=True)
    assert TABLES["ratings"].version(whole) == TABLES["ratings"].version(pl.concat(halves[::-1]))


def test_no_queries_give_an_empty_table():
    assert rate(judgments(), {}, PRIOR).height == 0
    assert connectivity(judgments(), {}).height == 0


@pytest.mark.parametrize(
    ("docs", "message"),
    [
        ({"q": ["a"]}, r"games of \['b'\]"),
        ({"p": ["a", "b"]}, r"1 queries without candidates: \['q'\]"),
        ({"q": ["a", "b", "b"]}, "candidate twice"),
    ],
)
def test_games_outside_the_candidates_are_named(docs, message):
    with pytest.raises(SaberError, match=message):
        rate(judgments(("q", "a", "b", 1.0)), docs, PRIOR)


def test_bad_scale_and_shown_first_are_named():
    games = judgments(("q", "a", "b", 1.0))
    with pytest.raises(SaberError, match="scale_max is 0"):
        rate(games, {"q": ["a", "b"]}, PRIOR, scale_max=0.0)
    with pytest.raises(SaberError, match="shown_first"):
        list(judged_games(games.with_columns(shown_first=pl.lit("c"))))


# --- connectivity ---------------------------------------------------------------------------------


def test_connectivity_of_known_graphs():
    games = judgments(
        ("cycle", "a", "b", 1.0),
        ("cycle", "b", "c", 1.0),
        ("cycle", "a", "c", 0.0),
        ("chain", "a", "b", 1.0),
        ("chain", "b", "c", 1.0),
        ("fraction", "a", "b", 0.9),
        ("split", "a", "b", 0.5),
        ("split", "b", "c", None),
    )
    docs = {q: ["a", "b", "c"] for q in ("cycle", "chain", "split")}
    found = connectivity(games, docs | {"fraction": ["a", "b"]})
    assert found.rows() == [
        ("chain", 1, False, 1, 1, 2, 0),
        ("cycle", 1, True, 0, 0, 3, 0),
        ("fraction", 1, True, 0, 0, 1, 0),
        ("split", 2, False, 0, 0, 1, 1),
    ]


# --- preferences from log-odds --------------------------------------------------------------------


@pytest.fixture(scope="module")
def soft():
    """Games of two queries whose outcomes are sigmoids of slightly noisy differences."""

    def judge(games):
        results = []
        for g in games:
            strengths = (strength(g.query_id, doc, 1.0) for doc in (g.doc_a, g.doc_b))
            noise = 0.2 * float(ndtri(uniform(g.query_id, g.doc_a, g.doc_b)))
            preference = float(expit(next(strengths) - next(strengths) + noise))
            results.append(GameResult(preference, "ok", ("k",), preference, preference))
        return results

    return run_tournament(candidates(2, 12), 4, 7, judge)


def test_the_prior_counts_soft_games_by_their_dispersion(soft):
    """As coins they would say that there are no differences, and λ would go up."""
    found = estimate_prior(soft)
    assert 0.001 < found.dispersion < 0.05
    assert 0.3 < found.prior_precision < 3.0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rating_prior, "dispersion", lambda queries: 1.0)
        assert estimate_prior(soft).prior_precision > 3 * found.prior_precision


def test_ratings_count_soft_games_by_their_dispersion(soft):
    prior = estimate_prior(soft)
    docs = candidates(2, 12)
    rated = rate(soft, docs, prior)
    weighted = soft.with_columns(weight=pl.lit(1.0 / prior.dispersion))
    as_weighted = rate(weighted, docs, replace(prior, dispersion=1.0))
    columns = ["query_id", "doc_id", "rating", "log_strength", "standard_error"]
    assert_frame_equal(rated.select(columns), as_weighted.select(columns), abs_tol=1e-8)
    as_coins = rate(soft, docs, replace(prior, dispersion=1.0))
    assert as_coins["standard_error"].min() > 2 * rated["standard_error"].max()
    assert rated["wins"].max() <= 4.0, "games are counted once where they are counted"
