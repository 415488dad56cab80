"""Whatever a file says, its reader ends in a value or in an error for people."""

import csv
import io
import warnings
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saber_dagster.csv_rows import csv_rows
from saber_dagster.errors import InputError
from saber_dagster.json_text import RepeatedKeys, decode
from saber_dagster.ontology_files import read_ontology
from saber_dagster.replies import ParseError, parse_summary, parse_topic_scores, parse_verdict
from saber_dagster.settings import Settings
from saber_dagster.settings_files import SettingsError, load_settings

pytestmark = pytest.mark.property

ONTOLOGIES = {
    "json": b'[{"id": "a", "title": "Algebra", "synonyms": ["x"], "links": [{"title": "B"}, '
    b'{"ref": "a"}]}, {"title": "C", "note": "n", "links": null}]',
    "jsonl": b'{"parent": "A", "child": "B"}\n{"parent": "B", "child": "C"}\n',
    "csv": b'parent,child\nA,"B ""b"""\nA,C\n',
    "tsv": b'parent\tchild\nA\t"B\nA\tC\n',
}
SETTINGS = (
    b"preset: demo\nseed: 3\nqueries: {per_domain: 2}\nthresholds:\n  c_steps: [5, 6.5]\n"
    b"corpus:\n  files:\n    - &a {path: p.jsonl, mapping: {id: nr}}\n"
)
PIECES = st.binary(max_size=4) | st.sampled_from(
    b'" , { } [ ] : \\ \x00 \xff \xef\xbb\xbf \xe2\x80\x8b \\ud800 "title" "ref" true *a ~ .nan'.split(
        b" "
    )
    + b"\n|\r|\t|- |? |&a |<<: |!!bool |!!int |!!omap |!!set |2026-99-99".split(b"|")
)
cells = st.text(st.sampled_from("ab ,;\"\t\n\r'é"), max_size=5)


@st.composite
def damaged(draw, sound: bytes) -> bytes:
    """A sound file in which a few parts are replaced."""
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(sound)))
        end = draw(st.integers(start, min(len(sound), start + 6)))
        sound = sound[:start] + draw(PIECES) + sound[end:]
    return sound


@given(st.data(), st.sampled_from(sorted(ONTOLOGIES)))
@settings(max_examples=300, deadline=None)
def test_any_ontology_is_a_graph_or_a_list_of_faults(tmp_path_factory, data, extension):
    path = tmp_path_factory.getbasetemp() / f"topics.{extension}"
    path.write_bytes(data.draw(damaged(ONTOLOGIES[extension])))
    faults = []
    try:
        graph = read_ontology(path)
    except InputError as error:
        faults = error.faults
    else:
        assert graph.nodes
        assert {node for edge in graph.edges for node in edge} <= set(graph.nodes)
    assert all(fault.problem and fault.remedy and str(fault).encode() for fault in faults)


@given(damaged(SETTINGS))
@settings(max_examples=300, deadline=None)
def test_any_settings_are_settings_or_an_error(tmp_path_factory, raw):
    path = tmp_path_factory.getbasetemp() / "saber.yaml"
    path.write_bytes(raw)
    said = str(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ruamel.yaml warns of an anchor that is used again
        try:
            assert isinstance(load_settings(path, {}), Settings)
        except SettingsError as error:
            said = str(error)
    assert str(path) in said


@given(st.lists(st.lists(cells, min_size=2, max_size=2), min_size=1, max_size=6))
def test_what_a_csv_writer_wrote_is_read_without_a_fault(table):
    out = io.StringIO(newline="")
    csv.writer(out, quoting=csv.QUOTE_ALL).writerows(table)
    lines = list(io.StringIO(out.getvalue(), newline=""))
    noted = []
    read = [row for _, row in csv_rows(lines, ",", lambda *fault: noted.append(fault))]
    first = next((at for at, row in enumerate(table) if any(cell.strip() for cell in row)), None)
    assert noted == []
    assert read == ([] if first is None else table[first:])


@given(st.lists(st.text(st.sampled_from('ab,"\n'), max_size=8), max_size=6), st.booleans())
def test_every_row_of_any_csv_fits_its_header(parts, quoted):
    lines = list(io.StringIO("".join(parts), newline=""))
    noted = []
    rows = list(csv_rows(lines, ",", lambda *fault: noted.append(fault), quoted=quoted))
    assert len({len(cells) for _, cells in rows}) <= 1
    starts = [start for start, _ in rows]
    assert starts == sorted(set(starts))
    assert all(1 <= row <= len(lines) for row in [*starts, *(row for row, _, _ in noted)])


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 2)), max_size=6))
def test_a_repeated_key_is_noticed_and_only_that(pairs):
    found = decode("{" + ", ".join(f'"{name}": {value}' for name, value in pairs) + "}")
    names = [name for name, _ in pairs]
    assert found == dict(pairs)
    twice = sorted({name for name in names if names.count(name) > 1})
    assert (found.twice if isinstance(found, RepeatedKeys) else []) == twice


@given(st.text())
def test_any_reply_is_a_value_or_a_parse_error(text):
    wrapped = f'<core_idea>{text}</core_idea><verdict>{text}</verdict><score n="{text}">1</score>'
    for reply in (text, wrapped):
        for parse in (
            parse_verdict,
            lambda reply: parse_topic_scores(reply, 1),
            lambda reply: parse_summary(reply, 30),
        ):
            with suppress(ParseError):
                parse(reply)


def test_a_score_for_a_number_of_thousands_of_digits():
    with pytest.raises(ParseError, match="no score"):
        parse_topic_scores(f'<score n="{"9" * 5000}">1</score>', 1)


def test_a_quote_that_is_never_closed_costs_one_pass():
    lines = ["id,problem\n", *(f'{n},"a"\n' for n in range(50_000)), '1,"b\n', "2,c\n"]
    noted = []
    rows = list(csv_rows(lines, ",", lambda *fault: noted.append(fault)))
    assert len(rows) == 50_002
    assert [row for row, _, _ in noted] == [50_002]
