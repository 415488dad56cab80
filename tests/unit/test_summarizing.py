import polars as pl
import pytest

from saber_dagster.contracts import TABLES
from saber_dagster.engines import SOLUTION_SUMMARY
from saber_dagster.ledger import Ledger
from saber_dagster.summarizing import summarize_documents

SAID = {
    "full": "<core_idea>Count  pairs.</core_idea><supporting_idea>sums</supporting_idea>"
    "<keyword>graph</keyword><confidence>0.75</confidence>",
    "none": "<no_core_idea/><keyword>algebra</keyword>",
    "long": f"<core_idea>{'w ' * 31}</core_idea>",
    "bare": "Count pairs.",
}


def documents(solutions):
    return pl.DataFrame(
        {
            "doc_id": list(solutions),
            "problem": [f"problem {doc}" for doc in solutions],
            "solution": list(solutions.values()),
        },
        schema_overrides={"solution": pl.String, "doc_id": pl.String, "problem": pl.String},
    )


@pytest.fixture
def summarize(tmp_path, scripted_engine):
    def of(solutions, max_words=30):
        engine = scripted_engine(lambda call: SAID[call.inputs["solution"]])
        with Ledger(tmp_path).session(engine, "summaries", "c00") as session:
            return summarize_documents(documents(solutions), session.ask, max_words), engine.asked

    return of


def test_every_document_has_one_row_with_its_summary_or_its_failure(summarize):
    frame, asked = summarize(
        {"d": "bare", "a": "full", "e": " \n\t", "b": "none", "c": "long", "f": ""}
    )
    assert frame.rows() == [
        ("a", "Count pairs.", False, ["sums"], ["graph"], 0.75, "ok"),
        ("b", None, True, [], ["algebra"], None, "ok"),
        ("c", None, False, [], [], None, "parse_error"),
        ("d", None, False, [], [], None, "parse_error"),
        ("e", None, False, [], [], None, "no_solution"),
        ("f", None, False, [], [], None, "no_solution"),
    ]
    assert [call.item for call in asked] == ["a", "b", "c", "d"]
    assert {call.task for call in asked} == {SOLUTION_SUMMARY}
    assert asked[0].inputs == {"problem": "problem a", "solution": "full", "max_words": 30}


def test_the_longest_core_idea_is_a_setting(summarize):
    frame, asked = summarize({"c": "long"}, max_words=31)
    assert frame["status"].to_list() == ["ok"]
    assert asked[0].inputs["max_words"] == 31


def test_order_of_rows_does_not_matter(summarize):
    solutions = {"b": "none", "a": "full", "c": ""}
    frame, _ = summarize(solutions)
    assert summarize(dict(reversed(solutions.items())))[0].equals(frame)


@pytest.mark.parametrize("solutions", [{}, {"a": ""}])
def test_nothing_to_ask(summarize, solutions):
    frame, asked = summarize(solutions)
    assert frame.height == len(solutions)
    assert frame.schema == pl.Schema(TABLES["summaries"].schema)
    assert asked == []
