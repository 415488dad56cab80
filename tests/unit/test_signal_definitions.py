"""Both signals by hand; the kernels are held to these definitions by the property tests."""

import math

import numpy as np
import pytest

from saber_dagster.ontology import OntologyTree
from saber_dagster.similarity import twins
from saber_dagster.similarity.topic import TopicSets, ancestor_table
from trees import tree_of

EPSILON = 1e-12


def make_tree(*node_ids: str) -> OntologyTree:
    return tree_of(node_ids)


TREE = make_tree("a", "a/b", "a/b/c", "a/b/d", "a/e", "z", "z/y")
A, AB, ABC, ABD, AE, Z, ZY = (
    TREE.index[n] for n in ("a", "a/b", "a/b/c", "a/b/d", "a/e", "z", "z/y")
)
# p = 1/2, 1/4, 1/8, 1/8, 1/4, 1/2, 1/4
CONTENT = np.log([2.0, 4.0, 8.0, 8.0, 4.0, 2.0, 4.0]).tolist()


def lin(t: int, u: int) -> float:
    return twins.lin(t, u, TREE, CONTENT, EPSILON)


def bma(x: list[int], y: list[int]) -> float:
    return twins.best_match_average(x, y, TREE, CONTENT, EPSILON)


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
    everything = range(len(TREE.node_ids))
    content = [0.0] * len(everything)
    assert {twins.lin(t, u, TREE, content, EPSILON) for t in everything for u in everything} == {0}


def test_best_match_average_by_hand() -> None:
    # abc matches abd with 2/3; e matches abd with 2/5; abd matches abc with 2/3
    assert bma([ABC, AE], [ABD]) == pytest.approx((2 / 3 + 2 / 5 + 2 / 3) / 3, abs=5e-7)


def test_equal_sets_have_similarity_one_and_empty_sets_zero() -> None:
    assert bma([ABC, AE], [ABC, AE]) == 1.0
    assert bma([], [ABC]) == bma([ABC], []) == bma([], []) == 0.0


def test_values_are_rounded_once_to_six_decimals() -> None:
    assert bma([ABC], [ABD]) == 0.666667


def test_sums_are_taken_in_the_order_of_the_topics() -> None:
    # from the left, each small value is lost; in any other grouping some are not
    values = [1.0] + [2.0**-53] * 9
    assert math.fsum(values) > 1.0
    assert twins.total(values) == 1.0
    assert twins.total([]) == 0.0


def test_jaccard_is_a_correctly_rounded_quotient() -> None:
    assert twins.jaccard("abc", "bcd") == 2 / 4
    assert twins.jaccard("abc", "cdefg") == 1 / 7
    assert twins.jaccard("abcdef", "abcdef") == 1.0


def test_empty_word_sets_have_similarity_zero() -> None:
    assert twins.jaccard("", "abc") == twins.jaccard("abc", "") == twins.jaccard("", "") == 0.0


def test_distinct_sets_are_collected_longest_first() -> None:
    sets = TopicSets.of([[3], [1, 4], [], [3], [4, 1]])
    assert sets.sizes.tolist() == [2, 2, 1, 0]
    assert sets.set_of.tolist() == [2, 0, 3, 2, 1]
    assert sets.nodes.tolist() == [1, 3, 4]
