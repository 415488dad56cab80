import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saber_dagster.hashing import canonical_json, data_version, hash64

pytestmark = pytest.mark.property

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
ROWS = st.lists(
    st.tuples(
        st.none() | TEXT,
        st.none() | st.integers(-(2**63), 2**63 - 1),
        st.none() | st.floats(allow_nan=False, allow_infinity=False),
        st.none() | st.lists(st.none() | TEXT, max_size=3),
    ),
    max_size=8,
)
SCHEMA = {"s": pl.String, "i": pl.Int64, "f": pl.Float64, "l": pl.List(pl.String)}


def frame(rows):
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


@given(ROWS, st.data())
def test_a_version_belongs_to_the_bag_of_rows(rows, data):
    shuffled = data.draw(st.permutations(rows))
    cut = data.draw(st.integers(0, len(rows)))
    parts = pl.concat([frame(shuffled[cut:]), frame(shuffled[:cut])], rechunk=False)
    assert data_version(parts) == data_version(frame(rows))


@given(ROWS, ROWS)
def test_other_rows_have_another_version(one, other):
    def bag(rows):  # repr tells 1 from "1"; -0.0 counts as 0.0
        return sorted(repr((s, i, None if f is None else f + 0.0, t)) for s, i, f, t in rows)

    assert (data_version(frame(one)) == data_version(frame(other))) == (bag(one) == bag(other))


@given(st.lists(TEXT, max_size=4), st.lists(TEXT, max_size=4))
def test_hash64_is_a_function_of_the_list_of_parts(one, other):
    assert (hash64(*one) == hash64(*other)) == (one == other)


@given(st.dictionaries(TEXT, st.integers() | TEXT, max_size=5))
def test_canonical_json_does_not_depend_on_the_order_of_keys(value):
    assert canonical_json(value) == canonical_json(dict(reversed(value.items())))
