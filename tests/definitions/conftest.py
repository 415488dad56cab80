"""A tiny home with everything built, once for all tests of the graph."""

import pytest
from homes import TinyHome, write_problems


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))  # a build sets it; put it back afterwards


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    return write_problems(tmp_path_factory.mktemp("corpus") / "tiny.jsonl", 0, 50)


@pytest.fixture(scope="session")
def finished(corpus, tmp_path_factory):
    """A home with everything built; only to be copied."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DAGSTER_HOME", str(tmp_path_factory.getbasetemp()))
        home = TinyHome.make(tmp_path_factory.mktemp("finished") / "home", corpus)
        home.build()
    return home


@pytest.fixture
def home(finished, tmp_path):
    """A finished home of the test's own."""
    return finished.copy(tmp_path / "home")
