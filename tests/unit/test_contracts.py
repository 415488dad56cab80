import polars as pl
import pytest

from saber_dagster.contracts import TABLES, TEXTS
from saber_dagster.schema import Column, ContractError, Table

TABLE = Table(
    "games",
    "A small table with every kind of column.",
    ("query", "round"),
    {
        "query": Column(pl.String, "id", nullable=True),
        "round": Column(pl.Int32, "number", low=1, high=20),
        "score": Column(pl.Float64, "share", nullable=True, low=0.0, high=1.0),
        "terms": Column(TEXTS, "words"),
        "shard": Column(pl.Int32, "where", nullable=True, storage=True),
    },
)


def frame(**changes):
    columns = {
        "query": ["b", "a", None],
        "round": [1, 2, 20],
        "score": [0.0, None, 1.0],
        "terms": [["x"], [], ["y", ""]],
        "shard": [0, 1, None],
    }
    return pl.DataFrame({**columns, **changes}, schema=TABLE.schema, strict=False)


def test_rows_on_disk_are_in_the_order_of_the_key_and_columns_in_that_of_the_contract():
    checked = TABLE.check(frame().select("terms", "shard", "score", "round", "query"))
    assert checked.columns == list(TABLE.columns)
    assert checked["query"].to_list() == [None, "a", "b"]
    assert TABLE.check(checked.reverse()).equals(checked)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"round": [1, None, 2]}, r"column round has no value in 1 row"),
        ({"round": [0, 2, -3]}, r"column round has less than 1 in 2 row\(s\), such as 0"),
        ({"round": [1, 21, 2]}, r"column round has more than 20 in 1 row\(s\), such as 21"),
        ({"score": [0.1, -1e-9, 0.2]}, r"column score has less than 0.0 in 1 .* such as -1e-09"),
        ({"score": [0.1, 1.0000001, None]}, r"column score has more than 1.0 in 1"),
        ({"score": [0.1, float("nan"), None]}, r"column score has NaN or infinity in 1"),
        ({"score": [float("inf"), float("-inf"), 0]}, r"column score has NaN or infinity in 2"),
        ({"terms": [["x"], None, []]}, r"column terms has no value in 1"),
        ({"terms": [["x"], ["y", None], []]}, r"column terms has an empty item in 1"),
        ({"query": ["a", "a", "b"], "round": [3, 3, 3]}, r"2 rows share a key .*\('a', 3\)"),
        ({"query": [None, None, "b"], "round": [3, 3, 3]}, r"2 rows share a key .*\(None, 3\)"),
    ],
)
def test_errors_name_table_place_column_count_and_sample(changes, message):
    with pytest.raises(ContractError, match=rf"^games \(somewhere\): .*{message}"):
        TABLE.check(frame(**changes), "somewhere")


def test_a_key_may_repeat_in_one_of_its_columns():
    assert TABLE.check(frame(query=["a", "a", "a"])).height == 3


@pytest.mark.parametrize(
    ("column", "dtype", "found"),
    [
        ("round", pl.Int64, "Int64"),
        ("round", pl.Float64, "Float64"),
        ("score", pl.Int64, "Int64"),
        ("score", pl.Float32, "Float32"),
        ("query", pl.Categorical, "Categorical"),
        ("terms", pl.List(pl.Categorical), "Categorical"),
    ],
)
def test_types_are_exact(column, dtype, found):
    expected = rf"^games: column {column} is .*{found}.*, the contract says"
    with pytest.raises(ContractError, match=expected):
        TABLE.check(frame().with_columns(pl.col(column).cast(dtype)))


def test_a_column_of_nothing_takes_the_type_of_the_contract_only_if_it_may_be_empty():
    empty = frame().with_columns(score=pl.lit(None), shard=pl.lit(None))
    assert TABLE.check(empty).schema == pl.Schema(TABLE.schema)
    with pytest.raises(ContractError, match="column round is Null"):
        TABLE.check(frame().with_columns(round=pl.lit(None)))


def test_missing_and_unknown_columns_are_named():
    wrong = frame().rename({"score": "points"})
    with pytest.raises(ContractError, match=r"missing columns \['score'\].*unknown .*\['points'\]"):
        TABLE.check(wrong)


def test_where_a_row_is_stored_is_no_part_of_the_version():
    moved = frame(shard=[5, 5, 5])
    assert TABLE.version(moved) == TABLE.version(frame().reverse())
    assert TABLE.version(frame(score=[0.0, None, 0.5])) != TABLE.version(frame())


def test_the_schema_digest_changes_with_name_type_and_key():
    def sha(name="games", key=("query", "round"), dtype=pl.Float64):
        columns = {**TABLE.columns, "score": Column(dtype, "share")}
        return Table(name, "", key, columns).schema_sha

    assert sha() == TABLE.schema_sha
    assert len({sha(), sha(name="g"), sha(key=("query",)), sha(dtype=pl.Float32)}) == 4


@pytest.mark.parametrize("table", TABLES.values(), ids=list(TABLES))
def test_every_table_is_sound(table):
    assert bool(table.key) != bool(table.numbers)
    assert table.numbers in {"", *TABLES}
    assert set(table.key) <= set(table.columns)
    assert not any(table.columns[name].storage for name in table.key)
    assert table.check(table.empty()).schema == pl.Schema(table.schema)
    assert all(column.description for column in table.columns.values())
