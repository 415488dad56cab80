from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saber_dagster.rating_twins import pair_round_twin
from saber_dagster.swiss import pair_round

pytestmark = pytest.mark.property


@st.composite
def standings(draw):
    """Scores in half points, a set of past pairs, a round; before round 1 all are at 0."""
    docs = [f"d{i}" for i in range(draw(st.integers(0, 12)))]
    round_number = draw(st.integers(1, 4))
    if round_number == 1:
        return dict.fromkeys(docs, 0.0), set(), 1
    halves = draw(st.lists(st.integers(0, 6), min_size=len(docs), max_size=len(docs)))
    scores = {doc: half / 2 for doc, half in zip(docs, halves, strict=True)}
    pairs = sorted(tuple(sorted(pair)) for pair in combinations(docs, 2))
    met = draw(st.sets(st.sampled_from(pairs))) if pairs else set()
    return scores, met, round_number


@given(standings(), st.integers(0, 2**40))
@settings(max_examples=300, deadline=None)
def test_pairing_equals_its_twin(standing, seed):
    assert pair_round(*standing, seed, "q") == pair_round_twin(*standing, seed, "q")


@given(standings(), st.integers(0, 2**40), st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_a_round_is_a_maximal_matching_without_rematch(standing, seed, shuffler):
    scores, met, round_number = standing
    pairs = pair_round(scores, met, round_number, seed, "q")
    playing = [doc for pair in pairs for doc in pair]
    assert len(playing) == len(set(playing))
    assert set(playing) <= scores.keys()
    assert all(a < b for a, b in pairs)
    assert not met & set(pairs)
    idle = sorted(scores.keys() - set(playing))
    assert all(pair in met for pair in combinations(idle, 2))
    items = list(scores.items())
    shuffler.shuffle(items)
    assert pair_round(dict(items), met, round_number, seed, "q") == pairs
