import dataclasses

import polars as pl
import pytest

from saber_dagster.contracts import TABLES
from saber_dagster.schema import ContractError
from saber_dagster.tables import WHOLE, Provenance, TableStore, input_name

TABLE = TABLES["topic_statistics"]
ASSET = ("signals", "topic_statistics")


def frame(*nodes):
    rows = [(node, 3, 0.5) for node in nodes]
    return pl.DataFrame(rows, schema=TABLE.schema, orient="row")


def provenance(partition=WHOLE, **changes):
    made = Provenance(TABLE.name, "/".join(ASSET), partition, "1:abc", "d" * 64, 2)
    return dataclasses.replace(made, **changes)


@pytest.fixture
def store(tmp_path):
    return TableStore(tmp_path / "tables")


def test_a_table_and_its_provenance_come_back(store):
    made = provenance(inputs={"corpus:c00": "x"}, run_id="run", failed_checks=("coverage", "ü"))
    store.write(TABLE, frame("a", "b"), made, ASSET)
    assert store.read(TABLE.name, ASSET, None).equals(frame("a", "b"))
    assert store.provenance(ASSET, None) == made
    assert store.provenance(ASSET, WHOLE) == made
    store.write(TABLE, frame("c"), provenance(rows=1), ASSET)
    assert store.read(TABLE.name, ASSET, None)["node_id"].to_list() == ["c"]
    assert store.provenance(ASSET, None) == provenance(rows=1)


def test_partitions_lie_in_files_of_their_own(store):
    for shard in ("algebra|s00", "algebra|s01", "geometry|s00"):
        store.write(TABLE, frame(shard), provenance(shard), ASSET)
    paths = sorted(str(p.relative_to(store.root)) for p in store.root.rglob("*.parquet"))
    assert paths == [
        f"signals/topic_statistics/{name}.parquet"
        for name in ("algebra/s00", "algebra/s01", "geometry/s00")
    ]
    assert store.read(TABLE.name, ASSET, "algebra|s01")["node_id"].to_list() == ["algebra|s01"]
    assert store.provenance(ASSET, "geometry|s00").partition == "geometry|s00"


@pytest.mark.parametrize("shards", [["c00"], ["c00", "c01"], ["c01", "c00"], []])
def test_a_fan_in_is_one_frame_in_the_order_of_the_key(store, shards):
    nodes = {"c00": ["b", "d"], "c01": ["a", "c"]}
    for shard, ids in nodes.items():
        store.write(TABLE, frame(*ids), provenance(shard), ASSET)
    read = store.read_all(TABLE.name, ASSET, shards)
    assert read.schema == pl.Schema(TABLE.schema)
    assert read["node_id"].to_list() == sorted(id_ for shard in shards for id_ in nodes[shard])


def test_partitions_that_overlap_are_an_error(store):
    for shard in ("c00", "c01"):
        store.write(TABLE, frame("same"), provenance(shard), ASSET)
    with pytest.raises(ContractError, match="2 rows share a key"):
        store.read_all(TABLE.name, ASSET, ["c00", "c01"])


def test_a_missing_table_says_what_to_materialize(store):
    assert store.provenance(ASSET, "c00") is None
    with pytest.raises(ContractError, match=r"c00.parquet is missing: materialize signals/.*:c00"):
        store.read(TABLE.name, ASSET, "c00")
    store.write(TABLE, frame("a"), provenance("c00"), ASSET)
    with pytest.raises(ContractError, match=r"c01.parquet is missing"):
        store.read_all(TABLE.name, ASSET, ["c00", "c01"])
    assert input_name(ASSET, None) == "signals/topic_statistics:all"


@pytest.mark.parametrize("kept", [0, 3, 4, 0.3, 0.9, -1])
def test_a_damaged_table_says_so(store, kept):
    store.write(TABLE, frame("a", "b"), provenance(), ASSET)
    path = store.path(ASSET, None)
    data = path.read_bytes()
    path.write_bytes(data[: int(kept * len(data)) if isinstance(kept, float) else kept])
    with pytest.raises(ContractError, match=r"all.parquet is damaged .*; delete it"):
        store.read(TABLE.name, ASSET, None)
    assert store.provenance(ASSET, None) is None
    here, elsewhere = (ASSET, None), (ASSET, "c00")
    assert store.look([here, elsewhere, here]) == {here: "damaged", elsewhere: "missing"}


def test_no_changed_byte_of_a_table_is_read(store):
    stored = pairs(*range(1, 400))
    write_pairs(store, SHARDS[0], 1, *range(1, 400))
    path = store.path(("signal_shards",), SHARDS[0])
    whole = path.read_bytes()
    name = whole.index(b"saber_file_sha256")
    refused = 0
    for place in range(0, len(whole), 7):
        data = bytearray(whole)
        data[place] ^= 1
        path.write_bytes(bytes(data))
        for read in (
            lambda: store.read(PAIRS.name, ("signal_shards",), SHARDS[0]),
            lambda: pl.concat(store.parts(PAIRS.name, ("signal_shards",), [SHARDS[0]])),
        ):
            try:
                frame_ = read()
            except ContractError:
                refused += 1
            else:
                # without the name of the digest there is none
                assert name <= place < name + len(b"saber_file_sha256")
                assert frame_.equals(stored)
    assert refused > 100


def test_a_table_of_another_schema_says_so(store):
    path = store.path(ASSET, None)
    path.parent.mkdir(parents=True)
    frame("a").drop("count").write_parquet(path)
    with pytest.raises(ContractError, match=r"all.parquet\): missing columns \['count'\]"):
        store.read(TABLE.name, ASSET, None)
    frame("a").with_columns(pl.col("count").cast(pl.Int32)).write_parquet(path)
    with pytest.raises(ContractError, match=r"column count is Int32, the contract says Int64"):
        store.read(TABLE.name, ASSET, None)


@pytest.mark.parametrize("stored", ["", "{}", "no json", "[1]", '{"failed_checks": [], "new": 1}'])
def test_a_provenance_that_cannot_be_read_is_none(store, stored):
    path = store.path(ASSET, None)
    path.parent.mkdir(parents=True)
    frame("a").write_parquet(path, metadata={"saber": stored})
    assert store.provenance(ASSET, None) is None
    frame("a").write_parquet(path)
    assert store.provenance(ASSET, None) is None


PAIRS, SHARDS = TABLES["signal_shards"], ("algebra|s00", "geometry|s00")


def pairs(*topics):
    rows = [(0, i + 1, topic, 0) for i, topic in enumerate(topics)]
    return pl.DataFrame(rows, schema=PAIRS.schema, orient="row")


def write_pairs(store, shard, version, *topics, index="v1"):
    made = Provenance(
        PAIRS.name,
        "signal_shards",
        shard,
        "1",
        f"{version:064x}",
        len(topics),
        {"problem_index:all": index},
    )
    store.write(PAIRS, pairs(*topics), made, ["signal_shards"])


def test_rows_that_name_others_by_number_keep_their_order_and_are_read_one_shard_at_a_time(store):
    write_pairs(store, SHARDS[0], 1, 7, 5, 6)
    write_pairs(store, SHARDS[1], 2)
    parts = store.parts(PAIRS.name, ["signal_shards"], SHARDS)
    assert parts.rows == 3
    for _ in range(2):
        assert [frame["topic"].to_list() for frame in parts] == [[7, 5, 6]]
    assert [frame.schema for frame in parts] == [PAIRS.schema]
    for shards in (SHARDS, SHARDS[::-1]):
        assert store.version(PAIRS.name, ["signal_shards"], shards) == f"{3:064x}"


def test_rows_are_refused_if_their_numbers_are_of_another_table(store):
    write_pairs(store, SHARDS[0], 1, 7)
    write_pairs(store, SHARDS[1], 2, 7, index="v0")
    store.parts(PAIRS.name, ["signal_shards"], SHARDS[:1]).refuse_other_numbers("v1")
    parts = store.parts(PAIRS.name, ["signal_shards"], SHARDS)
    with pytest.raises(
        ContractError, match=r"signal_shards:geometry\|s00 names the rows of another"
    ):
        parts.refuse_other_numbers("v1")


def test_a_shard_that_is_missing_damaged_or_replaced_while_it_is_read_is_an_error(store):
    write_pairs(store, SHARDS[0], 1, 7)
    with pytest.raises(ContractError, match=r"s00.parquet is missing: materialize signal_shards:g"):
        store.parts(PAIRS.name, ["signal_shards"], SHARDS)
    store.path(["signal_shards"], SHARDS[1]).parent.mkdir()
    store.path(["signal_shards"], SHARDS[1]).write_bytes(b"PAR1")
    with pytest.raises(ContractError, match=r"s00.parquet is damaged; delete it"):
        store.parts(PAIRS.name, ["signal_shards"], SHARDS)
    write_pairs(store, SHARDS[1], 2, 8)
    frames = iter(store.parts(PAIRS.name, ["signal_shards"], SHARDS))
    next(frames)
    write_pairs(store, SHARDS[1], 3, 9)
    with pytest.raises(ContractError, match=r"changed while it was read\. Run"):
        next(frames)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (pl.col("topic").cast(pl.Int64), "column topic is Int64"),
        (pl.lit(None, dtype=pl.UInt32).alias("gap"), "column gap has no value"),
        (pl.lit(10**6 + 1, dtype=pl.UInt32).alias("topic"), "column topic has more than"),
    ],
)
def test_rows_that_name_others_by_number_are_held_to_their_columns(change, match):
    assert PAIRS.check(pairs(7, 7)).equals(pairs(7, 7)), "equal rows are no repetition"
    with pytest.raises(ContractError, match=match):
        PAIRS.check(pairs(7).with_columns(change))
