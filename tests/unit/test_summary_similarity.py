from saber_dagster.similarity.summary import jaccard_similarity, word_incidence

VOCABULARY = {word: i for i, word in enumerate("abcdefg")}


def jaccard(x: str, y: str) -> float:
    left, right = (word_incidence([list(words)], VOCABULARY) for words in (x, y))
    return float(jaccard_similarity(left, right)[0, 0])


def test_values_are_correctly_rounded_quotients() -> None:
    assert jaccard("abc", "bcd") == 2 / 4
    assert jaccard("abc", "cdefg") == 1 / 7
    assert jaccard("abcdef", "abcdef") == 1.0


def test_empty_sets_have_similarity_zero() -> None:
    assert jaccard("", "abc") == jaccard("abc", "") == jaccard("", "") == 0.0


def test_all_pairs_at_once() -> None:
    left = word_incidence([list("ab"), [], list("abc")], VOCABULARY)
    right = word_incidence([list("abcd"), list("g")], VOCABULARY)
    assert jaccard_similarity(left, right).tolist() == [[0.5, 0.0], [0.0, 0.0], [0.75, 0.0]]


def test_no_problems_and_no_words() -> None:
    nothing = word_incidence([], {})
    assert jaccard_similarity(nothing, nothing).shape == (0, 0)
    empty = word_incidence([[]], {})
    assert jaccard_similarity(empty, empty).tolist() == [[0.0]]
