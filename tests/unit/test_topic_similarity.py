import math

import numpy as np
import pytest

from saber_dagster.ontology import OntologyTree
from saber_dagster.similarity.topic import (
    TopicSets,
    ancestor_table,
    lin_similarity,
    topic_similarity,
)
from trees import tree_of

EPSILON = 1e-12


def make_tree(*node_ids: str) -> OntologyTree:
    return tree_of(node_ids)


TREE = make_tree("a", "a/b", "a/b/c", "a/b/d", "a/e", "z", "z/y")
A, AB, ABC, ABD, AE, Z, ZY = (
    TREE.index[n] for n in ("a", "a/b", "a/b/c", "a/b/d", "a/e", "z", "z/y")
)
# p = 1/2, 1/4, 1/8, 1/8, 1/4, 1/2, 1/4
CONTENT = np.log([2.0, 4.0, 8.0, 8.0, 4.0, 2.0, 4.0])


def lin(t: int, u: int) -> float:
    both = np.array([t]), np.array([u])
    return float(lin_similarity(*both, ancestor_table(TREE), CONTENT, EPSILON)[0, 0])


def bma(x: list[int], y: list[int]) -> float:
    left, right = TopicSets.of([x]), TopicSets.of([y])
    return float(topic_similarity(left, right, ancestor_table(TREE), CONTENT, EPSILON)[0, 0])


def test_ancestor_table_has_the_node_at_its_own_depth() -> None:
    table = ancestor_table(TREE)
    assert table[ABC].tolist() == [A, AB, ABC]
    assert table[AE].tolist() == [A, AE, -1]


@pytest.mark.parametrize(
    ("t", "u", "expected"),
    [
        (ABC, ABD, 2 * 2 / (3 + 3)),  # LCA a/b
        (ABC, AE, 2 * 1 / (3 + 2)),  # LCA a
        (ABC, AB, 2 * 2 / (3 + 2)),  # LCA is one of the two
        (ABC, ZY, 0.0),  # different roots
    ],
)
def test_lin_by_hand(t: int, u: int, expected: float) -> None:
    assert lin(t, u) == pytest.approx(expected, abs=1e-11)
    assert lin(t, u) == lin(u, t)


def test_lin_of_a_node_with_itself_is_just_below_one() -> None:
    assert 1 - 1e-11 < lin(ABC, ABC) < 1


def test_a_root_that_covers_everything_is_similar_to_nothing() -> None:
    content = np.zeros(len(TREE.node_ids))
    everything = np.arange(len(TREE.node_ids))
    similarity = lin_similarity(everything, everything, ancestor_table(TREE), content, EPSILON)
    assert (similarity == 0).all()


def test_best_match_average_by_hand() -> None:
    # abc matches abd with 2/3; e matches abd with 2/5; abd matches abc with 2/3
    assert bma([ABC, AE], [ABD]) == pytest.approx((2 / 3 + 2 / 5 + 2 / 3) / 3, abs=1e-9)


def test_equal_sets_have_similarity_one_and_empty_sets_zero() -> None:
    assert bma([ABC, AE], [ABC, AE]) == 1.0
    assert bma([], [ABC]) == bma([ABC], []) == bma([], []) == 0.0


def test_values_are_rounded_once_to_nine_decimals() -> None:
    assert bma([ABC], [ABD]) == 0.666666667


def test_a_value_does_not_depend_on_what_else_is_computed() -> None:
    rng = np.random.default_rng(5)
    sets = [
        sorted(rng.choice(7, size=rng.integers(0, 7), replace=False).tolist()) for _ in range(40)
    ]
    content = rng.random(7) + np.array([0, 1, 2, 2, 1, 0, 1])
    table = ancestor_table(TREE)
    every = TopicSets.of(sets)
    whole = topic_similarity(every, every, table, content, EPSILON)
    whole = whole[every.set_of[:, None], every.set_of]
    assert (whole == whole.T).all()
    for start in range(0, 40, 7):
        left = TopicSets.of(sets[start : start + 7])
        right = TopicSets.of(sets[::-1])
        part = topic_similarity(left, right, table, content, EPSILON)
        part = part[left.set_of[:, None], right.set_of]
        assert (part == whole[start : start + 7, ::-1]).all()


def test_sums_are_taken_in_the_order_of_the_topics() -> None:
    # from the left, each small value is lost; in any other grouping some are not
    values = np.array([[1.0] + [2.0**-53] * 9])
    assert math.fsum(values[0]) > 1.0
    sets = TopicSets.of([range(10), [0], []])
    assert sets.reduce(np.add, values)[0].tolist() == [1.0, 1.0, 0.0]
