"""The examples of docs/extending.md, used as a user uses them: named in the registries of a home."""

import json
from pathlib import Path

import polars as pl
import pytest

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
SETTINGS = """\
domains: [combinatorics, number_theory]
candidates: {per_group: 4}
queries: {per_domain: 2}
thresholds: {queries_required: 2}
tournament: {rounds: 6}
"""
JUDGES = """\
judges:
  - {slug: embedded, engine: embedded}
  - {slug: shared-words, engine: "python:my_engine:SharedWords", options: {min_length: 5}}
"""
RETRIEVERS = """\
retrievers:
  - {slug: jaccard, retriever: jaccard}
  - {slug: pieces, retriever: "python:my_retriever:Pieces", options: {n: 3}}
"""

pytestmark = pytest.mark.integration


def test_an_engine_and_a_retriever_of_ones_own_become_lanes(small_home, problems, tmp_path):
    saber = small_home(settings=SETTINGS, PYTHONPATH=str(EXAMPLES))
    (saber.home / "judges.yaml").write_text(JUDGES)
    (saber.home / "retrievers.yaml").write_text(RETRIEVERS)
    corpus = tmp_path / "problems.jsonl"
    corpus.write_text("".join(json.dumps(row) + "\n" for row in problems))
    report = saber.json("build", "--corpus", str(corpus))

    board = pl.DataFrame(report["leaderboard"])
    assert set(board["judge"]) == {"embedded", "shared-words"}
    assert set(board["retriever"]) == {"jaccard", "oracle", "pieces"}
    mine = board.filter((pl.col("judge") == "shared-words") & (pl.col("retriever") == "pieces"))
    assert set(mine["judge_revision"]) == {"1"}
    assert set(mine["retriever_revision"]) == {"1-n=3"}
    assert set(mine["setting"]) == {"statement-full", "full-full", "statement-statement"}

    ledger = {(row["stage"], row["model"]): row for row in saber.json("ledger", "stats")["rows"]}
    games = pl.read_parquet(saber.home / "tables/judge/shared-words/tournament_rounds/**/*.parquet")
    assert games.height > 0
    replies = ledger["tournament_rounds", "shared-words"]
    assert replies["ok"] == games["call_keys"].explode().n_unique()
