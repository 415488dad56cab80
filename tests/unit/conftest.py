"""What unit tests of several modules share."""

import pytest
from llm_script import KEY, Script


@pytest.fixture
def script(monkeypatch):
    """A server that plays a script; retries follow at once."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("MARKED_KEY", KEY)
    monkeypatch.setattr("resources.engines.asking.FIRST_PAUSE_S", 0.01)
    script = Script()
    yield script
    script.close()
