"""The schema of every table: its columns, keys and bounds, checked when written and when read."""

import polars as pl

from saber_dagster.schema import Column, Table

TEXTS = pl.List(pl.String)
GROUPS = ("topic_only", "summary_only", "both")
"""The groups of candidates: which signals say that a document is related to the query."""


def _id(description: str) -> Column:
    return Column(pl.String, description)


def _text(description: str, nullable: bool = False) -> Column:
    return Column(pl.String, description, nullable=nullable)


def _score(description: str, nullable: bool = False) -> Column:
    return Column(pl.Float64, description, nullable=nullable, low=0.0, high=1.0)


_QUERY = _id("document id of the query")
_DOC = _id("document id")
_STATUS = _text("what became of the engine's call(s): ok, or the failure")
_SHARD = Column(pl.Int32, "query shard inside the primary domain", nullable=True, storage=True)

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        Table(
            "corpus",
            "Problems with solutions, one row per distinct document.",
            ("doc_id",),
            {
                "doc_id": _id("content hash of problem and solution; stable across runs"),
                "source": _text("name of the source the row came from"),
                "source_id": _text("the user's own id in that source"),
                "problem": _text("problem statement"),
                "solution": _text("complete solution; empty only for a query given without one"),
                "answer": _text("final answer", nullable=True),
                "language": _text("ISO 639-1 code"),
                "licence": _text("licence of the row"),
                "url": _text("where the row was found", nullable=True),
                "sha256": _text("SHA-256 of the canonical problem and solution"),
                "cluster_id": _id("near-duplicates share it; never candidates of each other"),
                "is_document": Column(pl.Boolean, "may be a candidate"),
                "is_query": Column(pl.Boolean, "may be a query"),
            },
        ),
        Table(
            "ontology_tree",
            "Topics as a tree: a node of the source DAG once per root path.",
            ("node_id",),
            {
                "node_id": _id("source ids from the root, joined by '/'"),
                "path": _text("labels from the root, joined by ' > '"),
                "label": _text("name of the topic"),
                "synonyms": Column(TEXTS, "other names"),
                "parent_id": _text("node_id of the parent; empty at a root", nullable=True),
                "depth": Column(pl.Int32, "0 at a root", low=0),
                "domain": _text("domain slug of the root; empty if it maps to none", nullable=True),
                "source_node": _id("id of the node in the source file"),
            },
        ),
        Table(
            "topic_tags",
            "Most specific topics of each document; one row with no node if it has none.",
            ("doc_id", "node_id"),
            {
                "doc_id": _DOC,
                "node_id": _text("assigned topic; empty if there is none", nullable=True),
                "score": _score("the engine's score in the call that kept the topic", True),
                "normalized": _score("score divided by the largest of that call", True),
                "status": _text("ok, no_topic, or the status of the call that failed"),
            },
        ),
        Table(
            "summaries",
            "The core idea of each solution, as a hint of at most 30 words.",
            ("doc_id",),
            {
                "doc_id": _DOC,
                "core_idea": _text("imperative, at most 30 words", nullable=True),
                "no_core_idea": Column(pl.Boolean, "the engine found no core idea"),
                "supporting_ideas": Column(TEXTS, "up to three technique phrases"),
                "keywords": Column(TEXTS, "one- or two-word phrases"),
                "confidence": _score("the engine's confidence", True),
                "status": _STATUS,
            },
        ),
        Table(
            "problem_index",
            "What the signals need of each document: domains, topic set, word set.",
            ("doc_id",),
            {
                "doc_id": _DOC,
                "cluster_id": _id("near-duplicate cluster"),
                "domains": Column(TEXTS, "every domain of its topics, sorted"),
                "primary_domain": _text("largest sum of topic scores; decides storage", True),
                "shard": _SHARD,
                "topics": Column(TEXTS, "topic set, sorted"),
                "words": Column(
                    TEXTS, "word set of the core idea, sorted; empty if it is too short"
                ),
                "topic_set_id": _text("digest of the topic set; empty if none", nullable=True),
                "word_set_id": _text("digest of the word set; empty if none", nullable=True),
                "is_document": Column(pl.Boolean, "may be a candidate"),
                "is_query": Column(
                    pl.Boolean, "may be a query: has a domain, and was not ruled out"
                ),
            },
        ),
        Table(
            "topic_statistics",
            "How often each topic or a descendant of it was assigned; pinned by a release.",
            ("node_id",),
            {
                "node_id": _id("ontology node"),
                "count": Column(pl.Int64, "annotations of the node or a descendant", low=0),
                "information_content": Column(pl.Float64, "-ln(count / N)", nullable=True, low=0.0),
            },
        ),
        Table(
            "signal_shards",
            "Pairs of which a signal reaches its floor, with both exact signals, in order of query and"
            " document.",
            (),
            {
                "query": Column(pl.UInt32, "position of the query in problem_index, from 0 on"),
                "gap": Column(
                    pl.UInt32,
                    "position of the document in problem_index, minus that of the query's document"
                    " before it",
                ),
                "topic": Column(
                    pl.UInt32,
                    "best-match average of Lin similarities, in units of 1e-6",
                    high=1e6,
                ),
                "overlap": Column(
                    pl.UInt16,
                    "words that both core ideas have; Jaccard similarity by the sizes of the word sets",
                ),
            },
            numbers="problem_index",
        ),
        Table(
            "thresholds",
            "What counts as high in each domain, and how many queries that leaves.",
            ("domain",),
            {
                "domain": _text("domain slug"),
                "rule": _text("percentile, top_m or fixed"),
                "percentile": Column(pl.Float64, "shared upper-tail percentile", nullable=True),
                "c": Column(pl.Float64, "M = ceil(c K)", nullable=True),
                "m": Column(pl.Int64, "a document is high from the M-th largest on", nullable=True),
                "topic": _score("threshold, or floor (top_m)"),
                "summary": _score("threshold, or floor (top_m)"),
                "n_queries": Column(pl.Int64, "documents of the domain that may be queries", low=0),
                "n_pairs": Column(pl.Int64, "pairs of the domain's population", low=0),
                "density_topic": _score("share of pairs that are topic-high"),
                "density_summary": _score("share of pairs that are summary-high"),
                "eligible_queries": Column(pl.Int64, "queries with K in each group", low=0),
                "short_topic_only": Column(pl.Int64, "queries with fewer than K topic-only", low=0),
                "short_summary_only": Column(pl.Int64, "… fewer than K summary-only", low=0),
                "short_both": Column(pl.Int64, "… fewer than K of both", low=0),
            },
        ),
        Table(
            "query_set",
            "The queries of the benchmark.",
            ("query_id",),
            {
                "query_id": _QUERY,
                "domains": Column(TEXTS, "every domain of the query"),
                "primary_domain": _text("decides storage"),
                "shard": _SHARD,
                "selected_for": Column(TEXTS, "domains whose sample the query is part of"),
            },
        ),
        Table(
            "candidate_sets",
            "K documents of each group for each query.",
            ("query_id", "doc_id"),
            {
                "query_id": _QUERY,
                "doc_id": _DOC,
                "group": _text("topic_only, summary_only or both"),
                "topic": _score("topic similarity to the query"),
                "summary": _score("summary similarity to the query"),
            },
        ),
        Table(
            "release_texts",
            "Every document that the release refers to, as it read when the release was made.",
            ("doc_id",),
            {
                "doc_id": _DOC,
                "source": _text("name of the source"),
                "source_id": _text("the user's own id"),
                "problem": _text("problem statement"),
                "solution": _text("solution"),
                "is_document": Column(pl.Boolean, "part of the corpus statistics"),
            },
        ),
        Table(
            "judgments",
            "Games of the Swiss tournament.",
            ("query_id", "round", "doc_a", "doc_b"),
            {
                "query_id": _QUERY,
                "round": Column(pl.Int32, "1 to R", low=1),
                "doc_a": _id("the smaller of the two document ids"),
                "doc_b": _id("the larger of the two document ids"),
                "shown_first": _id("the document that the judge saw first"),
                "outcome": _score("1 = doc_a preferred; empty if the game failed", nullable=True),
                "weight": Column(pl.Float64, "weight in the rating's likelihood", low=0.0),
                "status": _STATUS,
                "call_keys": Column(TEXTS, "ledger keys of the game's calls"),
                "as_shown": _score(
                    "preference for doc_a in the order shown; empty if the game failed or its"
                    " documents were judged one by one",
                    nullable=True,
                ),
                "swapped": _score(
                    "preference for doc_a in the other order; empty if it was not asked",
                    nullable=True,
                ),
            },
        ),
        Table(
            "judge_card",
            "What a judge's games say of the judge: failures, position effect, contradictions.",
            ("statistic",),
            {
                "statistic": _text("what was measured; docs/judges.md explains each"),
                "value": Column(pl.Float64, "the figure; empty if nothing tells it", nullable=True),
                "low": Column(pl.Float64, "lower end of a 95 % interval", nullable=True),
                "high": Column(pl.Float64, "upper end of a 95 % interval", nullable=True),
                "n": Column(pl.Int64, "how many cases it is from", low=0),
                "note": _text("what the cases are"),
            },
        ),
        Table(
            "rating_prior",
            "What all games of a judge say together: prior strength and position effect.",
            ("judge",),
            {
                "judge": _text("judge slug"),
                "prior_precision": Column(pl.Float64, "lambda of the Gaussian prior", low=0.0),
                "position": Column(pl.Float64, "log-odds that the first shown wins between equals"),
                "position_error": Column(pl.Float64, "standard error of position", low=0.0),
                "log_evidence": Column(pl.Float64, "Laplace log evidence at the estimate"),
                "iterations": Column(pl.Int64, "iterations of the estimate", low=0),
                "converged": Column(pl.Boolean, "the estimate converged"),
                "n_queries": Column(pl.Int64, "queries with games", low=0),
                "n_games": Column(pl.Int64, "games that count", low=0),
                "dispersion": Column(
                    pl.Float64, "scatter of outcomes; 1 for verdicts", low=0.0, high=1.0
                ),
            },
        ),
        Table(
            "ratings",
            "Bradley-Terry ratings of each query's candidates.",
            ("query_id", "doc_id"),
            {
                "query_id": _QUERY,
                "doc_id": _DOC,
                "rating": Column(pl.Float64, "rescaled per query to [0, 5]", low=0.0, high=5.0),
                "log_strength": Column(pl.Float64, "centred log-strength"),
                "standard_error": Column(
                    pl.Float64,
                    "posterior, of the log-strength; the common level, 1/(n lambda), is in it",
                    low=0.0,
                ),
                "wins": Column(pl.Float64, "sum of outcomes", low=0.0),
                "losses": Column(pl.Float64, "sum of lost outcomes", low=0.0),
                "rank": Column(pl.Int32, "1 = most relevant; ties by id", low=1),
            },
        ),
        Table(
            "benchmark",
            "The judged benchmark: graded relevance of each candidate (qrels).",
            ("query_id", "doc_id"),
            {
                "query_id": _QUERY,
                "doc_id": _DOC,
                "rating": Column(pl.Float64, "graded relevance", low=0.0, high=5.0),
                "rank": Column(pl.Int32, "1 = most relevant", low=1),
                "group": _text("why it is a candidate"),
                "domains": Column(TEXTS, "domains of the query"),
                "query_source_id": _text("the user's id of the query"),
                "doc_source_id": _text("the user's id of the document"),
            },
        ),
        Table(
            "run",
            "A retriever's ranking of each query's candidates.",
            ("setting", "query_id", "doc_id"),
            {
                "setting": _text("statement-full, full-full or statement-statement"),
                "query_id": _QUERY,
                "doc_id": _DOC,
                "score": Column(pl.Float64, "the retriever's score"),
                "rank": Column(pl.Int32, "score descending, then id", low=1),
            },
        ),
        Table(
            "query_metrics",
            "The metric of every query, judge, retriever and setting.",
            ("judge", "retriever", "setting", "query_id", "metric"),
            {
                "judge": _text("judge slug"),
                "retriever": _text("retriever slug"),
                "setting": _text("which texts the retriever saw"),
                "query_id": _QUERY,
                "domains": Column(TEXTS, "domains of the query"),
                "metric": _text("nDCG@10"),
                "value": _score("the metric"),
                "missing": Column(pl.Boolean, "the run lacks the query, which scores 0"),
            },
        ),
        Table(
            "leaderboard",
            "Mean metric with bootstrap interval by judge, retriever, setting and domain.",
            ("release", "judge", "retriever", "setting", "domain", "metric"),
            {
                "release": _text("name of the release"),
                "judge": _text("judge slug"),
                "judge_revision": _text("model revision of the judge"),
                "retriever": _text("retriever slug"),
                "retriever_revision": _text("model revision of the retriever"),
                "setting": _text("which texts the retriever saw"),
                "domain": _text("domain slug or overall"),
                "metric": _text("nDCG@10"),
                "value": _score("mean over the queries"),
                "low": _score("2.5th percentile of the bootstrap"),
                "high": _score("97.5th percentile of the bootstrap"),
                "n_queries": Column(pl.Int64, "queries in the mean", low=0),
                "n_missing": Column(pl.Int64, "queries that the run lacks", low=0),
                "tied_group": Column(
                    pl.Int32, "1 = not separable from the best; empty for the oracle", True, low=1
                ),
            },
        ),
    )
}
"""Every table by name."""
