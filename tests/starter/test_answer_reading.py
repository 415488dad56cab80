"""The reader of final answers: what an answer says, and when a result agrees with it."""

from fractions import Fraction

import pytest
import sympy
from answer_reading import agree, value

x = sympy.Symbol("x")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("$7$", 7),
        ("-12", -12),
        ("$5.$", 5),
        (r"$\frac{3}{4}$", sympy.Rational(3, 4)),
        (r"$\dfrac12$", sympy.Rational(1, 2)),
        (r"$\frac{1}{\frac{2}{3}}$", sympy.Rational(3, 2)),
        (r"$\sqrt{2}$", sympy.sqrt(2)),
        (r"$\sqrt 3$", sympy.sqrt(3)),
        (r"$\sqrt[3]{5}$", sympy.cbrt(5)),
        (r"$2\sqrt{\frac{1}{3}}$", 2 / sympy.sqrt(3)),
        (r"$2^{10}$", 1024),
        (r"$5!$", 120),
        (r"$\binom{6}{2}$", 15),
        (r"$3 \cdot 4 \times 5$", 60),
        (r"$2\pi$", 2 * sympy.pi),
        (r"$e^{2} + i$", sympy.exp(2) + sympy.I),
        (r"$\ln 2$", sympy.log(2)),
        (r"$\infty$", sympy.oo),
        (r"$45^\circ$", sympy.pi / 4),
        (r"$30^{\circ}$", sympy.pi / 6),
        ("$1,234,567$", 1234567),
        (r"$12{,}345$", 12345),
        (r"$12\,345$", 12345),
        ("$x^2 + 2x$", x**2 + 2 * x),
        ("$(1, 2)$", (1, 2)),
        ("$(2, 1)$", (2, 1)),
        ("$(1 + 2)$", 3),
        (r"$\{3, 1, 2\}$", frozenset({1, 2, 3})),
        (r"$\{5\}$", frozenset({5})),
        (r"$\{(1, 2), (3, 4)\}$", frozenset({(1, 2), (3, 4)})),
        (r"$(\frac{1}{2}, \{1, 2\})$", (sympy.Rational(1, 2), frozenset({1, 2}))),
    ],
)
def test_an_answer_is_read_as_mathematics(answer, expected):
    assert value(answer) == expected


def test_a_command_that_is_not_known_is_refused():
    with pytest.raises(ValueError, match="cannot read"):
        value(r"$\mathfrak{S}_3$")


@pytest.mark.parametrize(
    ("found", "answer"),
    [
        (7, "$7$"),
        (Fraction(3, 4), r"$\frac{6}{8}$"),
        (sympy.sqrt(8), r"$2\sqrt{2}$"),
        (1 / (sympy.sqrt(2) - 1), r"$1 + \sqrt{2}$"),
        (sympy.pi / 3, r"$60^\circ$"),
        (1234567, "$1,234,567$"),
        (0.5, r"$\frac{1}{2}$"),
        (1.4142135, r"$\sqrt{2}$"),
        (2000000.5, "$2000000$"),
        (sympy.Symbol("x", positive=True) ** 2, "$x^2$"),
        ((1, 2), "$(1, 2)$"),
        ((0.5, Fraction(1, 3)), r"$(\frac{1}{2}, \frac{1}{3})$"),
        ({2, 1}, r"$\{1, 2\}$"),
        ([2, 1], r"$\{1, 2\}$"),
        ([0.5, 1.4142135], r"$\{\sqrt{2}, \frac{1}{2}\}$"),
        ({(1, 2), (2, 1)}, r"$\{(2, 1), (1, 2)\}$"),
        ("yes", " yes "),
    ],
)
def test_a_right_result_agrees(found, answer):
    assert agree(found, answer)


@pytest.mark.parametrize(
    ("found", "answer"),
    [
        (7, "$8$"),
        (-7, "$7$"),
        (Fraction(3, 4), r"$\frac{4}{3}$"),
        (sympy.sqrt(2), r"$\sqrt{3}$"),
        (60, r"$60^\circ$"),
        (1234, "$1,235$"),
        (0.5001, r"$\frac{1}{2}$"),
        (sympy.Rational(14142135, 10**7), r"$\sqrt{2}$"),
        (x**2, "$x^3$"),
        (x, "$y$"),
        ((1, 2), "$(2, 1)$"),
        ((1, 2), "$(1, 2, 3)$"),
        ((1, 2), "$1$"),
        (1, "$(1, 2)$"),
        ({1, 2}, r"$\{1, 3\}$"),
        ({1, 2}, r"$\{1, 2, 3\}$"),
        ([1, 1], r"$\{1, 2\}$"),
        ([1, 2, 2], r"$\{1, 2, 3\}$"),
        ([1, 1], "$(1, 2)$"),
        ([1, 2], "$(1, 1)$"),
        ({1}, "$1$"),
        (1, r"$\{1\}$"),
        ("yes", "no"),
        ("Yes", "yes"),
        ("7", "$7$"),
    ],
)
def test_a_wrong_result_does_not_agree(found, answer):
    assert not agree(found, answer)
