"""What of a partition's stored signals still holds, so that a grown corpus need not start anew."""

import io
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import polars as pl

from assets.stage import Site
from saber_dagster.errors import SaberError
from saber_dagster.partitions import domain_and_shard
from saber_dagster.sealed import is_whole, sealed_parquet
from saber_dagster.signals.growth import Before
from saber_dagster.signals.join import query_positions
from saber_dagster.signals.storage import decode
from saber_dagster.storage import AnyPath, files_below, read_many, write_atomic
from saber_dagster.tables import Provenance, input_name

_ASSET = ("signal_shards",)
_INDEX = input_name(["problem_index"], None)


def asked_of(index: pl.DataFrame, partition: str) -> npt.NDArray[np.int32]:
    """Positions of the queries of a partition, ascending."""
    domain, shard = domain_and_shard(partition)
    mine = (pl.col("primary_domain") == domain) & (pl.col("shard") == shard)
    return query_positions(index, index.filter("is_query", mine)["doc_id"])


def signals_before(site: Site, partition: str, versions: Mapping[str, str]) -> Before | None:
    """The stored signals of a partition and their index, if nothing but the index has changed.

    Args:
        site: the home.
        partition: of ``signal_shards``.
        versions: data versions of the asset's inputs as they are now.

    Returns:
        None if they are missing or damaged, failed a check, are of another code version, ontology or
        topic statistics, or of this very index (then something is amiss, and all is computed), or if
        their index was not kept.
    """
    made = site.store.provenance(_ASSET, partition)
    if made is None or made.failed_checks:
        return None
    if made.code_version != site.graph[_ASSET].code_version:
        return None
    changed = {name for name in versions if versions[name] != made.inputs.get(name)}
    if changed != {_INDEX} or set(made.inputs) != set(versions):
        return None
    (kept,) = read_many([_path(site, made.inputs[_INDEX])])
    try:
        if kept is None or not is_whole(kept):
            return None
        index = pl.read_parquet(io.BytesIO(kept))
        rows = decode(site.store.read(made.table, _ASSET, partition), index.height)
    except (SaberError, pl.exceptions.PolarsError, OSError):
        return None  # a damaged file is no reason not to compute it anew
    return Before(rows, asked_of(index, partition), index)


def keep_index(site: Site, partition: str, index: pl.DataFrame, version: str) -> None:
    """Keep the index that a partition's signals are about to be stored for; forget those of none."""
    path = _path(site, version)
    (there,) = read_many([path], 8)
    if there is None:
        write_atomic(path, sealed_parquet(index))
    others = [each for each in site.graph[_ASSET].partitions if each != partition]
    made = site.store.look((_ASSET, each) for each in others)
    used = {each.inputs[_INDEX] for each in made.values() if isinstance(each, Provenance)}
    for kept in files_below(site.home.indexes, ".parquet"):
        if kept.stem not in used | {version}:
            kept.unlink(missing_ok=True)


def _path(site: Site, version: str) -> AnyPath:
    return site.home.indexes / f"{version}.parquet"
