"""What a build promises: the same tables however it is run, and nothing done twice."""

import signal
import time

import numpy as np
import polars as pl
import pytest

from saber_dagster.hashing import hash64
from saber_dagster.metrics import expected_random_ndcg, ndcg

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]


def write(path, rows):
    import json

    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def corpus(problems, tmp_path_factory):
    return write(tmp_path_factory.mktemp("corpus") / "mine.jsonl", problems)


@pytest.mark.slow
def test_results_depend_neither_on_shards_nor_threads_nor_order(
    small_home, corpus, problems, tmp_path
):
    shuffled = sorted(problems, key=lambda row: hash64("shuffle", row["id"]))
    (tmp_path / "other").mkdir()
    other = write(tmp_path / "other" / "mine.jsonl", shuffled)
    one = small_home("one", OMP_NUM_THREADS="1", POLARS_MAX_THREADS="1")
    three = small_home(
        "three",
        OMP_NUM_THREADS="2",
        POLARS_MAX_THREADS="2",
        SABER_PARTITIONS__QUERY_SHARDS="3",
        SABER_PARTITIONS__CORPUS_SHARDS="3",
    )
    first = one.json("build", "--corpus", str(corpus))
    second = three.json("build", "--corpus", str(other))
    assert one.versions() == three.versions()
    assert all(one.versions().values())
    assert first["leaderboard"] == second["leaderboard"]


def test_a_second_build_runs_nothing_and_the_board_is_sane(small_home, corpus):
    saber = small_home()
    first = saber.json("build", "--corpus", str(corpus))
    assert first["runs"]
    again = saber.json("build")
    assert again["runs"] == []
    assert again["leaderboard"] == first["leaderboard"]
    assert all(row["fresh"] == row["partitions"] for row in saber.json("status"))

    board = pl.DataFrame(first["leaderboard"])
    assert not board.select(pl.col("value", "low", "high").is_nan().any()).row(0).count(True)
    oracle = board.filter(pl.col("retriever") == "oracle")
    assert oracle.select("value", "low", "high").unique().rows() == [(1.0, 1.0, 1.0)]

    theory, error = random_ranking(saber.home / "tables/judge/embedded/benchmark/all.parquet")
    rows = board.filter((pl.col("retriever") == "random") & (pl.col("domain") == "overall"))
    assert rows.height == 3
    for value in rows["value"]:
        assert abs(value - theory) <= 3.5 * error


def random_ranking(path):
    """Mean nDCG@10 of random rankings by theory, and its standard error over the queries."""
    rng = np.random.default_rng(1)
    expected, variance = [], []
    for group in pl.read_parquet(path).partition_by("query_id", maintain_order=True):
        ratings = group["rating"].to_list()
        expected.append(expected_random_ndcg(ratings))
        variance.append(np.var([ndcg(rng.permutation(ratings), ratings) for _ in range(500)]))
    return float(np.mean(expected)), float(np.sqrt(np.sum(variance)) / len(variance))


@pytest.mark.slow
def test_a_changed_document_recomputes_what_depends_on_it_and_judges_nothing(
    small_home, problems, tmp_path
):
    saber = small_home()
    path = write(tmp_path / "mine.jsonl", problems)
    saber.json("build", "--corpus", str(path))
    before = {row["stage"]: row["replies"] for row in saber.json("ledger", "stats")["rows"]}

    changed = [dict(row) for row in problems]
    changed[3]["solution"] += " This is the same as counting in two ways."
    write(path, changed)
    report = saber.json("build")
    ran = {name for run in report["runs"] for name in run["assets"]}
    after = {row["stage"]: row["replies"] for row in saber.json("ledger", "stats")["rows"]}

    assert after["summaries"] == before["summaries"] + 1
    calls_of_one_document = after["topic_tags"] - before["topic_tags"]
    assert 1 <= calls_of_one_document <= 20
    assert after["tournament_rounds"] == before["tournament_rounds"]
    assert not any(name.startswith(("judge/", "retriever/")) for name in ran)
    assert "leaderboard" not in ran
    shards = [run["partition"] for run in report["runs"] if "summaries" in run["assets"]]
    assert len(shards) <= 2, "only the shards that lost or gained the document"

    growth = saber.json("release", "create", "r2")["growth"]
    assert 0 < growth["pairs_kept"] <= growth["pairs_before"]
    assert [row["release"] for row in saber.json("release", "list")] == ["r1", "r2"]
    second = saber.json("build")
    asked = sum(cost["calls_asked"] for run in second["runs"] for cost in run["assets"].values())
    made = sum(cost["calls_made"] for run in second["runs"] for cost in run["assets"].values())
    assert made < asked, "games between kept pairs come from the ledger"


@pytest.mark.slow
def test_killed_builds_end_where_an_uninterrupted_one_does(small_home, corpus):
    whole = small_home("whole")
    whole.json("build", "--corpus", str(corpus))
    calls = sum(row["replies"] for row in whole.json("ledger", "stats")["rows"])

    killed = small_home("killed")
    kills = 0
    for attempt in range(10):
        process = killed.start("build", "--corpus", str(corpus))
        time.sleep(3.0 + (hash64("kill", attempt) % 1000) / 1000 * (1.0 + attempt))
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            kills += 1
        process.communicate()
    report = killed.json("build")
    assert kills >= 5, "the kills came too late to test anything"
    assert killed.versions() == whole.versions()
    paid = sum(row["replies"] for row in killed.json("ledger", "stats")["rows"])
    assert paid <= calls + kills, "a kill costs at most the call in flight"
    assert report["leaderboard"] == whole.json("leaderboard")


@pytest.mark.slow
def test_interrupt_with_ctrl_c_resumes(small_home, corpus):
    saber = small_home()
    process = saber.start("build", "--corpus", str(corpus))
    time.sleep(6)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted; `saber build` goes on from here" in err
    assert "Traceback" not in err
    saber("build")
    assert all(row["fresh"] == row["partitions"] for row in saber.json("status"))
