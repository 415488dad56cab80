import gzip
import json
import tempfile
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saber_dagster.corpus import Problem, build_corpus, read_problems
from saber_dagster.corpus_queries import Reference, apply_queries, read_queries
from saber_dagster.errors import Fault, InputError

pytestmark = pytest.mark.property
TEXT_EXTENSIONS = ["jsonl", "ndjson", "csv", "tsv", "txt"]

texts = st.sampled_from(["p", "P ", "p\r\nq", "p\nq", "é", "e\u0301", "$x$", "q"])
problems = st.lists(
    st.builds(
        Problem,
        source=st.sampled_from("ab"),
        source_id=st.integers(0, 30).map(str),
        problem=texts,
        solution=texts,
        answer=st.sampled_from([None, "1", "2"]),
    ),
    max_size=12,
    unique_by=lambda row: (row.source, row.source_id),
)
SEEDS = [
    b'{"id": "1", "problem": "p \\n $x$", "solution": "s"}\n{"id": 2, "problem": "q"}\n',
    b'id,problem,solution\n1,"a\n""b""",s\n2,q,t\n',
    b"id\tproblem\tsolution\n1\tp\ts\n",
    b"\xef\xbb\xbfa:1\r\nb 2\r\n",
    b"[{}]",
]
pieces = st.one_of(
    st.binary(max_size=6),
    st.sampled_from([b'"', b",", b"\n", b"\r", b"\\", b"{", b"}", b"\x00", b"\xff", b"\\ud800"]),
)


@st.composite
def damaged(draw):
    """A file as it should be, with a part replaced; or any bytes."""
    raw = draw(st.one_of(st.sampled_from(SEEDS), st.binary(max_size=200)))
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(raw)))
        end = draw(st.integers(start, min(len(raw), start + 8)))
        raw = raw[:start] + draw(pieces) + raw[end:]
    return raw


def check(path):
    """Whatever a file says: rows or faults, all printable, and the rows can be built."""
    found, queries = read_problems(path), read_queries(path)
    for file in (found, queries):
        assert file.rows or file.faults
        for fault in file.faults + file.warnings:
            assert isinstance(fault, Fault)
            assert fault.problem
            assert fault.remedy
            str(fault).encode("utf-8")
    build = build_corpus(found.rows)
    try:
        apply_queries(build, queries.rows)
    except InputError as error:
        str(error).encode("utf-8")


def written(raw, name):
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name) / name
    path.write_bytes(raw)
    return folder, path


@given(problems, st.randoms(use_true_random=False))
def test_build_is_independent_of_row_order(rows, random):
    build = build_corpus(rows)
    shuffled = list(rows)
    random.shuffle(shuffled)
    again = build_corpus(shuffled)
    assert again.frame.equals(build.frame)
    assert again.duplicates.equals(build.duplicates)
    assert build.frame.height + build.duplicates.height == len(rows)


@given(problems)
def test_ids_depend_on_content_only(rows):
    moved = [
        replace(row, source="z", source_id=f"new {i}", answer=None, licence="x", file="f", row=i)
        for i, row in enumerate(rows)
    ]
    columns = ["doc_id", "sha256", "cluster_id", "problem", "solution"]
    before, after = (build_corpus(r).frame.select(columns) for r in (rows, moved))
    assert after.equals(before)
    assert before["doc_id"].n_unique() == before.select("problem", "solution").n_unique()


@given(problems, st.data())
def test_queries_are_exactly_those_that_were_asked_for(rows, data):
    build = build_corpus(rows)
    asked = data.draw(st.lists(st.sampled_from(rows), unique=True)) if rows else []
    queries = [Reference(row.source, row.source_id, "q", i) for i, row in enumerate(asked)]
    applied = apply_queries(build, queries)
    as_texts = apply_queries(build, [replace(row, source="own") for row in dict_by_id(asked)])
    expected = set(build_corpus(asked).frame["doc_id"])
    assert set(applied.frame.filter("is_query")["doc_id"]) == expected
    assert set(as_texts.frame.filter("is_query")["doc_id"]) <= expected
    assert as_texts.frame["is_document"].all()
    assert apply_queries(build, queries[::-1]).frame.equals(applied.frame)


def dict_by_id(rows):
    return {row.source_id: row for row in rows}.values()


@given(damaged(), st.sampled_from(TEXT_EXTENSIONS), st.booleans())
@settings(max_examples=300, deadline=None)
def test_any_bytes_give_rows_or_faults(raw, extension, compressed):
    name = f"a.{extension}" + (".gz" if compressed else "")
    folder, path = written(gzip.compress(raw) if compressed else raw, name)
    with folder:
        check(path)


@given(st.binary(max_size=100))
@settings(max_examples=50, deadline=None)
def test_any_bytes_as_gzip_or_parquet(raw):
    # Not: bytes overwritten inside a Parquet file, on which Polars can abort the process.
    for name in ("a.jsonl.gz", "a.parquet"):
        folder, path = written(raw, name)
        with folder:
            check(path)


@given(st.data())
@settings(max_examples=30, deadline=None)
def test_cut_parquet(data):
    folder, path = written(b"", "a.parquet")
    with folder:
        pl.DataFrame({"id": [1, 2], "problem": ["p", "q"], "solution": ["s", None]}).write_parquet(
            path
        )
        raw = path.read_bytes()
        path.write_bytes(raw[: data.draw(st.integers(0, len(raw)))])
        check(path)


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["id", "problem", "solution", "answer", "source", "url", "x"]),
            st.one_of(st.none(), st.text(max_size=5), st.integers(), st.floats(), st.just([1])),
        ),
        min_size=1,
        max_size=5,
    )
)
@settings(deadline=None)
def test_any_json_values_give_rows_or_faults(rows):
    raw = "".join(json.dumps(row) + "\n" for row in rows).encode()
    folder, path = written(raw, "a.jsonl")
    with folder:
        check(path)
