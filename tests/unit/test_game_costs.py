"""Costs of the games of a judge."""

import polars as pl
import pytest

from saber_dagster.game_costs import COST_COLUMNS, game_costs


def test_hours_of_a_batch_are_not_added_up_call_by_call():
    games = pl.DataFrame({"call_keys": [["a"], ["b"]]})
    rows = [("a", 100, 1, 0.5, 3600.0, False), ("b", 100, 1, 0.5, 3600.0, False)]
    replies = pl.DataFrame(rows, schema=COST_COLUMNS, orient="row")
    live = game_costs(games, replies)
    assert live.pop("seconds_per_1000_games") == pytest.approx(3_600_000)
    assert game_costs(games, replies, in_batches=True) == live
