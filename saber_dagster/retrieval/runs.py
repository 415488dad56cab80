"""Runs: a retriever's ranking of each query's candidates, in each setting."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import polars as pl

from saber_dagster.contracts import TABLES
from saber_dagster.errors import SaberError
from saber_dagster.metrics import rank_documents
from saber_dagster.retrieval.base import Retriever, checked_fit, checked_scores

Text = tuple[str, str]
"""Problem and solution of a document."""

SETTINGS: Mapping[str, tuple[bool, bool]] = {
    "statement-full": (False, True),
    "full-full": (True, True),
    "statement-statement": (False, False),
}
"""Which of query and document show their solution. Source: SABER-Math, section "Results"."""


def query_text(text: Text, setting: str) -> str:
    """What a retriever sees of a query in a setting."""
    return _shown(text, SETTINGS[setting][0])


def document_text(text: Text, setting: str) -> str:
    """What a retriever sees of a document in a setting."""
    return _shown(text, SETTINGS[setting][1])


def make_run(
    retriever: Retriever,
    settings: Sequence[str],
    query_candidates: Mapping[str, Sequence[str]],
    texts: Mapping[str, Text],
    corpus_texts: Mapping[str, Text] | None = None,
) -> pl.DataFrame:
    """Rank each query's candidates.

    A query's rows depend on nothing but its own candidates and the corpus: not on the order of
    queries or candidates, nor on which other queries are in the call.

    Args:
        retriever: what ranks.
        settings: keys of :data:`SETTINGS`.
        query_candidates: query id → document ids.
        texts: texts of all queries and candidates, by id.
        corpus_texts: the documents that corpus statistics (document frequencies, lengths) come
            from, by id; every candidate is among them. None: from each query's own candidates.

    Returns:
        A ``run`` frame: per setting and query, rank by score descending, then document id.

    Raises:
        SaberError: on an unknown setting, a text that is missing, a candidate that is listed twice
            or is the query itself, a candidate that is not in the corpus or reads differently
            there, or scores that are not finite numbers.
    """
    unknown = [setting for setting in settings if setting not in SETTINGS]
    if unknown:
        raise SaberError(f"Unknown setting {unknown[0]!r}; settings are {', '.join(SETTINGS)}.")
    candidates = {query: sorted(docs) for query, docs in sorted(query_candidates.items())}
    _check(candidates, texts, corpus_texts)
    rows: list[tuple[str, str, str, float]] = []
    for setting in settings:
        if corpus_texts is not None:
            checked_fit(
                retriever,
                {doc: document_text(corpus_texts[doc], setting) for doc in sorted(corpus_texts)},
            )
        for query, docs in candidates.items():
            documents = [(doc, document_text(texts[doc], setting)) for doc in docs]
            if corpus_texts is None:
                checked_fit(retriever, dict(documents))
            scores = checked_scores(retriever, query, query_text(texts[query], setting), documents)
            rows += [(setting, query, doc, float(s)) for doc, s in zip(docs, scores, strict=True)]
    table = TABLES["run"]
    schema = {name: dtype for name, dtype in table.schema.items() if name != "rank"}
    scored = pl.DataFrame(rows, schema=schema, orient="row")
    return table.check(rank_documents(scored, by=("setting", "query_id")), retriever.name)


def _shown(text: Text, with_solution: bool) -> str:
    problem, solution = text
    return f"{problem}\n\n{solution}" if with_solution else problem


def _check(
    candidates: Mapping[str, Sequence[str]],
    texts: Mapping[str, Text],
    corpus_texts: Mapping[str, Text] | None,
) -> None:
    for query, docs in candidates.items():
        for doc in (query, *docs):
            if doc not in texts:
                raise SaberError(f"Query {query}: there is no text for {doc}. Pass all texts.")
        if query in docs:
            raise SaberError(f"Query {query} is its own candidate; remove it from its candidates.")
        if len(set(docs)) < len(docs):
            twice = next(doc for doc, following in pairwise(docs) if doc == following)
            raise SaberError(f"Query {query} has candidate {twice} twice; list each once.")
        if corpus_texts is None:
            continue
        for doc in docs:
            if corpus_texts.get(doc) != texts[doc]:
                found = "reads differently" if doc in corpus_texts else "is missing"
                raise SaberError(
                    f"Query {query}: candidate {doc} {found} in the corpus that statistics come "
                    "from. Add the release's documents to it; an id stands for one text."
                )
