"""Whether an outcome follows from its replies, for every way to ask."""

from itertools import count

import pytest

from saber_dagster.judging import TASK_OF_ASK, make_judge
from saber_dagster.ledger import Outcome
from saber_dagster.replies import ParseError
from saber_dagster.tournament import run_tournament
from saber_dagster.trace.names import Document
from saber_dagster.trace.outcomes import follows

QUERY, *DOCS = (Document(i, "s", i, f"problem {i}", f"solution {i}") for i in ("q", "d1", "d2"))


def reply(call):
    """Longs for the document ``d2``, and a little for the first place."""
    second = call.inputs.get("second", {}).get("problem") == "problem d2"
    it = second or call.inputs.get("document", {}).get("problem") == "problem d2"
    return {
        "pairwise_judgment": f"<verdict>{1 + second}</verdict>",
        "pairwise_choice": (
            f'<logprob choice="1">{-2.0 if it else -0.1}</logprob>\n'
            f'<logprob choice="2">{-0.2 if it else -3.0}</logprob>'
        ),
        "relevance_choice": (
            f'<logprob choice="yes">{-0.3 if it else -1.0}</logprob>\n'
            f'<logprob choice="no">{-1.5 if it else -0.5}</logprob>'
        ),
        "ordinal_judgment": f"<score>{70 if it else 30}</score>",
    }[call.task]


def first_place(call):
    """Always names the document that is shown first."""
    return "<verdict>1</verdict>"


def played(ask, both_orders=False, bad=0, reply=reply):
    """A game by the true judge, and the calls behind it; the first ``bad`` replies do not parse."""
    calls, numbers = {}, count()

    def answer(asked, parse, _):
        outcomes = []
        for call in asked:
            tries = []
            while True:
                key = f"k{next(numbers)}"
                text = "I would rather not say." if len(calls) < bad else reply(call)
                calls[key] = {
                    "key": key,
                    "found": True,
                    "task": call.task,
                    "inputs": call.inputs,
                    "status": "ok",
                    "text": text,
                }
                try:
                    outcomes.append(Outcome(key, "ok", parse(call, text), "", tuple(tries)))
                    break
                except ParseError as error:
                    calls[key]["status"] = "parse_error"
                    if tries:
                        outcomes.append(Outcome(key, "parse_error", None, str(error), (*tries,)))
                        break
                    tries.append(key)
        return outcomes

    texts = {d.doc_id: (d.problem, d.solution) for d in (QUERY, *DOCS)}
    judge = make_judge(ask, answer, texts)
    row = run_tournament({"q": ["d1", "d2"]}, 1, 1, judge, both_orders).row(0, named=True)
    game = {
        "round": 1,
        "shown_first": row["shown_first"] == "d2",
        "outcome": None if row["outcome"] is None else 1.0 - row["outcome"],
        "status": row["status"],
        "call_keys": row["call_keys"],
    }
    return game, calls


def follow(game, calls):
    return follows(game, QUERY, DOCS[1], DOCS[0], calls)


WAYS = [*((ask, False) for ask in TASK_OF_ASK), ("generate", True)]


@pytest.mark.parametrize(("ask", "both_orders"), WAYS)
@pytest.mark.parametrize("bad", [0, 1, 2])
def test_an_outcome_follows_from_its_replies_and_no_other_does(ask, both_orders, bad):
    game, calls = played(ask, both_orders, bad)
    assert (game["outcome"] is None) == (bad == 2), "asked again once"
    assert follow(game, calls) is True
    other = 0.25 if game["outcome"] is None else 1.0 - game["outcome"]
    assert follow({**game, "outcome": other}, calls) is False
    if bad == 2:
        assert follow({**game, "status": "refused"}, calls) is False
    else:
        assert follow({**game, "outcome": None, "status": "parse_error"}, calls) is False


def test_both_orders_are_part_of_an_outcome():
    game, calls = played("generate", both_orders=True, reply=first_place)
    assert game["outcome"] == 0.5
    assert follow(game, calls) is True
    assert follow({**game, "outcome": 1.0}, calls) is False
    assert follow({**game, "outcome": 0.0}, calls) is False


@pytest.mark.parametrize("ask", TASK_OF_ASK)
def test_what_cannot_be_told_and_replies_to_something_else(ask):
    game, calls = played(ask)
    key = game["call_keys"][0]
    assert follow(game, {**calls, key: {"found": False}}) is None
    assert follow(game, {**calls, key: {**calls[key], "inputs": None}}) is None
    assert follow({**game, "call_keys": []}, calls) is None
    inputs = {**calls[key]["inputs"], "query": {"problem": "another", "solution": "s"}}
    assert follow(game, {**calls, key: {**calls[key], "inputs": inputs}}) is False
    refused = {**calls, key: {**calls[key], "status": "refused"}}
    assert follow({**game, "outcome": None, "status": "refused"}, refused) is True
    assert follow(game, refused) is False
