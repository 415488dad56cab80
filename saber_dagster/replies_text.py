"""Parsers of replies that are texts; their grammar is in :mod:`saber_dagster.replies`.

There is no JSON form of a text: a LaTeX command in a JSON string decodes to a control character.
"""

import re
from dataclasses import dataclass

from saber_dagster.reply_grammar import ParseError, refuse_control


@dataclass(frozen=True, slots=True)
class Segment:
    """A problem of a longer document; ``solution`` is None if the document has none for it."""

    problem: str
    solution: str | None


def parse_latex(text: str) -> str:
    """The text with its mathematics as LaTeX.

    Raises:
        ParseError: see :func:`last_element`.
    """
    return last_element(text, "latex")


def parse_cleaned(text: str) -> str:
    """The text without what does not belong to it.

    Raises:
        ParseError: see :func:`last_element`.
    """
    return last_element(text, "cleaned")


def parse_translation(text: str) -> str:
    """The text in English.

    Raises:
        ParseError: see :func:`last_element`.
    """
    return last_element(text, "translation")


def parse_segments(text: str, source: str) -> tuple[Segment, ...]:
    """The problems of a document, in the order of the reply.

    Args:
        text: the reply.
        source: the document. Every part must occur in it, but for white space.

    Raises:
        ParseError: if there is no problem, a part is empty or not in the source, a solution follows no
            problem, tags are not balanced, or there are control characters.
    """
    refuse_control(text)
    segments: list[Segment] = []
    searched = _spaceless(source)
    for tag, part in _elements(text, "problem", "solution"):
        if _spaceless(part) not in searched:
            raise ParseError(f"a <{tag}> is not in the document: {part[:60]!r}")
        if tag == "problem":
            segments.append(Segment(part, None))
        elif segments and segments[-1].solution is None:
            segments[-1] = Segment(segments[-1].problem, part)
        else:
            raise ParseError("a <solution> that follows no <problem>")
    if not segments:
        raise ParseError("the reply has no <problem>…</problem>")
    return tuple(segments)


def last_element(text: str, tag: str) -> str:
    """The text in the last ``<tag>…</tag>``, without white space around it.

    Raises:
        ParseError: if there is none, it is empty, tags are not balanced, or there are control
            characters.
    """
    refuse_control(text)
    found = [part for _, part in _elements(text, tag)]
    if not found:
        raise ParseError(f"the reply has no <{tag}>…</{tag}>")
    return found[-1]


def _elements(text: str, *tags: str) -> list[tuple[str, str]]:
    """Tag and content of each element, in order; none of the tags may stand inside another."""
    found: list[tuple[str, str]] = []
    opened: tuple[str, int] | None = None
    for mark in re.finditer(rf"<(/?)({'|'.join(tags)})>", text):
        closing, tag = bool(mark[1]), mark[2]
        if closing != (opened is not None) or (opened and opened[0] != tag):
            raise ParseError(f"{mark[0]} at {mark.start() + 1} does not fit: tags are not balanced")
        if opened:
            content = text[opened[1] : mark.start()].strip()
            if not content:
                raise ParseError(f"<{tag}> is empty")
            found.append((tag, content))
            opened = None
        else:
            opened = tag, mark.end()
    if opened:
        raise ParseError(f"<{opened[0]}> is not closed")
    return found


def _spaceless(text: str) -> str:
    return "".join(text.split())
