"""Rules of the corpus: identity by content, clusters, licences, shards."""

from collections.abc import Sequence

import polars as pl

from saber_dagster.corpus import ID_DIGITS
from saber_dagster.corpus_rows import UNKNOWN_LICENCE
from saber_dagster.hashing import canonical_json, sha256_hex
from saber_dagster.rules.base import Violation, violations


def ids_are_content_hashes(texts: pl.DataFrame) -> list[Violation]:
    """Every document's id is the hash of the texts as they stand, and so is its SHA-256.

    Args:
        texts: table ``corpus`` or ``release_texts``.
    """
    pairs = texts.select("problem", "solution").iter_rows()
    sha = pl.Series(
        [sha256_hex(canonical_json([problem, solution])) for problem, solution in pairs],
        dtype=pl.String,
    )
    other = texts["doc_id"] != sha.str.head(ID_DIGITS)
    if "sha256" in texts.columns:
        other |= texts["sha256"] != sha
    what = "documents have an id that is not the hash of their texts"
    return violations(texts.filter(other), what, "doc_id", texts)


def equal_problems_share_a_cluster(corpus: pl.DataFrame) -> list[Violation]:
    """Problems that differ in case and white space only are in one near-duplicate cluster."""
    folded = pl.col("problem").str.to_lowercase().str.replace_all(r"\s+", " ").str.strip_chars()
    bad = corpus.with_columns(folded.alias("folded")).filter(
        pl.col("cluster_id").n_unique().over("folded") > 1
    )
    return violations(
        bad, "documents with equal problems are in different clusters", "doc_id", corpus
    )


def licences_are_known(corpus: pl.DataFrame) -> list[Violation]:
    """Every document has a licence."""
    bad = corpus.filter(pl.col("licence") == UNKNOWN_LICENCE)
    counts = bad.group_by("source").len().sort("source").iter_rows()
    by_source = ", ".join(f"{source}: {count:,}" for source, count in counts)
    return violations(bad, f"documents have no licence ({by_source})", "doc_id", corpus)


def shards_are_a_partition(
    raw: pl.DataFrame, assigned: pl.Series, shards: Sequence[str], shard: str, mine: pl.DataFrame
) -> list[Violation]:
    """Every document of the sources is in one of the shards, and this shard has all of its own.

    Args:
        raw: table ``corpus`` of all sources.
        assigned: (raw.height,) the shard of each of its documents.
        shards: every shard there is.
        shard: this one.
        mine: its table ``corpus``.
    """
    lost = raw.filter(~assigned.is_in(list(shards)))
    expected = raw.filter(assigned == shard)
    missing = expected.join(mine, on="doc_id", how="anti")
    extra = mine.join(expected, on="doc_id", how="anti")
    return [
        *violations(lost, "documents of raw_sources are in no shard", "doc_id", raw),
        *violations(missing, f"documents of shard {shard} are missing from it", "doc_id", raw),
        *violations(extra, f"documents of other shards are in shard {shard}", "doc_id", mine),
    ]
