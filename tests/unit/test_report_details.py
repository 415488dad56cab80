"""Details of the report: what is a formula, what is refused, and what is said of missing tables."""

from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

from saber_dagster.contracts import TABLES
from saber_dagster.freshness import Node
from saber_dagster.report import selection
from saber_dagster.report.figures import Album
from saber_dagster.report.mathematics import Mathematics
from saber_dagster.report.tables import MissingTableError, Tables
from saber_dagster.starter import starter_entries


def shown(text):
    """The words of a text on the page, and how many formulas there were, converted or not."""
    mathematics = Mathematics()
    made = ElementTree.fromstring(f"<div>{mathematics.html(text)}</div>")
    return "".join(made.itertext()), mathematics.converted + len(mathematics.failed)


@pytest.mark.parametrize(
    "text",
    [
        "It costs 5 $ or more, or 6 $ at most.",
        "A price of $ 5, in US$.",
        "Take $5 or 6 $ of it.",
        "Pay 5$ now and 6\n$ later.",
        "From $5 to x$2.",
    ],
)
def test_a_stray_dollar_turns_no_prose_into_a_formula(text):
    assert shown(text) == (text, 0)


@pytest.mark.parametrize(
    ("text", "formulas"),
    [
        ("It costs 5 $ and $x$ is free.", 1),
        ("$x$ and $y$, 5 $ each", 2),
        ("$a\n+ b$", 1),
        (r"$x\ $", 1),
        ("$$\nx\n+ y\n$$", 1),
        ("$$ x $$ and \\( y \\) and \\[ z \\]", 3),
        (r"$\text{a }b$", 1),
    ],
)
def test_formulas_beside_a_stray_dollar_and_with_space_inside(text, formulas):
    assert shown(text)[1] == formulas


def test_every_dollar_of_the_starter_corpus_belongs_to_a_formula():
    mathematics = Mathematics()
    texts = [text for entry in starter_entries() for text in (entry.problem, entry.solution)]
    assert sum(text.count("$") for text in texts) > 1000
    for text in texts:
        made = ElementTree.fromstring(f"<div>{mathematics.html(text)}</div>")
        prose = [
            made.text,
            *(part for e in made.iter("p") for part in (e.text, *(x.tail for x in e))),
        ]
        assert "$" not in "".join(part or "" for part in prose)


@pytest.mark.parametrize(
    "source",
    [
        r"\hspace{99999em}x",
        r"\hspace{-99999em}x",
        r"\hspace{99999pt}x",
        r"\mkern 9999mu x",
        r"\raisebox{999em}{x}",
        r"\genfrac(){999em}{0}{a}{b}",
    ],
)
def test_a_formula_of_absurd_size_is_shown_as_it_is_written(source):
    mathematics = Mathematics()
    assert f"${source}$" in "".join(
        ElementTree.fromstring(mathematics.html(f"${source}$")).itertext()
    )
    assert mathematics.failed == [f"${source}$"]


@pytest.mark.parametrize(
    "source",
    [r"x\hspace{2em}y", r"x\qquad y\!z", r"\hspace{5cm}x", r"\raisebox{2em}{x}", r"\Bigg( x"],
)
def test_an_ordinary_space_is_a_formula(source):
    mathematics = Mathematics()
    assert "<math" in mathematics.html(f"${source}$")


def tables_of(tmp_path, *partitions):
    home = SimpleNamespace(
        root=tmp_path,
        tables=tmp_path / "tables",
        settings=SimpleNamespace(domains=("algebra", "geometry")),
    )
    node = Node(("judge", "j", "ratings"), "ratings", "judging", "1", partitions, (), 1)
    return Tables(home, {node.key: node}, (), (), "")


def test_a_table_that_is_not_built_yet_is_said_to_be_so(tmp_path):
    tables = tables_of(tmp_path, "0", "1")
    with pytest.raises(MissingTableError, match=r"^judge/j/ratings is not built yet$"):
        tables.need("judge/j/ratings")
    path = tables.store.path(("judge", "j", "ratings"), "0")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"nonsense")
    with pytest.raises(MissingTableError, match=r"^not all of judge/j/ratings is built yet$"):
        tables.need("judge/j/ratings")
    tables.store.path(("judge", "j", "ratings"), "1").write_bytes(b"nonsense")
    with pytest.raises(
        MissingTableError, match=r"^the table judge/j/ratings cannot be read: .*damag"
    ):
        tables.need("judge/j/ratings")


def test_the_reading_of_the_domains_is_true_of_any_number_of_topics(tmp_path):
    tables = tables_of(tmp_path)
    for name in ("problem_index", "ontology_tree"):
        tables._read[name] = TABLES[name].empty()
    made = selection.topics(tables, Album())
    assert made.domains.reading.endswith("is shared equally among them.")
    assert "half" not in made.domains.reading
    assert not made.domains.error
