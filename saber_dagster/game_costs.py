"""What the games of a judge cost, from the ledger. A replay has other costs, so no table has them."""

import math

import polars as pl

COST_COLUMNS = ("key", "prompt_tokens", "completion_tokens", "price", "latency", "truncated_input")
"""Columns of the ledger that :func:`game_costs` reads."""


def game_costs(
    judgments: pl.DataFrame, replies: pl.DataFrame, in_batches: bool = False
) -> dict[str, float]:
    """Costs by 1,000 games.

    Args:
        judgments: table ``judgments``.
        replies: the canonical rows of the ledger, by :data:`COST_COLUMNS`; those of other calls do not
            count.
        in_batches: a Batch API answered; the latency of a call is then that of its whole batch, and
            no seconds are given, as a sum of them would say nothing.

    Returns:
        Calls found, truncated inputs among them, and tokens, price in USD and seconds by 1,000 games;
        the seconds are those of each call, added up, however many were in flight. Empty if the ledger
        has none of the calls.
    """
    keys = judgments.select(pl.col("call_keys").explode().drop_nulls().unique().alias("key"))
    mine = replies.join(keys, on="key", how="semi")
    if mine.is_empty():
        return {}
    by_games = 1000 / judgments.height
    tokens = sum(mine["prompt_tokens"].to_list()) + sum(mine["completion_tokens"].to_list())
    costs = {
        "calls": mine.height,
        "truncated_inputs": mine["truncated_input"].to_list().count(True),
        "tokens_per_1000_games": tokens * by_games,
        "usd_per_1000_games": math.fsum(mine["price"]) * by_games,
    }
    if not in_batches:
        costs["seconds_per_1000_games"] = math.fsum(mine["latency"]) * by_games
    return costs
