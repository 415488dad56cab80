import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saber_dagster.bradley_terry import Games, fit
from saber_dagster.rating_prior import log_evidence
from saber_dagster.rating_twins import fit_twin, log_evidence_twin

pytestmark = pytest.mark.property

PRECISION = st.floats(0.05, 5.0)
POSITION = st.floats(-1.5, 1.5)


@st.composite
def games(draw, max_items=5):
    """Games of a few items: wins, ties and fractions, weights, repeated pairs, idle items."""
    n = draw(st.integers(2, max_items))
    game = st.tuples(
        st.integers(0, n - 1),
        st.integers(1, n - 1),
        st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.floats(0.0, 1.0)),
        st.sampled_from([0.5, 1.0, 3.0]),
    )
    drawn = draw(st.lists(game, max_size=12))
    first = [one for one, _, _, _ in drawn]
    second = [(one + gap) % n for one, gap, _, _ in drawn]
    return Games.of(n, first, second, [g[2] for g in drawn], [g[3] for g in drawn])


@given(games(), PRECISION, POSITION)
@settings(max_examples=40, deadline=None)
def test_fit_and_evidence_equal_their_twins(played, precision, position):
    result = fit(played, precision, position)
    assert result.log_strength == pytest.approx(fit_twin(played, precision, position), abs=1e-4)
    twin = log_evidence_twin(played, precision, position)
    assert result.log_evidence == pytest.approx(twin, abs=1e-6)


@given(st.lists(games(8), min_size=1, max_size=3), PRECISION, POSITION)
@settings(max_examples=40, deadline=None)
def test_gradient_of_the_evidence_equals_finite_differences(queries, precision, position):
    def value(log_precision, beta):
        return log_evidence(queries, np.exp(log_precision), beta, [None] * len(queries)).value

    at, h = np.log(precision), 1e-4
    differences = [
        (value(at + h, position) - value(at - h, position)) / (2 * h),
        (value(at, position + h) - value(at, position - h)) / (2 * h),
    ]
    evidence = log_evidence(queries, precision, position, [None] * len(queries))
    assert evidence.gradient == pytest.approx(differences, abs=1e-5)


@given(games(8), PRECISION, POSITION)
@settings(max_examples=40, deadline=None)
def test_position_information_is_that_of_the_joint_hessian(played, precision, position):
    theta = fit(played, precision, position).log_strength
    joint = np.diag([precision] * played.n_items + [0.0])
    for i, j, weight in zip(played.first, played.second, played.weight, strict=True):
        chance = 1 / (1 + np.exp(-(theta[i] - theta[j] + position)))
        direction = np.zeros(played.n_items + 1)
        direction[[i, j, -1]] = 1.0, -1.0, 1.0
        joint += weight * chance * (1 - chance) * np.outer(direction, direction)
    schur = joint[-1, -1] - joint[-1, :-1] @ np.linalg.solve(joint[:-1, :-1], joint[:-1, -1])
    evidence = log_evidence([played], precision, position, [None])
    assert evidence.position_information == pytest.approx(schur, abs=1e-9)


@given(games(8), PRECISION, POSITION, st.data())
@settings(max_examples=40, deadline=None)
def test_symmetries(played, precision, position, data):
    base = fit(played, precision, position)
    # The other side's view of every game.
    swapped = Games.of(
        played.n_items, played.second, played.first, 1.0 - played.outcome, played.weight
    )
    assert fit(swapped, precision, -position).log_strength == pytest.approx(
        base.log_strength, abs=1e-9
    )
    # Every game lost instead of won.
    lost = Games.of(
        played.n_items, played.first, played.second, 1.0 - played.outcome, played.weight
    )
    assert fit(lost, precision, -position).log_strength == pytest.approx(
        -base.log_strength, abs=1e-9
    )
    # Other names for the items.
    name = np.array(data.draw(st.permutations(range(played.n_items))))
    renamed = Games.of(
        played.n_items, name[played.first], name[played.second], played.outcome, played.weight
    )
    again = fit(renamed, precision, position)
    assert again.log_strength[name] == pytest.approx(base.log_strength, abs=1e-9)
    assert again.standard_error[name] == pytest.approx(base.standard_error, abs=1e-9)


@given(games(8), PRECISION, POSITION, st.data())
@settings(max_examples=40, deadline=None)
def test_row_order_does_not_matter_and_a_repetition_is_weight_2(played, precision, position, data):
    base = fit(played, precision, position).log_strength
    order = np.array(data.draw(st.permutations(range(played.first.size))), int)
    columns = (played.first, played.second, played.outcome, played.weight)
    shuffled = Games.of(played.n_items, *(column[order] for column in columns))
    assert (fit(shuffled, precision, position).log_strength == base).all()
    twice = Games.of(played.n_items, *(np.tile(column, 2) for column in columns))
    heavy = Games.of(played.n_items, *columns[:3], 2.0 * played.weight)
    assert fit(twice, precision, position).log_strength == pytest.approx(
        fit(heavy, precision, position).log_strength, abs=1e-9
    )
    assert twice.wins == pytest.approx(heavy.wins)


@given(games(8), st.sampled_from([1e-4, 1e-2, 1.0, 1e3]), st.floats(-10.0, 10.0))
@settings(max_examples=40, deadline=None)
def test_every_fit_converges_centred_with_a_positive_error(played, precision, position):
    result = fit(played, precision, position)
    assert result.converged
    assert abs(result.log_strength.sum()) < 1e-9
    assert (result.standard_error > 0).all()
    assert (result.standard_error <= precision**-0.5 * (1 + 1e-9)).all()
