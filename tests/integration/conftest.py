"""Whole builds, run as a user runs them: the command line in its own process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from saber_dagster.champ import champ_problems

LIGHT_RETRIEVERS = """\
retrievers:
  - {slug: bm25, retriever: bm25}
  - {slug: jaccard, retriever: jaccard}
  - {slug: random, retriever: random}
"""
"""Without the neural retriever, which takes most of a small build's time."""

SMALL = """\
domains: [combinatorics, number_theory]
candidates: {per_group: 4}
queries: {per_domain: 2}
thresholds: {queries_required: 2}
tournament: {rounds: 6}
pictures: false
"""


class Saber:
    """The command line on one home."""

    def __init__(self, home: Path, **environ: str) -> None:
        self.home = home
        self.environ = {
            **{k: v for k, v in os.environ.items() if not k.startswith("SABER_")},
            "SABER_HOME": str(home),
            **environ,
        }

    def start(self, *args: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "saber_dagster", *map(str, args)]
        return subprocess.Popen(
            command, env=self.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def __call__(self, *args: str, code: int = 0) -> str:
        """Run a command; returns standard output, or standard error where a failure is expected."""
        process = self.start(*args)
        out, err = process.communicate(timeout=800)
        assert process.returncode == code, f"exit {process.returncode}\n{out}\n{err}"
        return out if code == 0 else err

    def json(self, *args: str):
        return json.loads(self(*args, "--json"))

    def versions(self) -> dict[str, str]:
        """The data version of every whole table, however it is cut."""
        return {row["asset"]: row["data_version"] for row in self.json("status")}


def write_corpus(path: Path, rows: list[dict]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(scope="session")
def problems() -> list[dict]:
    """150 of champ-dataset's problems, as rows of a user's file."""
    return [
        {"id": p.source_id, "problem": p.problem, "solution": p.solution, "licence": p.licence}
        for p in sorted(champ_problems(), key=lambda p: p.source_id)[::2]
    ] + [
        {"id": p.source_id, "problem": p.problem, "solution": p.solution, "licence": p.licence}
        for p in sorted(champ_problems(), key=lambda p: p.source_id)[1:30:2]
    ]


@pytest.fixture
def small_home(tmp_path):
    """Makes homes with small settings and without the neural retriever."""

    def make(name: str = "home", settings: str = SMALL, **environ: str) -> Saber:
        home = tmp_path / name
        home.mkdir()
        (home / "saber.yaml").write_text(settings)
        (home / "retrievers.yaml").write_text(LIGHT_RETRIEVERS)
        return Saber(home, **environ)

    return make


@pytest.fixture
def saber_on():
    """The command line on a home of any settings: ``saber_on(path, NAME=value)``."""
    return Saber
