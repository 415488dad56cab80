"""Where formulas lie, with every delimiter, nested and broken."""

import time

import pytest

from saber_dagster.formulas import ENVIRONMENTS, formulas


def found(text):
    return [text[start:end] for start, end in formulas(text)]


@pytest.mark.parametrize(
    "formula",
    [
        "$x$",
        "$$x$$",
        r"\(x\)",
        r"\[x\]",
        r"\begin{align*} a &= b \\[2pt] c &= d \end{align*}",
        r"\begin {equation} x \end { equation }",
        r"$\text{if $x$ is odd}$",
        r"$$\text{if $x$ and \(y\)}$$",
        r"\[ \begin{cases} a & \text{if $x$} \\ b \end{cases} \]",
        r"$\{x : \$5 \}$",
        r"$a \\$",
        "$\\begin{matrix} a \n b \\end{matrix}$",
        r"\begin{tikzpicture}" + "\n\n $x$ \n\n" + r"\end{tikzpicture}",
    ],
)
def test_a_formula_is_one_piece(formula):
    assert found(f"Before {formula} between {formula}, after.") == [formula, formula]


def test_formulas_side_by_side():
    assert found("$a$$b$") == ["$a$", "$b$"]
    assert found("$a$$$b$$") == ["$a$", "$$b$$"]
    assert found("$$a$$$b$") == ["$$a$$", "$b$"]
    assert found("$$$$ x") == ["$$$$"]


@pytest.mark.parametrize("text", ["", "None.", r"\$5 or \$7", r"\\(x", r"\) \] \end{align}", "{}"])
def test_no_formula(text):
    assert found(text) == []


def test_environments_of_text_are_no_formulas():
    text = r"\begin{proof} By $x$. \begin{enumerate} \item A. \end{enumerate} \end{proof}"
    assert found(text) == ["$x$"]
    assert "proof" not in ENVIRONMENTS


def test_what_is_not_closed():
    assert found("It costs $5 today.\n\nLet $x$ be.") == ["$5 today.", "$x$"]
    assert found("Let \\(x be\n \nand $y$.") == ["\\(x be", "$y$"]
    assert found("Let $x + 1") == ["$x + 1"]
    for opener in ("$$", r"\[", r"\begin{align}"):
        text = f"Let {opener} x\n\nand so on, $y$ too."
        assert found(text) == [text[4:]], "nothing says where it ends"


def test_an_outer_end_closes_what_is_open_inside():
    assert found(r"\[ \begin{cases} a $ b \] then $x$") == [r"\[ \begin{cases} a $ b \]", "$x$"]
    assert found(r"$\begin{cases} a$ then $x$") == [r"$\begin{cases} a$", "$x$"]


def test_time_grows_with_length_alone():
    texts = ("$x$ and ", "$", r"\(", "{$", "$\\)", r"{\($\)", r"\begin{align}$")
    for text in texts:
        long = "$" + "{\\(" * 10_000 + text * (100_000 // len(text))
        start = time.perf_counter()
        formulas(long)
        assert time.perf_counter() - start < 5, text
