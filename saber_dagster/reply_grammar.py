"""What the parsers of replies share: the error, tagged text, the JSON form."""

import json
import math
import re
from typing import Any

CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)")
"""Control characters that no text has: tab, line feed and CRLF are not among them."""

_FENCED = re.compile(r"```(?:json)?\s*\n(.*)\n\s*```", re.DOTALL)


class ParseError(ValueError):
    """A complete reply that does not follow the grammar. It never becomes a score or a vote."""


def refuse_control(text: str) -> None:
    """Raise ``ParseError`` if there are control characters."""
    if found := CONTROL.search(text):
        raise ParseError(
            f"control characters in the reply (U+{ord(found[0]):04X}; a LaTeX command that was"
            " unescaped?)"
        )


def number_in(value: object, what: str, low: float, high: float) -> float:
    """A number, given as text or as a JSON value, in [low, high].

    Raises:
        ParseError: if it is none (true and false are none), or lies outside.
    """
    plain = value.isascii() and "_" not in value if isinstance(value, str) else True
    if not plain or isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ParseError(f"{what} is not a number: {value!r}")
    try:
        number = float(value)
    except (ValueError, OverflowError):
        raise ParseError(f"{what} is not a number: {value!r}") from None
    if not (math.isfinite(number) and low <= number <= high):
        raise ParseError(f"{what} is outside [{low:g}, {high:g}]: {value}")
    return number


def whole_number_in(value: object, what: str, low: int, high: int) -> int:
    """A whole number, given as decimal digits or as a JSON integer, in [low, high].

    Raises:
        ParseError: if it is none, or lies outside.
    """
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 9:
        value = int(value)
    if type(value) is not int:
        raise ParseError(f"{what} is not a whole number: {value!r}")
    if not low <= value <= high:
        raise ParseError(f"{what} is outside {low} to {high}: {value}")
    return value


def last_tag(text: str, tag: str) -> str:
    """What stands in the last ``<tag>``, without the white space around it.

    Earlier ones, which may be quoted, do not count; nor does an earlier one count if the last is not
    closed.

    Raises:
        ParseError: if there is none, or the last is not closed.
    """
    *_, opened = re.split(rf"<{tag}>", text, flags=re.IGNORECASE)
    inside = re.match(rf"([^<]*)</{tag}>", opened, re.IGNORECASE)
    if not inside or len(opened) == len(text):
        raise ParseError(f"the reply does not end with <{tag}>…</{tag}>")
    return inside[1].strip(" \t\r\n")


def json_form(text: str, key: str, *others: str) -> Any | None:
    """The value of ``key`` if the reply is one JSON object, as it is or in a code fence.

    Args:
        text: the reply.
        key: what the reply must have.
        others: what it may have besides.

    Returns:
        The value, or None if the reply is not of the JSON form. ``null`` is an error.

    Raises:
        ParseError: if it is not JSON, names a key twice or an unknown one, lacks the key, or has NaN.
    """
    bare = text.strip()
    if fenced := _FENCED.fullmatch(bare):
        bare = fenced[1].strip()
    if not (bare.startswith("{") and bare.endswith("}")):
        return None
    try:
        value = json.loads(bare, object_pairs_hook=_distinct, parse_constant=_refuse_constant)
    except ParseError:
        raise
    except (ValueError, RecursionError) as error:
        raise ParseError(f"not JSON: {str(error)[:200]}") from None
    if unknown := sorted(value.keys() - {key, *others}):
        raise ParseError(f"unknown key {unknown[0]!r}; the JSON form has {key!r}")
    if value.get(key) is None:
        raise ParseError(f"{key!r} is missing in the JSON form")
    return value[key]


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ParseError(f"key {twice!r} is given twice")
    return value


def _refuse_constant(constant: str) -> None:
    raise ParseError(f"{constant} is not JSON")
