"""Solution summaries: the core idea of each solution as a hint of at most 30 words.

Source: SABER-Math, section "Scoring Problem Pair Relevance using Short Solution Summaries".
"""

from collections.abc import Callable, Sequence

import polars as pl

from saber_dagster.contracts import TABLES
from saber_dagster.engines import SOLUTION_SUMMARY, Call
from saber_dagster.ledger import Outcome
from saber_dagster.replies import Summary, parse_summary

Guess = Callable[[Call], Summary]
Ask = Callable[[Sequence[Call], Callable[[Call, str], Summary], Guess], list[Outcome[Summary]]]


def summarize_documents(documents: pl.DataFrame, ask: Ask, max_words: int) -> pl.DataFrame:
    """Summarize every document in one batch of calls.

    Args:
        documents: ``doc_id``, ``problem``, ``solution``.
        ask: answers a batch of calls.
        max_words: longest core idea; a longer one is a ``parse_error``.

    Returns:
        The table ``summaries``. A failed call leaves an empty core idea and its status; a document
        without a solution is not asked about and has status ``no_solution``.
    """
    with_solution = documents.filter(pl.col("solution").str.strip_chars() != "").sort("doc_id")
    calls = [
        Call(
            SOLUTION_SUMMARY,
            {"problem": problem, "solution": solution, "max_words": max_words},
            doc_id,
        )
        for doc_id, problem, solution in with_solution.select(
            "doc_id", "problem", "solution"
        ).iter_rows()
    ]
    outcomes = ask(
        calls,
        lambda _, text: parse_summary(text, max_words),
        lambda _: Summary(None, (), (), None),  # no further call follows from a summary
    )
    rows = [
        _row(call.item, outcome.value, outcome.status)
        for call, outcome in zip(calls, outcomes, strict=True)
    ]
    asked = set(with_solution["doc_id"])
    rows += [_row(doc, None, "no_solution") for doc in documents["doc_id"] if doc not in asked]
    table = TABLES["summaries"]
    return table.check(pl.DataFrame(rows, schema=table.schema, orient="row"))


def _row(doc_id: str, summary: Summary | None, status: str) -> tuple[object, ...]:
    if summary is None:
        return (doc_id, None, False, [], [], None, status)
    return (
        doc_id,
        summary.core_idea,
        summary.core_idea is None,
        list(summary.supporting_ideas),
        list(summary.keywords),
        summary.confidence,
        status,
    )
