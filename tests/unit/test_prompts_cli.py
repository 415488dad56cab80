"""``saber prompts``: lists, shows, renders and hashes."""

import json
from pathlib import Path

import pytest

import prompts
from prompts import load_prompt
from saber_dagster.cli import app
from saber_dagster.engines import TASKS


@pytest.fixture
def saber(capsys, tmp_path, monkeypatch):
    """Runs a command line in an empty home; returns exit code, standard output, standard error."""
    monkeypatch.setenv("SABER_HOME", str(tmp_path / "home"))

    def run(*args):
        with pytest.raises(SystemExit) as end:
            app(["prompts", *args])
        out, err = capsys.readouterr()
        return end.value.code or 0, out, err

    return run


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.md"
    text = load_prompt("pairwise_judgment").text.replace("name: pairwise_judgment", "name: mine")
    path.write_text(text.replace("You are a mathematician", "You are a [bold] mathematician"))
    return path


def test_list(saber, mine, tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "judges.yaml").write_text(
        f"judges: [{{slug: a, prompt: {mine}}}, {{slug: b, prompt: pairwise_judgment}}]"
    )
    rows = {row["name"]: row for row in json.loads(saber("list", "--json")[1])}
    assert rows.keys() == {*TASKS, "mine"}
    assert rows["mine"]["source"] == str(mine)
    assert rows["mine"]["sha256"] != rows["pairwise_judgment"]["sha256"]
    assert rows["topic_scores"] == {
        "name": "topic_scores",
        "task": "topic_scores",
        "version": load_prompt("topic_scores").version,
        "sha256": load_prompt("topic_scores").ref.sha256,
        "forms": ["tagged", "json"],
        "choices": [],
        "source": "shipped",
    }
    shown = saber("list")[1]
    assert load_prompt("cleaning").ref.sha256[:12] in shown
    assert "1 or 2" in shown


def test_show(saber, mine):
    assert saber("show", "cleaning") == (0, load_prompt("cleaning").text, "")
    assert saber("show", str(mine))[1] == mine.read_text()
    mine.write_text(mine.read_text().replace("{{first_problem}}", "{{first_poblem}}"))
    code, out, err = saber("show", str(mine))
    assert (code, out) == (1, "")
    assert "did you mean {{first_problem}}?" in err


@pytest.mark.parametrize("task", TASKS)
def test_render_an_example(saber, task):
    for form in load_prompt(task).forms:
        messages = json.loads(saber("render", task, "--json", "--form", form)[1])
        assert [message["role"] for message in messages] == ["system", "user"]
        again = json.loads(saber("render", task, "--json", "--form", form, "--attempt", "1")[1])
        assert again[1]["content"].startswith(messages[1]["content"])
        assert again != messages


def test_render_a_file(saber, mine, tmp_path):
    inputs = tmp_path / "inputs.json"
    document = {"problem": "[red] P", "solution": r"$\frac{1}{2}$"}
    inputs.write_text(json.dumps({"query": document, "first": document, "second": document}))
    code, out, _ = saber("render", str(mine), "--input", str(inputs))
    assert code == 0
    assert out.count(r"$\frac{1}{2}$") == out.count("[red] P") == 3
    assert "You are a [bold] mathematician" in out


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "inputs.json: not readable as JSON"),
        ("[]", "inputs.json: holds no object"),
        ('{"text": "a", "text": "b"}', "has the key 'text' more than once"),
        ('{"txt": "a"}', "inputs.json: inputs of task cleaning: 'text' is missing"),
        ('{"txt": "a"}', 'It must be like {"text": "…"}'),
        ('{"text": 3}', "text is 3; it must be a text"),
    ],
)
def test_render_a_wrong_file(saber, tmp_path, content, message):
    inputs = tmp_path / "inputs.json"
    inputs.write_text(content)
    code, out, err = saber("render", "cleaning", "--input", str(inputs))
    assert (code, out) == (1, "")
    assert message in err


def test_render_what_is_not_there(saber, tmp_path):
    assert "prompt cleaning has tagged" in saber("render", "cleaning", "--form", "json")[2]
    assert "there is no prompt 'poem'; shipped are" in saber("render", "poem")[2]
    gone = str(tmp_path / "gone.json")
    assert f"No such file or directory: {gone}" in saber("render", "cleaning", "--input", gone)[2]


def test_hash(saber):
    assert saber("hash")[1] == (Path(prompts.__file__).parent / "SHA256SUMS").read_text()
