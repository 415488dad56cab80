"""Real problems and a real ontology, which are not part of the project (SABER_TEST_DATA)."""

import os
from pathlib import Path

import polars as pl
import pytest

from saber_dagster.corpus import build_corpus, read_problems
from saber_dagster.ontology import build_tree
from saber_dagster.ontology_files import read_ontology
from saber_dagster.settings import Settings

pytestmark = [pytest.mark.integration, pytest.mark.data, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def data():
    beside = Path(__file__).parents[3] / "shared" / "data"
    folder = Path(os.environ.get("SABER_TEST_DATA") or beside)
    if not (folder / "sample.jsonl").exists():
        message = f"{folder} has no test data; set SABER_TEST_DATA to the folder that has"
        if os.environ.get("SABER_REQUIRE_TEST_DATA"):
            pytest.fail(message)
        pytest.skip(message)
    return folder


@pytest.mark.slow
def test_908_problems_of_five_domains_become_a_benchmark(small_home, data):
    saber = small_home(settings="preset: demo\n")
    report = saber.json("build", "--corpus", str(data / "sample.jsonl"))
    thresholds = pl.read_parquet(saber.home / "tables/thresholds/all.parquet")
    assert thresholds["eligible_queries"].min() >= 5
    assert report["notes"] == []
    board = pl.DataFrame(report["leaderboard"])
    assert set(board["domain"]) == {"overall", *Settings().domains}
    assert board.filter(pl.col("domain") != "overall")["n_queries"].min() >= 5
    values = dict(
        board.filter((pl.col("domain") == "overall") & (pl.col("setting") == "statement-full"))
        .select("retriever", "value")
        .iter_rows()
    )
    assert values["random"] < values["jaccard"] < values["bm25"] < values["oracle"] == 1.0
    tags = pl.read_parquet(saber.home / "tables/topic_tags/*.parquet")
    tagged = tags.filter(pl.col("status") == "ok")["doc_id"].n_unique()
    assert tagged / tags["doc_id"].n_unique() > 0.75


@pytest.mark.slow
def test_users_bring_their_own_queries(small_home, data, tmp_path):
    rows = read_problems(data / "sample.jsonl").rows
    ids = [row.source_id for row in rows[100:160]]
    (tmp_path / "queries.txt").write_text("\n".join(ids) + "\n")
    saber = small_home(settings="candidates: {per_group: 4}\nthresholds: {queries_required: 3}\n")
    saber(
        "build", "--corpus", str(data / "sample.jsonl"), "--queries", str(tmp_path / "queries.txt")
    )
    benchmark = pl.read_parquet(saber.home / "tables/judge/embedded/benchmark/all.parquet")
    asked = set(benchmark["query_source_id"])
    assert len(asked) > 20
    assert asked <= set(ids)


def test_15528_problems_have_no_fault(data):
    read = read_problems(data / "problems.jsonl.gz")
    assert read.faults == []
    build = build_corpus(read.rows)
    assert build.frame.height + build.duplicates.height == 15_528


def test_a_wide_and_uneven_ontology_becomes_a_tree(data):
    folder = data / "ontology_union"
    graph = read_ontology(folder / "edges.tsv", nodes=folder / "nodes.jsonl")
    build = build_tree(
        graph, {"algebra": "algebra", "geometry": "geometry"}, ["algebra", "geometry"], 5
    )
    assert build.n_source_nodes == 5_832
    assert build.frame.height > 5_000
    assert build.frame["depth"].max() == 5
