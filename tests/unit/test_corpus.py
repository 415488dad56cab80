import bz2
import csv
import gzip
import json
import lzma
import os
import unicodedata
from pathlib import Path
from time import perf_counter

import polars as pl
import pytest

from saber_dagster.contracts import TABLES
from saber_dagster.corpus import Problem, build_corpus, content_sha256, read_problems
from saber_dagster.corpus_queries import Reference, apply_queries, read_queries
from saber_dagster.errors import InputError

DATA = Path(os.environ.get("SABER_TEST_DATA", Path(__file__).parents[3] / "shared" / "data"))
GOOD = {"id": "1", "problem": "Is $1$ odd?", "solution": "Yes.", "licence": "MIT"}


def jsonl(*rows):
    return "".join(json.dumps({**GOOD, "id": str(i), **row}) + "\n" for i, row in enumerate(rows))


def write(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def faults(tmp_path, name, content, **options):
    return read_problems(write(tmp_path, name, content), **options).faults


def only(found):
    assert len(found) == 1, [str(fault) for fault in found]
    assert found[0].problem
    assert found[0].remedy
    return found[0]


# Files as a whole


def test_missing_file(tmp_path):
    fault = only(read_problems(tmp_path / "no.jsonl").faults)
    assert (fault.row, fault.problem) == (0, "does not exist")
    assert fault.file.endswith("no.jsonl")


def test_directory(tmp_path):
    (tmp_path / "d.csv").mkdir()
    assert only(read_problems(tmp_path / "d.csv").faults).problem == "is a directory"


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.csv", "a.tsv", "a.parquet"])
def test_empty_file(tmp_path, name):
    assert only(faults(tmp_path, name, b"")).problem == "is empty"


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.jsonl", "\n\n"), ("a.jsonl", "\ufeff"), ("a.csv", "id,problem,solution\n")],
)
def test_file_without_rows(tmp_path, name, content):
    assert only(faults(tmp_path, name, content)).problem == "has no rows"


@pytest.mark.parametrize("name", ["a.json", "a.txt", "a", "a.gz", "a.parquet.gz", "a.xlsx"])
def test_unknown_extension(tmp_path, name):
    assert "unknown extension" in only(faults(tmp_path, name, jsonl({}))).problem


@pytest.mark.parametrize("damage", [lambda raw: raw[:-12], lambda raw: b"x" + raw, lambda _: b"x"])
def test_damaged_gzip(tmp_path, damage):
    raw = gzip.compress(jsonl({}, {}).encode())
    assert "gzip" in only(faults(tmp_path, "a.jsonl.gz", damage(raw))).problem


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv"])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le"])
def test_utf16(tmp_path, name, encoding):
    found = only(faults(tmp_path, name, jsonl({}, {}).encode(encoding)))
    assert found.problem == "is UTF-16 or UTF-32"


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson", "a.JSONL"])
def test_bom_and_crlf_are_accepted(tmp_path, name):
    content = "\ufeff" + jsonl({"problem": "a\r\nb"}, {}).replace("\n", "\r\n")
    found = read_problems(write(tmp_path, name, content))
    assert found.faults == []
    assert [row.problem for row in found.rows] == ["a\nb", GOOD["problem"]]
    assert [row.row for row in found.rows] == [1, 2]


@pytest.mark.parametrize("ext", ["jsonl", "jsonl.gz", "csv", "csv.gz", "tsv", "parquet"])
def test_every_format_gives_the_same_rows(tmp_path, ext):
    rows = [
        {**GOOD, "id": f"a/b c {i}", "problem": p, "answer": "7", "url": "u", "subject": "label"}
        for i, p in enumerate(['x "y", z', "two\nlines", "ما هو $x$؟", r"\boxed{1} \frac12"])
    ]
    path = tmp_path / f"mine.{ext}"
    if ext == "parquet":
        pl.DataFrame(rows).write_parquet(path)
    elif "json" in ext:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), delimiter="\t" if ext == "tsv" else ",")
            writer.writeheader()
            writer.writerows(rows)
    if ext.endswith("gz"):
        path.write_bytes(gzip.compress(path.read_bytes()))
    found = read_problems(path)
    assert (found.faults, found.warnings) == ([], [])
    assert [(r.source, r.source_id, r.problem, r.solution) for r in found.rows] == [
        ("mine", row["id"], row["problem"], row["solution"]) for row in rows
    ]
    assert {(r.answer, r.url, r.licence, r.language) for r in found.rows} == {
        ("7", "u", "MIT", "en")
    }


def test_reading_changes_nothing_on_disk(tmp_path):
    path = write(tmp_path, "a.jsonl", jsonl({}, {"problem": ""}))
    before = (path.read_bytes(), path.stat().st_mtime_ns)
    read_problems(path)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.jsonl", b"PAR1", "is a Parquet file"),
        ("a.csv", b"PK\x03\x04", "is a ZIP archive or a spreadsheet"),
        ("a.jsonl", gzip.compress(b"{}", mtime=0), "is gzip"),
        ("a.csv", jsonl({}).encode(), "is JSON, not CSV"),
        ("a.jsonl", b"id,problem,solution\n1,p,s\n", "has no line that is JSON"),
        ("a.csv", b"1,p,s\n2,q,t\n", "has the columns 1, p, s, none of id, problem"),
    ],
)
def test_a_file_that_is_not_what_its_name_says_is_one_fault(tmp_path, name, content, problem):
    assert only(faults(tmp_path, name, content)).problem.startswith(problem)


@pytest.mark.parametrize(
    ("pack", "name"),
    [(lzma.compress, "xz"), (bz2.compress, "bzip2"), (b"\x28\xb5\x2f\xfd".__add__, "Zstandard"),
     (b"7z\xbc\xaf\x27\x1c".__add__, "a 7z archive")],
)  # fmt: skip
def test_packed_files_are_one_fault(tmp_path, pack, name):
    content = pack(jsonl(*[{}] * 99).encode())
    for file in ("a.jsonl", "a.csv"):
        problem = only(faults(tmp_path, file, content)).problem
        assert problem == f"is {name}, whatever its name says"


@pytest.mark.parametrize("bad", [b"\xe9", b"\0"])
@pytest.mark.parametrize(
    ("lines", "good", "one"), [(11, 10, True), (11, 11, False), (10, 0, False)]
)
def test_lines_that_are_no_text_are_one_fault_if_they_are_most(tmp_path, bad, lines, good, one):
    content = jsonl(*[{"id": f"g{n}"} for n in range(good)]).encode()
    content += (b'"' + bad + b'"\n') * lines
    found = faults(tmp_path, "a.jsonl", content)
    assert len(found) == (1 if one else lines)
    if one:
        assert found[0].problem.endswith(f"11 of 21 lines have other bytes, from line {good + 1}")


# JSONL


def test_a_file_of_broken_lines_that_are_meant_as_json_keeps_its_faults(tmp_path):
    found = faults(tmp_path, "a.jsonl", '{"problem": "\\sum"}\n{"problem": "\\int"}\n')
    assert [fault.row for fault in found] == [1, 2]
    assert all("Double the backslash" in fault.remedy for fault in found)


def test_the_column_of_broken_json_is_that_of_the_line(tmp_path):
    fault = only(faults(tmp_path, "a.jsonl", jsonl({}) + '{"id": "2", }\r\n'))
    assert fault.row == 2
    assert "column 13" in fault.problem


def test_a_key_that_is_given_twice(tmp_path):
    line = json.dumps(GOOD)[:-1] + ', "id": "3", "x": {"y": 1, "y": 2}}\n'
    found = read_problems(write(tmp_path, "a.jsonl", line + jsonl({"problem": ""})))
    assert [(f.row, f.problem) for f in found.faults] == [
        (1, "has the key 'id' more than once"),
        (2, "is empty"),
    ], "a key twice inside a value that is not read is nobody's fault"
    assert found.rows == []


def test_undecodable_bytes(tmp_path):
    content = jsonl({}, {"problem": "BAD"}, {}).encode().replace(b"BAD", b"\xff")
    fault = only(faults(tmp_path, "a.jsonl", content))
    assert fault.row == 2
    assert "0xff" in fault.problem


def test_broken_line_does_not_hide_others(tmp_path):
    lines = jsonl({}, {}, {"solution": None}).splitlines()
    lines[1] = lines[1][:20] + "}"
    found = read_problems(write(tmp_path, "a.jsonl", "\n".join(lines) + "\n"))
    assert [(fault.row, fault.field) for fault in found.faults] == [(2, ""), (3, "solution")]
    assert "not valid JSON" in found.faults[0].problem
    assert [row.row for row in found.rows] == [1]


def test_cut_off_last_line(tmp_path):
    fault = only(faults(tmp_path, "a.jsonl", jsonl({}, {})[:-9]))
    assert fault.row == 2
    assert "cut off" in fault.problem


def test_single_backslash_in_json(tmp_path):
    fault = only(faults(tmp_path, "a.jsonl", jsonl({}) + '{"id": "2", "problem": "\\sum"}\n'))
    assert fault.row == 2
    assert r"\\sum" in fault.remedy


@pytest.mark.parametrize("indent", [None, 2])
def test_json_array(tmp_path, indent):
    fault = only(faults(tmp_path, "a.jsonl", json.dumps([GOOD, GOOD], indent=indent)))
    assert "JSON array" in fault.problem
    assert "jq" in fault.remedy


def test_pretty_printed_object(tmp_path):
    assert "several lines" in only(faults(tmp_path, "a.jsonl", json.dumps(GOOD, indent=1))).problem


@pytest.mark.parametrize("line", ["3", '"text"', "null", "[1]", "NaN"])
def test_row_that_is_no_object(tmp_path, line):
    fault = only(faults(tmp_path, "a.jsonl", jsonl({}) + line + "\n"))
    assert fault.row == 2
    assert "not a JSON object" in fault.problem


@pytest.mark.parametrize("line", ["[" * 100_000, '{"id": ' + "9" * 5000 + "}"])
def test_json_that_python_cannot_hold(tmp_path, line):
    assert only(faults(tmp_path, "a.jsonl", jsonl({}) + line + "\n")).row == 2


# Values


@pytest.mark.parametrize("field", ["problem", "solution"])
@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (None, "is null"),
        ("", "is empty"),
        (" \n\t ", "is empty"),
        (3, "is a number, not text"),
        (True, "is true or false, not text"),
        (float("nan"), "is NaN, not text"),
        (["a"], "is a list, not text"),
        ({}, "is an object, not text"),
        ("a\x00b", "has the control character U+0000 at 2"),
        ("a\x1b", "has the control character U+001B at 2"),
        ("a\x85", "has the control character U+0085 at 2"),
        ("\ud800", "has the lone surrogate U+D800 at 1"),
    ],
)
def test_bad_required_text(tmp_path, field, value, problem):
    fault = only(faults(tmp_path, "a.jsonl", jsonl({}, {field: value})))
    assert (fault.row, fault.field, fault.problem) == (2, field, problem)


@pytest.mark.parametrize("command", ["frac12", "beta", "rho"])
@pytest.mark.parametrize("before", ["", "x = "])  # the control character is no outer white space
def test_unescaped_latex_in_json(tmp_path, command, before):
    bad = f'{{"id": "2", "problem": "{before}\\{command}", "solution": "s"}}\n'
    fault = only(faults(tmp_path, "a.jsonl", jsonl({}) + bad))
    assert (fault.row, fault.field) == (2, "problem")
    assert rf"\\{command[:3]}" in fault.remedy


@pytest.mark.parametrize(
    ("text", "eaten"),
    [
        ("$\theta$", True),
        ("$2\times 3$", True),
        ("$\text{if}$", True),
        ("$\textbf{x}$", True),
        ("$\frac12 x \neq 0$".replace("\f", r"\f"), True),
        ("\there is a tab, and\nequality below", False),
        (r"$\theta \neq \text{if}$", False),
    ],
)
def test_latex_that_became_white_space_is_a_warning(tmp_path, text, eaten):
    found = read_problems(write(tmp_path, "a.jsonl", jsonl({}, {"problem": text})))
    assert found.faults == []
    assert [(w.row, w.field) for w in found.warnings] == [(2, "problem")] * eaten
    assert not eaten or "LaTeX command" in found.warnings[0].problem


@pytest.mark.parametrize("text", ["a\u200bb", "a\u00adb", "\u202eab", "\ufeffab\ufeff"])
def test_invisible_characters_of_a_text_are_kept_and_noted(tmp_path, text):
    found = read_problems(write(tmp_path, "a.jsonl", jsonl({"problem": text})))
    assert found.rows[0].problem == text
    assert "invisible" in only(found.warnings).problem


@pytest.mark.parametrize("text", ["می\u200cخواهم", "न\u200dहीं", "שלום\u200f!"])
def test_what_a_script_needs_is_not_noted(tmp_path, text):
    assert read_problems(write(tmp_path, "a.jsonl", jsonl({"problem": text}))).warnings == []


@pytest.mark.parametrize("bad", ["\u200b", "\u00ad", "\u2066", "\u202e", "\u200e", "\u2028"])
def test_an_id_that_nobody_could_type(tmp_path, bad):
    assert only(faults(tmp_path, "a.jsonl", jsonl({}, {"id": f"a{bad}b"}))).field == "id"


@pytest.mark.parametrize("text", ["\u200b", " \u2060\ufeff\n", "\u00ad"])
def test_a_text_that_shows_nothing_is_empty(tmp_path, text):
    assert only(faults(tmp_path, "a.jsonl", jsonl({"solution": text}))).problem == "is empty"


def test_an_earlier_loss_is_noted(tmp_path):
    found = read_problems(write(tmp_path, "a.jsonl", jsonl({"problem": "caf\ufffd"})))
    assert "U+FFFD" in only(found.warnings).problem


def test_raw_control_character_in_json(tmp_path):
    content = jsonl({}, {"problem": "a TAB b"}, {"problem": "NUL"})
    fault = only(faults(tmp_path, "a.jsonl", content.replace("TAB", "\t").replace("NUL", "\0")))
    assert (fault.row, fault.field) == (3, "problem")


def test_missing_field_of_one_row(tmp_path):
    row = {name: GOOD[name] for name in ("problem", "solution")}
    fault = only(faults(tmp_path, "a.jsonl", jsonl({}) + json.dumps(row) + "\n"))
    assert (fault.row, fault.field, fault.problem) == (2, "id", "is missing")


@pytest.mark.parametrize("ext", ["jsonl", "csv", "parquet"])
def test_missing_field_of_every_row_is_one_fault_and_a_mapping_mends_it(tmp_path, ext):
    frame = pl.DataFrame({"id": ["1", "2"], "question": ["p", "q"], "solution": ["s", "s"]})
    path = tmp_path / f"a.{ext}"
    {"jsonl": frame.write_ndjson, "csv": frame.write_csv, "parquet": frame.write_parquet}[ext](path)
    fault = only(read_problems(path).faults)
    assert (fault.row, fault.field, fault.problem) == (0, "problem", "is missing (all 2 rows)")
    assert "question" in fault.remedy
    found = read_problems(path, {"problem": "question"})
    assert found.faults == []
    assert [row.problem for row in found.rows] == ["p", "q"]


def test_mapped_names_in_faults(tmp_path):
    content = jsonl({"question": "p"}, {"question": ""})
    fault = only(faults(tmp_path, "a.jsonl", content, mapping={"problem": "question"}))
    assert (fault.row, fault.field) == (2, "question")


def test_bad_mapping(tmp_path):
    mapping = {"problme": "question", "answer": "final"}
    unused, unknown = faults(tmp_path, "a.jsonl", jsonl({}), mapping=mapping)
    assert unknown.field == "problme"
    assert "Did you mean problem?" in unknown.remedy
    assert unused.field == "final"


def test_remedies_of_a_missing_field(tmp_path):
    some = only(faults(tmp_path, "a.jsonl", jsonl({}) + '{"id": "9", "problem": "p"}\n'))
    assert some.remedy == "Give a text or remove the row", "the file has the column"
    near = only(faults(tmp_path, "a.csv", "id,problem,solutions\n1,p,s\n2,q,t\n"))
    assert "--map solution=solutions" in near.remedy
    mapped = faults(tmp_path, "a.jsonl", jsonl({}, {}), mapping={"problem": "question"})
    assert only(mapped).remedy.startswith("Map problem to a column that the file has: id, problem")


def test_problem_and_solution_need_a_column_each(tmp_path):
    path = write(tmp_path, "a.jsonl", jsonl({"text": "t"}, {"text": "u"}))
    fault = only(read_problems(path, {"problem": "text", "solution": "text"}).faults)
    assert (fault.row, fault.field, fault.problem) == (
        0,
        "text",
        "is read as problem and as solution",
    )
    assert "is read as id and as problem" in {
        fault.problem for fault in read_problems(path, {"id": "problem"}).faults
    }
    assert read_problems(path, {"answer": "solution"}).faults == []


def test_a_field_that_is_nearly_there_is_a_warning(tmp_path):
    row = {"id": "1", "problem": "p", "solution": "s", "license": "MIT", "subject": "x"}
    path = write(tmp_path, "a.jsonl", json.dumps(row) + "\n")
    spelling, unknown = read_problems(path).warnings
    assert (spelling.row, spelling.field) == (0, "license")
    assert "--map licence=license" in spelling.remedy
    assert unknown.field == "licence"
    assert read_problems(path, {"licence": "license"}).warnings == []


def test_numbers_as_ids_and_answers(tmp_path):
    content = jsonl({"id": 7, "answer": 0.5}, {"id": 8, "answer": 3}, {"id": "a/b c"})
    found = read_problems(write(tmp_path, "a.jsonl", content))
    assert [(row.source_id, row.answer) for row in found.rows] == [
        ("7", "0.5"),
        ("8", "3"),
        ("a/b c", None),
    ]


@pytest.mark.parametrize("row", [{"id": 1.5}, {"id": True}, {"id": " "}, {"id": "a\nb"}])
def test_bad_ids(tmp_path, row):
    assert only(faults(tmp_path, "a.jsonl", jsonl({}, row))).field == "id"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\x00", [1]])
def test_bad_optional_value(tmp_path, value):
    assert only(faults(tmp_path, "a.jsonl", jsonl({}, {"answer": value}))).field == "answer"


def test_duplicate_ids_name_both_rows_even_beside_other_faults(tmp_path):
    content = jsonl({"id": "x"}, {}, {"id": "x", "problem": ""})
    found = read_problems(write(tmp_path, "a.jsonl", content))
    assert [(fault.row, fault.field) for fault in found.faults] == [(3, "id"), (3, "problem")]
    assert "row 1" in found.faults[0].problem
    assert [row.source_id for row in found.rows] == ["x", "1"]


def test_equal_ids_in_two_sources_of_a_file(tmp_path):
    content = jsonl({"id": "x", "source": "a"}, {"id": "x", "source": "b"})
    assert faults(tmp_path, "a.jsonl", content) == []


def test_defaults_and_their_override(tmp_path):
    content = jsonl({"licence": None}, {"source": "s", "language": "de", "licence": "CC0"})
    path = write(tmp_path, "a.jsonl", content)
    found = read_problems(path)
    assert [(r.source, r.language, r.licence) for r in found.rows] == [
        ("a", "en", "unknown"),
        ("s", "de", "CC0"),
    ]
    warning = only(found.warnings)
    assert (warning.field, warning.row) == ("licence", 1)
    assert "1 of 2 rows" in warning.problem
    found = read_problems(path, source="mine", language="fr", licence="MIT")
    assert [(r.source, r.language, r.licence) for r in found.rows] == [
        ("mine", "fr", "MIT"),
        ("s", "de", "CC0"),
    ]
    assert found.warnings == []


def test_unpaired_dollar_is_a_warning(tmp_path):
    texts = ["$a$", r"\$5 and $b$", "$a", r"a \\$", "no"]
    found = read_problems(write(tmp_path, "a.jsonl", jsonl(*({"problem": text} for text in texts))))
    assert found.faults == []
    warning = only(found.warnings)
    assert (warning.field, warning.row) == ("problem", 3)
    assert "2 of 5 rows" in warning.problem


@pytest.mark.parametrize("ext", ["jsonl", "csv"])
def test_a_megabyte_is_fine_but_noted(tmp_path, ext):
    text = "word " * 200_000
    frame = pl.DataFrame({**GOOD, "solution": text})
    path = tmp_path / f"a.{ext}"
    frame.write_csv(path) if ext == "csv" else frame.write_ndjson(path)
    found = read_problems(path)
    assert found.faults == []
    assert found.rows[0].solution == text.strip()
    assert "over 200,000 characters" in only(found.warnings).problem


# CSV


def test_csv_row_is_the_line_on_which_the_record_starts(tmp_path):
    content = 'id,problem,solution\r\n1,"a\r\nb ""c""",s\r\n\r\n2,,s\r\n3,p,s,x\r\n4,p\r\n5,p,s'
    found = read_problems(write(tmp_path, "a.csv", content))
    assert [(fault.row, fault.field) for fault in found.faults] == [
        (5, "problem"),
        (6, ""),
        (7, ""),
    ]
    assert [(row.row, row.problem) for row in found.rows] == [(2, 'a\nb "c"'), (8, "p")]


def test_csv_undecodable_bytes(tmp_path):
    content = b'id,problem,solution\n1,"a\n\xff",s\n2,p,s\n'
    found = read_problems(write(tmp_path, "a.csv", content))
    assert only(found.faults).row == 3
    assert [row.source_id for row in found.rows] == ["2"]


def test_csv_unclosed_quote(tmp_path):
    fault = only(faults(tmp_path, "a.csv", 'id,problem,solution\n1,p,s\n2,"p,s\n3,p,s\n'))
    assert fault.row == 3
    assert "not valid CSV" in fault.problem


def test_csv_after_an_unclosed_quote_goes_on(tmp_path):
    content = 'id,problem,solution\n1,"p,s\nmore text\n2,,s\n3,q\n4,"r\nr",s\n5,"z,s\n'
    found = read_problems(write(tmp_path, "a.csv", content))
    assert [(fault.row, fault.field, fault.problem) for fault in found.faults] == [
        (2, "", """is not valid CSV (',' expected after '"')"""),
        (4, "problem", "is empty"),
        (5, "", "has 2 cells, the header has 3"),
        (8, "", "is not valid CSV (a quote is never closed)"),
    ], "line 3 may belong to the cell of line 2"
    assert [row.source_id for row in found.rows] == ["4"]


@pytest.mark.parametrize("cell", ['"he "said" so\nand so"', '"he said\nand "so" so\nand so"'])
def test_csv_with_a_stray_quote_in_a_long_cell_is_one_fault(tmp_path, cell):
    content = f"id,problem,solution\n1,{cell},s\n2,p,s\n"
    found = read_problems(write(tmp_path, "a.csv", content))
    assert only(found.faults).row == 2
    assert [row.source_id for row in found.rows] == ["2"]


@pytest.mark.parametrize("header", [b"id,problem,\xff\n", b'id,"problem"x,solution\n'])
def test_csv_broken_header_takes_no_row_for_a_header(tmp_path, header):
    assert only(faults(tmp_path, "a.csv", header + b"1,p,s\n2,p,s\n")).row == 1


def test_csv_column_twice(tmp_path):
    found = faults(tmp_path, "a.csv", "id,problem,problem,solution\n1,p,q,s\n")
    assert "names columns twice: problem" in found[0].problem


# Parquet


def test_parquet_half_written(tmp_path):
    path = tmp_path / "a.parquet"
    pl.DataFrame([GOOD] * 50).write_parquet(path)
    raw = path.read_bytes()
    for size in (5, len(raw) // 2, len(raw) - 1):
        path.write_bytes(raw[:size])
        assert "half-written" in only(read_problems(path).faults).problem
    path.write_bytes(raw[:-8] + b"\xff\xff\xff\x7fPAR1")
    assert "damaged" in only(read_problems(path).faults).problem
    path.write_text(jsonl({}))
    assert "not a Parquet file" in only(read_problems(path).faults).problem


def test_parquet_types(tmp_path):
    path = tmp_path / "a.parquet"
    pl.DataFrame(
        {
            "id": [1, 2],
            "problem": pl.Series(["p", "q"], dtype=pl.Categorical),
            "solution": [1.0, float("nan")],
            "answer": [b"a", b"b"],
            "language": pl.Series([None, None], dtype=pl.Null),
        }
    ).write_parquet(path)
    found = [(fault.row, fault.field, fault.problem) for fault in read_problems(path).faults]
    assert found == [
        (0, "answer", "is bytes, not text (all 2 rows)"),
        (1, "solution", "is a number, not text"),
        (2, "solution", "is NaN, not text"),
    ]


# The corpus


def problem(source_id, text="p", solution="s", source="a", **more):
    return Problem(source, source_id, text, solution, **more)


def test_build_follows_the_contract_and_counts_documents_by_content():
    rows = [
        problem("2", "Café  A"),
        problem("1", unicodedata.normalize("NFD", "Café  A") + "\r\n"),
        problem("1", "café a", "other", source="b"),
        problem("0", "Café  A", source="b", answer="x"),
    ]
    build = build_corpus(rows)
    TABLES["corpus"].check(build.frame)
    assert build.frame.height == 2
    kept = build.frame.filter(solution="s").row(0, named=True)
    assert (kept["source"], kept["source_id"], kept["problem"]) == ("a", "1", "Café  A")
    assert kept["sha256"] == content_sha256("Café  A", "s")
    assert kept["doc_id"] == kept["sha256"][:20]
    assert kept["is_document"]
    assert kept["is_query"]
    assert build.duplicates.rows() == [("a", "2", "a", "1"), ("b", "0", "a", "1")]
    assert build.frame["cluster_id"].n_unique() == 1
    assert len(build.frame["cluster_id"][0]) == 21


def test_a_documents_id_never_changes():
    # sha256 of '["p","s"]': an id that moves would lose every user's tournament
    assert build_corpus([problem("1")]).frame["doc_id"][0] == "685c8bbea8aa4cc88cbe"


def test_build_of_nothing():
    build = build_corpus([])
    assert build.frame.schema == pl.Schema(TABLES["corpus"].schema)
    assert build.duplicates.is_empty()


def test_one_id_in_two_files_of_a_source():
    rows = [problem("1", file="x.csv", row=2), problem("1", "q", file="y.csv", row=7)]
    with pytest.raises(InputError) as caught:
        build_corpus(rows[::-1])
    fault = only(caught.value.faults)
    assert (fault.file, fault.row) == ("y.csv", 7)
    assert "row 2 of x.csv" in fault.problem


# Queries


@pytest.fixture
def build():
    return build_corpus(
        [
            problem("math/1", "p1"),
            problem("math/2", "p2"),
            problem("math/3", "p1"),  # a duplicate of math/1
            problem("x:y", "p3"),
            problem("both", "p4"),
            problem("both", "p5", source="b"),
        ]
    )


def queries_of(build):
    return set(build.frame.filter("is_query")["problem"])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("q.txt", "\ufeffmath/2\r\n\r\n math/3 \r\nx:y\r\nb:both\r\n"),
        ("q.csv", "id,source\nmath/2,\nmath/3,a\nx:y,\nboth,b\n"),
        ("q.jsonl", '{"id":"math/2"}\n{"id":"math/3"}\n{"id":"x:y"}\n{"id":"b:both"}\n'),
    ],
)
def test_queries_by_id(tmp_path, build, name, content):
    found = read_queries(write(tmp_path, name, content))
    assert (found.faults, found.warnings) == ([], [])
    applied = apply_queries(build, found.rows)
    assert queries_of(applied) == {"p1", "p2", "p3", "p5"}  # math/3 leads to math/1
    assert applied.frame["is_document"].all()
    assert applied.duplicates.equals(build.duplicates)


def test_queries_as_texts(tmp_path, build):
    content = (
        "id,problem,solution,licence\n"
        "1,new,s,MIT\n2,p2,s,MIT\n3,new,s,MIT\n4,unsolved,,MIT\nmath/1,,,\n"
    )
    found = read_queries(write(tmp_path, "mine.csv", content))
    assert found.faults == []
    warning = only(found.warnings)
    assert "1 of 4 query texts have no solution" in warning.problem
    assert "summary signal" in warning.problem
    applied = apply_queries(build, found.rows)
    assert queries_of(applied) == {"new", "p2", "unsolved", "p1"}
    new = applied.frame.filter(~pl.col("is_document"))
    assert set(new.select("source", "source_id", "solution").rows()) == {
        ("mine", "1", "s"),
        ("mine", "4", ""),
    }
    assert set(applied.duplicates.rows()) - set(build.duplicates.rows()) == {
        ("mine", "2", "a", "math/2"),
        ("mine", "3", "mine", "1"),
    }
    TABLES["corpus"].check(applied.frame)


def test_unknown_and_ambiguous_ids(build):
    queries = [Reference(None, "mth/1", "q", 1), Reference(None, "both", "q", 2)]
    queries += [Reference("b", "math/1", "q", 3), Reference(None, "nowhere", "q", 4)]
    with pytest.raises(InputError) as caught:
        apply_queries(build, queries)
    unknown, ambiguous, elsewhere, far = caught.value.faults
    assert unknown.problem == "'mth/1' is not in the corpus"
    assert "Nearest: math/1" in unknown.remedy
    assert ambiguous.problem == "'both' is an id in the sources a, b"
    assert "a:both" in ambiguous.remedy
    assert elsewhere.problem == "'math/1' is not in the source 'b'"
    assert "Nearest" not in far.remedy


def test_text_under_the_id_of_a_document(build):
    with pytest.raises(InputError, match="'math/1' is the id of another text"):
        apply_queries(build, [problem("math/1", "changed", file="q", row=1)])


def test_faults_of_a_query_file(tmp_path):
    content = '{"id":"1"}\n{"id":"1"}\n{"problem":"p"}\n{"id":"3","solution":"s"}\n'
    found = read_queries(write(tmp_path, "q.jsonl", content))
    assert [(fault.row, fault.field) for fault in found.faults] == [
        (2, "id"),
        (3, "id"),
        (4, "problem"),
    ]


@pytest.mark.skipif(not DATA.is_dir(), reason="SABER_TEST_DATA is absent")
def test_real_corpus():
    start = perf_counter()
    found = read_problems(DATA / "problems.jsonl.gz")
    seconds = perf_counter() - start
    assert found.faults == []
    assert len(found.rows) == 15_528
    assert seconds < 3.0
    build = build_corpus(found.rows)
    assert build.frame.height + build.duplicates.height == 15_528
