"""Pairs by their ids, as tests are read, and by their numbers, as the stages take them."""

import polars as pl

from saber_dagster.signals.join import SignalJoin, query_positions
from saber_dagster.signals.pairs import SCHEMA, SignalShards, with_ids
from saber_dagster.signals.storage import encode

PAIRS = {"query_id": pl.String, "doc_id": pl.String, "topic": pl.Float64, "summary": pl.Float64}
"""Columns of pairs by their ids."""


def numbered(pairs: pl.DataFrame, index: pl.DataFrame) -> pl.DataFrame:
    """Pairs by ids (and further columns) as numbered pairs of an index, in order."""
    place = dict(zip(index["doc_id"], range(index.height), strict=True))
    ends = {
        "query": pairs["query_id"].replace_strict(place, return_dtype=pl.UInt32),
        "doc": pairs["doc_id"].replace_strict(place, return_dtype=pl.UInt32),
    }
    return (
        pl.DataFrame(ends)
        .hstack(pairs.drop("query_id", "doc_id"))
        .select(*SCHEMA, pl.all().exclude(*SCHEMA))
        .sort("query", "doc")
    )


def joined(join: SignalJoin, index: pl.DataFrame, ids: list[str]) -> pl.DataFrame:
    """The pairs that a join finds, stored and read again, by their ids."""
    stored = encode(join.rows(query_positions(index, ids)))
    parts = [with_ids(part, index["doc_id"]) for part in SignalShards([stored], index)]
    return pl.concat([pl.DataFrame(schema=PAIRS), *parts])


def cut(pairs: pl.DataFrame, queries: int) -> list[pl.DataFrame]:
    """Parts of numbered pairs that have all pairs of so many queries each."""
    number = pairs["query"].rank("dense") - 1
    parts = [number // queries == i for i in range(int(number.max() or 0) // queries + 1)]
    return [pairs.filter(part) for part in parts] if pairs.height else []
