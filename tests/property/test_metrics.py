from itertools import permutations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saber_dagster.contracts import TABLES
from saber_dagster.metrics import expected_random_ndcg, ndcg, query_metrics

pytestmark = pytest.mark.property

RATING = st.one_of(st.sampled_from([0.0, 5.0]), st.floats(0, 5).map(lambda x: round(x, 6)))
SCORE = st.one_of(st.sampled_from([0.0, -0.0, 1.0]), st.floats(-10, 10))


@st.composite
def judged_runs(draw):
    """Ratings by query and document, and scores of some of them."""
    ratings, scores = {}, {}
    for q in range(draw(st.integers(1, 4))):
        docs = [f"d{i}" for i in range(draw(st.integers(1, 13)))]
        ratings[f"q{q}"] = {doc: draw(RATING) for doc in docs}
        if draw(st.booleans()):
            retrieved = draw(st.lists(st.sampled_from(docs), unique=True))
            scores[f"q{q}"] = {doc: draw(SCORE) for doc in retrieved}
    return ratings, scores, draw(st.sampled_from([1, 3, 10, 20])), draw(st.randoms())


@settings(max_examples=60, deadline=None)
@given(judged_runs())
def test_table_agrees_with_plain_twin_in_any_row_order(case):
    ratings, scores, cutoff, rng = case
    judged = [
        {"query_id": q, "doc_id": d, "rating": r, "domains": ["algebra"]}
        for q, docs in ratings.items()
        for d, r in docs.items()
    ]
    ranked = [
        {"setting": "full-full", "query_id": q, "doc_id": d, "score": s, "rank": 1}
        for q, docs in scores.items()
        for d, s in docs.items()
    ]
    frames = []
    for _ in range(2):
        run = pl.DataFrame(ranked, schema=TABLES["run"].schema)
        frames.append(
            query_metrics(run, pl.DataFrame(judged), "j", "r", cutoff, settings=["full-full"])
        )
        rng.shuffle(judged)
        rng.shuffle(ranked)
    assert frames[0].equals(frames[1])
    for row in frames[0].iter_rows(named=True):
        rated, scored = ratings[row["query_id"]], scores.get(row["query_id"], {})
        order = sorted(scored, key=lambda doc: (-scored[doc], doc))
        expected = ndcg([rated[doc] for doc in order], list(rated.values()), cutoff)
        assert row["value"] == pytest.approx(expected, abs=2e-12)
        assert 0.0 <= row["value"] <= 1.0
        assert row["missing"] == (not scored)


@settings(max_examples=40, deadline=None)
@given(st.lists(RATING, min_size=1, max_size=6), st.sampled_from([1, 2, 3, 10]))
def test_expected_random_ndcg_is_the_mean_over_all_orders(ratings, cutoff):
    orders = [ndcg(order, ratings, cutoff) for order in permutations(ratings)]
    assert expected_random_ndcg(ratings, cutoff) == pytest.approx(sum(orders) / len(orders))
