"""The audit trail: from a figure down to raw replies, and how every table on the way came about."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from saber_dagster.engines import Engine
from saber_dagster.errors import SaberError
from saber_dagster.home import Home
from saber_dagster.ledger import Ledger
from saber_dagster.ledger.rendering import Render
from saber_dagster.recorded_runs import recorded_runs
from saber_dagster.trace.calls import traced_calls
from saber_dagster.trace.chain import Chain, ids, shortened
from saber_dagster.trace.names import Document
from saber_dagster.trace.outcomes import follows

SCHEMA = "saber-trace/1"
"""Version of the document's form; it changes when a field is renamed or taken away."""
_STAGE = "tournament_rounds"

Means = tuple[Render, Sequence[Engine]]
"""Makes messages by an archived prompt; engines that make those of calls without one."""

__all__ = ["SCHEMA", "Means", "trace_cell", "trace_document"]


def trace_document(
    home: Home, query: str, doc: str, judge: str | None, means: Means
) -> dict[str, Any]:
    """The chain of one query and document: candidate, rating, games, calls, tables.

    Args:
        home: the home.
        query: id of the query, the user's own or ours.
        doc: id of one of its candidates, likewise.
        judge: its slug; default: the first in judges.yaml.
        means: to make the messages of calls again.

    Returns:
        A JSON document of the form :data:`SCHEMA`.

    Raises:
        SaberError: if an id is unknown or could be several, or a table is missing.
    """
    chain = Chain(home, judge)
    asked = chain.find_query(query)
    return _document(home, chain, asked, chain.find_candidate(asked, doc), means, {})


def trace_cell(
    home: Home,
    retriever: str,
    domain: str,
    judge: str | None,
    setting: str | None,
    means: Means,
    query: str | None = None,
    doc: str | None = None,
) -> dict[str, Any]:
    """The chain of a cell of the leaderboard: its figure, its queries, and one of them all the way.

    Args:
        home: the home.
        retriever: slug of the retriever, or ``oracle``.
        domain: the domain, or ``overall``.
        judge: as in :func:`trace_document`.
        setting: which texts the retriever saw; default: the first that is evaluated.
        means: as in :func:`trace_document`.
        query: the query to follow; default: the worst of the cell.
        doc: the document to follow; default: the one that the retriever ranks first.

    Raises:
        SaberError: as in :func:`trace_document`, or if there is no such cell.
    """
    chain = Chain(home, judge)
    figure = chain.figure(retriever, domain, setting)
    metrics = chain.metrics(figure)
    if query is None:
        if not metrics:
            raise SaberError(f"no query is behind {retriever} in {domain}; name another domain")
        query = metrics[0]["query_id"]
    asked = chain.find_query(query)
    if asked.doc_id not in {row["query_id"] for row in metrics}:
        raise SaberError(f"query {asked} is not among the queries of domain {figure['domain']}")
    ranking = chain.ranking(figure, asked)
    followed = ranking[0]["doc_id"] if doc is None and ranking else doc
    if followed is None:
        raise SaberError(f"the run of {figure['retriever']} lacks query {asked}; name one by --doc")
    found = chain.find_candidate(asked, followed)
    above = {
        "figure": figure,
        "queries": {"n": len(metrics), "worst": metrics[0], "best": metrics[-1], "all": metrics},
        "ranking": {"n": len(ranking), "top": shortened(ranking, found)},
    }
    return _document(home, chain, asked, found, means, above)


def _document(
    home: Home, chain: Chain, query: Document, doc: Document, means: Means, above: dict[str, Any]
) -> dict[str, Any]:
    candidate = chain.candidate(query, doc)
    games = chain.games(query, doc)
    keys = list(dict.fromkeys(key for game in games for key in game["call_keys"]))
    calls = traced_calls(Ledger(home.ledger, home.journals), _STAGE, keys, *means)
    runs = recorded_runs(home, [call["run_id"] for call in calls.values() if call["found"]])
    for call in calls.values():
        if call["found"]:
            call["run"] = asdict(runs[call["run_id"]])
    for game in games:
        opponent = chain.documents[game["opponent_id"]]
        game["follows"] = follows(game, query, doc, opponent, calls)
    return {
        "schema": SCHEMA,
        "home": str(home.root),
        "release": home.settings.release,
        "judge": chain.judge,
        **above,
        "query": {**ids(query, "query"), "problem": query.problem, "solution": query.solution},
        "document": {**ids(doc, "doc"), "problem": doc.problem, "solution": doc.solution},
        **candidate,
        "games": games,
        "calls": calls,
        "tables": chain.tables.provenance(),
    }
