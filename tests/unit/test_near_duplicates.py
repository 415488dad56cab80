import pytest

from saber_dagster.near_duplicates import are_near_duplicates, word_runs


def near(left: str, right: str) -> bool:
    return are_near_duplicates(word_runs(left), word_runs(right))


def test_runs_are_five_words_without_case_and_signs() -> None:
    runs = {("let", "x", "2", "be", "even"), ("x", "2", "be", "even", "so")}
    assert word_runs("Let $x^{2}$ be even. So") == runs
    assert word_runs("a b c d") == frozenset()
    assert word_runs("a a a a a a a") == {("a",) * 5}


def words(n: int, start: int = 0) -> str:
    return " ".join(f"w{i}" for i in range(start, start + n))


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        # 12 runs; the other text has 12 of its 15, 12 of its 16
        (words(16), words(19), True),
        (words(16), words(20), False),
        # 8 of 10 runs are common, 9 and 9 each; 7 of 9, 8 each
        (words(13), words(13, 1), True),
        (words(12), words(12, 1), False),
        (words(5), words(5), True),
        (words(5), words(5, 1), False),
        ("", "", False),
        (words(4), words(4), False),
        ("", words(9), False),
    ],
)
def test_near_duplicates_share_at_least_four_fifths(left: str, right: str, expected: bool) -> None:
    assert near(left, right) is expected
    assert near(right, left) is expected
