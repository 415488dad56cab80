"""One easy question to a judge, before it is let loose on a release: does it answer, and rightly?

The planted pair: a query about drawers and pigeons, a document that is solved by the same principle, and
one that is a routine computation. The judge is asked about it as in its lane, in both orders.
"""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import polars as pl

from saber_dagster.engines import Call, Engine, Message, Usage
from saber_dagster.judging import TASK_OF_ASK, Parse, Text, make_judge
from saber_dagster.ledger import Ledger, Mode, Outcome
from saber_dagster.ledger.budget import engine_price
from saber_dagster.replies import ParseError, parse_reply
from saber_dagster.settings import Judge
from saber_dagster.tokens import estimate_tokens
from saber_dagster.tournament import Game, GameResult

STAGE = "judge_check"
"""Of the calls in the ledger."""

TEXTS: dict[str, Text] = {
    "query": (
        "Ten different integers are chosen from 1 to 18. Prove that two of them differ by exactly 9.",
        "Put the numbers from 1 to 18 into the nine boxes {1, 10}, {2, 11}, ..., {9, 18}. Ten numbers"
        " lie in nine boxes, so by the pigeonhole principle one box holds two of them, and the numbers"
        " of a box differ by 9.",
    ),
    "match": (
        "Six different integers are chosen from 1 to 10. Prove that two of them have the sum 11.",
        "The five boxes {1, 10}, {2, 9}, {3, 8}, {4, 7}, {5, 6} hold all numbers from 1 to 10, and the"
        " numbers of each have the sum 11. Six numbers lie in five boxes, so by the pigeonhole principle"
        " two of them lie in one box.",
    ),
    "mismatch": (
        "Find the derivative of f(x) = x^3 sin(x).",
        "By the product rule, f'(x) = 3x^2 sin(x) + x^3 cos(x).",
    ),
}
_SAMPLED = 200
"""Texts of a release whose length is looked at, about."""
_GAMES = [Game("query", 0, "match", "mismatch", first) for first in ("match", "mismatch")]
_REMEDIES = {
    "parse_error": "Its reply has not the form that the prompt asks for; look at it, then change `prompt`"
    " or `ask`, or take a larger model",
    "truncated": "Its reply was cut off, or it reasoned and said no more; raise the engine's max_tokens,"
    " let it reason less, or look at the server's reasoning parser, which may swallow the reply",
    "refused": "The model or the server's filter declined, or the reply was empty; look at it, and take"
    " another model",
}

_OTHER_WAYS = {
    "generate": ", or ask by choice_logprobs or relevance_logprobs",
    "choice_logprobs": ", or ask by relevance_logprobs",
}


@dataclass(frozen=True)
class Answer:
    """One call: what was sent, and what came back. ``value`` is None if it does not parse."""

    item: str
    key: str
    status: str
    error: str
    messages: tuple[Message, ...]
    text: str
    reasoning: str
    value: float | None
    prompt_tokens: int
    completion_tokens: int
    price: float
    seconds: float


@dataclass(frozen=True)
class Check:
    """What a judge said of the planted pair.

    Attributes:
        answers: the calls, those asked again among them.
        made: how many of them were made now; the others were in the ledger.
        preferences: for the document that fits: when it is shown first, and second. One alone if the
            judge sees one document at a time.
        problem: why the judge is not fit, and what to do; empty if it is.
        note: what is worth knowing although it is.
    """

    answers: tuple[Answer, ...]
    made: int
    preferences: tuple[float, ...]
    problem: str
    note: str


@dataclass(frozen=True)
class ReleaseForecast:
    """What a release would take, from the answers of a check and the texts of the release."""

    calls: int
    prompt_tokens: int
    completion_tokens: int
    price: float | None
    """US dollars; None if the engine has no prices."""
    seconds: float
    at_a_time: int
    """Calls in flight that ``seconds`` reckons with; the server is taken to answer no slower."""


def check_judge(
    judge: Judge,
    engine: Engine,
    ledger: Ledger,
    *,
    mode: Mode = "live",
    reasks: int = 0,
    again: bool = False,
) -> Check:
    """Ask a judge about the planted pair.

    Args:
        judge: its entry.
        engine: made for it.
        ledger: keeps the replies, so that a second check pays nothing.
        mode: of the ledger.
        reasks: how often to ask again after a reply that does not parse.
        again: pay for new replies, as further samples of the same calls.

    Raises:
        SaberError: if a call did not get through; the message names the remedy.
    """
    sample = _samples(ledger, engine) if again else 0
    with ledger.session(engine, STAGE, judge.slug, mode=mode, reasks=reasks) as session:

        def ask(calls: Sequence[Call], parse: Parse, guess: object = None) -> list[Outcome[float]]:
            return session.ask([replace(call, sample=sample) for call in calls], parse)

        results = make_judge(judge.ask, ask, TEXTS)(_GAMES)
    keys = list(dict.fromkeys(key for result in results for key in result.call_keys))
    preferences = _preferences(judge, results)
    problem, note = _verdict(judge, results, preferences)
    answers = tuple(_answers(ledger, engine, keys))
    return Check(answers, session.counts.made, preferences, problem, note)


def forecast(
    judge: Judge, engine: Engine, check: Check, calls: int, documents: pl.DataFrame
) -> ReleaseForecast:
    """What a release would take.

    Prompt tokens are those of the check, longer by as much as the release's texts are estimated to be
    longer than the planted ones; completions are those of the check, and so is the latency of its
    faster call, as the first one may have had to wait for a model to load.

    Args:
        judge: its entry.
        engine: made for it.
        check: what it answered.
        calls: how many calls the release takes.
        documents: the release's texts (problem, solution).
    """
    sample = documents.sort("doc_id").gather_every(max(documents.height // _SAMPLED, 1))
    count = getattr(engine, "count_tokens", estimate_tokens)
    released = fmean(count(p) + count(s) for p, s in sample.select("problem", "solution").rows())
    planted = fmean(count(problem) + count(solution) for problem, solution in TEXTS.values())
    shown = 3 if TASK_OF_ASK[judge.ask].startswith("pairwise") else 2
    asked = fmean(answer.prompt_tokens for answer in check.answers)
    prompt = max(0.0, asked + shown * (released - planted)) if asked else 0.0
    completion = fmean(answer.completion_tokens for answer in check.answers)
    usage = Usage(round(calls * prompt), round(calls * completion))
    price = engine_price(engine)
    free = getattr(engine, "free", False)
    known = price is not None and bool(price(Usage(1_000_000, 1_000_000)))
    at_a_time = _concurrency(judge, engine)
    return ReleaseForecast(
        calls,
        usage.prompt,
        usage.completion,
        0.0 if free else price(usage) if price and known else None,
        calls * min(answer.seconds for answer in check.answers) / at_a_time,
        at_a_time,
    )


def _samples(ledger: Ledger, engine: Engine) -> int:
    """The number of the next sample."""
    frame = ledger.frame(STAGE, ["model", "revision", "sample"])
    same = frame.filter(model=engine.model, revision=engine.revision)
    return 1 + max(same["sample"].to_list(), default=0)


def _preferences(judge: Judge, results: Sequence[GameResult]) -> tuple[float, ...]:
    first, second = results
    found = (
        (first.preference, second.preference)
        if judge.ask == "generate"
        else (first.as_shown, first.swapped)
        if first.as_shown is not None
        else (first.preference,)
    )
    return tuple(preference for preference in found if preference is not None)


def _verdict(
    judge: Judge, results: Sequence[GameResult], preferences: tuple[float, ...]
) -> tuple[str, str]:
    """What is wrong, and what is only worth knowing."""
    if failed := [result.status for result in results if result.preference is None]:
        return f"{judge.slug} gave no verdict ({failed[0]}). {_REMEDIES.get(failed[0], '')}", ""
    split = len(preferences) == 2 and (preferences[0] - 0.5) * (preferences[1] - 0.5) < 0
    decided = min(preferences) if judge.ask == "generate" else results[0].preference
    if decided is not None and decided > 0.5:
        note = "the two orders disagree: this model likes a place, and the mean of both decides"
        return "", note if split else ""
    if split:
        return (
            f"{judge.slug} goes by the place, not by the text: in the two orders it does not name the"
            f" same document. Take a larger model{_OTHER_WAYS.get(judge.ask, '')}",
            "",
        )
    return (
        f"{judge.slug} does not prefer the document that is solved by the query's own method, in whatever"
        " order, to one that has nothing to do with it. Read its replies; change `prompt`, `ask` or the"
        " model",
        "",
    )


def _answers(ledger: Ledger, engine: Engine, keys: Sequence[str]) -> list[Answer]:
    rows = ledger.frame(STAGE).filter(pl.col("key").is_in(keys), "canonical")
    found = []
    for row in sorted(rows.to_dicts(), key=lambda row: keys.index(row["key"])):
        call = ledger.call_of(row)
        value = None
        if row["status"] in ("ok", "parse_error"):
            try:
                value = float(parse_reply(call.task, call.inputs, row["text"]))
            except ParseError:
                value = None
        found.append(
            Answer(
                row["item"],
                row["key"],
                row["status"],
                row["error"],
                tuple(dict(message) for message in engine.messages(call)),
                row["text"],
                row["reasoning"],
                value,
                row["prompt_tokens"],
                row["completion_tokens"],
                row["price"],
                row["latency"],
            )
        )
    return found


def _concurrency(judge: Judge, engine: Engine) -> int:
    """How many calls the engine has in flight: the entry's option, else the engine's default."""
    parameter = inspect.signature(type(engine)).parameters.get("concurrency")
    default = parameter.default if parameter else 1
    value = judge.options.get("concurrency", default)
    return value if isinstance(value, int) and value > 0 else 1
