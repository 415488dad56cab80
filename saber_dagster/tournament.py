"""The Swiss tournament: all queries advance round by round, one batch of games per round."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from saber_dagster.contracts import TABLES
from saber_dagster.engines import FINAL
from saber_dagster.errors import SaberError
from saber_dagster.hashing import hash64
from saber_dagster.swiss import Pair, pair_round


@dataclass(frozen=True, slots=True)
class Game:
    """Two candidates of a query to be compared; ``doc_a`` is the smaller id."""

    query_id: str
    round: int
    doc_a: str
    doc_b: str
    shown_first: str

    @property
    def shown_second(self) -> str:
        """The document that the judge sees second."""
        return self.doc_b if self.shown_first == self.doc_a else self.doc_a

    @property
    def mirror(self) -> "Game":
        """The same comparison in the other order."""
        return replace(self, shown_first=self.shown_second)


@dataclass(frozen=True, slots=True)
class GameResult:
    """What the judge said of one game.

    Attributes:
        preference: for ``doc_a``, in [0, 1], whichever was shown first; None if the call failed.
        status: ``ok``, or the final status of the call that failed.
        call_keys: ledger keys of the calls behind the result.
        as_shown: the preference in the game's own order, where an order was shown.
        swapped: the preference in the other order, where it was asked as well.
    """

    preference: float | None
    status: str
    call_keys: tuple[str, ...] = ()
    as_shown: float | None = None
    swapped: float | None = None


Judge = Callable[[Sequence[Game]], Sequence[GameResult]]
"""Results in the order of the games. It raises if a call has no final status."""


@dataclass(slots=True)
class _Standing:
    """Running scores and past pairs of one query."""

    scores: dict[str, float]
    met: set[Pair] = field(default_factory=set)


def run_tournament(
    query_candidates: Mapping[str, Sequence[str]],
    rounds: int,
    seed: int,
    judge: Judge,
    both_orders: bool = False,
) -> pl.DataFrame:
    """Play R rounds for every query and return the games.

    The side above 0.5 scores a point; at 0.5, and if the game failed, each side scores half a
    point. A failed game counts as played and has no outcome. Rounds end early for a query that has
    no pairs left. The games of a query do not depend on the other queries of the same call.

    Args:
        query_candidates: candidates of each query, in any order.
        rounds: R.
        seed: decides pairings and, by query and pair, which document is shown first.
        judge: called once per round with the games of all queries, sorted by query and pair; with
            ``both_orders`` every game is followed by its mirror.
        both_orders: judge every game in both orders; its outcome is the mean of the two
            preferences, or none if one of the calls failed.

    Returns:
        A frame of the ``judgments`` table.

    Raises:
        SaberError: on fewer than two candidates, repeated ones, no rounds, or a judge that breaks
            its contract.

    Source: SABER-Math, section "Tournament-based Document Relevance Ratings" and its algorithm.
    """
    if rounds < 1:
        raise SaberError(f"rounds is {rounds}. Set it to 1 or more; the paper uses 20")
    standings = {
        query: _Standing(dict.fromkeys(_distinct(query, query_candidates[query]), 0.0))
        for query in sorted(query_candidates)
    }
    rows: list[tuple[object, ...]] = []
    for number in range(1, rounds + 1):
        games = [
            Game(query, number, *pair, shown_first=shown_first(seed, query, pair))
            for query, standing in standings.items()
            for pair in sorted(pair_round(standing.scores, standing.met, number, seed, query))
        ]
        if not games:
            break
        for game, result in zip(games, _results(judge, games, both_orders), strict=True):
            _score(standings[game.query_id], game, result.preference)
            rows.append(
                (
                    game.query_id,
                    game.round,
                    game.doc_a,
                    game.doc_b,
                    game.shown_first,
                    result.preference,
                    1.0,
                    result.status,
                    list(result.call_keys),
                    result.as_shown,
                    result.swapped,
                )
            )
    table = TABLES["judgments"]
    return table.check(pl.DataFrame(rows, schema=table.schema, orient="row"), "tournament")


def shown_first(seed: int, query_id: str, pair: Pair) -> str:
    """The document of a pair that the judge sees first: random, and the same in every round."""
    return pair[hash64(seed, "shown", query_id, *pair) & 1]


def _distinct(query: str, candidates: Sequence[str]) -> Sequence[str]:
    if len(set(candidates)) != len(candidates):
        raise SaberError(f"query {query} has a candidate twice. Remove the repetition")
    if len(candidates) < 2:
        raise SaberError(
            f"query {query} has {len(candidates)} candidate(s), a tournament needs 2. "
            "Lower the thresholds or leave the query out"
        )
    return candidates


def _results(judge: Judge, games: list[Game], both_orders: bool) -> list[GameResult]:
    """One checked result per game."""
    asked = [shown for game in games for shown in (game, game.mirror)] if both_orders else games
    results = list(judge(asked))
    if len(results) != len(asked):
        raise SaberError(f"the judge returned {len(results)} results for {len(asked)} games")
    for game, result in zip(asked, results, strict=True):
        if result.status not in FINAL:
            raise SaberError(f"{game}: the judge returned the status {result.status!r}")
        if (result.preference is None) == (result.status == "ok"):
            raise SaberError(f"{game}: status {result.status!r} with {result.preference}")
        if result.preference is not None and not (
            math.isfinite(result.preference) and 0.0 <= result.preference <= 1.0
        ):
            raise SaberError(f"{game}: preference {result.preference} is not in [0, 1]")
    if not both_orders:
        return results
    return [_mean(*orders) for orders in zip(results[::2], results[1::2], strict=True)]


def _mean(shown: GameResult, mirrored: GameResult) -> GameResult:
    keys = shown.call_keys + mirrored.call_keys
    if shown.preference is None or mirrored.preference is None:
        failed = shown if shown.preference is None else mirrored
        return GameResult(None, failed.status, keys)
    mean = (shown.preference + mirrored.preference) / 2
    return GameResult(mean, "ok", keys, shown.preference, mirrored.preference)


def _score(standing: _Standing, game: Game, preference: float | None) -> None:
    points = 0.5 if preference is None or preference == 0.5 else float(preference > 0.5)
    standing.scores[game.doc_a] += points
    standing.scores[game.doc_b] += 1.0 - points
    standing.met.add((game.doc_a, game.doc_b))
