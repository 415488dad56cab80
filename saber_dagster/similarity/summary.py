"""Summary similarity: Jaccard's measure between the word sets of two core ideas."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from scipy import sparse


def word_incidence(
    word_sets: Sequence[Sequence[str]], vocabulary: Mapping[str, int]
) -> sparse.csr_array:
    """Which problem's summary has which word: (n_problems, n_words) of 0 and 1."""
    ends = np.cumsum([0, *(len(words) for words in word_sets)])
    columns = np.array([vocabulary[word] for words in word_sets for word in words], dtype=np.int64)
    ones = np.ones(columns.size, dtype=np.int32)
    return sparse.csr_array((ones, columns, ends), shape=(len(word_sets), len(vocabulary)))


def jaccard_similarity(left: sparse.csr_array, right: sparse.csr_array) -> npt.NDArray[np.float64]:
    """Size of the intersection by size of the union of word sets; 0 if both are empty.

    Both sizes are integers, so that a value is the correctly rounded quotient and equal quotients
    are equal numbers.

    Args:
        left: (n_left, n_words) from :func:`word_incidence`.
        right: (n_right, n_words) over the same vocabulary.

    Returns:
        (n_left, n_right) in [0, 1].

    Source: SABER-Math, "Summary-based relevance estimation".
    """
    common = (left @ right.T).toarray().astype(np.int64)
    sizes = np.diff(left.indptr)[:, None] + np.diff(right.indptr)
    quotient: npt.NDArray[np.float64] = common / np.maximum(sizes - common, 1)
    return quotient
