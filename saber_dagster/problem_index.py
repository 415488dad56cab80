"""The problem index: of each document its domains, topic set and word set."""

import math
from collections import defaultdict
from collections.abc import Sequence

import polars as pl

from saber_dagster.contracts import TABLES
from saber_dagster.errors import SaberError
from saber_dagster.hashing import digest, hash64
from saber_dagster.ontology import OntologyTree
from saber_dagster.text import content_words


def build_index(
    corpus: pl.DataFrame,
    topic_tags: pl.DataFrame,
    summaries: pl.DataFrame,
    tree: OntologyTree,
    domains: Sequence[str],
    query_shards: int,
    min_summary_words: int,
) -> pl.DataFrame:
    """Put together what the signals need of each document of the corpus.

    A document belongs to every configured domain of its topics. Its primary domain has the largest
    sum of normalized topic scores, ties by the order of ``domains``; it decides storage only. A
    topic of no configured domain counts for the topic signal alone. A document may be a query if
    the corpus allows it and it has a domain and a word set. A core idea with fewer than
    ``min_summary_words`` content words is no basis for an overlap of words: its document has an
    empty word set, hence no summary signal. Tags and summaries of documents that the corpus no
    longer has are left out.

    Args:
        corpus: table ``corpus``.
        topic_tags: table ``topic_tags``; rows count whose status is ok.
        summaries: table ``summaries``; only ``core_idea`` counts.
        tree: the ontology that the tags refer to.
        domains: slugs of the configured domains, in their fixed order.
        query_shards: number of shards per domain.
        min_summary_words: fewest distinct content words of a core idea that counts.

    Returns:
        Table ``problem_index``, one row per document.

    Raises:
        SaberError: a tag names a node that the ontology lacks, or a document has no row in one of the
            other tables.
    """
    tags = topic_tags.filter((pl.col("status") == "ok") & pl.col("node_id").is_not_null())
    unknown = sorted(set(tags["node_id"]) - set(tree.index))
    if unknown:
        raise SaberError(
            f"topic_tags: {len(unknown)} node_id are not in ontology_tree, such as {unknown[0]!r}. "
            "Materialize topic_tags again: the ontology has changed since"
        )
    for name, said in (("topic_tags", topic_tags), ("summaries", summaries)):
        lost = sorted(set(corpus["doc_id"]) - set(said["doc_id"]))
        if lost:
            raise SaberError(
                f"{name}: {len(lost)} of {corpus.height} documents have no row, such as {lost[0]}."
                f" Materialize {name} again: the corpus has changed since"
            )
    scores: dict[str, dict[str, float]] = defaultdict(dict)
    for doc_id, node_id, score in tags.select("doc_id", "node_id", "normalized").iter_rows():
        scores[doc_id][node_id] = score or 0.0
    ideas = dict(summaries.select("doc_id", "core_idea").iter_rows())

    rows = []
    columns = ("doc_id", "cluster_id", "is_document", "is_query")
    for doc_id, cluster_id, is_document, may_query in corpus.select(columns).iter_rows():
        topics = scores.get(doc_id, {})
        by_domain: dict[str, list[float]] = {domain: [] for domain in domains}
        for node_id, score in topics.items():
            domain = tree.domain[tree.index[node_id]]
            if domain in by_domain:
                by_domain[domain].append(score)
        sums = {domain: math.fsum(parts) for domain, parts in by_domain.items() if parts}
        topic_set = sorted(topics)
        found = sorted(content_words(ideas.get(doc_id) or ""))
        word_set = found if len(found) >= min_summary_words else []
        rows.append(
            {
                "doc_id": doc_id,
                "cluster_id": cluster_id,
                "domains": sorted(sums),
                # max takes the first of equals, and sums follows the order of the domains
                "primary_domain": max(sums, key=lambda d: sums[d]) if sums else None,
                "shard": shard_of(doc_id, query_shards) if sums else None,
                "topics": topic_set,
                "words": word_set,
                "topic_set_id": digest(topic_set) if topic_set else None,
                "word_set_id": digest(word_set) if word_set else None,
                "is_document": is_document,
                "is_query": may_query and bool(sums) and bool(word_set),
            }
        )
    table = TABLES["problem_index"]
    return table.check(pl.DataFrame(rows, schema=table.schema))


def shard_of(query_id: str, query_shards: int) -> int:
    """The query shard of a document: a hash of its id."""
    return hash64("query-shard", query_id) % query_shards
