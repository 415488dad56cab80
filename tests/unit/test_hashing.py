import polars as pl
import pytest

from saber_dagster.hashing import bucket, canonical_json, data_version, digest, hash64, sha256_hex


def test_canonical_json_does_not_depend_on_the_order_of_keys():
    first = canonical_json({"b": [1, 2.5, None], "a": {"y": "é", "x": True}})
    assert first == canonical_json({"a": {"x": True, "y": "é"}, "b": [1, 2.5, None]})
    assert first == '{"a":{"x":true,"y":"é"},"b":[1,2.5,null]}'.encode()
    assert canonical_json([1, 2]) != canonical_json([2, 1])


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"a": [float("-inf")]}])
def test_canonical_json_rejects_what_is_no_number(value):
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json(value)


def test_canonical_json_rejects_lone_surrogates():
    with pytest.raises(UnicodeEncodeError):
        canonical_json("\ud800")


def test_known_digests():
    """Golden values: a change would give every document, pairing and ledger key a new identity."""
    assert sha256_hex("") == sha256_hex(b"")
    assert sha256_hex("é").startswith(
        "4a99557e4033c3539de2eb65472017cad5f9557f7a0625a09f1c3f6e2ba69c4c"
    )
    assert digest({"tau": 0.85}) == "8ba73620ce0e"
    assert hash64(7, "query", "doc") == 186305883319239521
    assert bucket("doc", 32) == 13


def test_hash64_keeps_its_parts_apart():
    assert len({hash64("ab", "c"), hash64("a", "bc"), hash64("abc"), hash64("abc", "")}) == 4
    assert len({hash64(), hash64(""), hash64("", "")}) == 3
    assert hash64("a", "b") != hash64("b", "a")


def test_buckets_are_about_even():
    counts = [0] * 8
    for i in range(4000):
        counts[bucket(f"d{i}", 8)] += 1
    assert min(counts) > 400


def version(values, dtype=None):
    return data_version(pl.DataFrame({"x": pl.Series(values, dtype=dtype)}))


def test_row_order_and_concatenation_do_not_matter():
    frame = pl.DataFrame(
        {
            "id": ["b", "a", None, "a"],
            "terms": [["a", "b"], [], None, ["a\x1fb"]],
            "score": [0.1, None, 3.0, 1e-12],
            "n": [1, 2, None, 3],
        }
    )
    whole = data_version(frame)
    assert data_version(frame.reverse()) == whole
    assert data_version(pl.concat([frame[2:], frame[:2]], rechunk=False)) == whole
    assert data_version(frame.select("n", "score", "terms", "id")) == whole


@pytest.mark.parametrize(
    "rows",
    [
        [["a", "b"], ["a\x1fb"]],
        [[], [""]],
        [["a"], ["a", None]],
        [["a"], ["a", ""]],
        [None, []],
        [[None], None],
    ],
)
def test_lists_that_look_alike_are_told_apart_and_sorted_all_the_same(rows):
    first, second = (version([row], pl.List(pl.String)) for row in rows)
    assert first != second
    assert version(rows) == version(rows[::-1])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([None], [""]),
        (["1"], [1]),
        ([1], [1.0]),
        ([1.0], [1.0000000000000002]),
        ([0.0], [5e-324]),
        ([1], [1, 1]),
        (["a", None], ["a", "null"]),
        ([2**53], [2**53 + 1]),
        (["a\nb"], ["a\\nb"]),
    ],
)
def test_any_other_cell_gives_another_version(one, other):
    assert version(one) != version(other)


def test_types_names_and_empty_tables_count():
    assert version([1], pl.Int32) != version([1], pl.Int64)
    assert version([], pl.String) != version([], pl.Int64)
    assert data_version(pl.DataFrame({"x": [1]})) != data_version(pl.DataFrame({"y": [1]}))
    assert data_version(pl.DataFrame()) == data_version(pl.DataFrame())


def test_the_sign_of_zero_does_not_count():
    assert version([0.0]) == version([-0.0])
    both = pl.DataFrame({"x": [0.0, -0.0], "y": ["b", "a"]})
    assert data_version(both) == data_version(both.reverse())
    assert version([-1.0]) != version([1.0])
    assert version([0.0], pl.Float32) == version([-0.0], pl.Float32) != version([0.0])


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_what_is_no_number_has_no_version(value):
    with pytest.raises(ValueError, match="NaN or infinity"):
        version([1.0, None, value])


def test_excluded_columns_do_not_count():
    frame = pl.DataFrame({"x": [1, 2], "shard": [0, 1]})
    moved = frame.with_columns(shard=pl.lit(5))
    assert data_version(frame, ["shard"]) == data_version(moved, ["shard"])
    assert data_version(frame) != data_version(moved)


def test_long_tables_are_hashed_in_chunks_to_the_same_end(monkeypatch):
    frame = pl.DataFrame({"x": range(1000), "t": [f"t{i % 7}" for i in range(1000)]})
    whole = data_version(frame)
    for rows in (1, 999, 1000, 1001):
        monkeypatch.setattr("saber_dagster.hashing._CHUNK_ROWS", rows)
        assert data_version(frame.sample(fraction=1, shuffle=True, seed=rows)) == whole
