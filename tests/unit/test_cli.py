"""The command line: what it writes, and what it says when something is wrong."""

import json
import socket
import sqlite3
from types import SimpleNamespace

import polars as pl
import pytest
import sqlalchemy
from rich.console import Console

from saber_dagster.cli import app, boards, build, notes, releases, reports
from saber_dagster.cli.configure import configure
from saber_dagster.contracts import TABLES
from saber_dagster.errors import InputError, SaberError
from saber_dagster.home import Home
from saber_dagster.storage import write_atomic
from saber_dagster.tables import Provenance, TableStore


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("SABER_HOME", str(tmp_path / "home"))
    return Home(tmp_path / "home")


@pytest.fixture
def write(tmp_path):
    def of(name, *rows):
        path = tmp_path / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return path

    return of


@pytest.fixture
def saber(capsys):
    """Runs a command line; returns exit code, standard output, standard error."""

    def run(*args):
        with pytest.raises(SystemExit) as end:
            app(list(args))
        out, err = capsys.readouterr()
        return end.value.code or 0, out, err

    return run


def row(number, **changes):
    problem = {"id": f"p{number}", "problem": f"Find {number}.", "solution": f"It is {number}."}
    return {**problem, **changes}


def pin(home, name="r1"):
    """A folder that counts as a complete release."""
    write_atomic(home.releases / name / "manifest.json", b"{}")


# saber.yaml is written when everything is known to be good, and not before.


def test_options_are_kept_and_the_rest_of_the_file_stays(home, write):
    corpus = write("mine.jsonl", {"id": "1", "question": "Find 1.", "solution": "It is 1."})
    queries = write("queries.jsonl", {"id": "1"})
    text = "# ours\nseed: 3  # a prime\nontology: {max_depth: 4}\n"
    write_atomic(home.settings_file, text.encode())
    changed = configure(home, [corpus], queries, mapping={"problem": "question"})
    assert home.settings_file.read_text().startswith(text)
    assert changed.settings.seed == 3
    (source,) = changed.settings.corpus.files
    assert (source.path, source.mapping) == (str(corpus), {"problem": "question"})
    assert changed.settings.corpus.queries.path == str(queries)


def test_a_file_that_is_named_again_keeps_what_was_written_about_it(home, write):
    one, two = write("one.jsonl", row(1)), write("two.jsonl", row(2))
    entry = {"path": str(one), "source": "olympiad", "language": "de", "licence": "CC0"}
    home.change_settings({"corpus": {"files": [entry]}})
    first, second = configure(home, [one, two]).settings.corpus.files
    assert (first.source, first.language, first.licence) == ("olympiad", "de", "CC0")
    assert second.source is None
    mapped = configure(Home(home.root), [one], mapping={"answer": "id"})
    (source,) = mapped.settings.corpus.files
    assert (source.source, source.mapping) == ("olympiad", {"answer": "id"})


@pytest.mark.parametrize("before", [b"", b"# ours\nseed: 3\n"])
def test_a_refused_option_leaves_nothing_behind(home, write, tmp_path, before):
    good, bad = write("good.jsonl", row(1)), write("bad.jsonl", row(1, solution=""))
    topics = tmp_path / "topics.json"
    topics.write_text("[")
    if before:
        write_atomic(home.settings_file, before)
    refused = [
        {"corpus": [bad]},
        {"corpus": [good], "mapping": {"problem": "question"}},
        {"corpus": [good], "queries": write("queries.jsonl", row(9, id="p9", problem=""))},
        {"ontology": topics},
        {"preset": "huge"},
        {"corpus": [tmp_path / "absent.jsonl"]},
        {"mapping": {"problem": "question"}},
    ]
    for options in refused:
        with pytest.raises(SaberError):
            configure(home, **options)
        assert home.root.exists() == bool(before)
        if before:
            assert [(p.name, p.read_bytes()) for p in home.root.iterdir()] == [
                ("saber.yaml", before)
            ]


def test_faults_of_all_files_are_told_together(home, write, tmp_path):
    topics = tmp_path / "topics.json"
    topics.write_text('[{"title": ""}]')
    options = {
        "corpus": [write("one.jsonl", row(1, problem=""))],
        "queries": write("queries.jsonl", {"problem": "p"}),
        "ontology": topics,
    }
    with pytest.raises(InputError) as caught:
        configure(home, **options)
    files = [fault.file.rpartition("/")[2] for fault in caught.value.faults]
    assert files == ["one.jsonl", "queries.jsonl", "topics.json"]
    topics.write_text('[{"title": "Cooking"}]')
    with pytest.raises(InputError):
        configure(home, **options)
    del options["corpus"], options["queries"]
    with pytest.raises(SaberError, match="no top-level topic has a domain"):
        configure(home, **options)


def test_warnings_are_told_before_the_build(home, write, capsys):
    corpus = write("mine.jsonl", row(1))
    configure(home, [corpus], write("queries.jsonl", row(9, id="p9", solution="")))
    out, err = capsys.readouterr()
    assert out == ""
    assert "warning" in err
    assert "licence: 1 of 1 rows have no licence" in err
    assert "1 of 1 query texts have no solution" in err


def test_files_that_are_absent_are_named_together(home, tmp_path):
    with pytest.raises(SaberError, match=r"a\.jsonl, .*b\.txt: no such file"):
        configure(home, [tmp_path / "a.jsonl"], tmp_path / "b.txt")


def test_a_preset_that_there_is_not_is_refused_by_the_options_name(home):
    with pytest.raises(SaberError, match=r"^--preset huge: there are demo, paper$"):
        configure(home, preset="huge")


def test_another_preset_is_refused_before_it_is_written(home):
    home.found()
    with pytest.raises(SaberError, match="preset 'demo' → 'paper'"):
        configure(home, preset="paper")
    assert not home.settings_file.exists()


def test_nothing_is_written_while_a_build_holds_the_home(home, write):
    with home.locked(), pytest.raises(SaberError, match="at work"):
        configure(home, [write("mine.jsonl", row(1))])
    assert not home.settings_file.exists()


def test_an_option_that_the_environment_overrides_is_refused(home, monkeypatch):
    monkeypatch.setenv("SABER_PRESET", "demo")
    with pytest.raises(SaberError, match="SABER_PRESET=demo in the environment overrides"):
        configure(home, preset="paper")


def test_a_pinned_release_refuses_another_corpus_and_says_what_to_do(home, write):
    one, two = write("one.jsonl", row(1)), write("two.jsonl", row(2))
    configure(home, [one])
    home = Home(home.root)
    pin(home)
    with pytest.raises(SaberError, match=r"only renamed, change its path in .*saber\.yaml"):
        configure(home, [two])
    assert len(configure(home, [one, two]).settings.corpus.files) == 2


# Releases.


@pytest.mark.parametrize("before", [None, b"# ours\nseed: 3\n"])
@pytest.mark.parametrize("error", [SaberError("no"), KeyboardInterrupt()])
def test_a_release_that_fails_restores_the_settings(home, monkeypatch, before, error):
    if before:
        write_atomic(home.settings_file, before)

    def fail(switched, **_):
        assert switched.settings.release == "r2"
        raise error

    monkeypatch.setattr(releases, "run_build", fail)
    with pytest.raises(type(error)):
        releases.create("r2")
    assert home.settings_file.exists() == bool(before)
    assert before is None or home.settings_file.read_bytes() == before


def test_a_release_waits_for_no_lock_and_needs_the_name_for_itself(home, monkeypatch):
    with home.locked(), pytest.raises(SaberError, match="at work"):
        releases.create("r2")
    monkeypatch.setenv("SABER_RELEASE", "r1")
    with pytest.raises(SaberError, match="SABER_RELEASE=r1"):
        releases.create("r2")
    assert not home.settings_file.exists()


# Errors.


def test_errors_are_messages_and_json(home, saber):
    message = f"there is no home at {home.root}; `saber build` makes one"
    assert saber("status") == (1, "", f"error: {message}\n")
    code, out, err = saber("status", "--json")
    assert (code, json.loads(out)) == (1, {"error": message})
    assert message in err
    home.root.parent.mkdir(exist_ok=True)
    home.root.write_text("a file")
    code, out, err = saber("build")
    assert (code, out) == (1, "")
    assert "is a file; set SABER_HOME to a folder" in err


@pytest.mark.parametrize(
    ("raised", "code", "message"),
    [
        (PermissionError(13, "Permission denied", "/x/y"), 1, "error: Permission denied: /x/y"),
        (OSError("odd"), 1, "error: odd"),
        (KeyboardInterrupt(), 130, "interrupted; `saber build` goes on from here"),
    ],
)
def test_no_traceback(home, saber, monkeypatch, raised, code, message):
    def fail(*_):
        raise raised

    monkeypatch.setattr(build, "configure", fail)
    assert saber("build") == (code, "", f"{message}\n")


def test_what_a_users_class_prints_stays_out_of_the_json(home, monkeypatch, capsys):
    monkeypatch.setattr(build, "_run_build", lambda *_: print("loading weights"))
    build.run_build(home)
    assert capsys.readouterr() == ("", "loading weights\n")


def test_ui_needs_a_free_port(home, saber):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        code, _, err = saber("ui", "--port", port)
    assert code == 1
    assert f"cannot listen on 127.0.0.1:{port}" in err
    assert not home.root.exists()


def test_version(saber):
    code, out, _ = saber("--version")
    assert (code, out.split()[0]) == (0, "saber_dagster")


# Reports.


def board(*rows):
    fields = ("judge", "retriever", "setting", "value")
    given = [dict(zip(fields, r, strict=True)) for r in rows]
    rest = {
        "release": "r1",
        "judge_revision": "1",
        "retriever_revision": "1",
        "domain": "overall",
        "metric": "nDCG@10",
        "low": 0.1,
        "high": 0.9,
        "n_queries": 3,
        "n_missing": 0,
        "tied_group": 1,
    }
    table = TABLES["leaderboard"]
    frame = pl.DataFrame([{**rest, **r} for r in given], schema=table.schema)
    return table.check(frame, "test")


def put(home, table, asset, frame):
    version = TABLES[table].version(frame)
    provenance = Provenance(table, "/".join(asset), "all", "old", version, frame.height)
    TableStore(home.tables).write(TABLES[table], frame, provenance, asset)


def test_the_leaderboard_says_what_is_wrong_with_it(home, saber):
    frame = board(("gone", "bm25", "full-full", 0.5), ("gone", "tfidf", "full-full", 0.6))
    put(home, "leaderboard", ["leaderboard"], frame)
    code, out, _ = saber("leaderboard")
    assert code == 0
    assert "judge gone, release r1, full-full" in " ".join(out.split()), (
        "the setting that was evaluated"
    )
    assert "note: judge gone is no longer in judges.yaml" in out
    assert "note: the leaderboard is stale" in out
    code, out, _ = saber("leaderboard", "--json")
    assert len(json.loads(out)) == 2
    write_atomic(home.root / "judges.yaml", b"judges: []")
    code, out, err = saber("leaderboard")
    assert code == 1
    assert "lists no judge" in err


@pytest.mark.parametrize(("width", "whole"), [(60, False), (120, True)])
def test_a_narrow_terminal_gets_no_cut_cells(home, saber, monkeypatch, capsys, width, whole):
    rows = board(("j", "minilm", "full-full", 0.5)).to_dicts()
    domains = ("algebra", "number_theory", "combinatorics", "calculus_analysis", "geometry")
    rows += [{**rows[0], "domain": domain, "value": 0.321} for domain in domains]
    monkeypatch.setattr(boards, "console", Console(width=width))
    boards.print_board(rows, "j", "embedded", "full-full")
    out = capsys.readouterr().out
    assert "0.500 [0.100, 0.900]" in out
    assert "…" not in out
    assert out.count("0.321") == (5 if whole else 0)
    assert ("the domains are left out" in out) != whole


def test_the_main_setting_comes_first():
    rows = board(("j", "a", "full-full", 0.5), ("j", "a", "statement-full", 0.6)).to_dicts()
    assert boards.default_setting(rows) == "statement-full"


def test_status_survives_a_damaged_table(home, saber, monkeypatch):
    put(home, "leaderboard", ["leaderboard"], board(("j", "a", "full-full", 0.5)))

    def damaged(_, table, *rest):
        if table == "leaderboard":
            raise SaberError("all.parquet is damaged")

    monkeypatch.setattr(reports, "table_version", damaged)
    code, out, _ = saber("status", "--json")
    (found,) = (row for row in json.loads(out) if row["asset"] == "leaderboard")
    assert code == 0
    assert found["data_version"] is None
    assert "all.parquet is damaged" in [reason["reason"] for reason in found["reasons"]]
    assert "all.parquet is damaged" in saber("status")[1]


def test_a_note_tells_which_of_the_users_queries_are_left_out(home, monkeypatch):
    corpus = pl.DataFrame(
        {
            "doc_id": [f"d{n}" for n in range(9)],
            "source": "mine",
            "source_id": [f"q{n}" for n in range(9)],
            "is_query": [True] * 8 + [False],
        }
    )
    used = pl.DataFrame({"query_id": ["d0", "d3"]})
    monkeypatch.setattr(TableStore, "read", lambda *_: corpus)
    monkeypatch.setattr(notes, "release_of", lambda *_: SimpleNamespace(read=lambda _: used))
    assert notes._own_queries(home) == [], "there is no note where nobody brought queries"
    home = home.change_settings({"corpus": {"queries": {"path": "q.jsonl"}}})
    assert notes._own_queries(home) == [
        "2 of 8 of your queries are in the benchmark; the others lack 8 documents in a group (or have"
        " no topic or summary), such as q1, q2, q4, q5, q6"
    ]
    used = corpus.rename({"doc_id": "query_id"})
    assert notes._own_queries(home) == []


# saber corpus check.


def test_check_counts_exact_duplicates(saber, write):
    same = row(2, id="again")
    path = write(
        "mine.jsonl", row(1, licence="MIT"), row(2, licence="MIT"), {**same, "licence": "MIT"}
    )
    code, out, _ = saber("corpus", "check", str(path), "--json")
    (warning,) = json.loads(out)["warnings"]
    assert code == 0
    assert "1 of 3 rows have the problem and solution of another row" in warning["problem"]


def test_a_duplicate_is_named_by_the_users_ids(saber, write):
    path = write("mine.jsonl", row(1, id="a", licence="MIT"), row(1, id="b", licence="MIT"))
    _, out, _ = saber("corpus", "check", str(path))
    assert "the first is row 2, 'b', like 'a'" in out


def test_a_cut_table_is_called_damaged(home, saber):
    put(home, "leaderboard", ["leaderboard"], board(("j", "a", "full-full", 0.5)))
    path = TableStore(home.tables).path(["leaderboard"], None)
    path.write_bytes(path.read_bytes()[:-20])
    code, out, _ = saber("status", "--json")
    (found,) = (row for row in json.loads(out) if row["asset"] == "leaderboard")
    assert code == 0
    assert "its file is damaged; `saber build` makes it again" in str(found["reasons"])
    assert "never materialized" not in str(found["reasons"])


@pytest.mark.parametrize(
    ("name", "separator", "remedy"),
    [("a.csv", ";", "with commas"), ("a.csv", "\t", ".tsv"), ("a.tsv", ";", ".csv")],
)
def test_check_recognizes_another_separator(saber, tmp_path, name, separator, remedy):
    path = tmp_path / name
    path.write_text(f"id{separator}problem{separator}solution\n1{separator}a, b{separator}c\n")
    code, out, _ = saber("corpus", "check", str(path))
    assert code == 1
    assert out.count("fault ") == 1
    assert "separated by" in out
    assert remedy in out


def test_remedies_are_options_of_the_command(saber, write):
    code, out, _ = saber("corpus", "check", str(write("mine.jsonl", {"id": "1", "solution": "x"})))
    assert code == 1
    assert "--map problem=my_column" in out


def test_faults_are_input_errors(home, write):
    with pytest.raises(InputError, match="nothing was changed"):
        configure(home, [write("bad.jsonl", row(1, problem=""))])


def test_a_full_disk_is_told_without_a_traceback(saber, home, monkeypatch):
    def full(wrapped):
        def list_(*_, **__):
            with sqlite3.connect(":memory:") as disk:
                disk.execute("PRAGMA max_page_count = 1")
                create = sqlalchemy.text("CREATE TABLE runs (id)")
                engine = sqlalchemy.create_engine("sqlite://", creator=lambda: disk)
                try:
                    with engine.connect() as connection:
                        connection.execute(create)
                except sqlalchemy.exc.OperationalError as error:
                    if wrapped:
                        raise RuntimeError("Dagster's own") from error
                    raise

        return list_

    for wrapped in (False, True):
        monkeypatch.setattr("saber_dagster.cli.cost.cost_rows", full(wrapped))
        code, out, err = saber("cost", "--json")
        assert code == 1
        assert "database or disk is full" in json.loads(out)["error"]
        assert f"Dagster's instance in {home.dagster} cannot be read or written" in err
        assert "Traceback" not in err


def test_other_errors_are_not_taken_for_those_of_a_database(monkeypatch, home):
    def broken(*_, **__):
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr("saber_dagster.cli.cost.cost_rows", broken)
    with pytest.raises(RuntimeError, match="a fault of ours"):
        app(["cost"])
