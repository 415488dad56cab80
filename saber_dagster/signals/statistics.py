"""The two relevance signals of all pairs of a query and a document."""

import math

import numpy as np
import numpy.typing as npt
import polars as pl

from saber_dagster.contracts import TABLES
from saber_dagster.ontology import OntologyTree


def topic_statistics(index: pl.DataFrame, tree: OntologyTree) -> pl.DataFrame:
    """Count topic annotations and turn them into information content IC(t) = -ln(c(t) / N).

    c(t) is the number of annotations with t or a descendant of t, N the number of all annotations.
    Only documents count, so that queries brought as texts do not move the statistics.

    Args:
        index: table ``problem_index``.
        tree: the ontology.

    Returns:
        Table ``topic_statistics``; the information content is empty where c(t) = 0.

    Source: SABER-Math, "Topic similarity over ontologies", first equation.
    """
    topics = index.filter("is_document")["topics"].explode().drop_nulls()
    used = np.fromiter((tree.index[topic] for topic in topics), dtype=np.int64, count=len(topics))
    counts = np.bincount(used, minlength=len(tree.node_ids))
    depth = np.asarray(tree.depth)
    for level in range(int(depth.max(initial=0)), 0, -1):
        nodes = np.flatnonzero(depth == level)
        np.add.at(counts, tree.parent[nodes], counts[nodes])
    shares = (int(count) / max(used.size, 1) for count in counts)
    # + 0.0 turns the -0.0 of a share of 1 into 0.0
    content = [-math.log(share) + 0.0 if share else None for share in shares]
    table = TABLES["topic_statistics"]
    columns = {"node_id": tree.node_ids, "count": counts, "information_content": content}
    return table.check(pl.DataFrame(columns, schema=table.schema))


def information_content(statistics: pl.DataFrame, tree: OntologyTree) -> npt.NDArray[np.float64]:
    """The information content of each node of the tree, from statistics that may be older.

    A topic that was never assigned, or was not there, when the statistics were pinned counts as
    assigned once: a document newer than the release makes no infinity. A topic is never more
    informative than one below it, also if the ontology has changed since.

    Args:
        statistics: table ``topic_statistics``.
        tree: the ontology.

    Returns:
        (n_nodes,), not negative.
    """
    known = dict(statistics.select("node_id", "information_content").iter_rows())
    counts = dict(statistics.select("node_id", "count").iter_rows())
    total = sum(counts.get(tree.node_ids[root], 0) for root in np.flatnonzero(tree.parent < 0))
    once = -math.log(1 / max(total, 1)) + 0.0
    values = (known.get(node) for node in tree.node_ids)
    content = np.array([once if value is None else value for value in values], dtype=np.float64)
    for node in np.argsort(-np.asarray(tree.depth), kind="stable"):
        if tree.parent[node] >= 0:
            parent = tree.parent[node]
            content[parent] = min(content[parent], content[node])
    return content


def population(queries: pl.DataFrame, documents: pl.DataFrame) -> pl.DataFrame:
    """How many pairs the signals of each domain are distributed over.

    A domain's pairs are its queries (by membership) with every document outside the query's own
    near-duplicate cluster, and so never a query with itself.

    Args:
        queries: rows of ``problem_index``.
        documents: rows of ``problem_index``.

    Returns:
        Columns domain, n_queries, n_pairs, topic_pairs (both have topics), summary_pairs (both have
        words), both_pairs (both have both); one row per domain that has a query, sorted.
    """
    topics = pl.col("topics").list.len() > 0
    words = pl.col("words").list.len() > 0
    features = {
        "n_pairs": pl.lit(True),
        "topic_pairs": topics,
        "summary_pairs": words,
        "both_pairs": topics & words,
    }
    sizes = [feature.cast(pl.Int64).alias(name) for name, feature in features.items()]
    flags = documents.select("cluster_id", *sizes)
    own = flags.group_by("cluster_id").agg(pl.sum(*features).name.suffix("_own"))
    total = flags.select(pl.sum(*features)).row(0, named=True)
    pairs = [
        ((pl.lit(total[name]) - pl.col(f"{name}_own").fill_null(0)) * pl.col(name)).alias(name)
        for name in features
    ]
    return (
        queries.select("cluster_id", pl.col("domains").alias("domain"), *sizes)
        .join(own, on="cluster_id", how="left")
        .select("domain", *pairs)
        .explode("domain")
        .drop_nulls("domain")
        .group_by("domain")
        .agg(pl.len().cast(pl.Int64).alias("n_queries"), pl.sum(*features))
        .sort("domain")
    )
