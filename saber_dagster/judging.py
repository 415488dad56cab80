"""Games as questions to a judge, in one of four ways (``ask`` in ``judges.yaml``).

=====================  ========================================================================
``generate``           Which of two documents? A free reply that ends in a verdict. One call a game,
                       two with ``tournament.both_orders``.
``choice_logprobs``    The same as one forced token, in both orders. The preference for doc_a is the
                       sigmoid of the mean of the two log-odds. Two calls a game.
``relevance_logprobs`` Is this document of use for the query, yes or no? The preference is the
                       sigmoid of the difference of two documents' log-odds of yes. One call for
                       each query and document, however often it plays.
``ordinal``            How useful is it, from 0 to 100? The higher number wins, equal ones tie.
                       Calls as before.
=====================  ========================================================================

Source: SABER-Math, paragraph "Pairwise preference judging with an LLM-as-a-Judge", for the first; the
others are ours.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from saber_dagster.engines import (
    ORDINAL_JUDGMENT,
    PAIRWISE_CHOICE,
    PAIRWISE_JUDGMENT,
    RELEVANCE_CHOICE,
    Call,
)
from saber_dagster.errors import SaberError
from saber_dagster.hashing import hash64
from saber_dagster.ledger import Outcome
from saber_dagster.replies import parse_reply
from saber_dagster.tournament import Game, GameResult, Judge

Text = tuple[str, str]
"""Problem and solution of a document."""

Parse = Callable[[Call, str], float]
Guess = Callable[[Call], float]
Ask = Callable[[Sequence[Call], Parse, Guess], list[Outcome[float]]]
"""See :meth:`saber_dagster.ledger.Session.ask`."""

TASK_OF_ASK = {
    "generate": PAIRWISE_JUDGMENT,
    "choice_logprobs": PAIRWISE_CHOICE,
    "relevance_logprobs": RELEVANCE_CHOICE,
    "ordinal": ORDINAL_JUDGMENT,
}
"""The task that an engine answers, by the way to ask."""

HOPELESS_BATCH = 10
"""A judge that answers none of so many calls of a batch is asked no more."""

LOG_ODDS_BOUND = 10.0
"""Where the log-odds of a preference are cut: it stays within σ(±10), 4.5e-5 from 0 and from 1.

The cut comes after the mean of both orders, in which a strong pull of one place cancels.
"""

_DECIMALS = 9
"""Of a preference, so that the last bits of an exponential do not reach a data version."""

Question = tuple[str, ...]
"""Ids of a query and of one or two documents, in the order shown."""

Put = Callable[[Sequence[Question]], list[Outcome[float]]]


def make_judge(ask_mode: str, ask: Ask, texts: Mapping[str, Text]) -> Judge:
    """A judge that asks in one of the ways of :data:`TASK_OF_ASK`.

    Args:
        ask_mode: ``ask`` of the judge's entry.
        ask: answers a batch of calls; see :meth:`saber_dagster.ledger.Session.ask`.
        texts: problem and solution of every query and candidate, by document id.

    Returns:
        The judge. It raises ``SaberError`` if it has an answer to none of a batch of at least
        :data:`HOPELESS_BATCH` calls: further rounds would be paid for nothing. A game fails with the
        status of the first of its calls that failed.
    """
    task = TASK_OF_ASK[ask_mode]
    shown = {
        doc: {"problem": problem, "solution": solution}
        for doc, (problem, solution) in texts.items()
    }
    known: dict[Question, Outcome[float]] = {}

    def put(questions: Sequence[Question]) -> list[Outcome[float]]:
        new = [question for question in dict.fromkeys(questions) if question not in known]
        outcomes = ask([_call(task, question, shown) for question in new], _parse, guess)
        _stop_if_hopeless(outcomes)
        known.update(zip(new, outcomes, strict=True))
        return [known[question] for question in questions]

    return partial(_MODES[ask_mode], put)


def guess(call: Call) -> float:
    """What a judge might answer, from the hashes of the texts: a dry run goes on with it."""
    query = call.inputs["query"]["problem"]
    worths = [
        hash64("guess", query, call.inputs[name]["problem"]) / 2**64
        for name in ("first", "second", "document")
        if name in call.inputs
    ]
    if call.task == PAIRWISE_JUDGMENT:
        return float(worths[0] > worths[1])
    if call.task == PAIRWISE_CHOICE:
        return worths[0] - worths[1]
    return worths[0] * (100.0 if call.task == ORDINAL_JUDGMENT else 1.0)


def _verdicts(put: Put, games: Sequence[Game]) -> list[GameResult]:
    results = []
    for game, outcome in zip(games, put([_pair(game) for game in games]), strict=True):
        preference = outcome.value
        if preference is not None and game.shown_first != game.doc_a:
            preference = 1.0 - preference
        results.append(GameResult(preference, outcome.status, outcome.keys, preference))
    return results


def _choices(put: Put, games: Sequence[Game]) -> list[GameResult]:
    outcomes = put([_pair(order) for game in games for order in (game, game.mirror)])

    def odds(game: Game, first: float, second: float) -> tuple[float, float, float]:
        """For doc_a: in the mean, as shown, swapped."""
        shown, swapped = (first, -second) if game.shown_first == game.doc_a else (-first, second)
        return (shown + swapped) / 2, shown, swapped

    return _two_calls_each(games, outcomes, lambda *game: tuple(map(_sigmoid, odds(*game))))


def _relevances(put: Put, games: Sequence[Game]) -> list[GameResult]:
    outcomes = put([question for game in games for question in _each(game)])
    return _two_calls_each(games, outcomes, lambda _, a, b: (_sigmoid(a - b), None, None))


def _grades(put: Put, games: Sequence[Game]) -> list[GameResult]:
    outcomes = put([question for game in games for question in _each(game)])

    def compare(_: Game, a: float, b: float) -> tuple[float, None, None]:
        return (0.5 if a == b else float(a > b)), None, None

    return _two_calls_each(games, outcomes, compare)


_MODES: dict[str, Callable[[Put, Sequence[Game]], list[GameResult]]] = {
    "generate": _verdicts,
    "choice_logprobs": _choices,
    "relevance_logprobs": _relevances,
    "ordinal": _grades,
}


def _two_calls_each(
    games: Sequence[Game],
    outcomes: Sequence[Outcome[float]],
    preferences: Callable[[Game, float, float], tuple[float | None, ...]],
) -> list[GameResult]:
    """Games of two calls; ``preferences`` gives the mean, and those of the two orders, for doc_a."""
    results = []
    for game, one, two in zip(games, outcomes[::2], outcomes[1::2], strict=True):
        keys = one.keys + two.keys
        if one.value is None or two.value is None:
            failed = one if one.value is None else two
            results.append(GameResult(None, failed.status, keys))
        else:
            preference, as_shown, swapped = preferences(game, one.value, two.value)
            results.append(GameResult(preference, "ok", keys, as_shown, swapped))
    return results


def _pair(game: Game) -> Question:
    return game.query_id, game.shown_first, game.shown_second


def _each(game: Game) -> tuple[Question, Question]:
    return (game.query_id, game.doc_a), (game.query_id, game.doc_b)


def _call(task: str, question: Question, shown: Mapping[str, Mapping[str, str]]) -> Call:
    query, *documents = question
    names = ("first", "second") if len(documents) == 2 else ("document",)
    inputs = {"query": shown[query]}
    inputs |= {name: shown[doc] for name, doc in zip(names, documents, strict=True)}
    return Call(task, inputs, f"{query}: {' | '.join(documents)}")


def _parse(call: Call, text: str) -> float:
    return float(parse_reply(call.task, call.inputs, text))


def _sigmoid(log_odds: float) -> float:
    bounded = min(max(log_odds, -LOG_ODDS_BOUND), LOG_ODDS_BOUND)
    return round(1.0 / (1.0 + math.exp(-bounded)), _DECIMALS)


def _stop_if_hopeless(outcomes: Sequence[Outcome[float]]) -> None:
    if len(outcomes) < HOPELESS_BATCH or any(o.value is not None for o in outcomes):
        return
    counts = Counter(outcome.status for outcome in outcomes)
    by_status = ", ".join(f"{n} {status}" for status, n in sorted(counts.items()))
    error = next((outcome.error for outcome in outcomes if outcome.error), "")
    first = f"; the first: {error}" if error else ""
    raise SaberError(
        f"the judge gave no answer to any of {len(outcomes)} calls ({by_status}{first}). Look at"
        " `saber ledger stats`, the judge's prompt and its max_tokens; nothing that was paid is lost,"
        " and what you change there is asked anew"
    )
