r"""Characters that no text should have, and what they say about how a file was made.

A LaTeX command whose backslash was not doubled in JSON decodes without an error: ``\frac`` becomes a
form feed and ``rac``, ``\theta`` a tab and ``heta``, ``\neq`` a line feed and ``eq``.
"""

import re

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Control characters other than tab and line feed."""
SURROGATE = re.compile(r"[\ud800-\udfff]")
INVISIBLE = re.compile("[\u00ad\u200b\u2060-\u2064\ufeff]")
"""Soft hyphen, zero-width space, word joiner, invisible operators, byte order mark. Joiners and marks
of direction are not among them: some scripts need those."""
OVERRIDE = re.compile("[\u202d\u202e]")
"""Marks that force a direction of writing, so that a text reads as something else than it is."""
_DIRECTION = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069]")
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
"""What an earlier conversion left in place of a character that it could not read."""

_ESCAPES = {"\x07": r"\alpha", "\x08": r"\beta", "\x0b": r"\vec", "\x0c": r"\frac", "\r": r"\rho"}
_EATEN = re.compile(
    r"\t(?:heta|au|imes|frac|riangle|herefore|ilde|binom|anh|ext(?:bf|it|rm|tt)?(?=\{))(?![a-zA-Z])"
    r"|\n(?:eq|abla|otin|exists)(?![a-zA-Z])"
)


def impossible_character(text: str) -> tuple[str, str] | None:
    """Problem and remedy of the first control character or lone surrogate of a text."""
    if bad := CONTROL.search(text):
        remedy = "Remove it"
        if command := _ESCAPES.get(bad[0]):
            remedy = rf"Probably a LaTeX command that was not escaped ({command}): write \{command}"
        return f"has the control character {_code(bad)}", remedy
    if bad := SURROGATE.search(text):
        remedy = "Half of a character is lost: write the text again as UTF-8"
        return f"has the lone surrogate {_code(bad)}", remedy
    return None


def invisible_character(text: str) -> tuple[str, str] | None:
    """Problem and remedy of the first character that nobody sees in a name.

    Names that look alike would differ by it, so that nobody could refer to them.
    """
    if bad := INVISIBLE.search(text) or _DIRECTION.search(text):
        return f"has the invisible character {_code(bad)}", "Remove it, or type the name anew"
    return None


def is_blank(text: str) -> bool:
    """Whether there is nothing to see: white space and invisible characters only."""
    return not INVISIBLE.sub("", text).strip()


def has_eaten_command(text: str) -> bool:
    r"""Whether a tab or line feed stands where the start of a LaTeX command such as ``\theta`` was."""
    return bool(_EATEN.search(text))


def _code(found: re.Match[str]) -> str:
    return f"U+{ord(found[0]):04X} at {found.start() + 1}"
