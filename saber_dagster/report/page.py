"""The page: all sections, rendered as one self-contained HTML document."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING, TypeVar

from markupsafe import Markup

from saber_dagster.contracts import TABLES
from saber_dagster.errors import SaberError
from saber_dagster.home import Home
from saber_dagster.plots.style import GROUP_NAMES, percent, spoken
from saber_dagster.report import boards, examples, judges, overview, provenance, selection
from saber_dagster.report.figures import Album
from saber_dagster.report.mathematics import Mathematics
from saber_dagster.report.tables import MissingTableError, Tables

if TYPE_CHECKING:
    from jinja2 import Environment

_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""Characters that no page may contain."""

S = TypeVar("S")


@dataclass(frozen=True)
class Absent:
    """Stands for a section that cannot be made."""

    missing: str


@dataclass(frozen=True)
class Report:
    """A finished page, and what whoever asked for it should know."""

    html: str
    notes: tuple[str, ...]


def make_report(home: Home, queries: int | None = None, judge: str | None = None) -> Report:
    """The report of a home's build.

    A table that is missing or not fresh is named on the page, and what needs it is left out.

    Args:
        home: the home.
        queries: example queries; None for one of each domain.
        judge: only this judge; None for all.

    Raises:
        SaberError: if nothing has been built, or there is no such judge.
    """
    known = [entry.slug for entry in home.judges]
    if judge is not None and judge not in known:
        raise SaberError(f"no judge {judge!r}; there are {', '.join(known)}")
    tables = Tables.open(home)
    album, mathematics = Album(), Mathematics()
    labels = overview.judge_labels(tables, judge)
    lanes = [
        {
            "label": label,
            "section": _section(partial(judges.judge_section, tables, album, label)),
            "board": _section(partial(boards.board_section, tables, album, label)),
        }
        for label in labels
    ]
    context = {
        "release": home.settings.release,
        "domains": home.settings.domains,
        "labels": labels,
        "trouble": tables.trouble,
        "not_fresh": tables.not_fresh(),
        "overview": _section(lambda: overview.overview(tables, labels)),
        "topics": _section(lambda: selection.topics(tables, album)),
        "signals": _section(lambda: selection.signals(tables, album)),
        "queries": _section(lambda: selection.queries(tables, album)),
        "examples": _section(
            lambda: examples.examples(tables, album, mathematics, labels, queries)
        ),
        "lanes": lanes,
        "provenance": provenance.provenance(tables),
        "tables": TABLES,
        "mathematics": mathematics,
        "style": Markup(_file("style.css")),
    }
    html = _environment().get_template("page.html.j2").render(context)
    notes = [*tables.not_fresh()]
    if tables.trouble:
        notes.append(f"whether tables are fresh cannot be said: {tables.trouble}")
    return Report(_NOT_XML.sub("\ufffd", html), tuple(notes))


def _section(make: Callable[[], S]) -> "S | Absent":
    try:
        return make()
    except MissingTableError as error:
        return Absent(str(error))


def _file(name: str) -> str:
    return files("saber_dagster.report").joinpath(name).read_text(encoding="utf-8")


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        autoescape=True,
        loader=FunctionLoader(_file),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = "{:,}".format
    environment.filters["fixed"] = lambda value, digits=3: f"{value:.{digits}f}"
    environment.filters["points"] = "{:g}".format
    environment.filters["percent"] = percent
    environment.filters["spoken"] = spoken
    environment.filters["group"] = lambda slug: GROUP_NAMES.get(slug, slug)
    environment.tests["absent"] = lambda section: isinstance(section, Absent)
    return environment
