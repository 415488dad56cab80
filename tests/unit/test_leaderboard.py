import numpy as np
import polars as pl
import pytest

from saber_dagster.contracts import TABLES
from saber_dagster.errors import SaberError
from saber_dagster.leaderboard import OVERALL, Meta, build

META = Meta("r1", {"j": "j-rev", "k": "k-rev"}, {"good": "1", "twin": "2", "bad": "3"})
DOMAINS = ("algebra", "geometry", "combinatorics")


def metrics(judge="j", setting="statement-full", n=30):
    rng = np.random.Generator(np.random.PCG64(5))
    rows = []
    for i in range(n):
        domains = [["algebra"], ["geometry"], ["algebra", "geometry"]][i % 3]
        value = round(float(rng.uniform(0.3, 0.6)), 12)
        for retriever, shift in (("good", 0.3), ("twin", 0.3), ("bad", 0.0)):
            rows.append(
                {
                    "judge": judge,
                    "retriever": retriever,
                    "setting": setting,
                    "query_id": f"q{i:02}",
                    "domains": domains,
                    "metric": "nDCG@10",
                    "value": round(value + shift, 12),
                    "missing": False,
                }
            )
    return pl.DataFrame(rows, schema=TABLES["query_metrics"].schema)


def cell(board, retriever, domain=OVERALL, **where):
    return board.filter(retriever=retriever, domain=domain, **where).row(0, named=True)


def test_overall_counts_distinct_queries_and_domains_count_members():
    board = build(metrics(), META, DOMAINS, n_resamples=200)
    assert cell(board, "good")["n_queries"] == 30
    assert cell(board, "good", "algebra")["n_queries"] == 20
    assert cell(board, "good", "geometry")["n_queries"] == 20
    assert "combinatorics" not in board["domain"]
    assert board.schema == TABLES["leaderboard"].schema
    frame = metrics().filter(retriever="bad")
    assert cell(board, "bad")["value"] == pytest.approx(frame["value"].mean(), abs=1e-12)
    algebra = frame.filter(pl.col("domains").list.contains("algebra"))["value"].mean()
    assert cell(board, "bad", "algebra")["value"] == pytest.approx(algebra, abs=1e-12)


def test_rows_carry_revisions_groups_and_intervals():
    board = build(metrics(), META, DOMAINS, n_resamples=200)
    row = cell(board, "twin")
    assert (row["release"], row["judge_revision"], row["retriever_revision"]) == (
        "r1",
        "j-rev",
        "2",
    )
    assert row["low"] < row["value"] < row["high"]
    assert [cell(board, name)["tied_group"] for name in ("good", "twin", "bad")] == [1, 1, 2]


def test_row_order_does_not_matter():
    frame = pl.concat([metrics(), metrics("k"), metrics(setting="full-full")])
    board = build(frame, META, DOMAINS, n_resamples=100, seed=3)
    shuffled = frame.sample(fraction=1.0, shuffle=True, seed=1)
    assert build(shuffled, META, DOMAINS, n_resamples=100, seed=3).equals(board)
    assert not build(frame, META, DOMAINS, n_resamples=100, seed=4).equals(board)


def test_judges_and_settings_share_resamples():
    frame = pl.concat([metrics(), metrics("k"), metrics(setting="full-full")])
    board = build(frame, META, DOMAINS, n_resamples=100)
    rows = board.filter(retriever="good", domain=OVERALL)
    assert rows.height == 3
    assert rows.select("value", "low", "high").unique().height == 1


def test_query_that_a_retriever_lacks_scores_zero_and_is_counted():
    frame = metrics().with_columns(
        missing=(pl.col("retriever") == "twin") & (pl.col("query_id") == "q01")
    )
    frame = frame.filter((pl.col("retriever") != "bad") | (pl.col("query_id") > "q02"))
    board = build(frame, META, DOMAINS, n_resamples=100)
    assert [cell(board, name)["n_missing"] for name in ("good", "twin", "bad")] == [0, 1, 3]
    assert cell(board, "bad")["n_queries"] == 30
    total = frame.filter(retriever="bad")["value"].sum()
    assert cell(board, "bad")["value"] == pytest.approx(total / 30, abs=1e-12)
    assert cell(board, "bad", "algebra")["n_missing"] == 2


def test_no_metrics_give_an_empty_board():
    assert build(metrics().clear(), META, DOMAINS).height == 0


def test_duplicate_rows_are_errors():
    with pytest.raises(SaberError, match="judge j, retriever bad, query q00"):
        build(pl.concat([metrics(), metrics()]), META, DOMAINS)


@pytest.mark.parametrize(
    ("meta", "message"),
    [
        (Meta("r1", {}, META.retriever_revisions), "no revision of judge j"),
        (Meta("r1", META.judge_revisions, {"good": "1"}), "no revision of retriever bad"),
    ],
)
def test_missing_revisions_are_errors(meta, message):
    with pytest.raises(SaberError, match=message):
        build(metrics(), meta, DOMAINS, n_resamples=10)
