"""Queries and candidates: who has enough related documents, and which of them are judged."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import polars as pl

from saber_dagster.contracts import GROUPS, TABLES
from saber_dagster.hashing import hash64
from saber_dagster.near_duplicates import ProblemRuns, are_near_duplicates
from saber_dagster.pair_groups import PairGroups, eligible_queries, group_counts
from saber_dagster.signals.pairs import pairs_of, with_ids


@dataclass(frozen=True)
class QueryChoice:
    """The queries of the benchmark, and who could not be one.

    Args:
        frame: table ``query_set``.
        left_out: ids of queries that would have been chosen, had near-duplicates of theirs not left
            them with fewer than K documents in a group; sorted.
    """

    frame: pl.DataFrame
    left_out: tuple[str, ...]


def choose_queries(
    shards: Iterable[pl.DataFrame],
    index: pl.DataFrame,
    thresholds: pl.DataFrame,
    per_domain: int,
    per_group: int,
    seed: int,
    corpus: pl.DataFrame,
    own_queries: bool = False,
) -> QueryChoice:
    """Choose queries that have K candidates in each group (:func:`select_queries`).

    Whether K documents are left beside near-duplicates is looked at for chosen queries alone; whoever
    then falls out is replaced by the next one.

    Args:
        shards: frames of numbered pairs, each with all pairs of its queries; they are read at least
            twice.
        index: table ``problem_index``.
        thresholds: table ``thresholds``.
        per_domain: most queries of a domain's sample.
        per_group: K.
        seed: of the samples.
        corpus: table ``corpus``.
        own_queries: the user brought the queries; then all eligible ones are taken.

    Raises:
        SaberError: see :func:`sample_candidates`.
    """
    eligible = set(eligible_queries(group_counts(shards, index, thresholds), index, per_group))
    full: set[str] = set()
    left_out: set[str] = set()
    while True:
        frame = select_queries(eligible - left_out, index, per_domain, seed, own_queries)
        new = set(frame["query_id"]) - full
        if not new:
            return QueryChoice(frame, tuple(sorted(left_out)))
        sample = sample_candidates(shards, index, thresholds, new, per_group, seed, corpus)
        full |= new
        left_out |= set(sample.left_out)


def select_queries(
    eligible: Iterable[str],
    index: pl.DataFrame,
    per_domain: int,
    seed: int,
    own_queries: bool = False,
) -> pl.DataFrame:
    """Choose the queries of the benchmark.

    In each domain the ``per_domain`` eligible members with the smallest hash of (seed, query). The
    hash is the query's alone: a new query takes the place of at most one other in each domain, and
    a query of several domains tends to be chosen by all of them, which saves tournaments.

    Args:
        eligible: ids of eligible queries.
        index: table ``problem_index``.
        per_domain: most queries of a domain's sample.
        seed: of the sample.
        own_queries: the user brought the queries; then all eligible ones are taken.

    Returns:
        Table ``query_set``: the union of the domains' samples.
    """
    queries = index.filter(pl.col("is_query") & pl.col("doc_id").is_in(sorted(set(eligible))))
    order = sorted(queries["doc_id"], key=lambda query: (hash64(seed, "query", query), query))
    domains = dict(queries.select("doc_id", "domains").iter_rows())
    taken: dict[str, int] = {}
    selected: dict[str, list[str]] = {}
    for query in order:
        for domain in sorted(domains[query]):
            if own_queries or taken.get(domain, 0) < per_domain:
                taken[domain] = taken.get(domain, 0) + 1
                selected.setdefault(query, []).append(domain)
    table = TABLES["query_set"]
    chosen = pl.DataFrame(
        {"doc_id": list(selected), "selected_for": list(selected.values())},
        schema={"doc_id": pl.String, "selected_for": pl.List(pl.String)},
    )
    return table.check(
        chosen.join(queries, on="doc_id").rename({"doc_id": "query_id"}).select(list(table.columns))
    )


@dataclass(frozen=True)
class CandidateSample:
    """The candidates of some queries, and what was passed over.

    Args:
        frame: table ``candidate_sets``, 3 K rows per query.
        near_duplicates: how many documents were passed over as near-duplicates of their query.
        left_out: ids of the queries with fewer than K documents in a group, sorted.
    """

    frame: pl.DataFrame
    near_duplicates: int
    left_out: tuple[str, ...]


def sample_candidates(
    shards: Iterable[pl.DataFrame],
    index: pl.DataFrame,
    thresholds: pl.DataFrame,
    query_ids: Iterable[str],
    per_group: int,
    seed: int,
    corpus: pl.DataFrame,
) -> CandidateSample:
    """Sample K = ``per_group`` documents of each group for each query.

    They are those with the smallest hash of (seed, query, document): a uniform sample that a new
    document disturbs least. A near-duplicate of the query is passed over: a document whose problem
    shares its runs of five words (:mod:`saber_dagster.near_duplicates`). Documents of its cluster are
    in no pair. Texts are compared in the order of the hashes and only until K documents are found. A
    query with fewer than K documents in a group is left out.

    Args:
        shards: frames of numbered pairs, each with all pairs of its queries; they are read once.
        index: table ``problem_index``.
        thresholds: table ``thresholds``.
        query_ids: the queries to sample for.
        per_group: K.
        seed: of the sample.
        corpus: table ``corpus``; columns doc_id and problem are read.

    Raises:
        SaberError: a query's primary domain has no row in ``thresholds``, or a document that is
            looked at has no problem in ``corpus``.
    """
    ids = index["doc_id"]
    asked = sorted(set(query_ids))
    wanted = (index["is_query"] & ids.is_in(asked)).to_numpy()
    groups, texts = PairGroups(index, thresholds), ProblemRuns(corpus, ids)
    found, passed = [], 0
    for mine in pairs_of(shards, wanted):
        mine = mine.with_columns(code=pl.Series(groups.codes(mine))).filter(pl.col("code") > 0)
        for of_query in mine.partition_by("query", maintain_order=True):
            rows, near = _sample(of_query, ids, per_group, seed, texts)
            passed += near
            if rows:
                found.append(of_query[rows])
    table = TABLES["candidate_sets"]
    if not found:
        return CandidateSample(table.empty(), passed, tuple(asked))
    sample = pl.concat(found)
    group = pl.Series(["", *GROUPS]).gather(sample["code"]).alias("group")
    frame = table.check(with_ids(sample.with_columns(group), ids).select(list(table.columns)))
    return CandidateSample(frame, passed, tuple(sorted(set(asked) - set(frame["query_id"]))))


def _sample(
    pairs: pl.DataFrame, ids: pl.Series, per_group: int, seed: int, texts: ProblemRuns
) -> tuple[list[int], int]:
    """The rows of a query's pairs that are its candidates, and how many documents were passed over."""
    code = pairs["code"].to_numpy()
    if np.bincount(code, minlength=1 + len(GROUPS))[1:].min() < per_group:
        return [], 0
    query, docs = int(pairs["query"][0]), pairs["doc"].to_list()
    query_id, names = ids[query], ids.gather(docs).to_list()
    runs = texts.of(query)
    taken: list[int] = []
    passed = 0
    for group in range(1, 1 + len(GROUPS)):
        order = sorted(
            (hash64(seed, query_id, names[row]), names[row], row)
            for row in np.flatnonzero(code == group).tolist()
        )
        full = len(taken) + per_group
        for _, _, row in order:
            if len(taken) == full:
                break
            if are_near_duplicates(runs, texts.of(docs[row])):
                passed += 1
            else:
                taken.append(row)
        if len(taken) < full:
            return [], passed
    return taken, passed
