"""A key is in its environment variable and nowhere else, whatever is done with a home."""

import json
from pathlib import Path

import polars as pl
import pytest
from homes import TinyHome, write_problems
from model_server import ModelServer

from saber_dagster.errors import SaberError

pytestmark = pytest.mark.integration

KEY = "sk-marked-51c0ffee77"
JUDGES = """\
judges:
  - slug: model
    engine: openai
    options:
      model: judge
      revision: {revision}
      base_url: {url}
      api_key_env: MARKED_KEY
      retries: 0
      price_per_million: {{prompt: 1.0, completion: 2.0}}
"""


def readable(path: Path) -> str:
    """What a file says, also where it is compressed."""
    if path.suffix == ".parquet":
        footer = str(pl.read_parquet_metadata(path))
        return footer + json.dumps(pl.read_parquet(path).to_dicts(), default=str)
    return path.read_bytes().decode("utf-8", "replace")


def test_a_key_is_written_nowhere(tmp_path, monkeypatch, capfd):
    """The server quotes the key in every answer, as a careless proxy does."""
    for name, value in {"MARKED_KEY": KEY, "NO_PROXY": "127.0.0.1", "OPENAI_LOG": "debug"}.items():
        monkeypatch.setenv(name, value)
    home = TinyHome.make(tmp_path / "home", write_problems(tmp_path / "mine.jsonl", 0, 80))
    judges, said = home.root / "judges.yaml", []

    def run(*args: str, code: int = 0) -> str:
        result = home.saber(*args)
        assert result.exit_code == code, f"{args}: {result.output}"
        said.append(result.output)
        return result.output

    server = ModelServer(echo_key=True)
    try:
        judges.write_text(JUDGES.format(url=server.url, revision="r1"))
        home.build()
        run("judges", "check", "model", code=1)  # its verdicts are a digest's, not a judge's
    finally:
        server.close()
    assert server.keys_seen == {f"Bearer {KEY}"}, "it was really sent"
    cell = ("trace", "--retriever", "bm25", "--domain", "combinatorics")
    assert "***" in run(*cell, "--full"), "the quoted key was taken out, and the rest was kept"
    run(*cell, "--json", str(tmp_path / "trace.json"))
    for command in (
        ("settings",),
        ("status", "--json"),
        ("cost", "--by", "run"),
        ("judges", "list"),
        ("ledger", "verify"),
        ("ledger", "export", str(tmp_path / "export")),
        ("report",),
    ):
        run(*command)
    judges.write_text(JUDGES.format(url="http://127.0.0.1:9/v1", revision="r2"))
    with pytest.raises(SaberError) as failure:
        home.build()
    said += [str(failure.value), *capfd.readouterr()]

    assert not [text for text in said if KEY in text]
    files = {path: readable(path) for path in tmp_path.rglob("*") if path.is_file()}
    assert sum("***" in text for text in files.values()) >= 2, "ledger and export"
    assert not [str(path) for path, text in files.items() if KEY in text]
