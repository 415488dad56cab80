import json
from importlib.machinery import ModuleSpec

import pytest

from saber_dagster import champ
from saber_dagster.corpus import build_corpus
from saber_dagster.corpus_rows import warnings_of
from saber_dagster.errors import SaberError


@pytest.fixture
def fresh(monkeypatch):
    """Find the package where the test says, and forget it afterwards."""

    def find(folder):
        spec = ModuleSpec("champ_dataset", None, is_package=True)
        spec.submodule_search_locations = [str(folder)]
        monkeypatch.setattr(champ, "find_spec", lambda _: spec if folder else None)

    champ._problems.cache_clear()
    yield find
    champ._problems.cache_clear()


def test_all_270_problems():
    problems = champ.champ_problems()
    assert len(problems) == 270
    assert build_corpus(problems).frame.height == 270
    assert warnings_of(problems) == []
    assert {(p.source, p.licence, p.language) for p in problems} == {("champ", "MIT", "en")}
    assert not any("@@" in p.problem + p.solution + (p.answer or "") for p in problems)
    by_id = {p.source_id: p for p in problems}
    first = by_id["P_Combinatorics_1"]
    assert first.answer == "239"
    assert first.solution.startswith("Let $x_n, y_n, z_n$ be the number of length-$n$ strings")
    assert first.solution.count("\n") == 5
    assert champ.champ_problems() is not problems


def test_missing_package(fresh):
    fresh(None)
    with pytest.raises(SaberError, match="pip install champ-dataset"):
        champ.champ_problems()


@pytest.mark.parametrize(
    "content", [None, "", "{}", json.dumps({"problems": {"a": {"identifier": "a"}}})]
)
def test_damaged_package(fresh, tmp_path, content):
    if content is not None:
        (tmp_path / "dataset_files").mkdir()
        (tmp_path / "dataset_files" / "v0.json").write_text(content)
    fresh(tmp_path)
    with pytest.raises(SaberError, match="force-reinstall"):
        champ.champ_problems()
