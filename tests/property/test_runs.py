import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saber_dagster.retrieval.base import load_retriever
from saber_dagster.retrieval.runs import SETTINGS, make_run

pytestmark = pytest.mark.property

WORD = st.sampled_from(["even", "odd", "triangle", r"\frac{a}{b}", "2", "$$", "", "the", "Fermat"])
TEXT = st.lists(WORD, max_size=8).map(" ".join)


@settings(max_examples=25, deadline=None)
@given(st.data())
@pytest.mark.parametrize("name", ["bm25", "tfidf", "jaccard", "random"])
@pytest.mark.parametrize("with_corpus", [True, False])
def test_runs_do_not_depend_on_order_or_sharding(name, with_corpus, data):
    ids = [f"d{i}" for i in range(data.draw(st.integers(2, 7)))]
    corpus = {doc: (data.draw(TEXT), data.draw(TEXT)) for doc in ids}
    queries = {f"q{i}": (data.draw(TEXT), data.draw(TEXT)) for i in range(3)}
    candidates = {q: data.draw(st.lists(st.sampled_from(ids), unique=True)) for q in queries}
    texts = corpus | queries
    statistics = corpus if with_corpus else None

    whole = make_run(load_retriever(name), list(SETTINGS), candidates, texts, statistics)
    assert whole.height == len(SETTINGS) * sum(map(len, candidates.values()))

    shuffled = {q: candidates[q][::-1] for q in reversed(candidates)}
    backwards = dict(reversed(corpus.items())) if with_corpus else None
    again = make_run(load_retriever(name), list(SETTINGS)[::-1], shuffled, texts, backwards)
    assert again.equals(whole)

    retriever = load_retriever(name)
    shards = [
        make_run(retriever, list(SETTINGS), {q: candidates[q]}, texts, statistics)
        for q in sorted(candidates)
    ]
    assert pl.concat(shards).sort("setting", "query_id", "doc_id").equals(whole)

    for (_, _), ranking in whole.group_by("setting", "query_id"):
        expected = sorted(ranking.iter_rows(named=True), key=lambda r: (-r["score"], r["doc_id"]))
        assert [row["rank"] for row in expected] == list(range(1, ranking.height + 1))
