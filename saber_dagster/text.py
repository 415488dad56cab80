"""Words of mathematical texts."""

import re
from functools import cache
from importlib.resources import files

_WORD = re.compile(r"[^\W_]+")


def words(text: str) -> list[str]:
    """Lower-cased alphanumeric sequences, in order.

    Source: SABER-Math, appendix "Computing the Jaccard Similarity".
    """
    return _WORD.findall(text.lower())


@cache
def stop_words() -> frozenset[str]:
    """Scikit-learn's English stop words and our own mathematical ones.

    The paper's mathematical list is in its supplementary material, which we do not have; ours is
    ``data/math_stop_words.txt``: words that nearly every solution summary uses whatever its method.
    """
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    own = files("saber_dagster").joinpath("data/math_stop_words.txt").read_text(encoding="utf-8")
    lines = (line.strip() for line in own.splitlines())
    return frozenset(ENGLISH_STOP_WORDS) | {line for line in lines if line and line[0] != "#"}


def content_words(text: str) -> frozenset[str]:
    """The word set T(s) of a summary: unique words without stop words.

    Source: SABER-Math, section "Scoring Problem Pair Relevance using Short Solution Summaries".
    """
    return frozenset(words(text)) - stop_words()
