"""Games as questions to a judge.

Source: SABER-Math, paragraph "Pairwise preference judging with an LLM-as-a-Judge".
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from saber_dagster.engines import PAIRWISE_JUDGMENT, Call
from saber_dagster.errors import SaberError
from saber_dagster.ledger import Outcome
from saber_dagster.replies import parse_verdict
from saber_dagster.tournament import Game, GameResult, Judge

Text = tuple[str, str]
"""Problem and solution of a document."""

Ask = Callable[[Sequence[Call], Callable[[Call, str], float]], list[Outcome[float]]]

HOPELESS_BATCH = 10
"""A judge that answers none of so many games of a batch is asked no more."""


def pairwise_judge(ask: Ask, texts: Mapping[str, Text]) -> Judge:
    """A judge that asks which of two documents is closer to the query, in the order shown.

    Args:
        ask: answers a batch of calls with the preference for the first document; see
            :meth:`saber_dagster.ledger.Session.ask`.
        texts: problem and solution of every query and candidate, by document id.

    The judge raises ``SaberError`` if it has a verdict on none of a batch of at least
    :data:`HOPELESS_BATCH` games: further rounds would be paid for nothing.
    """
    shown = {
        doc: {"problem": problem, "solution": solution}
        for doc, (problem, solution) in texts.items()
    }

    def judge(games: Sequence[Game]) -> Sequence[GameResult]:
        calls = [
            Call(
                PAIRWISE_JUDGMENT,
                {
                    "query": shown[game.query_id],
                    "first": shown[game.shown_first],
                    "second": shown[game.shown_second],
                },
                f"{game.query_id}: {game.shown_first} | {game.shown_second}",
            )
            for game in games
        ]
        outcomes = ask(calls, lambda _, text: parse_verdict(text))
        _stop_if_hopeless(outcomes)
        return [_result(game, outcome) for game, outcome in zip(games, outcomes, strict=True)]

    return judge


def _stop_if_hopeless(outcomes: Sequence[Outcome[float]]) -> None:
    if len(outcomes) < HOPELESS_BATCH or any(o.value is not None for o in outcomes):
        return
    counts = Counter(outcome.status for outcome in outcomes)
    by_status = ", ".join(f"{n} {status}" for status, n in sorted(counts.items()))
    error = next((outcome.error for outcome in outcomes if outcome.error), "")
    first = f"; the first: {error}" if error else ""
    raise SaberError(
        f"the judge gave no verdict on any of {len(outcomes)} games ({by_status}{first}). Look at"
        " `saber ledger stats`, the judge's prompt and its max_tokens; nothing that was paid is lost,"
        " and what you change there is asked anew"
    )


def _result(game: Game, outcome: Outcome[float]) -> GameResult:
    preference = outcome.value
    if preference is not None and game.shown_first != game.doc_a:
        preference = 1.0 - preference
    return GameResult(preference, outcome.status, (outcome.key,))
