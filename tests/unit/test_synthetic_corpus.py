"""The synthetic corpus of the benchmarks has the shape that its figures are about."""

import numpy as np
import pytest

from benchmarks.hit_densities import densities
from benchmarks.synthetic_corpus import LEVELS, SHAPES, make_corpus, make_ontology, problem_index
from saber_dagster.signals.statistics import information_content, topic_statistics


def test_the_ontology_has_17_000_topics_at_depths_0_to_5() -> None:
    tree = make_ontology()
    assert np.bincount(tree.depth).tolist() == list(LEVELS)
    assert 16_500 < len(tree.node_ids) < 17_500
    after = np.arange(1, len(tree.node_ids))
    assert np.all(tree.parent[1:] < after)  # depth first: parents come before children
    assert None in tree.domain


@pytest.mark.parametrize(("name", "expected"), [("low", 1.4e-4), ("high", 2e-3)])
@pytest.mark.parametrize("n", [12_000, 40_000])
def test_densities_of_hits_hold_at_any_size(name: str, expected: float, n: int) -> None:
    found = densities(make_corpus(n, name), sample=2_500)
    assert found["topic"] == pytest.approx(expected, rel=0.3)
    assert found["summary"] == pytest.approx(expected, rel=0.3)
    if name == "high":
        assert found["equal topics"] / found["topic"] == pytest.approx(2 / 3, rel=0.15)


def test_a_smaller_corpus_is_the_beginning_of_a_larger_one() -> None:
    small, large = make_corpus(900, "high", seed=3), make_corpus(17_000, "high", seed=3)
    assert small.topic_lists() == large.topic_lists()[:900]
    assert small.word_lists() == large.word_lists()[:900]
    assert small.clusters.tolist() == large.clusters[:900].tolist()
    assert len(make_corpus(0)) == 0


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_topics_and_words_are_ascending_sets_of_the_stated_sizes(name: str) -> None:
    corpus = make_corpus(20_000, name)
    for lists, least, most in ((corpus.topic_lists(), 1, 8), (corpus.word_lists(), 6, 15)):
        sizes = {len(values) for values in lists}
        assert sizes == {0, *range(least, most + 1)}
        assert all(values == sorted(set(values)) for values in lists)
    assert np.all(corpus.clusters <= np.arange(20_000))
    assert 0 < np.count_nonzero(corpus.clusters < np.arange(20_000)) < 400


def test_the_index_says_the_same_as_the_arrays() -> None:
    corpus = make_corpus(600, "low")
    index = problem_index(corpus)
    tree = corpus.tree
    topics = [[tree.index[name] for name in names] for names in index["topics"].to_list()]
    assert topics == corpus.topic_lists()
    words = [[int(word[1:]) for word in found] for found in index["words"].to_list()]
    assert words == corpus.word_lists()
    content = information_content(topic_statistics(index, tree), tree)
    assert content.tolist() == corpus.content.tolist()
