import math

import polars as pl
import pytest

from saber_dagster.contracts import TABLES
from saber_dagster.errors import SaberError
from saber_dagster.metrics import expected_random_ndcg, ndcg, query_metrics, rank_documents
from saber_dagster.retrieval.reference import oracle_run

RATINGS = {
    "q1": {"a": 5.0, "b": 2.5, "c": 0.0, "d": 1.0},
    "q2": {"a": 0.0, "e": 0.0},
    "q3": {"c": 5.0},
}


def benchmark(ratings=RATINGS):
    rows = [
        {"query_id": q, "doc_id": d, "rating": r, "domains": ["algebra"]}
        for q, docs in ratings.items()
        for d, r in docs.items()
    ]
    return pl.DataFrame(rows)


def run_of(scores, setting="statement-full"):
    return pl.DataFrame(
        [
            {"setting": setting, "query_id": q, "doc_id": d, "score": float(s), "rank": 1}
            for q, docs in scores.items()
            for d, s in docs.items()
        ],
        schema=TABLES["run"].schema,
    )


def values(frame):
    return dict(frame.select("query_id", "value").iter_rows())


def test_worked_example():
    """Gains 31, 2^2.5 - 1, 0, 1; ranked d, a, c, b."""
    run = run_of({"q1": {"d": 9, "a": 8, "c": 7, "b": 6}})
    frame = query_metrics(run, benchmark(), "j", "r")
    middle = 2**2.5 - 1
    dcg = 1 / 1 + 31 / math.log2(3) + 0 + middle / math.log2(5)
    ideal = 31 + middle / math.log2(3) + 1 / math.log2(4)
    assert values(frame)["q1"] == pytest.approx(dcg / ideal, abs=1e-12)
    assert frame["metric"].unique().to_list() == ["nDCG@10"]
    assert frame["judge"].unique().to_list() == ["j"]
    assert frame["retriever"].unique().to_list() == ["r"]


def test_cutoff_hides_what_is_below():
    run = run_of({"q1": {"c": 3, "a": 2, "b": 1}})
    frame = query_metrics(run, benchmark(), "j", "r", cutoff=1)
    assert values(frame)["q1"] == 0.0
    assert frame["metric"][0] == "nDCG@1"


def test_ideal_comes_from_all_candidates_not_from_the_retrieved():
    assert 0 < values(query_metrics(run_of({"q1": {"d": 1}}), benchmark(), "j", "r"))["q1"] < 0.05


def test_missing_query_scores_zero_and_is_counted():
    frame = query_metrics(run_of({"q1": {"a": 1}}), benchmark(), "j", "r")
    assert frame["query_id"].to_list() == ["q1", "q2", "q3"]
    assert frame["missing"].to_list() == [False, True, True]
    assert values(frame)["q3"] == 0.0


def test_an_empty_run_is_all_missing_in_the_settings_asked_for():
    frame = query_metrics(run_of({}), benchmark(), "j", "r", settings=["full-full"])
    assert frame.height == 3
    assert frame["missing"].all()
    assert query_metrics(run_of({}), benchmark(), "j", "r").height == 0


def test_query_without_a_positive_rating_scores_zero():
    frame = query_metrics(run_of({"q2": {"a": 1, "e": 2}}), benchmark(), "j", "r")
    row = frame.filter(query_id="q2").row(0, named=True)
    assert (row["value"], row["missing"]) == (0.0, False)


def test_oracle_scores_one():
    run = pl.concat([oracle_run(benchmark(), s) for s in ("full-full", "statement-full")])
    frame = query_metrics(run, benchmark(), "j", "oracle")
    assert frame.filter(pl.col("query_id") != "q2")["value"].to_list() == [1.0] * 4


def test_ties_go_to_the_smaller_id_not_to_the_model():
    frame = query_metrics(run_of({"q1": dict.fromkeys("dcba", 0.0)}), benchmark(), "j", "r")
    expected = ndcg([5.0, 2.5, 0.0, 1.0], [5.0, 2.5, 0.0, 1.0])
    assert values(frame)["q1"] == pytest.approx(expected, abs=1e-12)
    unlucky = benchmark({"q1": {"z": 5.0, "a": 0.0}})
    frame = query_metrics(run_of({"q1": {"z": 0.0, "a": -0.0}}), unlucky, "j", "r")
    assert values(frame)["q1"] == pytest.approx(1 / math.log2(3), abs=1e-12)


def test_queries_outside_the_benchmark_are_not_looked_at():
    run = run_of({"q1": {"a": 1}, "elsewhere": {"x": 1}})
    assert "elsewhere" not in values(query_metrics(run, benchmark(), "j", "r"))


def test_document_that_is_not_a_candidate_is_an_error():
    with pytest.raises(SaberError, match="query q1: document e is not a candidate"):
        query_metrics(run_of({"q1": {"e": 1}}), benchmark(), "j", "r")


def test_duplicates_are_errors():
    run = run_of({"q1": {"a": 1}})
    with pytest.raises(SaberError, match="query_id q1: document a is ranked twice"):
        query_metrics(pl.concat([run, run]), benchmark(), "j", "r")
    with pytest.raises(SaberError, match="ranked twice"):
        query_metrics(run, pl.concat([benchmark(), benchmark()]), "j", "r")


@pytest.mark.parametrize("bad", [math.nan, math.inf, None])
def test_numbers_that_are_not_finite_are_errors(bad):
    run = run_of({"q1": {"a": 1}})
    with pytest.raises(SaberError, match="document a: score is"):
        query_metrics(run.with_columns(score=pl.lit(bad, pl.Float64)), benchmark(), "j", "r")
    with pytest.raises(SaberError, match="rating is"):
        query_metrics(run, benchmark().with_columns(rating=pl.lit(bad, pl.Float64)), "j", "r")


def test_rank_restarts_in_every_ranking():
    scored = pl.DataFrame(
        {"query_id": ["q", "p", "q"], "doc_id": ["b", "a", "a"], "score": [1.0] * 3}
    )
    ranked = rank_documents(scored)
    assert ranked.select("query_id", "doc_id", "rank").rows() == [
        ("p", "a", 1),
        ("q", "a", 1),
        ("q", "b", 2),
    ]
    assert ranked["rank"].dtype == pl.Int32


def test_plain_ndcg_bounds():
    assert ndcg([], []) == 0.0
    assert ndcg([0.0], [0.0]) == 0.0
    assert ndcg([5.0], [5.0]) == 1.0


def test_expected_random_ndcg_of_small_sets():
    assert expected_random_ndcg([]) == 0.0
    assert expected_random_ndcg([0.0, 0.0]) == 0.0
    assert expected_random_ndcg([3.0, 3.0]) == pytest.approx(1.0)
    both = (ndcg([5.0, 1.0], [5.0, 1.0]) + ndcg([1.0, 5.0], [5.0, 1.0])) / 2
    assert expected_random_ndcg([5.0, 1.0]) == pytest.approx(both)
    assert expected_random_ndcg([5.0, 1.0, 0.0], cutoff=1) == pytest.approx((31 + 1) / 3 / 31)
