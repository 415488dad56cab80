"""docs/bad-input.md names every kind of bad input, and what becomes of it; here each is tried."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from bad_input.bench import Bench, Case
from bad_input.file_cases import FILES, JSONL, MAPPINGS, PARQUET, TABLES
from bad_input.lane_cases import LANES
from bad_input.ontology_cases import ONTOLOGIES
from bad_input.query_cases import QUERIES
from bad_input.reply_cases import REPLIES
from bad_input.row_cases import FIELDS, TEXTS
from bad_input.settings_cases import SETTINGS
from bad_input.size_cases import SIZES, small_build

DOCUMENT = Path(__file__).parents[2] / "docs" / "bad-input.md"
SECTIONS: dict[str, dict[str, Case]] = {
    "Files of problems": FILES,
    "JSONL": JSONL,
    "CSV, TSV": TABLES,
    "Parquet": PARQUET,
    "The mapping of columns": MAPPINGS,
    "Fields of a row": FIELDS,
    "Texts": TEXTS,
    "Queries": QUERIES,
    "Ontology": ONTOLOGIES,
    "Settings": SETTINGS,
    "Judges, annotator, retrievers": LANES,
    "Replies of engines": REPLIES,
    "Size": SIZES,
}
CASES = {name: case for cases in SECTIONS.values() for name, case in cases.items()}
EXIT_CODES = {"Fault": 1, "Error": 1, "Warning": 0, "Accepted": 0, "Stops": 1}
SAYS = {"Fault": "fault", "Error": "error: ", "Warning": "warning ", "Stops": "error: "}
"""What the output has besides, by the row's first word."""

pytestmark = pytest.mark.integration


@dataclass(frozen=True)
class Row:
    """A row of the document."""

    section: str
    case: str
    happens: str

    @property
    def word(self) -> str:
        """Its first word, empty for a reply."""
        found = re.match(r"\*\*(\w+)\*\*", self.happens)
        return found[1] if found else ""

    @property
    def messages(self) -> list[list[str]]:
        """What must be said: the parts of each text in code font around its dots."""
        return [said.split("…") for said in re.findall(r"`([^`]+)`", self.happens)]


def rows() -> list[Row]:
    found, section = [], ""
    for line in DOCUMENT.read_text(encoding="utf-8").splitlines():
        section = line.removeprefix("## ") if line.startswith("## ") else section
        if line.startswith("| `"):
            cells = [c.strip().replace(r"\|", "|") for c in re.split(r"(?<!\\)\|", line)[1:-1]]
            assert len(cells) == 4, line
            found.append(Row(section, cells[0].strip("`"), cells[2]))
    return found


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A small build, made when a case first asks for it."""
    return cache(lambda: small_build(tmp_path_factory.mktemp("small")))


@pytest.fixture
def bench(tmp_path, monkeypatch, small):
    monkeypatch.chdir(tmp_path)
    return Bench(tmp_path, small)


def test_the_document_has_each_case_once_and_in_its_section():
    documented = [(row.section, row.case) for row in rows()]
    assert len(set(documented)) == len(documented)
    assert set(documented) == {(s, name) for s, cases in SECTIONS.items() for name in cases}
    assert len(CASES) == len(documented) >= 40


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.case)
def test_what_happens_is_what_the_document_says(row, bench):
    said = CASES[row.case](bench)
    for parts in row.messages:
        assert re.search(".*".join(map(re.escape, parts)), said.text), (parts, said.text)
    for place in said.at:
        assert place.rstrip() in said.text, said.text
    assert "Traceback" not in said.text
    if row.section == "Replies of engines":
        assert said.code is None
        assert row.messages
        return
    assert said.code == EXIT_CODES[row.word], said.text
    assert SAYS.get(row.word, "") in said.text
    assert said.writes or not said.changed
    assert said.at or row.word != "Fault"
    assert (row.word == "Stops") <= said.writes
    if row.word in ("Accepted", "Warning"):
        assert "fault " not in said.text
