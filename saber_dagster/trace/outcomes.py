"""Whether a game's outcome is what its replies say, by today's parsers."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from saber_dagster.engines import PAIRWISE_JUDGMENT, Call
from saber_dagster.judging import TASK_OF_ASK, Guess, Parse, make_judge
from saber_dagster.ledger import Outcome
from saber_dagster.replies import ParseError
from saber_dagster.tournament import Game, GameResult
from saber_dagster.trace.names import Document

_ASK_OF_TASK = {task: ask for ask, task in TASK_OF_ASK.items()}
_TOLERANCE = 1e-12


def follows(
    game: Mapping[str, Any],
    query: Document,
    doc: Document,
    opponent: Document,
    calls: Mapping[str, Mapping[str, Any]],
) -> bool | None:
    """Judge a game once more, from its stored replies.

    Args:
        game: from the side of ``doc``, as the trace has it.
        query: the query.
        doc: the document that is traced.
        opponent: the other one.
        calls: the traced calls, by key.

    Returns:
        Whether the replies give the game's outcome and status. None if that cannot be told: a reply
        is missing, or what was asked cannot be restored.
    """
    mine = [calls[key] for key in game["call_keys"]]
    if not mine or any(not call["found"] or call["inputs"] is None for call in mine):
        return None
    task = mine[0]["task"]
    if task not in _ASK_OF_TASK:
        return None
    replies = _Replies(mine)
    texts = {d.doc_id: (d.problem, d.solution) for d in (query, doc, opponent)}
    judge = make_judge(_ASK_OF_TASK[task], replies.ask, texts)
    doc_a, doc_b = sorted((doc.doc_id, opponent.doc_id))
    shown_first = (doc if game["shown_first"] else opponent).doc_id
    played = Game(query.doc_id, game["round"], doc_a, doc_b, shown_first)
    both = task == PAIRWISE_JUDGMENT and replies.n_questions > 1
    try:
        results = judge([played, played.mirror] if both else [played])
    except LookupError:  # the replies are to other questions
        return False
    preference, status = _together(results)
    if preference is None or game["outcome"] is None:
        return preference is game["outcome"] and status == game["status"]
    side = preference if doc.doc_id == doc_a else 1.0 - preference
    return math.isclose(side, game["outcome"], rel_tol=0.0, abs_tol=_TOLERANCE)


class _Replies:
    """Answers what a judge asks by the replies of one game."""

    def __init__(self, calls: Sequence[Mapping[str, Any]]) -> None:
        self._by_question: dict[str, list[Mapping[str, Any]]] = {}
        for call in calls:
            question = _question(call["task"], call["inputs"])
            self._by_question.setdefault(question, []).append(call)

    @property
    def n_questions(self) -> int:
        return len(self._by_question)

    def ask(self, calls: Sequence[Call], parse: Parse, _: Guess) -> list[Outcome[float]]:
        """The last reply to each question decides: those before it were asked again.

        Raises:
            KeyError: if there is none.
        """
        return [
            _outcome(call, self._by_question[_question(call.task, call.inputs)][-1], parse)
            for call in calls
        ]


def _outcome(call: Call, reply: Mapping[str, Any], parse: Parse) -> Outcome[float]:
    if reply["status"] not in ("ok", "parse_error"):
        return Outcome(reply["key"], reply["status"], None)
    try:
        return Outcome(reply["key"], "ok", parse(call, reply["text"]))
    except ParseError as error:
        return Outcome(reply["key"], "parse_error", None, str(error))


def _together(results: Sequence[GameResult]) -> tuple[float | None, str]:
    """The mean of all orders, or the status of the first that failed."""
    preferences = []
    for result in results:
        if result.preference is None:
            return None, result.status
        preferences.append(result.preference)
    return sum(preferences) / len(preferences), "ok"


def _question(task: str, inputs: Mapping[str, Any]) -> str:
    return json.dumps([task, inputs], sort_keys=True)
