"""Ratings of each query's candidates in [0, 5], and how well its games connect them."""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from saber_dagster.bradley_terry import Floats, Games, fit, judged_games
from saber_dagster.contracts import TABLES
from saber_dagster.errors import SaberError
from saber_dagster.rating_prior import RatingPrior

DECIMALS = 9
"""Decimals of ratings, log-strengths and errors, so that the last bits do not reach a version."""

CONNECTIVITY_SCHEMA: dict[str, type[pl.DataType]] = {
    "query_id": pl.String,
    "components": pl.Int64,
    "strongly_connected": pl.Boolean,
    "undefeated": pl.Int64,
    "winless": pl.Int64,
    "games": pl.Int64,
    "failed": pl.Int64,
}


def rate(
    judgments: pl.DataFrame,
    query_candidates: Mapping[str, Sequence[str]],
    prior: RatingPrior,
    scale_max: float = 5.0,
) -> pl.DataFrame:
    """Rate every candidate of every query.

    Log-strengths are rescaled linearly per query, the lowest to 0 and the highest to ``scale_max``;
    if all are equal, all ratings are ``scale_max / 2``. A candidate that never played keeps the
    prior's mean, 0. Ranks follow the rating, then the id.

    Args:
        judgments: frame of the ``judgments`` table, rows in any order; failed games do not count.
        query_candidates: candidates of each query, as given to the tournament.
        prior: estimated from all queries of the judge.
        scale_max: upper end of the scale; the paper uses 5.

    Returns:
        A frame of the ``ratings`` table.

    Raises:
        SaberError: if a game is not between candidates of its query, or a fit does not converge.

    Source: SABER-Math, section "Tournament-based Document Relevance Ratings".
    """
    if not 0 < scale_max < np.inf:
        raise SaberError(f"scale_max is {scale_max}. Set it to a positive number, such as 5")
    table = TABLES["ratings"]
    frames = [table.empty()]
    for query, docs, games in judged_games(judgments, _sorted(query_candidates)):
        counted = games.weighted(1.0 / prior.dispersion)
        result = fit(counted, prior.prior_precision, prior.position)
        strength = _rounded(result.log_strength)
        frames.append(
            pl.DataFrame(
                {
                    "query_id": [query] * len(docs),
                    "doc_id": docs,
                    "rating": _rounded(rescale(strength, scale_max)),
                    "log_strength": strength,
                    "standard_error": _rounded(result.standard_error),
                    "wins": _rounded(games.wins),
                    "losses": _rounded(games.losses),
                },
                schema_overrides={"query_id": pl.String, "doc_id": pl.String},
            )
            .sort(["rating", "doc_id"], descending=[True, False])
            .with_columns(rank=pl.int_range(1, pl.len() + 1, dtype=pl.Int32))
            .select(list(table.columns))
        )
    return table.check(pl.concat(frames))


def rescale(strength: Floats, scale_max: float) -> Floats:
    """Map values linearly to [0, scale_max], or all to the middle if they are equal, shape (n,)."""
    low, high = strength.min(initial=np.inf), strength.max(initial=-np.inf)
    if not low < high:
        return np.full(strength.shape, scale_max / 2)
    rescaled: Floats = np.clip((strength - low) / (high - low) * scale_max, 0.0, scale_max)
    return rescaled


def connectivity(
    judgments: pl.DataFrame, query_candidates: Mapping[str, Sequence[str]]
) -> pl.DataFrame:
    """What the games of each query can and cannot settle.

    Args:
        judgments: frame of the ``judgments`` table, rows in any order.
        query_candidates: candidates of each query, as given to the tournament.

    Returns:
        One row per query: ``components`` of the graph of games that count, over all candidates (1
        is connected); ``strongly_connected``: each candidate leads to each other by a chain of
        wins, without which a maximum of the likelihood does not exist (Ford 1957); candidates that
        played and are ``undefeated`` or ``winless``; ``games`` that count and ``failed`` ones.
    """
    failures = judgments.filter(pl.col("outcome").is_null()).group_by("query_id").len()
    failed = dict(failures.iter_rows())
    rows = []
    for query, _, games in judged_games(judgments, _sorted(query_candidates)):
        weak, strong = _components(games)
        played = (games.wins + games.losses) > 0
        rows.append(
            (
                query,
                weak,
                strong <= 1,
                int((played & (games.losses == 0)).sum()),
                int((played & (games.wins == 0)).sum()),
                games.outcome.size,
                failed.get(query, 0),
            )
        )
    return pl.DataFrame(rows, schema=CONNECTIVITY_SCHEMA, orient="row")


def _components(games: Games) -> tuple[int, int]:
    """Weakly and strongly connected components of the graph from winner to loser."""
    first_won, second_won = games.outcome > 0, games.outcome < 1
    winner = np.concatenate([games.first[first_won], games.second[second_won]])
    loser = np.concatenate([games.second[first_won], games.first[second_won]])
    graph = coo_array((np.ones(winner.size), (winner, loser)), shape=(games.n_items,) * 2).tocsr()
    weak, strong = (
        connected_components(graph, connection=kind, return_labels=False)
        for kind in ("weak", "strong")
    )
    return int(weak), int(strong)


def _sorted(query_candidates: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    for query, docs in query_candidates.items():
        if len(set(docs)) != len(docs):
            raise SaberError(f"query {query} has a candidate twice. Remove the repetition")
    return {query: sorted(docs) for query, docs in query_candidates.items()}


def _rounded(values: Floats) -> NDArray[np.float64]:
    """Rounded, without negative zeros."""
    return np.round(values, DECIMALS) + 0.0
