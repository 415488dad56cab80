"""What the embedded baseline knows of words: their weights, named techniques, a vocabulary.

All of it depends on data files in the package, never on a user's corpus.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from saber_dagster.phrases import Phrases, phrase, stem
from saber_dagster.text import stop_words

DATA_FILES = (
    "latex_words.tsv",
    "math_words.txt",
    "technique_terms.txt",
    "vector_centre.txt",
    "word_weights.tsv",
)
DEFAULT_WEIGHT = "*"
"""The row of the weights file that holds for every token it does not list."""


@cache
def weights() -> Mapping[str, float]:
    """Weights of stems and formula parts, rare ones larger; :data:`DEFAULT_WEIGHT` for the rest."""
    rows = (line.split("\t") for line in _lines("word_weights.tsv"))
    return {token: float(weight) for token, weight in rows}


def weight(token: str) -> float:
    """The weight of a stem or formula part."""
    table = weights()
    return table.get(token, table[DEFAULT_WEIGHT])


@dataclass(frozen=True, slots=True)
class Techniques:
    """Named solution techniques, numbered, their weights and the phrases that mention them."""

    names: tuple[str, ...]
    weights: tuple[float, ...]
    phrases: Phrases


@cache
def techniques() -> Techniques:
    """The techniques of ``technique_terms.txt``: ``name: other wording | other wording``."""
    names: list[str] = []
    found: dict[tuple[str, ...], int] = {}
    for line in _lines("technique_terms.txt"):
        name, _, variants = line.partition(":")
        for wording in (name, *variants.split("|")):
            if words := phrase(wording):
                found.setdefault(words, len(names))
        names.append(name.strip())
    heavy = tuple(math.fsum(map(weight, phrase(name))) for name in names)
    return Techniques(tuple(names), heavy, Phrases.compile(found))


@cache
def vocabulary() -> Mapping[str, str]:
    """Stem to the word that a summary shows, for the mathematical words that may stand in one."""
    shown: dict[str, str] = {}
    for word in _lines("math_words.txt"):
        if word not in stop_words():
            shown.setdefault(stem(word), word)
    return shown


def _lines(name: str) -> Iterator[str]:
    text = files("saber_dagster").joinpath("data", name).read_text(encoding="utf-8")
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            yield line
