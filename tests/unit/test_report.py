"""The report: one page of what was built, whatever the texts are, and whatever is missing."""

import re
from itertools import pairwise
from xml.etree import ElementTree

import polars as pl
import pytest
import yaml
from homes import TinyHome, write_problems

from saber_dagster.errors import SaberError
from saber_dagster.home import Home
from saber_dagster.leaderboard import BASELINE_WARNING
from saber_dagster.report.examples import chosen_queries
from saber_dagster.report.figures import Album
from saber_dagster.report.mathematics import LONGEST_TEXT, Mathematics, _is_plain
from saber_dagster.report.page import make_report

MARKUP = "<script>alert(1)</script> {{ 7 * 7 }} {% raw %} &amp; \x0c\n\n"
NASTY = MARKUP + "So $\\frac{1}{2}$ and $\\nothing{x}$."
CLUMSY = {
    "slug": "clumsy",
    "engine": "python:clumsy:ClumsyEngine",
    "options": {"failure": "parse_error", "percent": 0},
}
EMBEDDED = {"slug": "embedded", "engine": "embedded"}


# mathematics


@pytest.fixture
def mathematics():
    return Mathematics()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"$x^2$", "<msup><mi>x</mi><mn>2</mn></msup>"),
        (r"\(x\)", "<math><mi>x</mi></math>"),
        (r"$$x$$", '<math display="block"><mi>x</mi></math>'),
        (r"\[x\]", '<math display="block"><mi>x</mi></math>'),
        (r"\begin{align} a &= b \\ &= c \label{e} \end{align}", "<mtable"),
        (r"$\sum_{\substack{i<j \\ j<k}} 1$", "<munder"),
        (r"$\mbox{if } x \smallsetminus y$", "<mtext>if\u00a0</mtext>"),
        (r"$\gcd(a,b)$", "\u2061"),
        (r"$a \equiv 1 \pmod{30}$", "<mi>mod</mi>"),
        (r"$1, 2, \ldots$", "<mn>2</mn>"),
        (r"$\sin^22x$", "<msup>"),
    ],
)
def test_a_formula_becomes_mathml(mathematics, text, expected):
    made = mathematics.html(f"Let {text} be.")
    assert expected in made
    assert re.fullmatch(r'<p dir="auto">Let ?<math.*</math> ?be.</p>', made)
    assert (mathematics.converted, mathematics.failed) == (1, [])
    ElementTree.fromstring(made)


@pytest.mark.parametrize(
    "text",
    [
        r"$\nothing{x}$",
        r"$\frac{1$",
        r"$x_2_3$",
        "$3^105$",
        "$x_(n+1)$",
        "$sqrt(2)$",
        r"$\href{javascript:alert(1)}{x}$",
        r"\begin{align} a \\ b \eqref{e} \end{align}",
        r"$\newcommand{\a}{\a\a} \a$",
        "$" + "x+" * 1500 + "x$",
    ],
)
def test_what_cannot_be_converted_is_shown_as_it_is_written(mathematics, text):
    made = mathematics.html(f"Let {text} be.")
    shown = ElementTree.fromstring(made)
    assert "".join(shown.itertext()) == f"Let {text} be."
    assert shown.find("code") is not None
    assert (mathematics.converted, mathematics.failed) == (0, [text])


@pytest.mark.parametrize(
    "text",
    ["It costs $5 and $10.", "A lone $ sign", r"Pay \$5, or \$x$ more", "No formula", r"a\\[2pt]b"],
)
def test_a_dollar_is_not_always_a_formula(mathematics, text):
    shown = "".join(ElementTree.fromstring(mathematics.html(text)).itertext())
    assert shown == text.replace("\\$", "$")
    assert mathematics.converted == 0


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        r"$\text{<script>alert(1)</script>}$",
        r"$\text{</math><img src=x onerror=alert(1)>}$",
        "$<b>$",
        r"$\nothing{<script>}$",
        "a & b &lt; <!-- c",
    ],
)
def test_no_text_becomes_markup(mathematics, text):
    for made in (mathematics.html(text), f"<p>{mathematics.line(text)}</p>"):
        tags = {element.tag for element in ElementTree.fromstring(made).iter()}
        assert tags <= {"p", "code", "math", "mrow", "mi", "mo", "mtext"}


@pytest.mark.parametrize(
    "mathml",
    [
        '<math display="block"><mi>x</mi></math>',
        '<math><mi style="color:red" mathvariant="normal">x</mi></math>',
    ],
)
def test_plain_mathml_is_used(mathml):
    assert _is_plain(mathml)


@pytest.mark.parametrize(
    "mathml",
    [
        '<math><mi style="background:url(//example.org/a)">x</mi></math>',
        '<math style="background:URL(//example.org/a)"><mi>x</mi></math>',
        "<math><mi>x</mi><script>alert(1)</script></math>",
        "<script>alert(1)</script>",
        '<math><mi onclick="alert(1)">x</mi></math>',
        '<math onmouseover="alert(1)"><mi>x</mi></math>',
        '<math><mi href="javascript:alert(1)">x</mi></math>',
        "<math><mi>x</math>",
        "<math><mi>x</mi></math><script>alert(1)</script>",
    ],
)
def test_mathml_that_could_do_more_than_show_a_formula_is_refused(mathml):
    assert not _is_plain(mathml)


@pytest.mark.parametrize(
    "text", ["$" + "{" * 100_000, "${" * 50_000, "\\[" * 100_000, "$$" * 50_000]
)
def test_a_hostile_text_does_no_harm(mathematics, text):
    made = mathematics.html(text)
    assert f"{len(text) - LONGEST_TEXT:,} more characters are not shown" in made
    ElementTree.fromstring(f"<div>{made}</div>")
    nested = "$" + "{" * 1900 + "x$"
    assert mathematics.line(nested).startswith("<code")


def test_paragraphs_and_lines(mathematics):
    assert mathematics.html("a\nb\n \n\nc") == '<p dir="auto">a\nb</p><p dir="auto">c</p>'
    assert mathematics.line(" a\n\nb ") == "a\n\nb"
    assert mathematics.html("") == ""
    shown = mathematics.html("so\n$$x$$\nand\n$$y$$ or\n$z$\n.")
    assert re.sub(r"<math.*?</math>", "F", str(shown)) == '<p dir="auto">soFandFor\nF\n.</p>'


# the choice of examples


def test_examples_are_of_each_domain_in_turn():
    rows = [("q4", "algebra"), ("q1", "algebra"), ("q2", "geometry"), ("q3", "algebra")]
    query_set = pl.DataFrame(rows, schema=["query_id", "primary_domain"], orient="row")
    domains = ("geometry", "algebra", "combinatorics")
    assert chosen_queries(query_set, domains, 3) == ["q2", "q1", "q3"]
    assert chosen_queries(query_set, domains, 1) == ["q2"]
    assert chosen_queries(query_set.reverse(), domains, 99) == ["q2", "q1", "q3", "q4"]
    assert chosen_queries(query_set, domains, 0) == []


def test_a_figure_that_fails_is_said_to():
    picture = Album().picture("alt", "reading", lambda narrow: 1 / 0)
    assert picture.error == "ZeroDivisionError: division by zero"
    assert picture.wide == ""


# the page of a real build


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A home with two judges, whose problems have nasty texts; only to be copied."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DAGSTER_HOME", str(tmp_path_factory.getbasetemp()))
        corpus = write_problems(tmp_path_factory.mktemp("corpus") / "tiny.jsonl", 0, 50)
        home = TinyHome.make(tmp_path_factory.mktemp("finished") / "home", corpus)
        judges(home, EMBEDDED, CLUMSY)
        home.build()
        home.tamper(
            "release", lambda texts: texts.with_columns(pl.col("problem", "solution") + NASTY)
        )
    return home


def judges(home, *entries):
    (home.root / "judges.yaml").write_text(yaml.safe_dump({"judges": list(entries)}))


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))


@pytest.fixture
def home(finished, tmp_path):
    return finished.copy(tmp_path / "home")


@pytest.fixture
def quick(monkeypatch):
    """Figures that take no time."""
    element = '<svg xmlns="http://www.w3.org/2000/svg"/>'
    monkeypatch.setattr("saber_dagster.report.figures.svg", lambda *_: element)


@pytest.fixture(scope="module")
def page(finished):
    return make_report(Home(finished.root), queries=2).html


@pytest.fixture(scope="module")
def root(page):
    return ElementTree.fromstring(page.replace("<!DOCTYPE html>", ""))


def text_of(root, place):
    """The words of an element by id."""
    found = next(element for element in root.iter() if element.get("id") == place)
    return " ".join(" ".join(found.itertext()).split())


def parse(html):
    return ElementTree.fromstring(html.replace("<!DOCTYPE html>", ""))


def test_the_page_is_well_formed_and_each_id_is_there_once(page, root):
    assert page.lstrip().startswith("<!DOCTYPE html>")
    assert root.get("lang") == "en"
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    for element in root.iter():
        href = element.get("href")
        if element.tag == "a":
            assert href.removeprefix("#") in ids
        for name in (element.get("aria-labelledby") or "").split():
            assert name in ids


def test_the_page_needs_nothing_else(page, root):
    for element in root.iter():
        tag = element.tag.rpartition("}")[2]
        assert tag not in {"script", "link", "iframe", "object", "embed", "img", "image", "form"}
        for name, value in element.attrib.items():
            assert not name.startswith("on")
            if name.rpartition("}")[2] in {"href", "src", "srcset", "action", "data"}:
                assert value.startswith("#")
    assert not re.search(r"url\((?!#)", page)
    assert "@import" not in page


def test_headings_are_in_order_and_figures_and_tables_have_words(root):
    levels = [int(e.tag[1]) for e in root.iter() if re.fullmatch(r"h[1-6]", e.tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    for table in root.iter("table"):
        assert "".join(table.find("caption").itertext()).strip()
    pictures = [e for e in root.iter() if e.tag.endswith("}svg")]
    assert len(pictures) >= 20
    assert all(svg[0].tag.endswith("}title") and svg[0].text for svg in pictures)
    assert all(figure.find("figcaption").text for figure in root.iter("figure"))


def test_no_text_of_a_user_becomes_markup(page, root):
    assert "<script" not in page
    assert "alert(1)" in page
    assert "{{ 7 * 7 }} {% raw %} &amp;amp;" in page
    assert "\x0c" not in page
    shown = text_of(root, "examples")
    assert "<script>alert(1)</script> {{ 7 * 7 }}" in shown


def test_formulas_are_converted_and_the_others_counted(page, root):
    assert any(element.tag == "mfrac" for element in root.iter())
    sources = ["".join(code.itertext()) for code in root.iter("code")]
    assert "$\\nothing{x}$" in sources
    footer = " ".join(" ".join(root.find("body/footer").itertext()).split())
    count = int(re.search(r"([\d,]+) could not be converted", footer)[1].replace(",", ""))
    assert (
        count == sum(code.get("class") == "latex" for code in root.iter("code")) - 1
    )  # the sample


def test_the_page_says_what_was_built(finished, root):
    built = text_of(root, "built")
    assert "tiny" in built
    assert f"{finished.table('raw_sources').height} problems" in built.replace(
        "problems 50", "50 problems"
    )
    assert "ClumsyEngine" not in built  # the model, not the class
    assert "clumsy" in built
    assert "per_group: 3" in built
    assert str(finished.root) not in ElementTree.tostring(root, encoding="unicode")
    assert f"The {finished.table('query_set').height} queries" in text_of(root, "queries")


def test_numbers_of_the_board_are_those_of_the_table(finished, root):
    board = finished.table("leaderboard")
    shown = text_of(root, "leaderboard")
    for row in board.filter(pl.col("domain") == "overall").iter_rows(named=True):
        assert f"{row['value']:.3f}" in shown
        assert f"{row['low']:.3f}–{row['high']:.3f}" in shown
    assert "bm25" in shown
    assert "oracle" in shown


def test_candidates_are_in_the_judge_s_order(finished, root):
    section = next(e for e in root.iter("section") if e.get("aria-labelledby") == "q1")
    rows = [
        [" ".join("".join(cell.itertext()).split()) for cell in tr]
        for tr in section.find("table/tbody").findall("tr")
    ]
    assert [row[0] for row in rows] == [str(rank) for rank in range(1, len(rows) + 1)]
    query_set = finished.table("query_set")
    query = chosen_queries(query_set, ("combinatorics", "number_theory"), 1)[0]
    ratings = pl.concat(
        finished.table("judge/embedded/ratings", [f"{domain}|s00"])
        for domain in ("combinatorics", "number_theory")
    ).filter(pl.col("query_id") == query)
    assert [row[2].split()[0] for row in rows] == [
        f"{rating:.2f}" for rating in ratings.sort("rank")["rating"]
    ]
    assert [row[4] for row in rows] == [
        f"{wins:g}–{losses:g}"
        for wins, losses in ratings.sort("rank").select("wins", "losses").rows()
    ]


def test_every_table_has_its_versions(finished, root):
    shown = text_of(root, "provenance")
    for asset, row in finished.status().items():
        assert asset in shown
        if asset != "release":  # whose rows were tampered with
            assert row["data_version"] in shown


def test_each_judge_has_its_sections_and_only_the_baseline_its_warning(home, root, quick):
    assert BASELINE_WARNING in text_of(root, "judge-embedded")
    assert BASELINE_WARNING not in text_of(root, "judge-clumsy")
    assert "by clumsy" in text_of(root, "examples")
    html = make_report(Home(home.root), queries=1, judge="clumsy").html
    assert BASELINE_WARNING not in html
    assert "embedded baseline" not in html
    assert 'id="judge-embedded"' not in html
    assert 'id="judge-clumsy"' in html
    assert text_of(parse(html), "leaderboard")


def test_the_same_build_gives_the_same_page(finished, page):
    assert make_report(Home(finished.root), queries=2).html == page


def test_a_page_without_examples(home, quick):
    section = text_of(parse(make_report(Home(home.root), queries=0).html), "examples")
    assert "There is no query to show." in section


@pytest.mark.parametrize(
    ("asset", "sections"),
    [
        ("leaderboard", ["leaderboard"]),
        ("thresholds", ["signals", "queries"]),
        ("release", ["examples"]),
        ("raw_sources", ["built"]),
    ],
)
def test_a_missing_table_is_named_where_it_is_needed(home, asset, sections, quick):
    (home.root / "tables" / asset / "all.parquet").unlink()
    made = make_report(Home(home.root), queries=1)
    root = parse(made.html)
    for section in sections:
        assert f"{asset} is not built yet" in text_of(root, section)
    assert f"{asset} is missing" in made.html
    assert str(home.root) not in made.html
    assert any(note.startswith(f"{asset} is missing") for note in made.notes)
    assert sum("cannot be made" in line for line in made.html.splitlines()) in (
        len(sections),
        len(sections) + (asset == "leaderboard"),  # both judges
    )


def test_the_games_of_a_judge_without_ratings_are_shown(home, quick):
    for asset in ("rating_prior", "benchmark"):
        (home.root / f"tables/judge/clumsy/{asset}/all.parquet").unlink()
    root = parse(make_report(Home(home.root), queries=0).html)
    section = text_of(root, "judge-clumsy")
    assert "with a verdict" in section
    assert "judge/clumsy/rating_prior is not built yet" in section
    assert "would win with probability" not in section
    assert "would win with probability" in text_of(root, "judge-embedded")


def test_what_is_not_fresh_is_named(home, quick):
    home.change(tournament={"rounds": 5})
    made = make_report(Home(home.root), queries=0)
    assert any("judge/embedded/tournament_rounds is stale" in note for note in made.notes)
    assert any("made from older tables: " in note and "leaderboard" in note for note in made.notes)
    assert "Not everything on this page is up to date" in made.html
    assert text_of(parse(made.html), "leaderboard")


def test_without_the_judge_s_class_the_page_shows_what_was_built(home, quick):
    judges(home, EMBEDDED, {**CLUMSY, "engine": "python:no_such_module:Judge"})
    made = make_report(Home(home.root), queries=1)
    root = parse(made.html)
    assert "no_such_module" in made.notes[-1]
    assert "cannot be said" in made.html
    assert "not known" in text_of(root, "provenance")
    for section in ("judge-clumsy", "leaderboard", "examples", "topics"):
        assert "cannot be made" not in text_of(root, section), section


# the command


def test_the_command_writes_the_page(home, tmp_path, quick):
    result = home.saber("report", "--queries", "1", "--judge", "embedded")
    assert result.exit_code == 0, result.output
    page = home.root / "report.html"
    assert f"{page}" in result.output
    assert page.read_text(encoding="utf-8").count("<h3 id=") == 2  # a query and a board
    other = tmp_path / "deep" / "page.html"
    assert home.saber("report", "--queries", "0", "--out", str(other)).exit_code == 0
    assert other.exists()


def test_the_command_says_what_is_wrong(home, tmp_path):
    with pytest.raises(SaberError, match="no judge 'x'; there are embedded, clumsy"):
        home.saber("report", "--judge", "x").exception and make_report(Home(home.root), judge="x")
    folder = home.saber("report", "--out", str(tmp_path))
    assert folder.exit_code != 0
    assert "is a folder" in str(folder.exception)
    nothing = TinyHome(tmp_path / "nothing").saber("report")
    assert nothing.exit_code != 0
    assert "has no build to report yet; run `saber build`" in str(nothing.exception)
