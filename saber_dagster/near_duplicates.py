"""Near-duplicate problems: texts that share most of their runs of five words."""

import polars as pl

from saber_dagster.errors import SaberError
from saber_dagster.text import words

WORDS = 5
"""Words of a run."""


def word_runs(text: str) -> frozenset[tuple[str, ...]]:
    """All runs of five consecutive words of a text, its word 5-grams.

    Words are those of :func:`saber_dagster.text.words`: case, white space, signs and operators do
    not count. A text of fewer than five words has none.
    """
    found = words(text)
    return frozenset(zip(*(found[start:] for start in range(WORDS)), strict=False))


def are_near_duplicates(
    left: frozenset[tuple[str, ...]], right: frozenset[tuple[str, ...]]
) -> bool:
    """Whether the Jaccard similarity of the runs of two texts is at least 0.8.

    It is decided in integers. Two texts without runs are not similar.
    """
    few, many = sorted((len(left), len(right)))
    if not few or 5 * few < 4 * many:
        return False
    common = len(left & right)
    return 5 * common >= 4 * (few + many - common)


class ProblemRuns:
    """The runs of words of each problem, made when they are asked for.

    Args:
        corpus: table ``corpus``; columns doc_id and problem are read.
        ids: the ids of ``problem_index``, in its order.
    """

    def __init__(self, corpus: pl.DataFrame, ids: pl.Series) -> None:
        self._ids = ids
        known = ids.rename("doc_id").to_frame()
        texts = corpus.select("doc_id", "problem")
        self._texts = known.join(texts, on="doc_id", how="left", maintain_order="left")["problem"]

    def of(self, position: int) -> frozenset[tuple[str, ...]]:
        """:func:`word_runs` of the problem at a position in ``problem_index``.

        Raises:
            SaberError: the corpus has no such document.
        """
        text = self._texts[position]
        if text is None:
            raise SaberError(
                f"corpus: no document {self._ids[position]}, which problem_index has. Materialize"
                " problem_index again: the corpus has changed since"
            )
        return word_runs(text)
