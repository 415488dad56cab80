"""Rules of topics and summaries: the tree, the tags, the core ideas, the index, the statistics."""

import math
from collections.abc import Mapping, Sequence

import polars as pl

from saber_dagster.rules.base import Violation, unlike, violations
from saber_dagster.text import content_words


def tree_is_consistent(tree: pl.DataFrame) -> list[Violation]:
    """Depth, path and domain of every topic follow from its parent's; so there is no cycle."""
    above = tree.select(
        pl.col("node_id").alias("parent_id"),
        pl.col("path", "depth", "domain").name.prefix("parent_"),
    )
    rows = tree.join(above, on="parent_id", how="left")
    root, orphan = pl.col("parent_id").is_null(), pl.col("parent_depth").is_null()
    depth = pl.when(root).then(0).otherwise(pl.col("parent_depth") + 1)
    path = pl.when(root).then("label").otherwise(pl.format("{} > {}", "parent_path", "label"))
    known = root | ~orphan
    faults = {
        "topics have a parent that is not in the tree": ~root & orphan,
        "topics are not one level below their parent": known & (pl.col("depth") != depth),
        "topics have a path that does not continue their parent's": known
        & (pl.col("path") != path),
        "topics have another domain than their parent": ~root
        & ~orphan
        & pl.col("domain").ne_missing(pl.col("parent_domain")),
    }
    return [
        v for what, bad in faults.items() for v in violations(rows.filter(bad), what, "node_id")
    ]


def domains_have(values: pl.Series, domains: Sequence[str], what: str) -> list[Violation]:
    """Every configured domain is among ``values``; ``what`` a domain lacks that is not."""
    lost = [domain for domain in domains if domain not in set(values)]
    frame = pl.DataFrame({"domain": lost}, schema={"domain": pl.String})
    return violations(frame, f"of {len(domains)} domains have no {what}", "domain")


def ontology_is_whole(repairs: Mapping[str, int]) -> list[Violation]:
    """Every topic of the file is somewhere in the tree; ``repairs`` says what it took to make it."""
    lost = repairs.get("source_nodes_lost", 0)
    return [Violation("topics of the file are not in the tree", lost)] if lost else []


def topics_are_most_specific(
    tags: pl.DataFrame, tree: pl.DataFrame, names: pl.DataFrame
) -> list[Violation]:
    """No document has a topic beside one below it."""
    own = tags.drop_nulls("node_id").select("doc_id", "node_id")
    above = tree.select("node_id", "parent_id")
    climbing, found = own, [own.clear()]
    for _ in range(int(tree["depth"].cast(pl.Int64).max() or 0)):  # type: ignore[arg-type]
        climbing = (
            climbing.join(above, on="node_id")
            .select("doc_id", pl.col("parent_id").alias("node_id"))
            .drop_nulls("node_id")
        )
        found.append(climbing.join(own, on=("doc_id", "node_id"), how="semi"))
    bad = pl.concat(found).unique()
    what = "topics stand beside one below them"
    return violations(bad, what, ("doc_id", "node_id"), names)


def tag_scores_exceed_the_threshold(
    tags: pl.DataFrame, threshold: float, names: pl.DataFrame
) -> list[Violation]:
    """A topic has a normalized score above τ, strictly, and a document without one no score."""
    values = [pl.col(name) for name in ("node_id", "score", "normalized")]
    ok = pl.col("status") == "ok"
    empty = pl.any_horizontal(value.is_null() for value in values)
    low = tags.filter(ok & (empty | (pl.col("normalized") <= threshold)))
    filled = tags.filter(~ok & ~pl.all_horizontal(value.is_null() for value in values))
    mixed = tags.filter(pl.col("node_id").is_null() & (pl.len().over("doc_id") > 1))
    show = ("doc_id", "node_id", "normalized")
    return [
        *violations(low, f"topics have no normalized score above {threshold}", show, names),
        *violations(filled, "rows have a topic or score without the status ok", "doc_id", names),
        *violations(mixed, "documents are said to have no topic beside one", "doc_id", names),
    ]


def core_ideas_are_short(
    summaries: pl.DataFrame, max_words: int, names: pl.DataFrame
) -> list[Violation]:
    """A core idea has at most ``max_words`` words; there is one, or the reason why not."""
    idea, ok = pl.col("core_idea"), pl.col("status") == "ok"
    long = summaries.filter(idea.str.count_matches(r"\S+") > max_words)
    blank = pl.when(ok).then(idea.is_null() != pl.col("no_core_idea"))
    odd = summaries.filter(blank.otherwise(idea.is_not_null() | pl.col("no_core_idea")))
    return [
        *violations(long, f"core ideas have more than {max_words} words", "doc_id", names),
        *violations(
            odd, "rows have a core idea that contradicts no_core_idea or status", "doc_id", names
        ),
    ]


def domains_follow_from_topics(
    index: pl.DataFrame, tree: pl.DataFrame, domains: Sequence[str], names: pl.DataFrame
) -> list[Violation]:
    """A document's domains are those of its topics, and its primary domain is one of them."""
    expected = (
        index.select("doc_id", pl.col("topics").alias("node_id"))
        .explode("node_id", empty_as_null=True)
        .join(tree.select("node_id", "domain"), on="node_id")
        .filter(pl.col("domain").is_in(list(domains)))
        .group_by("doc_id")
        .agg(pl.col("domain").unique().sort().str.join(",").alias("expected"))
    )
    rows = index.join(expected, on="doc_id", how="left")
    other = rows.filter(
        pl.col("domains").list.join(",") != pl.col("expected").fill_null(pl.lit(""))
    )
    without = pl.col("domains").list.len() == 0
    primary = pl.col("primary_domain")
    foreign = pl.when(without).then(primary.is_not_null())
    odd = rows.filter(
        foreign.otherwise(~pl.col("domains").list.contains(primary) | primary.is_null())
    )
    return [
        *violations(other, "documents have other domains than their topics", "doc_id", names),
        *violations(odd, "documents have a primary domain that is none of theirs", "doc_id", names),
    ]


def queries_may_be_asked(index: pl.DataFrame, corpus: pl.DataFrame) -> list[Violation]:
    """A query has a domain and words, and the corpus allows it; roles are those of the corpus."""
    rows = index.join(
        corpus.select("doc_id", pl.col("is_query", "is_document").name.prefix("own_")), on="doc_id"
    )
    query = pl.col("is_query")
    faults = {
        "queries have no domain": query & (pl.col("domains").list.len() == 0),
        "queries have no words": query & (pl.col("words").list.len() == 0),
        "queries were ruled out by the corpus": query & ~pl.col("own_is_query"),
        "rows differ from the corpus in is_document": pl.col("is_document")
        != pl.col("own_is_document"),
    }
    found = [
        v for w, bad in faults.items() for v in violations(rows.filter(bad), w, "doc_id", corpus)
    ]
    return found + unlike(
        index.select("doc_id"), corpus.select("doc_id"), ["doc_id"], "documents", corpus
    )


def words_are_of_core_ideas(
    index: pl.DataFrame, summaries: pl.DataFrame, min_words: int, names: pl.DataFrame
) -> list[Violation]:
    """A document's words are the content words of its core idea alone; none if these are too few."""
    ideas = dict(summaries.select("doc_id", "core_idea").iter_rows())
    bad = []
    for doc, words in index.select("doc_id", "words").iter_rows():
        expected = content_words(ideas.get(doc) or "")
        bad.append(set(words) != (expected if len(expected) >= min_words else set()))
    rows = index.filter(pl.Series(bad, dtype=pl.Boolean))
    return violations(rows, "documents have words that are not of their core idea", "doc_id", names)


def statistics_add_up(
    statistics: pl.DataFrame, tree: pl.DataFrame, index: pl.DataFrame
) -> list[Violation]:
    """A topic's count is that of its own annotations and its children's counts; IC = -ln(c / N)."""
    annotations = (
        index.filter("is_document")
        .select(pl.col("topics").alias("node_id"))
        .explode("node_id", empty_as_null=True)
        .drop_nulls()
    )
    rows = statistics.join(tree.select("node_id", "parent_id"), on="node_id")
    below = rows.group_by(pl.col("parent_id").alias("node_id")).agg(pl.sum("count").alias("below"))
    own = annotations.group_by("node_id").agg(pl.len().cast(pl.Int64).alias("own"))
    rows = rows.join(below, on="node_id", how="left").join(own, on="node_id", how="left")
    count, content = pl.col("count"), pl.col("information_content")
    added = pl.col("below").fill_null(0) + pl.col("own").fill_null(0)
    total = math.log(max(annotations.height, 1))
    wrong = pl.when(count == 0).then(content.is_not_null())
    informative = wrong.otherwise(
        content.is_null() | ((content - (total - count.cast(pl.Float64).log())).abs() > 1e-9)
    )
    return [
        *unlike(statistics, tree, ["node_id"], "topics"),
        *violations(
            rows.filter(count != added),
            "topics have a count that is not the sum of their annotations and their children's counts",
            "node_id",
        ),
        *violations(
            rows.filter(informative),
            "topics have another information content than -ln(count / N)",
            "node_id",
        ),
    ]
