"""What README.md, tutorial and extending.md tell users to type works, and what they mention exists."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from resources.engines import load_engine
from saber_dagster.cli import app
from saber_dagster.ontology_files import shipped_ontology
from saber_dagster.retrieval.base import load_retriever
from saber_dagster.settings_files import load_judges, load_retrievers, load_settings

ROOT = Path(__file__).parents[2]
DOCUMENTS = ("README.md", "docs/extending.md", "docs/tutorial.md")
HOMES = (".saber", ".saber-mine", ".saber-own", ".saber-queries")
NOT_RUN = {
    "make demo": "CI runs it",
    "make test": "CI runs it; it runs this test",
    "make ui": "a server",
    "saber ui": "a server",
    "vllm serve": "needs a GPU and a model",
    ". .venv/bin/activate": "the tests call the environment's programs by their path",
}
"""Beginnings of commands that are not run, and why."""
SETTINGS = """\
domains: [combinatorics]
partitions: {corpus_shards: 1}
candidates: {per_group: 4}
queries: {per_domain: 2}
thresholds: {queries_required: 2}
tournament: {rounds: 6}
pictures: false
"""
RETRIEVERS = "retrievers: [{slug: bm25, retriever: bm25}]\n"

pytestmark = pytest.mark.integration


def blocks(document: str, language: str) -> list[str]:
    text = (ROOT / document).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def commands(document: str) -> list[str]:
    """Every line of the document's bash blocks that is a command."""
    joined = "".join(blocks(document, "bash")).replace("\\\n", " ")
    lines = (line.split(" #")[0].strip() for line in joined.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def yaml_files(document: str) -> list[tuple[str, str]]:
    """(file name, content) of every YAML block; its first line is ``# judges.yaml …``."""
    found = []
    for block in blocks(document, "yaml"):
        name = re.match(r"# (saber|judges|retrievers)\.yaml\b", block)
        assert name, f"{document}: begin the block with a comment that names its file:\n{block}"
        found.append((f"{name[1]}.yaml", block))
    return found


def split(command: str) -> tuple[dict[str, str], list[str]]:
    """Leading ``NAME=value`` assignments, and the words of the command."""
    words = shlex.split(command)
    environ = {}
    while words and re.match(r"[A-Z_]+=", words[0]):
        name, _, value = words.pop(0).partition("=")
        environ[name] = value
    return environ, words


@pytest.fixture
def workspace(small_home, problems, tmp_path):
    """A folder as a user's: a corpus, queries, topics, the examples; its homes are small."""
    for name in HOMES:
        (small_home(name, settings=SETTINGS).home / "retrievers.yaml").write_text(RETRIEVERS)
    lines = [json.dumps(row) + "\n" for row in problems]
    (tmp_path / "problems.jsonl").write_text("".join(lines))
    renamed = [
        {"id": p["id"], "question": p["problem"], "proof": p["solution"]} for p in problems[::3]
    ]
    (tmp_path / "other.jsonl").write_text("".join(json.dumps(row) + "\n" for row in renamed))
    (tmp_path / "my_queries.txt").write_text("".join(f"{row['id']}\n" for row in problems))
    shutil.copy(shipped_ontology(), tmp_path / "my_topics.json")
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    return tmp_path


@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    "document",
    ["README.md", *(pytest.param(name, marks=pytest.mark.slow) for name in DOCUMENTS[1:])],
)
def test_commands_work(document, workspace):
    environ = {k: v for k, v in os.environ.items() if not k.startswith("SABER_")}
    programs = {
        "saber": [str(Path(sys.executable).parent / "saber")],
        "make": ["make", "-C", str(ROOT)],
    }
    if document == "docs/extending.md":
        for name, content in yaml_files(document):
            (workspace / ".saber" / name).write_text(content)
    for command in commands(document):
        if command.startswith(tuple(NOT_RUN)):
            continue
        if command.startswith("export "):
            environ |= split(command.removeprefix("export "))[0]
            continue
        extra, words = split(command)
        assert words[0] in programs, f"{document}: unknown command; run or skip it: {command}"
        done = subprocess.run(
            [*programs[words[0]], *words[1:]],
            cwd=workspace,
            env=environ | extra,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("document", DOCUMENTS)
def test_yaml_blocks_are_valid(document, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "examples"))
    for name, content in yaml_files(document):
        path = tmp_path / name
        path.write_text(content)
        if name == "judges.yaml":
            for judge in load_judges(path):
                load_engine(judge.engine, judge.options)
        elif name == "retrievers.yaml":
            for entry in load_retrievers(path):
                if entry.retriever != "sentence_transformer":  # reads the model's folder
                    load_retriever(entry.retriever, **entry.options)
        else:
            annotator = load_settings(path, {}).annotator
            load_engine(annotator.engine, annotator.options)


def known_commands() -> dict[str, set[str]]:
    """Every command of ``saber`` with its options: ``release create`` → ``{"--json", …}``."""
    found = {}

    def visit(command, path):
        for name, inner in getattr(command, "commands", {}).items():
            visit(inner, (*path, name))
        found[" ".join(path)] = {opt for param in command.params for opt in param.opts}

    visit(typer.main.get_command(app), ())
    return found


def mentions(document: str) -> list[list[str]]:
    """Words of every ``saber …`` in code of a document, fenced or inline."""
    text = (ROOT / document).read_text(encoding="utf-8")
    inline = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S))
    words = (split(code)[1] for code in [*commands(document), *inline] if "saber " in code)
    return [found[1:] for found in words if found and found[0] == "saber"]


@pytest.mark.parametrize(
    "document", [*DOCUMENTS, *(f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md"))]
)
def test_every_command_and_option_that_is_mentioned_exists(document):
    known = known_commands()
    for words in mentions(document):
        path = " ".join(words[:2]) if " ".join(words[:2]) in known else words[0]
        assert path in known, f"{document}: saber {' '.join(words)}: no such command"
        options = {word.split("=")[0] for word in words if word.startswith("--")} - {"--help"}
        assert options <= known[path], f"{document}: saber {path} has no {options - known[path]}"


@pytest.mark.parametrize("document", ["README.md", "docs/tutorial.md", "docs/engine-quality.md"])
def test_nothing_is_left_to_be_filled_in(document):
    text = (ROOT / document).read_text(encoding="utf-8")
    assert not re.search(r"\b(QUERIES|BOARD|TODO|XXX)\b", text)
    assert not re.search(r"<!-- \w+ -->\n<!-- end -->", text)


def test_help_lists_every_command_that_the_readme_mentions():
    saber = [sys.executable, "-m", "saber_dagster", "--help"]
    shown = subprocess.run(saber, capture_output=True, text=True, check=True).stdout
    listed = set(re.findall(r"^  ([a-z]+) ", shown.partition("Commands:")[2], re.MULTILINE))
    named = {words[0] for words in mentions("README.md") if not words[0].startswith("--")}
    assert len(named) >= 5
    assert named <= listed


@pytest.mark.parametrize(
    "document",
    ["README.md", "CONTRIBUTING.md", *(f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md"))],
)
def test_links_lead_to_files_of_the_project(document):
    path = ROOT / document
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text(encoding="utf-8")):
        if "://" not in target and not target.startswith("mailto:"):
            assert (path.parent / target).exists(), f"{document} links to {target}"
