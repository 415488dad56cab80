r"""Where the formulas of a text lie, so that nothing cuts through one.

A formula is ``$…$``, ``$$…$$``, ``\(…\)``, ``\[…\]``, or one of :data:`ENVIRONMENTS`. One that is not
closed ends with its paragraph if it began with ``$`` or ``\(``, as TeX has it, else with the text.
"""

import re
from collections import Counter
from dataclasses import dataclass

# fmt: off
ENVIRONMENTS = frozenset({
    "math", "displaymath", "equation", "eqnarray", "align", "alignat", "aligned",
    "alignedat", "flalign", "gather", "gathered", "multline", "multlined", "split", "cases",
    "dcases", "rcases", "array", "subarray", "matrix", "pmatrix", "bmatrix", "Bmatrix",
    "vmatrix", "Vmatrix", "smallmatrix", "tabular", "CD", "tikzpicture", "tikzcd", "asy",
    "prooftree", "verbatim", "lstlisting",
})
# fmt: on
"""Environments that are one piece, with or without a star. Others, such as ``proof``, are text."""

_TOKEN = re.compile(
    r"\\begin\s*\{\s*(?P<begin>[A-Za-z]+)\*?\s*\}"
    r"|\\end\s*\{\s*(?P<end>[A-Za-z]+)\*?\s*\}"
    r"|(?P<open>\\[(\[])"
    r"|(?P<close>\\[)\]])"
    r"|\\."  # \\ and \$ and \{ too, so that \\[2pt] opens nothing
    r"|(?P<dollars>\$+)"
    r"|(?P<brace>[{}])"
    r"|(?P<blank>\n[ \t\r]*\n)",
    re.DOTALL,
)
_OPENER = {r"\)": r"\(", r"\]": r"\["}


@dataclass(frozen=True, slots=True)
class _Open:
    """An opener that waits for its end: what, where, and how many braces were open then."""

    what: str
    start: int
    braces: int


class _Scanner:
    """The openers that wait, innermost last, and the outermost formulas that are complete."""

    def __init__(self) -> None:
        self.spans: list[tuple[int, int]] = []
        self._open: list[_Open] = []
        self._waiting: Counter[str] = Counter()  # how many of each are open: no search in vain
        self._dollar: list[int] = []  # where "$" stands in _open
        self._braces = 0

    def scan(self, text: str) -> None:
        for token in _TOKEN.finditer(text):
            match token.lastgroup:
                case "begin" if token["begin"] in ENVIRONMENTS:
                    self._begin(token["begin"], token.start())
                case "end":
                    self._end(token["end"], token.end())
                case "open":
                    self._begin(token[0], token.start())
                case "close":
                    self._end(_OPENER[token[0]], token.end())
                case "dollars":
                    self._dollars(token.start(), token.end())
                case "brace":
                    self._braces += 1 if token[0] == "{" else -1
                case "blank":
                    while self._open and self._open[-1].what in ("$", r"\("):
                        self._end(self._open[-1].what, token.start())
        if self._open:
            self.spans.append((self._open[0].start, len(text)))

    def _begin(self, what: str, start: int) -> None:
        if not self._open:
            self._braces = 0
        if what == "$":
            self._dollar.append(len(self._open))
        self._open.append(_Open(what, start, self._braces))
        self._waiting[what] += 1

    def _end(self, what: str, end: int) -> None:
        """Close the innermost ``what``, and whatever is still open inside it."""
        if not self._waiting[what]:
            return
        closed = None
        while closed is None or closed.what != what:
            closed = self._open.pop()
            self._waiting[closed.what] -= 1
            if closed.what == "$":
                self._dollar.pop()
        self._braces = closed.braces
        if not self._open:
            self.spans.append((closed.start, end))

    def _dollars(self, at: int, end: int) -> None:
        r"""``$`` in deeper braces than an open ``$`` is one inside its text, as in ``\text{$x$}``."""
        while at < end:
            if self._dollar and self._braces <= self._open[self._dollar[-1]].braces:
                at += 1
                self._end("$", at)
            elif end - at >= 2:
                if self._waiting["$$"]:
                    self._end("$$", at + 2)
                else:
                    self._begin("$$", at)
                at += 2
            else:
                self._begin("$", at)
                at += 1


def formulas(text: str) -> list[tuple[int, int]]:
    """Start and end of each formula, in order; one inside another is part of that one."""
    scanner = _Scanner()
    scanner.scan(text)
    return scanner.spans
