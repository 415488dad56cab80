"""What an asset gets from the IO manager: one frame, and the versions of what is in it."""

import io
from pathlib import Path

import dagster as dg
import polars as pl
import pytest

from resources.parquet_io import TABLE_KEY, ParquetIOManager, StoredTable
from saber_dagster.contracts import TABLES
from saber_dagster.errors import SaberError
from saber_dagster.tables import Provenance

TABLE = TABLES["summaries"]
ASSET = ["summaries"]


def frame(*docs: str, idea: str = "induct") -> pl.DataFrame:
    rows = [(doc, idea, False, [], [], None, "ok") for doc in docs]
    return pl.DataFrame(rows, schema=TABLE.schema, orient="row")


def stored(rows: pl.DataFrame, partition: str, failed_checks: tuple[str, ...] = ()) -> StoredTable:
    version = TABLE.version(rows)
    return StoredTable(
        rows,
        Provenance(
            TABLE.name, "summaries", partition, "1", version, rows.height, {}, "", failed_checks
        ),
    )


@pytest.fixture
def manager(tmp_path):
    return ParquetIOManager(root=str(tmp_path))


def write(manager, table: StoredTable) -> None:
    context = dg.build_output_context(
        asset_key=dg.AssetKey(ASSET), definition_metadata={TABLE_KEY: TABLE.name}
    )
    manager.handle_output(context, table)


def load(manager, *shards: str):
    """What a whole asset gets from an upstream of these shards; of none, from a whole table."""
    partitions = {}
    if shards:
        partitions = {
            "asset_partitions_def": dg.StaticPartitionsDefinition(list(shards)),
            "asset_partition_key_range": dg.PartitionKeyRange(shards[0], shards[-1]),
        }
    context = dg.build_input_context(
        asset_key=dg.AssetKey(ASSET),
        upstream_output=dg.build_output_context(
            asset_key=dg.AssetKey(ASSET), definition_metadata={TABLE_KEY: TABLE.name}
        ),
        **partitions,
    )
    return manager.load_input(context)


@pytest.mark.parametrize("shards", [(), ("c00",), ("c00", "c01"), ("c00", "c01", "c02")])
def test_however_a_table_is_cut_it_arrives_as_one_frame(manager, shards):
    rows = frame("a", "b", "c", "d", "e")
    cuts = len(shards) or 1
    parts = {shard: rows[i::cuts] for i, shard in enumerate(shards or ("all",))}
    for shard, part in parts.items():
        write(manager, stored(part, shard))
    loaded = load(manager, *shards)
    assert isinstance(loaded.rows, pl.DataFrame)
    assert loaded.rows.equals(rows)
    assert loaded.versions == {f"summaries:{s}": TABLE.version(p) for s, p in parts.items()}


def test_the_order_of_writing_and_an_empty_shard_change_nothing(manager):
    write(manager, stored(frame("b"), "c01"))
    write(manager, stored(frame(), "c02"))
    write(manager, stored(frame("c", "a"), "c00"))
    assert load(manager, "c00", "c01", "c02").rows.equals(frame("a", "b", "c"))


@pytest.mark.parametrize("shards", [(), ("c00", "c01")])
def test_nothing_is_built_on_a_failed_check(manager, shards):
    for shard in shards or ("all",):
        write(manager, stored(frame(shard), shard))
    last = (shards or ("all",))[-1]
    write(manager, stored(frame(last), last, ("coverage: 1 of 2 documents have an answer",)))
    with pytest.raises(SaberError, match=f"summaries:{last} failed a check.*coverage: 1 of 2"):
        load(manager, *shards)
    if shards:
        assert load(manager, "c00").rows.height == 1


def test_a_missing_shard_is_an_error(manager):
    write(manager, stored(frame("a"), "c00"))
    with pytest.raises(SaberError, match=r"c01.parquet is missing: materialize summaries:c01"):
        load(manager, "c00", "c01")


def test_a_table_that_does_not_say_how_it_came_about_is_an_error(manager, tmp_path):
    frame("a").write_parquet(tmp_path / "summaries" / "all.parquet", mkdir=True)
    with pytest.raises(SaberError, match="summaries:all does not say how it came about"):
        load(manager)


def test_frame_and_version_are_of_one_table_when_another_replaces_it_meanwhile(
    manager, monkeypatch
):
    """Whatever reads the file, the other table is there right after."""
    tables = [stored(frame("a", idea=f"idea {n}"), "c00") for n in range(10)]
    write(manager, tables.pop())
    read = []

    def then_replaced(function):
        def wrapper(source, *args, **kwargs):
            found = function(source, *args, **kwargs)
            if not isinstance(source, io.BytesIO):
                read.append(source)
                write(manager, tables.pop())
            return found

        return wrapper

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", then_replaced(Path.read_bytes))
        for name in ("read_parquet", "scan_parquet", "read_parquet_metadata"):
            patch.setattr(pl, name, then_replaced(getattr(pl, name)))
        loaded = load(manager, "c00")
    assert read, "the test does not see how tables are read"
    assert loaded.versions == {"summaries:c00": TABLE.version(loaded.rows)}
    assert load(manager, "c00").versions != loaded.versions
