"""The embedded engine is better than plain words, also on techniques that it was not tuned on."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from benchmarks.labelled_pairs import auc, champ_pairs, held_out, starter_pairs
from resources.engines.embedded_judgments import similarity
from saber_dagster.starter import starter_entries, starter_techniques
from saber_dagster.text import words


@pytest.fixture(scope="module")
def pairs():
    return starter_pairs("held out")


def scores(pairs, score):
    documents = pairs.documents
    chosen = zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)
    return np.array([score(documents[i], documents[j]) for i, j in chosen])


def plain_jaccard(pairs):
    read = [set(words(" ".join(document))) for document in pairs.documents]
    chosen = zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)
    return np.array([len(read[i] & read[j]) / len(read[i] | read[j]) for i, j in chosen])


def test_the_engine_beats_plain_word_jaccard_on_held_out_techniques(pairs):
    engine, plain = scores(pairs, similarity), plain_jaccard(pairs)
    _, _, gain, _ = pairs.interval([engine, plain], samples=100)
    assert gain[0] > 0.0
    assert pairs.auc(engine) > pairs.auc(plain) + 0.02
    assert pairs.auc(engine, within=True) > pairs.auc(plain, within=True)


def test_halves_of_the_techniques_are_fixed_and_apart(pairs):
    tuned = starter_pairs("tuned")
    assert len(held_out()) == len(starter_techniques()) // 2
    positive = {
        (int(i), int(j))
        for p in (pairs, tuned)
        for i, j in zip(p.first[p.shares], p.second[p.shares], strict=True)
    }
    labels = [set(entry.techniques) for entry in starter_entries()]
    assert all(labels[i] & labels[j] for i, j in positive)
    for i, j in zip(pairs.first[pairs.shares], pairs.second[pairs.shares], strict=True):
        assert labels[i] & labels[j] & held_out()
    for p in (pairs, tuned):
        assert not any(
            labels[i] & labels[j]
            for i, j in zip(p.first[~p.shares], p.second[~p.shares], strict=True)
        )


def test_the_area_under_the_curve_is_scikit_learns():
    rng = np.random.default_rng(1)
    positive, values = rng.random(500) < 0.3, rng.integers(0, 20, 500).astype(float)
    assert auc(values, positive) == pytest.approx(roc_auc_score(positive, values))


def test_an_interval_counts_a_tie_as_half():
    """Two documents that tie everywhere: every sample's value is one half."""
    champ = champ_pairs()
    constant = np.ones(len(champ.first))
    (low, high), _ = champ.interval([constant], samples=20)
    assert (low, high) == pytest.approx((0.5, 0.5))


def test_an_interval_holds_the_value_and_is_of_width_zero_against_itself():
    champ = champ_pairs()
    value = plain_jaccard(champ)
    (low, high), _, *differences = champ.interval([value, value], samples=50)
    assert low < champ.auc(value) < high
    assert differences == [(0.0, 0.0), (0.0, 0.0)]
