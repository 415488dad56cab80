"""Word sets as arrays: which summary has which words."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl


@dataclass(frozen=True)
class WordSets:
    """Sets of word ids, one after the other.

    Args:
        indptr: (n_sets + 1,) set i has ``words[indptr[i]:indptr[i + 1]]``.
        words: (n_occurrences,) word ids below ``n_words``, ascending within a set, each once.
        n_words: size of the vocabulary.

    Raises:
        ValueError: the arrays break these rules.
    """

    indptr: npt.NDArray[np.int64]
    words: npt.NDArray[np.int32]
    n_words: int

    def __post_init__(self) -> None:
        """Check everything that the kernels rely on: they do not check bounds."""
        ends = self.indptr
        if ends.ndim != 1 or ends.dtype != np.int64 or self.words.dtype != np.int32:
            raise ValueError("word sets need an indptr of int64 and words of int32")
        if ends.size == 0 or ends[0] or ends[-1] != self.words.size or (np.diff(ends) < 0).any():
            raise ValueError("the indptr of word sets must ascend from 0 to the number of words")
        if self.words.size and not 0 <= self.words.min() <= self.words.max() < self.n_words:
            raise ValueError(f"word ids must be at least 0 and less than {self.n_words}")
        starts = np.zeros(self.words.size + 1, dtype=np.bool_)
        starts[ends] = True
        if not ((np.diff(self.words) > 0) | starts[1:-1]).all():
            raise ValueError("word ids must ascend within a set")

    @classmethod
    def of(cls, word_sets: Sequence[Collection[str]], vocabulary: Mapping[str, int]) -> "WordSets":
        """Number the words of each set; a word that is given twice counts once.

        Raises:
            KeyError: a word is not in the vocabulary.
        """
        sizes = np.fromiter((len(words) for words in word_sets), np.int64, len(word_sets))
        ids = (vocabulary[word] for words in word_sets for word in words)
        return cls._of(sizes, np.fromiter(ids, np.int64, int(sizes.sum())), len(vocabulary))

    @classmethod
    def of_lists(cls, words: pl.Series) -> "WordSets":
        """Number the words of each list of words in their alphabetical order.

        Args:
            words: lists of strings, in any order; a word that is given twice counts once.
        """
        every = words.explode(empty_as_null=False).drop_nulls()
        vocabulary = every.unique().sort()
        ids = every.cast(pl.Enum(vocabulary)).to_physical().cast(pl.Int64).to_numpy()
        return cls._of(words.list.len().cast(pl.Int64).to_numpy(), ids, len(vocabulary))

    @classmethod
    def _of(cls, sizes: npt.NDArray[np.int64], ids: npt.NDArray[Any], n_words: int) -> "WordSets":
        rows = np.repeat(np.arange(sizes.size), sizes)
        # one number per occurrence sorts by set, then word, and shows repetitions
        width = max(n_words, 1)
        keys = rows * width + ids
        if not (np.diff(keys) > 0).all():
            keys = np.sort(keys)  # np.unique hashes first, which takes seconds
            keys = keys[np.diff(keys, prepend=-1) > 0]
        ends = np.searchsorted(keys, np.arange(sizes.size + 1) * width)
        return cls(ends.astype(np.int64), (keys % width).astype(np.int32), n_words)

    @property
    def sizes(self) -> npt.NDArray[np.int64]:
        """(n_sets,) how many words each set has."""
        return np.diff(self.indptr)

    def __len__(self) -> int:
        """The number of sets."""
        return self.indptr.size - 1

    def take(self, sets: npt.NDArray[Any]) -> "WordSets":
        """The sets at these positions, in this order."""
        sizes = self.sizes[sets]
        ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        places = np.arange(ends[-1]) + np.repeat(self.indptr[:-1][sets] - ends[:-1], sizes)
        return WordSets(ends, self.words[places], self.n_words)
