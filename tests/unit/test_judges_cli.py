"""``saber judges`` where no server runs."""

import json
import os
import subprocess
import sys

import pytest
import yaml
from llm_script import make_calls
from typer.testing import CliRunner

from saber_dagster.cli import app
from saber_dagster.code_location import URL_VARIABLE, record_ui, reload_judges
from saber_dagster.definitions import judge_engine
from saber_dagster.errors import SaberError
from saber_dagster.home import Home
from saber_dagster.ledger import Ledger

CLUMSY = ["--engine", "python:clumsy:ClumsyEngine", "--option", "failure=parse_error"]


@pytest.fixture
def judges(tmp_path, monkeypatch):
    """Runs a command on a home of its own; returns its result."""
    monkeypatch.setenv("SABER_HOME", str(tmp_path / "home"))
    monkeypatch.delenv(URL_VARIABLE, raising=False)
    (tmp_path / "home").mkdir()

    def run(*args, code=0):
        result = CliRunner().invoke(app, ["judges", *args])
        assert result.exit_code == code, (result.output, result.exception)
        return result

    return run


@pytest.fixture
def file(tmp_path):
    return tmp_path / "home" / "judges.yaml"


def test_add_list_remove_and_add_again(judges, file):
    added = judges("add", "new", *CLUMSY, "--option", "percent=0", "--revision", "7")
    assert "next: `saber judges check new`" in added.stdout
    assert "no running server of this home is known" in added.stderr
    assert yaml.safe_load(file.read_text())["judges"][1] == {
        "slug": "new",
        "engine": "python:clumsy:ClumsyEngine",
        "options": {"revision": "7", "failure": "parse_error", "percent": 0},
    }
    rows = json.loads(judges("list", "--json").stdout)
    assert [(row["slug"], row["model"], row["revision"]) for row in rows] == [
        ("embedded", "embedded-baseline", rows[0]["revision"]),
        ("new", "clumsy", "7"),
    ]
    assert rows[1]["partitions"]["missing"] > 0
    assert rows[1]["replies"] == 0
    before = file.read_text()
    removed = json.loads(judges("remove", "new", "--json").stdout)
    assert removed["removed"] == "new"
    assert removed["tables"].endswith("tables/judge/new")
    assert removed["reload"]["done"] is False
    judges("add", "new", *CLUMSY, "--option", "percent=0", "--revision", "7", "--json")
    assert file.read_text() == before


def test_a_slug_that_no_folder_can_have_is_not_written(judges, file):
    result = judges("add", "a" * 300, *CLUMSY, code=1)
    assert "must have at most 64 letters" in str(result.exception)
    assert not file.exists()


def test_an_unknown_price_is_shown_as_unknown(judges, file, script):
    file.write_text(
        yaml.safe_dump(
            {
                "judges": [
                    {"slug": "embedded", "engine": "embedded"},
                    {
                        "slug": "unpriced",
                        "engine": "openai",
                        "options": {"model": "m", "revision": "r", "base_url": script.url},
                    },
                ]
            }
        )
    )
    home = Home(file.parent)
    shown = judges("check", "unpriced", code=1).stdout
    assert "price ?" in shown
    assert "$0.0" not in shown
    engine = judge_engine(home.judges[1])
    with Ledger(home.ledger).session(engine, "tournament_rounds", "p") as session:
        session.ask(make_calls(1), lambda call, text: text)
    rows = json.loads(judges("list", "--json").stdout)
    assert [(row["replies"], row["price_usd"]) for row in rows] == [(0, 0.0), (1, None)]
    assert "?" in judges("list").stdout


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (
            ["--engine", "openai", "--model", "m-2026-01-01", "--api-key-env", "sk-1"],
            "is no name of",
        ),
        (["--engine", "opanai"], "there is no engine 'opanai'"),
        (["--engine", "openai"], r"needs the option\(s\) model"),
        (["--engine", "openai", "--model", "m", "--option", "top=1"], "has no option 'top'"),
        (["--engine", "openai", "--model", "m", "--option", "model=n"], "--option model is given"),
        (["--engine", "embedded", "--ask", "ordinal"], "cannot be asked by ordinal"),
        (["--engine", "embedded", "--ask", "guess"], "ask"),
    ],
)
def test_an_entry_that_would_not_work_is_not_written(judges, file, args, problem):
    result = judges("add", "new", *args, code=1)
    assert isinstance(result.exception, SaberError)
    with pytest.raises(SaberError, match=problem):
        raise result.exception
    assert not file.exists()


def test_check_shows_what_was_asked_and_pays_once(judges):
    first = json.loads(judges("check", "embedded", "--json").stdout)
    assert (first["made"], first["problem"], first["forecast"]) == (2, "", None)
    shown = judges("check", "embedded").stdout
    assert "0 call(s) made, 2 from the ledger" in shown
    assert "pigeonhole" in shown
    assert "preference for the document that fits: 1.000 when it is shown first" in shown
    assert "no forecast: release r1 is not made yet" in shown
    judges("add", "new", *CLUMSY, "--option", "percent=100")
    failed = judges("check", "new", code=1)
    assert "I would rather not say." in failed.stdout
    assert "gave no verdict (parse_error)" in str(failed.exception)
    assert "there are embedded, new" in str(judges("check", "nobody", code=1).exception)


def test_a_reload_needs_a_server_that_is_there(judges, tmp_path):
    assert "no running server" in judges("reload", code=1).stderr
    home = Home(tmp_path / "home")
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    record_ui(home, "0.0.0.0", 1)
    found = reload_judges(home, {})
    assert found.url == "http://127.0.0.1:1", "of this process, which is alive"
    assert "was not reloaded" in found.message
    path = home.state / "ui.json"
    path.write_text(path.read_text().replace(str(os.getpid()), str(ended.pid)))
    assert reload_judges(home, {}).url is None, "its process has ended"
    path.write_text("{")
    assert reload_judges(home, {}).url is None
    with pytest.raises(SaberError, match="has a name or password in it") as caught:
        reload_judges(home, {}, "http://me:hunter2@host:3000")
    assert "hunter2" not in str(caught.value)
    with pytest.raises(SaberError, match="is no address of a web server"):
        reload_judges(home, {}, "ftp://host")
