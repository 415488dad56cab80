"""Rules of a release: its queries, their candidates, the texts."""

import polars as pl

from saber_dagster.contracts import GROUPS
from saber_dagster.rules.base import Violation, violations
from saber_dagster.rules.high_pairs import Parts, group_of, group_sizes, high_pairs
from saber_dagster.rules.signals import numbered
from saber_dagster.signals.pairs import SIGNALS

_PAIR = ("query_id", "doc_id")


def queries_are_eligible(
    query_set: pl.DataFrame, shards: Parts, index: pl.DataFrame, thresholds: pl.DataFrame,
    per_group: int,
) -> list[Violation]:  # fmt: skip
    """Every query has K documents in each group, by the thresholds as they stand.

    Args:
        query_set: table ``query_set``.
        shards: numbered pairs, all of each query; those of other queries do not matter.
        index: table ``problem_index``.
        thresholds: table ``thresholds``.
        per_group: K.
    """
    sizes = group_sizes(shards, index, thresholds, query_set["query_id"])
    rows = (
        index.select(pl.col("doc_id").alias("query_id"))
        .with_row_index("query")
        .join(query_set, on="query_id", how="right")
        .join(sizes, on="query", how="left")
    )
    short = rows.filter(pl.min_horizontal(GROUPS).fill_null(0) < per_group)
    what = f"queries have fewer than {per_group} documents in a group"
    return violations(short, what, "query_id")


def query_domains_are_right(query_set: pl.DataFrame, index: pl.DataFrame) -> list[Violation]:
    """Every query may be one, with the domains of the index, and was chosen for some of them."""
    rows = query_set.join(
        index.filter("is_query").select(
            pl.col("doc_id").alias("query_id"),
            pl.col("domains", "primary_domain").name.prefix("own_"),
        ),
        on="query_id",
        how="left",
    )
    known = pl.col("own_domains").is_not_null()
    joined = pl.col("domains").list.join(",") != pl.col("own_domains").list.join(",")
    foreign = pl.col("selected_for").list.set_difference("domains").list.len() > 0
    faults = {
        "queries may not be queries": ~known,
        "queries have other domains than in problem_index": known
        & (joined | (pl.col("primary_domain") != pl.col("own_primary_domain"))),
        "queries were selected for no domain of theirs": foreign
        | (pl.col("selected_for").list.len() == 0),
    }
    return [v for w, bad in faults.items() for v in violations(rows.filter(bad), w, "query_id")]


def samples_have_their_size(query_set: pl.DataFrame, per_domain: int) -> list[Violation]:
    """No domain has more queries in its sample than the settings say."""
    sizes = query_set.explode("selected_for", empty_as_null=True).group_by("selected_for").len()
    bad = sizes.filter(pl.col("len") > per_domain).rename({"selected_for": "domain"})
    return violations(bad, f"domains have more than {per_domain} queries in their sample", "domain")


def groups_follow_the_thresholds(
    candidates: pl.DataFrame, shards: Parts, index: pl.DataFrame, thresholds: pl.DataFrame
) -> list[Violation]:
    """Every candidate has the signals of its pair, and the group that the thresholds give it.

    Args:
        candidates: table ``candidate_sets``.
        shards: numbered pairs, all of each query; those of other queries do not matter.
        index: table ``problem_index``.
        thresholds: table ``thresholds``.
    """
    chosen = numbered(candidates, index)
    pair = ("query", "doc")
    own = {f"own_{name}": pl.Float64 for name in SIGNALS} | {"own_group": pl.String}
    found = [pl.DataFrame(schema={**dict.fromkeys(pair, pl.UInt32), **own})]
    for part in high_pairs(shards, index, thresholds, candidates["query_id"]):
        mine = part.join(chosen, on=pair, how="semi").with_columns(group_of().alias("own_group"))
        found.append(mine.rename({name: f"own_{name}" for name in SIGNALS}).select(*pair, *own))
    rows = chosen.join(pl.concat(found), on=pair, how="left")
    other = pl.any_horizontal(pl.col(name).ne_missing(pl.col(f"own_{name}")) for name in SIGNALS)
    moved = ~other & pl.col("group").ne_missing(pl.col("own_group"))
    return [
        *violations(rows.filter(other), "candidates have other signals than their pair", _PAIR),
        *violations(rows.filter(moved), "candidates are in a group that is not theirs", _PAIR),
    ]


def every_text_is_there(
    texts: pl.DataFrame, query_set: pl.DataFrame, candidates: pl.DataFrame
) -> list[Violation]:
    """Every query and candidate of a release has its text; a candidate's is a document."""
    queries = query_set.select(pl.col("query_id").alias("doc_id")).unique()
    documents = candidates.select("doc_id").unique()
    known = texts.select("doc_id")
    barred = documents.join(texts.filter(~pl.col("is_document")), on="doc_id", how="semi")
    return [
        *violations(queries.join(known, on="doc_id", how="anti"), "queries lack a text", "doc_id"),
        *violations(
            documents.join(known, on="doc_id", how="anti"), "candidates lack a text", "doc_id"
        ),
        *violations(barred, "candidates may not be candidates", "doc_id", texts),
    ]
