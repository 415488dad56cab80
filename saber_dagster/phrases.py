"""Words, formulas and phrases of mathematical texts, as names of topics are looked for in them."""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files

MAX_CHARS = 100_000
"""How much of a problem or a solution is read; the rest of a longer text is ignored."""
BREAK = "."
"""Stands where a sentence ends: no phrase reaches across."""

_TOKEN = re.compile(
    r"\\(?:begin|end)\s*\{(?P<environment>[A-Za-z]+)\*?\}"
    r"|\\(?P<command>[A-Za-z]+)"
    r"|\b(?P<article>[Aa]|[Aa]n|[Tt]he)\s+(?=[^\W\d_]{2})"
    r"|(?P<word>[^\W\d_]{2,}(?:['’][^\W\d_]+)*|[^\W\d_](?:['’][^\W\d_]+)+)"
    r"|(?P<joint>(?<=[^\W\d_])[-–](?=[^\W\d_]{2})|(?<=[^\W\d_]{2})[-–](?=[^\W\d_]))"
    r"|(?P<stop>[.;:?])"
    r"|(?P<part>[^\W_]|[-+*/^_=<>≤≥!|(),'])"
)
_IRREGULAR = {
    "vertices": "vertex", "matrices": "matrix", "indices": "index", "radii": "radius",
    "axes": "axis", "bases": "base", "maxima": "maximum", "minima": "minimum",
    "extrema": "extremum", "parabolae": "parabola", "loci": "locus", "foci": "focus",
    "halves": "half", "series": "series", "lens": "lens",
}  # fmt: skip
_VOWEL = re.compile("[aeiouy]")
# Letters that authors exchange freely: a formula keeps its form when they are renamed.
_RENAMED = str.maketrans("bcdyzmnijABCDXYZ", "aaaxxkkkkAAAAXXX") | {ord("m"): "k", ord("n"): "k"}
_GROUP_SIZES = (2, 3)


@dataclass(frozen=True, slots=True)
class Phrases:
    """Phrases by their first part, for a search of the longest at each place.

    ``by_first[part]`` lists (length, phrases of that length with their numbers), longest first.
    """

    by_first: Mapping[str, tuple[tuple[int, Mapping[tuple[str, ...], int]], ...]]

    @classmethod
    def compile(cls, phrases: Mapping[tuple[str, ...], int]) -> "Phrases":
        """Index numbered phrases, each a result of :func:`phrase`."""
        index: dict[str, dict[int, dict[tuple[str, ...], int]]] = {}
        for phrase, number in phrases.items():
            index.setdefault(phrase[0], {}).setdefault(len(phrase), {})[phrase] = number
        return cls(
            {first: tuple(sorted(sizes.items(), reverse=True)) for first, sizes in index.items()}
        )

    def count(self, sequence: tuple[str, ...]) -> Counter[int]:
        """How often each phrase occurs: leftmost and longest first, without overlaps."""
        found: Counter[int] = Counter()
        end = 0
        by_first = self.by_first
        for start in [i for i, part in enumerate(sequence) if part in by_first]:
            if start < end:
                continue
            for size, table in by_first[sequence[start]]:
                number = table.get(sequence[start : start + size])
                if number is not None:
                    found[number] += 1
                    end = start + size
                    break
        return found


@lru_cache(maxsize=4096)
def read_text(text: str) -> tuple[str, ...]:
    """The first :data:`MAX_CHARS` characters of a text as the baseline reads them.

    In order: the stems of words and of what LaTeX commands stand for; the letters, digits and signs
    of formulas, one by one; and :data:`BREAK` where a sentence ends.
    """
    sequence: list[str] = []
    for match in _TOKEN.finditer(text[:MAX_CHARS]):
        kind, token = match.lastgroup, match[match.lastindex or 0]
        if kind == "part":
            sequence.append(token)
        elif kind == "word":
            sequence.extend(_spoken(token.lower()))
        elif kind in ("command", "environment"):
            sequence.extend(_spoken("\\" + token))
        elif kind == "stop":
            sequence.append(BREAK)
    return tuple(sequence)


def formula_groups(sequence: Sequence[str]) -> frozenset[str]:
    """Groups of two and three neighbours inside formulas, with letters renamed."""
    found: set[str] = set()
    run: list[str] = []
    for part in (*sequence, BREAK):
        if len(part) == 1 and part != BREAK:
            run.append(part.translate(_RENAMED))
            continue
        for size in _GROUP_SIZES:
            found.update(" ".join(run[i : i + size]) for i in range(len(run) - size + 1))
        run.clear()
    return frozenset(found)


def phrase(name: str) -> tuple[str, ...]:
    """A name as :func:`read_text` finds it; empty if it is a single letter, digit or sign."""
    found = tuple(part for part in read_text(name) if part != BREAK)
    return () if len(found) == 1 and len(found[0]) == 1 else found


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """A word without accents, plural and the endings -ing, -ed and -e, so that its forms meet."""
    word = word.replace("’", "'")
    word = word.removesuffix("'s").replace("'", "")
    if not word.isascii():
        decomposed = unicodedata.normalize("NFKD", word)
        word = "".join(c for c in decomposed if not unicodedata.combining(c))
    if word in _IRREGULAR:
        word = _IRREGULAR[word]
    elif word.endswith(("ies", "ied")) and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith(("sses", "xes", "ches", "shes", "zes")):
        word = word[:-2]
    elif word.endswith("s") and len(word) > 3 and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        root = word.removesuffix(ending)
        if root != word and len(root) >= 4 and root[-1] != "e" and _VOWEL.search(root):
            word = root[:-1] if root[-1] == root[-2] and root[-1] not in "ls" else root
            break
    return word[:-1] if word.endswith("e") and len(word) > 4 else word


@lru_cache(maxsize=65_536)
def _spoken(token: str) -> tuple[str, ...]:
    spoken, name = _latex_words(), token.removeprefix("\\")
    words = spoken.get(token, spoken.get(name, name.lower()))
    return tuple(stem(word) for word in words.split())


@cache
def _latex_words() -> Mapping[str, str]:
    text = files("saber_dagster").joinpath("data/latex_words.tsv").read_text(encoding="utf-8")
    lines = (line for line in text.splitlines() if line.strip() and not line.startswith("#"))
    rows = (line.partition("\t") for line in lines)
    return {command: words for command, _, words in rows}
