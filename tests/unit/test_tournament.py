import math

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from saber_dagster.errors import SaberError
from saber_dagster.hashing import hash64
from saber_dagster.tournament import Game, GameResult, run_tournament, shown_first


def by_id(games):
    """A judge that prefers the smaller id, whichever is shown first."""
    return [GameResult(1.0, "ok", (f"{game.doc_a}|{game.shown_first}",)) for game in games]


def noisy(games):
    """A judge whose answer depends on its call alone."""
    chances = [hash64("noisy", g.query_id, g.shown_first, g.shown_second) % 5 / 4 for g in games]
    return [
        GameResult(c if g.shown_first == g.doc_a else 1.0 - c, "ok", (g.shown_first,))
        for c, g in zip(chances, games, strict=True)
    ]


def failing(games):
    """A judge that loses every third call."""
    return [
        GameResult(None, "parse_error", ("k",)) if hash64(g.doc_a, g.doc_b) % 3 == 0 else result
        for g, result in zip(games, noisy(games), strict=True)
    ]


def candidates(queries=3, docs=10):
    return {f"q{q}": [f"d{q}-{d:02}" for d in range(docs)] for q in range(queries)}


@pytest.mark.parametrize("judge", [by_id, noisy, failing])
@pytest.mark.parametrize("docs", [2, 3, 9, 10])
def test_nobody_meets_twice_and_rounds_end_when_no_pairs_are_left(judge, docs):
    games = run_tournament(candidates(2, docs), 40, 7, judge)
    assert not games.select("query_id", "doc_a", "doc_b").is_duplicated().any()
    per_query = games.group_by("query_id").len()["len"]
    assert set(per_query) == {docs * (docs - 1) // 2}, "every pair is reached in the end"
    playing = pl.concat(
        [games.select("query_id", "round", doc=side) for side in ("doc_a", "doc_b")]
    )
    assert not playing.is_duplicated().any()


def test_all_queries_share_one_call_per_round():
    batches = []

    def judge(games):
        batches.append(games)
        return by_id(games)

    run_tournament(candidates(3, 30), 4, 7, judge)
    assert [len(batch) for batch in batches] == [45, 45, 45, 45]
    assert [{game.round for game in batch} for batch in batches] == [{1}, {2}, {3}, {4}]
    assert [game.query_id for game in batches[0]] == sorted(g.query_id for g in batches[0])


def test_winners_meet_winners():
    games = run_tournament(candidates(1, 8), 3, 7, by_id)
    first = games.filter(pl.col("round") == 1)
    winners = set(first["doc_a"])
    for a, b in games.filter(pl.col("round") == 2).select("doc_a", "doc_b").iter_rows():
        assert (a in winners) == (b in winners)


def test_result_depends_neither_on_order_nor_on_the_split_into_calls():
    whole = run_tournament(candidates(4, 9), 6, 7, failing)
    backwards = {q: docs[::-1] for q, docs in reversed(candidates(4, 9).items())}
    assert_frame_equal(whole, run_tournament(backwards, 6, 7, failing))
    parts = [run_tournament({q: d}, 6, 7, failing) for q, d in candidates(4, 9).items()]
    assert_frame_equal(whole, pl.concat(parts))
    assert not whole.equals(run_tournament(candidates(4, 9), 6, 8, failing))


def test_a_failed_game_counts_as_played_with_half_a_point_each():
    docs = {"q": ["a", "b", "c", "d"]}

    def judge(games):
        return [
            GameResult(None, "refused", ("k",)) if g.round == 1 and g.doc_a == "a" else result
            for g, result in zip(games, by_id(games), strict=True)
        ]

    met_the_loser = set()
    for seed in range(24):
        games = run_tournament(docs, 3, seed, judge)
        assert games.height == 6
        failed = games.filter(pl.col("outcome").is_null())
        lost = failed.select("round", "doc_a", "status", "weight", "call_keys").rows()
        assert lost == [(1, "a", "refused", 1.0, ["k"])]
        # The failed pair stands at half a point each, the other at 1 and 0. The loser is lowest and
        # meets either one of the failed pair, at random.
        drawn = set(failed.select("doc_a", "doc_b").row(0))
        loser = games.filter((pl.col("round") == 1) & (pl.col("outcome") == 1.0))["doc_b"][0]
        for pair in games.filter(pl.col("round") == 2).select("doc_a", "doc_b").rows():
            assert len(drawn & set(pair)) == 1
            if loser in pair:
                met_the_loser.add("a" in pair)
    assert met_the_loser == {True, False}


def test_shown_first_is_balanced_and_depends_on_query_and_pair_only():
    shown = [shown_first(3, f"q{i}", ("a", "b")) for i in range(1000)]
    assert set(shown) == {"a", "b"}
    assert abs(shown.count("a") - 500) < 64  # 4 standard deviations
    games = run_tournament(candidates(2, 9), 5, 3, noisy)
    for query, a, b, first in games.select("query_id", "doc_a", "doc_b", "shown_first").iter_rows():
        assert first == shown_first(3, query, (a, b))


def test_both_orders_give_one_game_with_the_mean():
    def slot_one(games):
        """Always names the document shown first, a little less if it is a."""
        return [
            GameResult(0.75 if g.shown_first == g.doc_a else 0.0, "ok", (g.shown_first,))
            for g in games
        ]

    games = run_tournament({"q": ["a", "b"]}, 3, 7, slot_one, both_orders=True)
    assert games["outcome"].to_list() == [0.375]
    first = games["shown_first"][0]
    assert games["call_keys"].to_list() == [[first, "b" if first == "a" else "a"]]


@pytest.mark.parametrize("lost", ["a", "b"])
def test_a_failure_in_one_order_fails_the_game(lost):
    def judge(games):
        return [
            GameResult(None, "truncated", ("x",))
            if g.shown_first == lost
            else GameResult(1.0, "ok", ("y",))
            for g in games
        ]

    games = run_tournament({"q": ["a", "b"]}, 1, 7, judge, both_orders=True)
    assert games.select("outcome", "status").rows() == [(None, "truncated")]
    assert sorted(games["call_keys"][0]) == ["x", "y"]


def test_mirror_swaps_what_is_shown():
    game = Game("q", 1, "a", "b", "a")
    assert (game.shown_second, game.mirror.shown_first) == ("b", "b")
    assert game.mirror.mirror == game


def test_no_queries_give_an_empty_table():
    assert run_tournament({}, 3, 7, by_id).height == 0


@pytest.mark.parametrize(
    ("docs", "rounds", "message"),
    [
        (["a"], 3, "query q has 1 candidate"),
        ([], 3, "query q has 0 candidate"),
        (["a", "b", "a"], 3, "candidate twice"),
        (["a", "b"], 0, "rounds is 0"),
    ],
)
def test_bad_input_is_named(docs, rounds, message):
    with pytest.raises(SaberError, match=message):
        run_tournament({"q": docs}, rounds, 7, by_id)


@pytest.mark.parametrize(
    "result",
    [
        GameResult(None, "ok"),
        GameResult(0.5, "parse_error"),
        GameResult(math.nan, "ok"),
        GameResult(1.5, "ok"),
        GameResult(None, "transport_error"),
    ],
)
def test_a_judge_that_breaks_its_contract_is_an_error(result):
    with pytest.raises(SaberError, match="Game"):
        run_tournament({"q": ["a", "b"]}, 1, 7, lambda games: [result] * len(games))


def test_a_judge_that_drops_a_game_is_an_error():
    with pytest.raises(SaberError, match="0 results for 1 games"):
        run_tournament({"q": ["a", "b"]}, 1, 7, lambda games: [])
