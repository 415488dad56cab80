"""Texts that are too long for a model: cut where no formula breaks, the longest first."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from saber_dagster.engines import CLEANING, LATEX_FORMATTING, SEGMENTATION, TRANSLATION
from saber_dagster.errors import SaberError
from saber_dagster.formulas import formulas

CUT = " [… cut]"
"""What stands in place of the end of a text that was cut."""
LEAST_TOKENS = 16
"""A limit that leaves a text fewer tokens than this is an error: the model would see nothing."""
WHOLE = frozenset({LATEX_FORMATTING, SEGMENTATION, CLEANING, TRANSLATION})
"""Tasks whose reply stands for the text: a part would be a wrong document, so nothing is cut."""

Span = tuple[int, int]

_TEXTS = ("problem", "solution")
_PARAGRAPH = re.compile(r"\n[ \t\r]*\n")
_SENTENCE = re.compile(r"[.!?…][\"')\]}’”]*(?=\s)|[。！？]")
_SPACE = re.compile(r"\s+")


def fit(
    texts: Mapping[str, str], limit: int, count: Callable[[str], int], what: str = "a call"
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Cut texts so that together they have at most ``limit`` tokens.

    Short texts stay whole: the limit is shared out so that only texts longer than a common level are
    cut, to that level. A cut lies outside any formula (see :mod:`saber_dagster.formulas`), at the end
    of a paragraph if there is one in the last quarter, else of a sentence, else of a word, else
    between two characters; then comes :data:`CUT`. Nothing is cut if all fit.

    Args:
        texts: by name.
        limit: most tokens of all texts together.
        count: tokens of a text.
        what: names the call in messages.

    Returns:
        The texts, and the names of those that were cut.

    Raises:
        SaberError: if the limit leaves a text fewer than :data:`LEAST_TOKENS` tokens.
    """
    counts = {name: count(text) for name, text in texts.items()}
    level = _level(sorted(counts.values()), limit)
    if level is None:
        return dict(texts), ()
    if level < max(LEAST_TOKENS, count(CUT)):
        raise SaberError(
            f"{what}: {len(texts)} texts of {sum(counts.values()):,} tokens do not fit into the"
            f" {max(limit, 0):,} that the limit of the input leaves for them, not even cut. Use a model"
            " or server with a longer context, or a lower max_tokens"
        )
    cut = tuple(name for name in texts if counts[name] > level)
    shortened = {name: _cut(texts[name], counts[name], level, count) for name in cut}
    return {**texts, **shortened}, cut


def input_texts(task: str, inputs: Mapping[str, Any]) -> dict[str, str]:
    """The texts of a call that may be cut, such as ``query.problem``; none for :data:`WHOLE` tasks."""
    return {} if task in WHOLE else dict(_walk(inputs))


def with_texts(
    inputs: Mapping[str, Any], texts: Mapping[str, str], prefix: str = ""
) -> dict[str, Any]:
    """The inputs with other texts, named as by :func:`input_texts`."""
    changed: dict[str, Any] = {}
    for name, value in inputs.items():
        place = f"{prefix}{name}"
        if isinstance(value, Mapping):
            changed[name] = with_texts(value, texts, f"{place}.")
        elif name == "solutions":
            changed[name] = tuple(texts[f"{place}.{n}"] for n in range(len(value)))
        else:
            changed[name] = texts.get(place, value)
    return changed


def _walk(inputs: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in inputs.items():
        place = f"{prefix}{name}"
        if isinstance(value, Mapping):
            yield from _walk(value, f"{place}.")
        elif name == "solutions":
            yield from ((f"{place}.{n}", text) for n, text in enumerate(value))
        elif name in _TEXTS:
            yield place, value


def _level(counts: list[int], limit: int) -> int | None:
    """The length to which longer texts are cut; None if all fit. ``counts`` are sorted."""
    for position, tokens in enumerate(counts):
        share = limit // (len(counts) - position)
        if tokens > share:
            return share
        limit -= tokens
    return None


def _cut(text: str, tokens: int, level: int, count: Callable[[str], int]) -> str:
    spans = formulas(text)

    def shortened(end: int) -> str:
        return text[:end].rstrip() + CUT

    end = _reach(len(text), tokens, level, lambda end: count(shortened(end)))
    while (end := _boundary(text, end, spans)) and count(shortened(end)) > level:
        end -= 1
    return shortened(end)


def _reach(length: int, tokens: int, level: int, size: Callable[[int], int]) -> int:
    """The most characters that fit, or up to 3 % fewer: a real tokenizer is slow, so few counts."""
    low, at_low, high, at_high = 0, size(0), length, tokens
    while high - low > max(1, high // 32):
        gap = high - low
        guess = low + gap * (level - at_low) // max(at_high - at_low, 1)
        guess = min(max(guess, low + max(gap // 8, 1)), high - max(gap // 8, 1))
        tokens = size(guess)
        if tokens <= level:
            low, at_low = guess, tokens
        else:
            high, at_high = guess, tokens
    return low


def _boundary(text: str, end: int, spans: list[Span]) -> int:
    """The best place to cut at or before ``end``."""
    end = _outside(end, spans)
    for pattern, share in ((_PARAGRAPH, 4), (_SENTENCE, 4), (_SPACE, 2)):
        ends = [
            place
            for found in pattern.finditer(text, end - end // share, min(end + 1, len(text)))
            for place in [found.end() if pattern is _SENTENCE else found.start()]
            if 0 < place <= end and _outside(place, spans) == place
        ]
        if ends:
            return ends[-1]
    return end


def _outside(place: int, spans: list[Span]) -> int:
    """The place itself, or the start of the formula that it lies in."""
    before = bisect_right(spans, (place, 0)) - 1
    if before >= 0 and spans[before][0] < place < spans[before][1]:
        return spans[before][0]
    return place
