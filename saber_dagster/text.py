"""Words of mathematical texts."""

import re
from functools import cache
from importlib.metadata import version
from importlib.resources import files

from saber_dagster.hashing import sha256_hex

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


def stop_words_version() -> str:
    """What decides the stop words: a digest of our list, and scikit-learn's version."""
    own = files("saber_dagster").joinpath("data/math_stop_words.txt").read_bytes()
    return f"{sha256_hex(own)[:12]} scikit-learn {version('scikit-learn')}"


def content_words(text: str) -> frozenset[str]:
    """The word set T(s) of a summary: unique words without stop words.

    Source: SABER-Math, section "Scoring Problem Pair Relevance using Short Solution Summaries".
    """
    return frozenset(words(text)) - stop_words()
