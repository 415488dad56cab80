import numpy as np
import pytest

from saber_dagster.bootstrap import paired_bootstrap, resample_counts, tied_groups
from saber_dagster.errors import SaberError


def normal_values(shifts, n=400, noise=0.1, seed=0):
    """Values of systems that differ by a shift and by noise of their own, plus a shared part."""
    rng = np.random.Generator(np.random.PCG64(seed))
    shared = rng.normal(0.5, 0.1, size=(n, 1))
    own = rng.normal(0, noise, size=(n, len(shifts)))
    return np.clip(shared + own + np.array(shifts), 0, 1).round(12)


def test_counts_are_resamples_with_replacement():
    counts = resample_counts(50, 2000, seed=1, stream="algebra")
    assert counts.shape == (2000, 50)
    assert (counts.sum(axis=1) == 50).all()
    assert counts.mean(axis=0) == pytest.approx(np.ones(50), abs=0.12)
    assert counts.var(axis=0).mean() == pytest.approx(1 - 1 / 50, abs=0.05)


def test_counts_are_a_function_of_seed_and_stream(monkeypatch):
    counts = resample_counts(20, 30, seed=1, stream="algebra")
    assert (counts == resample_counts(20, 30, seed=1, stream="algebra")).all()
    assert (counts != resample_counts(20, 30, seed=2, stream="algebra")).any()
    assert (counts != resample_counts(20, 30, seed=1, stream="geometry")).any()
    monkeypatch.setattr("saber_dagster.bootstrap._BLOCK", 100)
    assert (counts == resample_counts(20, 30, seed=1, stream="algebra")).all()


def test_means_agree_with_plain_resampling():
    values = normal_values([0.0, 0.1], n=37)
    result = paired_bootstrap(values, seed=3, stream="s", n_resamples=50)
    counts = resample_counts(37, 50, 3, "s")
    for row, count in zip(result.resampled, counts, strict=True):
        drawn = np.repeat(values, count, axis=0)
        assert row == pytest.approx(drawn.mean(axis=0), abs=1e-12)
    assert result.mean == pytest.approx(values.mean(axis=0), abs=1e-12)
    assert result.low == pytest.approx(np.percentile(result.resampled, 2.5, axis=0))
    assert result.high == pytest.approx(np.percentile(result.resampled, 97.5, axis=0))
    assert (result.n_queries, result.n_resamples, result.seed, result.stream) == (37, 50, 3, "s")


def test_interval_has_the_width_of_the_normal_one():
    values = normal_values([0.0], n=1000)
    result = paired_bootstrap(values, seed=0, stream="s", n_resamples=2000)
    expected = 2 * 1.96 * values.std() / np.sqrt(1000)
    assert (result.high - result.low)[0] == pytest.approx(expected, rel=0.1)


def test_adding_a_system_does_not_move_the_others():
    values = normal_values([0.0, 0.02, 0.05])
    alone = paired_bootstrap(values[:, :1], seed=0, stream="s")
    together = paired_bootstrap(values, seed=0, stream="s")
    assert (alone.resampled[:, 0] == together.resampled[:, 0]).all()


def test_pairing_separates_what_intervals_alone_do_not():
    values = normal_values([0.0, 0.01], noise=0.005)
    result = paired_bootstrap(values, seed=0, stream="s")
    assert result.high[0] > result.low[1]
    assert tied_groups(result, ["a", "b"]).tolist() == [2, 1]


def test_groups_follow_the_board():
    values = normal_values([0.2, 0.2, 0.1, 0.1, 0.0], n=2000, noise=0.05)
    result = paired_bootstrap(values, seed=0, stream="s")
    assert tied_groups(result, list("abcde")).tolist() == [1, 1, 2, 2, 3]
    order = [4, 2, 0, 3, 1]
    shuffled = paired_bootstrap(values[:, order], seed=0, stream="s")
    assert tied_groups(shuffled, [list("abcde")[i] for i in order]).tolist() == [3, 2, 1, 2, 1]


def test_equal_systems_tie_and_one_query_is_defined():
    result = paired_bootstrap(np.array([[0.5, 0.5, 0.25]]), seed=0, stream="s")
    assert tied_groups(result, ["a", "b", "c"]).tolist() == [1, 1, 2]
    assert result.low.tolist() == result.high.tolist() == [0.5, 0.5, 0.25]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -0.1, 1.1])
def test_values_outside_the_unit_interval_are_errors(bad):
    with pytest.raises(SaberError, match=r"not in \[0, 1\]"):
        paired_bootstrap(np.array([[0.5], [bad]]), seed=0, stream="s")


def test_no_queries_or_no_resamples_are_errors():
    with pytest.raises(SaberError, match="needs queries"):
        paired_bootstrap(np.zeros((0, 2)), seed=0, stream="s")
    with pytest.raises(SaberError, match="needs queries"):
        paired_bootstrap(np.zeros((2, 2)), seed=0, stream="s", n_resamples=0)
