"""Texts with LaTeX as HTML: formulas become MathML, everything else is escaped.

Texts are a user's, and must not become markup. What the converter makes of a formula is looked at
before it is used: only MathML elements, and no attribute that could lead or run anywhere.
"""

import html
import re
from functools import cached_property
from typing import Any
from xml.etree import ElementTree

from markupsafe import Markup, escape

LONGEST_FORMULA = 2_000
"""Characters. A longer formula is shown as its source: the converter is recursive, and some thousand
open braces would overflow its stack."""
LONGEST_TEXT = 20_000
"""Characters of a text that are shown."""

_FORMULA = re.compile(
    r"(?P<literal>\\\\|\\\$)"
    r"|\$\$(?P<dollars>.{1,4000}?)\$\$"
    r"|\\\[(?P<bracket>.{1,4000}?)\\\]"
    r"|\\\((?P<paren>.{1,4000}?)\\\)"
    r"|(?P<environment>\\begin\{(?P<name>(?:align|alignat|equation|gather|multline)\*?)\}"
    r".{1,4000}?\\end\{(?P=name)\})"
    # a price is not a formula: "$5 and $10", nor is what lies between two signs with space inside
    r"|\$(?!\s)(?P<inline>(?:\\.|[^$\\\s]|\s(?!\$)){1,4000}?)\$(?!\d)",
    re.DOTALL,
)
_BREAKS = re.compile(r'[ \t]*\n?[ \t]*(<math display="block">.*?</math>)[ \t]*\n?', re.DOTALL)
"""A displayed formula has a line of its own as it is."""
_PARAGRAPH = re.compile(r"\n[ \t]*\n\s*")
_LABEL = re.compile(r"\\label\s*\{[^{}]*\}")
_NUMBERED = re.compile(r"\\(begin|end)\{(align|alignat|equation|gather|multline)\}")
_SUBSTACK = re.compile(r"\\substack\s*\{((?:[^{}]|\{[^{}]*\})*)\}")
_RENAMED = (
    (re.compile(r"\\[mh]box(?![A-Za-z])"), r"\\text"),
    (re.compile(r"\\pmb(?![A-Za-z])"), r"\\boldsymbol"),
    (re.compile(r"\\smallsetminus(?![A-Za-z])"), r"\\setminus"),
)
"""Commands that the converter lacks, and what comes closest."""
_DEFINITION = re.compile(
    r"\\(?:(?:re)?newcommand|providecommand|[egx]?def|(?:future)?let|DeclareMathOperator)(?![A-Za-z])"
)
"""A formula that defines commands could nest them deeper than its length says."""
_NOT_LATEX = re.compile(
    r"(?<!\\sin|\\cos|\\tan|\\cot|\\log)[_^]\s*(?:\d\d|\()"  # but \sin^22x is one
    r"|(?<![\\A-Za-z])(?:sqrt|sum|prod)(?![A-Za-z])"
)
"""Mathematics in plain text, such as 3^105, x_(n+1) or sqrt(2): read as LaTeX, it says another thing."""
_ENTITY = re.compile(r"&(?!amp;|lt;|gt;|quot;|apos;)[A-Za-z]\w*;")
_ELEMENTS = {
    *("math", "mi", "mn", "mo", "ms", "mtext", "mspace", "mrow", "mfrac", "msqrt", "mroot"),
    *("mstyle", "mpadded", "mphantom", "msub", "msup", "msubsup", "munder", "mover", "munderover"),
    *("mmultiscripts", "mprescripts", "none", "mtable", "mtr", "mtd"),
}
_ATTRIBUTES = {
    *("accent", "accentunder", "class", "columnalign", "depth", "display", "displaystyle"),
    *("fence", "form", "height", "largeop", "linethickness", "lspace", "mathvariant", "maxsize"),
    *("minsize", "movablelimits", "rspace", "scriptlevel", "separator", "stretchy", "style"),
    *("symmetric", "voffset", "width"),
}
_LENGTH = re.compile(r"(\d*\.?\d+)(em|ex|rem|px|pt)\b")
_LONGEST = {"em": 30, "ex": 60, "rem": 30, "px": 500, "pt": 360}
"""A formula with a longer space, rule or shift would tear the page apart."""


class Mathematics:
    """Converts texts, and counts formulas.

    Attributes:
        converted: formulas that became MathML.
        failed: sources of the others, in order, which are shown as they are: the converter does not
            know them, or they are no LaTeX.
    """

    def __init__(self) -> None:
        self.converted = 0
        self.failed: list[str] = []
        self._known: dict[tuple[str, bool], Markup | None] = {}

    @cached_property
    def _converter(self) -> Any:
        from math_core import LatexToMathML

        return LatexToMathML(allow_unreliable_rendering=True, fancy_error=False)

    def html(self, text: str) -> Markup:
        """A text as paragraphs."""
        shown, left_out = _cut(text)
        parts = (part for part in _PARAGRAPH.split(shown.strip()) if part)
        body = Markup("").join(Markup('<p dir="auto">{}</p>').format(self._run(p)) for p in parts)
        return body + Markup('<p class="note">{}</p>').format(left_out) if left_out else body

    def line(self, text: str) -> Markup:
        """A text without paragraphs, which can stand within a line."""
        shown, left_out = _cut(text)
        return self._run(shown.strip()) + (f" ({left_out})" if left_out else "")

    def _run(self, text: str) -> Markup:
        made, end = [], 0
        for found in _FORMULA.finditer(text):
            made += [escape(text[end : found.start()]), self._formula(found)]
            end = found.end()
        run = Markup("").join([*made, escape(text[end:])])
        return Markup(_BREAKS.sub(r"\1", str(run)))

    def _formula(self, found: re.Match[str]) -> Markup:
        if found["literal"]:
            return escape(found[0].removeprefix("\\") if found[0] == "\\$" else found[0])
        inline = found["inline"] or found["paren"]
        source = inline or found["dollars"] or found["bracket"] or found["environment"]
        mathml = self._mathml(source, display=inline is None)
        if mathml is None:
            self.failed.append(found[0])
            return Markup('<code class="latex">{}</code>').format(found[0])
        self.converted += 1
        return mathml

    def _mathml(self, source: str, display: bool) -> Markup | None:
        key = (source, display)
        if key not in self._known:
            self._known[key] = self._convert(source, display)
        return self._known[key]

    def _convert(self, source: str, display: bool) -> Markup | None:
        from math_core import LatexError

        if not source.strip() or len(source) > LONGEST_FORMULA:
            return None
        if _DEFINITION.search(source) or _NOT_LATEX.search(source):
            return None
        source = _NUMBERED.sub(r"\\\1{\2*}", _LABEL.sub("", source))
        source = _SUBSTACK.sub(r"\\begin{matrix}\1\\end{matrix}", source)
        for pattern, instead in _RENAMED:
            source = pattern.sub(instead, source)
        try:
            made = self._converter.convert_with_local_state(source, displaystyle=display)
        except LatexError:
            return None
        made = _ENTITY.sub(lambda entity: html.unescape(entity[0]), made)
        return Markup(made) if _is_plain(made) else None


def _cut(text: str) -> tuple[str, str]:
    """The part of a text that is shown, and what is left out, in words."""
    left_out = len(text) - LONGEST_TEXT
    return text[
        :LONGEST_TEXT
    ], f"{left_out:,} more characters are not shown" if left_out > 0 else ""


def _is_plain(mathml: str) -> bool:
    """Whether it is well-formed MathML that does nothing but show a formula."""
    try:
        elements = list(ElementTree.fromstring(mathml).iter())
    except ElementTree.ParseError:
        return False
    return all(
        element.tag in _ELEMENTS
        and set(element.attrib) <= _ATTRIBUTES
        and "url" not in element.attrib.get("style", "").lower()
        and all(
            float(number) <= _LONGEST[unit]
            for value in element.attrib.values()
            for number, unit in _LENGTH.findall(value)
        )
        for element in elements
    )
