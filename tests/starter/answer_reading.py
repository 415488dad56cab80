"""Reads the final answers of the starter corpus as mathematics, so that programs can check them."""

import re
from collections.abc import Iterable
from typing import Any

import sympy
from sympy.parsing.sympy_parser import (
    convert_xor,
    factorial_notation,
    implicit_application,
    implicit_multiplication,
    parse_expr,
    standard_transformations,
)

_RULES = (
    *standard_transformations,
    convert_xor,
    factorial_notation,
    implicit_multiplication,
    implicit_application,
)
_COMMANDS = {
    r"\pi": " pi ",
    r"\cdot": "*",
    r"\times": "*",
    r"\ln": " log ",
    r"\log": " log ",
    r"\infty": " oo ",
    r"\arctan": " atan ",
    r"\arcsin": " asin ",
    r"\arccos": " acos ",
    **{rf"\{name}": f" {name} " for name in ("sin", "cos", "tan", "cot", "sinh", "cosh", "exp")},
    r"\left": "",
    r"\right": "",
    r"\,": "",
    r"\!": "",
    r"\ ": " ",
    "{": "(",
    "}": ")",
}
_TWO = (
    (r"\\[dt]?frac\{([^{}]*)\}\{([^{}]*)\}", r"((\1)/(\2))"),
    (r"\\[dt]?frac(\d)(\d)", r"((\1)/(\2))"),
    (r"\\[dt]?binom\{([^{}]*)\}\{([^{}]*)\}", r"binomial((\1),(\2))"),
    (r"\\sqrt\[([^\]]*)\]\{([^{}]*)\}", r"((\2)^(1/(\1)))"),
    (r"\\sqrt\{([^{}]*)\}", r"sqrt(\1)"),
    (r"\\sqrt\s*(\w)", r"sqrt(\1)"),
    (r"(\d+)\^\\circ", r"(\1*pi/180)"),
    (r"([_^])\{([^{}]*)\}", r"\1(\2)"),
)


def value(answer: str) -> Any:
    r"""What an answer says: a number or expression, or a tuple or set of them.

    ``$\{1, 2\}$`` is a set and ``$(1, 2)$`` a tuple; anything else is one LaTeX expression.
    """
    text = answer.strip().strip("$").strip().rstrip(".")
    for opening, closing, make in ((r"\{", r"\}", frozenset), ("(", ")", tuple)):
        inner = text[len(opening) : -len(closing)]
        if text.startswith(opening) and text.endswith(closing):
            parts = _split(inner)
            if make is frozenset or len(parts) > 1:
                return make(map(value, parts))
    text = re.sub(r"(?<=\d)(?:\{,\}|\\,|,)(?=\d{3}\b)", "", text).replace(r"^{\circ}", r"^\circ")
    text = text.replace(r"\left", "").replace(r"\right", "")
    before = None
    while before != text:
        before = text
        for pattern, new in _TWO:
            text = re.sub(pattern, new, text)
    for command, new in _COMMANDS.items():
        text = re.sub(
            re.escape(command) + r"(?![a-z])" if command[-1].isalpha() else re.escape(command),
            new.replace("\\", r"\\"),
            text,
        )
    if "\\" in text:
        raise ValueError(f"cannot read {answer!r}: {text!r}")
    return _constants(parse_expr(text, transformations=_RULES))


def agree(found: Any, answer: str) -> bool:
    """Whether the result of a program is the answer: text as text, all else as mathematics.

    The elements of a set or list are matched one to one, in any order.
    """
    if isinstance(found, str):
        return found.strip() == answer.strip()
    return _same(found, value(answer))


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, (set, frozenset, list)) or isinstance(right, frozenset):
        return _are_collections(left, right) and _matched(list(left), list(right))
    if isinstance(left, tuple) or isinstance(right, tuple):
        return (
            _are_collections(left, right)
            and len(left) == len(right)
            and all(map(_same, left, right))
        )
    if isinstance(left, float):
        close = abs(left - complex(sympy.N(right, 20)))
        return bool(close <= 1e-6 * max(1.0, abs(left)))
    difference = sympy.sympify(left) - right
    by_name = {str(s): s for s in sympy.sympify(left).free_symbols}
    difference = difference.subs(
        {s: by_name[str(s)] for s in right.free_symbols if str(s) in by_name}
    )
    return bool(
        sympy.simplify(difference) == 0
        or (not difference.free_symbols and abs(sympy.N(difference, 40)) < 1e-25)
    )


def _are_collections(*values: Any) -> bool:
    return all(isinstance(value, Iterable) for value in values)


def _matched(left: list[Any], right: list[Any]) -> bool:
    """Whether each element of one list has a partner of its own in the other."""
    for x in left:
        partner = next((i for i, y in enumerate(right) if _same(x, y)), None)
        if partner is None:
            return False
        right = right[:partner] + right[partner + 1 :]
    return not right


def _split(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for i, character in enumerate(text):
        depth += character in "({["
        depth -= character in ")}]"
        if character == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [*parts, text[start:]]


def _constants(expression: Any) -> Any:
    names = {"e": sympy.E, "i": sympy.I, "pi": sympy.pi}
    return expression.subs({s: names[str(s)] for s in expression.free_symbols if str(s) in names})
