import json

import pytest

from saber_dagster.errors import InputError
from saber_dagster.settings import Corpus
from saber_dagster.sources import read_sources, sources_identity


def row(number, **changes):
    problem = {"id": f"p{number}", "problem": f"Find {number}.", "solution": f"It is {number}."}
    return {**problem, **changes}


@pytest.fixture
def write(tmp_path):
    def of(name, *rows):
        path = tmp_path / name
        path.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
        return {"path": str(path)}

    return of


def corpus(*files, queries=None):
    return Corpus(files=files, queries=queries)


def test_all_files_are_one_corpus_in_any_order(write):
    one = write("one.jsonl", row(1), row(2))
    two = write("two.jsonl", row(3), row(2, id="again"))
    sources = read_sources(corpus(one, two))
    assert sources.frame.select("source", "source_id").sort("source_id").rows() == [
        ("one", "p1"),
        ("one", "p2"),
        ("two", "p3"),
    ]
    assert sources.duplicates.rows() == [("two", "again", "one", "p2")]
    assert read_sources(corpus(two, one)).frame.equals(sources.frame)


def test_settings_of_a_file_hold_for_its_rows(write):
    file = write("one.jsonl", {"nr": "7", "question": "Find x.", "solution": "It is 1."})
    options = {"source": "olympiad", "language": "de", "licence": "CC0"}
    frame = read_sources(
        corpus({**file, **options, "mapping": {"id": "nr", "problem": "question"}})
    ).frame
    assert frame.select("source", "source_id", "problem", "language", "licence").rows() == [
        ("olympiad", "7", "Find x.", "de", "CC0")
    ]


def test_all_faults_of_all_files_are_told_at_once(write, tmp_path):
    one = write("one.jsonl", row(1), row(2, solution=""))
    two = write("two.jsonl", row(3, problem=""), row(4))
    queries = write("queries.jsonl", row(5, problem=""))
    gone = {"path": str(tmp_path / "gone.jsonl")}
    with pytest.raises(InputError) as caught:
        read_sources(corpus(one, two, gone, queries=queries))
    places = {(fault.file.rsplit("/")[-1], fault.row, fault.field) for fault in caught.value.faults}
    assert {("one.jsonl", 2, "solution"), ("two.jsonl", 1, "problem")} <= places
    assert ("queries.jsonl", 1, "problem") in places
    assert any(file == "gone.jsonl" for file, *_ in places)
    assert all(fault.remedy for fault in caught.value.faults)


def test_two_files_may_not_share_source_and_id(write):
    one = write("one.jsonl", row(1))
    two = {**write("two.jsonl", row(1, problem="Find another.")), "source": "one"}
    with pytest.raises(InputError, match="p1"):
        read_sources(corpus(one, two))


def test_a_file_that_is_given_twice_is_one_fault(write):
    one = write("one.jsonl", row(1), row(2))
    with pytest.raises(InputError) as caught:
        read_sources(corpus(one, one))
    (fault,) = caught.value.faults
    assert (fault.row, fault.problem) == (0, "is given twice")
    sources = read_sources(corpus(one, {**one, "source": "other"}))
    assert sources.duplicates.height == 2, "under another source it is another file"


def test_warnings_are_passed_on(write):
    warnings = read_sources(corpus(write("one.jsonl", row(1)))).warnings
    assert any("licence" in str(warning).lower() for warning in warnings)


def test_only_the_users_queries_are_queries(write):
    one = write("one.jsonl", row(1), row(2))
    sources = read_sources(corpus(one, queries=write("queries.jsonl", row(9))))
    assert sources.frame.filter("is_query")["source_id"].to_list() == ["p9"]
    assert sources.frame.filter("is_document")["source_id"].sort().to_list() == ["p1", "p2"]


def test_settings_of_the_queries_hold_for_their_texts(write):
    queries = {
        **write("queries.jsonl", row(9)),
        "language": "de",
        "licence": "CC0",
        "source": "ours",
    }
    frame = read_sources(corpus(write("one.jsonl", row(1)), queries=queries)).frame
    assert frame.filter("is_query").select("source", "language", "licence").rows() == [
        ("ours", "de", "CC0")
    ]


def test_without_files_the_corpus_is_the_shipped_one(write):
    frame = read_sources(Corpus()).frame
    assert frame.height > 500
    assert set(frame["source"]) == {"starter", "champ"}


def test_the_identity_is_that_of_the_contents(write, tmp_path):
    one, two = write("one.jsonl", row(1)), write("two.jsonl", row(1))
    assert sources_identity(corpus(one)) == sources_identity(corpus(two))
    assert sources_identity(corpus(one)) != sources_identity(corpus(one, two))
    before = sources_identity(corpus(one, queries=two))
    assert before != sources_identity(corpus(one))
    write("two.jsonl", row(2))
    assert sources_identity(corpus(one, queries=two)) != before
    assert sources_identity(corpus({"path": str(tmp_path / "gone")})) == ["absent"]
    assert sources_identity(corpus({"path": str(tmp_path)})) == ["absent"]
    starter, champ = sources_identity(Corpus())
    assert starter.startswith("starter ")
    assert champ.startswith("champ-dataset ")
    assert sources_identity(Corpus(builtin=("champ",))) == [champ]
    assert sources_identity(Corpus(builtin=("champ", "starter"))) == [starter, champ]
    assert len(sources_identity(corpus(queries=two))) == 3
