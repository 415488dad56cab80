"""Ids as a person gives them, and a trace as lines."""

import re

import polars as pl
import pytest

from saber_dagster.cli.trace_text import lines_of
from saber_dagster.contracts import TABLES
from saber_dagster.errors import SaberError
from saber_dagster.trace.names import Documents, nearest

ROWS = [
    ("aaaa11112222", "olympiad", "geo-1"),
    ("aaaa1111ffff", "olympiad", "geo-2"),
    ("bbbb00000000", "book", "geo-1"),
    ("cccc00000000", "book", "alg-7"),
    ("dddd00000000", "book", "other"),
]
DOCUMENTS = Documents(
    pl.DataFrame(
        [(*row, "problem", "solution", True) for row in ROWS],
        schema=TABLES["release_texts"].schema,
        orient="row",
    )
)
AMONG = [row[0] for row in ROWS[:4]]


@pytest.mark.parametrize(
    ("text", "doc_id"),
    [
        ("aaaa11112222", "aaaa11112222"),
        ("geo-2", "aaaa1111ffff"),
        ("book:geo-1", "bbbb00000000"),
        ("aaaa11112", "aaaa11112222"),
        ("cccc00", "cccc00000000"),
    ],
)
def test_a_document_is_found_by_either_id_and_by_the_beginning_of_ours(text, doc_id):
    found = DOCUMENTS.find(text, AMONG, "query")
    assert found.doc_id == doc_id
    assert str(found) == f"{found.source_id} ({doc_id})"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "geo-1",
            "query 'geo-1' could be aaaa11112222 (olympiad:geo-1), bbbb00000000 (book:geo-1)",
        ),
        ("aaaa1111", "could be aaaa11112222 (olympiad:geo-1), aaaa1111ffff (olympiad:geo-2)"),
        ("alg7", "there is no query 'alg7'; nearest: alg-7 (cccc00000000)"),
        ("aaaa1", "there is no query 'aaaa1'"),
        ("other", "'other': it is a document of the release, but no query"),
        ("", "there is no query ''; there are: geo-1 (aaaa11112222)"),
    ],
)
def test_an_id_that_is_unknown_or_could_be_several_is_answered_with_those_there_are(text, message):
    with pytest.raises(SaberError, match=re.escape(message)):
        DOCUMENTS.find(text, AMONG, "query")


def test_a_table_that_names_a_document_without_a_text_is_an_error():
    with pytest.raises(SaberError, match="no text of document eeee, which a table names"):
        DOCUMENTS.find("geo-1", ["eeee"], "query")


def test_a_name_is_known_or_the_nearest_is_told():
    assert nearest("bm25", ["bm25", "minilm"], "retriever") == "bm25"
    with pytest.raises(
        SaberError, match=r"no retriever 'bm52'; did you mean bm25\? There are bm25, minilm"
    ):
        nearest("bm52", ["bm25", "minilm"], "retriever")


def call(**changes):
    return {
        "found": True,
        "paid": 1,
        "status": "ok",
        "error": "",
        "model": "m",
        "revision": "r",
        "params": {},
        "prompt": "p",
        "prompt_sha256": "0" * 64,
        "sample": 0,
        "attempt": 0,
        "truncated_input": False,
        "prompt_tokens": 1,
        "completion_tokens": 2,
        "reasoning_tokens": 0,
        "cached_tokens": 0,
        "price": 0.5,
        "latency": 1.0,
        "created": 0.0,
        "run": {"run_id": "run-1", "known": False},
        "path": "segment.parquet",
        "messages": [{"role": "user", "content": "x" * 1000}],
        "reasoning": "",
        "text": "\x1b[31mred <verdict>1</verdict>",
        "key_holds": True,
        "segment_holds": True,
        "problem": "",
        **changes,
    }


def trace_of(**calls):
    document = {"doc_id": "d", "doc_source_id": "D", "problem": "p", "solution": "s"}
    game = {
        "round": 1,
        "opponent_id": "o",
        "opponent_source_id": "O",
        "shown_first": True,
        "outcome": 0.25,
        "status": "ok",
        "weight": 1.0,
        "call_keys": list(calls),
        "follows": True,
    }
    return {
        "query": {"query_id": "q", "query_source_id": "Q", "problem": "p", "solution": "s"},
        "document": document,
        "candidate": {"group": "both", "topic": 0.5, "summary": 0.25},
        "rating": {
            "rating": 1.0,
            "rank": 1,
            "of": 2,
            "log_strength": 0.0,
            "standard_error": 1.0,
            "wins": 0.25,
            "losses": 0.75,
        },
        "rating_prior": {"prior_precision": 1.0, "position": 0.0, "n_games": 1},
        "games": [game, {**game, "outcome": None, "status": "refused", "shown_first": False}],
        "calls": calls,
        "tables": [],
    }


def test_games_are_told_from_the_side_of_the_document():
    text = "\n".join(lines_of(trace_of(k1=call()), full=False))
    assert "round  1  lost 0.250   against O, shown first; calls k1" in text
    assert "refused" in text
    assert "of which Dagster has no record" in text


def test_texts_are_cut_unless_all_is_wanted_and_control_characters_are_not_obeyed():
    short = "\n".join(lines_of(trace_of(k1=call()), full=False))
    assert "… (1,000 characters)" in short
    assert "x" * 1000 in "\n".join(lines_of(trace_of(k1=call()), full=True))
    assert "\x1b" not in short
    assert "[31mred <verdict>1</verdict>" in short


def test_what_does_not_verify_is_printed_before_what_does():
    calls = {f"good{n}": call() for n in range(5)}
    calls["bad"] = call(key_holds=False, problem="these messages do not give the key of the row")
    calls["changed"] = call(segment_holds=False, created=1e300)
    calls["gone"] = {"found": False}
    text = "\n".join(lines_of(trace_of(**calls), full=False))
    assert "KEY DOES NOT VERIFY: these messages do not give the key" in text
    assert "SEGMENT CHANGED" in text
    assert text.count("call       ") == 3
    assert "and 4 more calls" in text
    assert "calls      8: 5 verified, 2 not, 1 missing in the ledger" in text
