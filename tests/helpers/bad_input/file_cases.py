"""Files of problems, whatever is in them."""

import gzip
import json
import lzma
import os
from pathlib import Path

import polars as pl

from bad_input.bench import GOOD, Bench, Case, Said, checked, jsonl

TWO = jsonl({}, {"problem": "Is $2$ odd?"})
CSV = "id,problem,solution\n1,p,s\n"


def packed(size: int | None = None) -> bytes:
    return gzip.compress(TWO.encode())[:size]


def parquet(path: Path, **columns: list) -> None:
    columns = columns or {name: [text] * 2 for name, text in GOOD.items()}
    pl.DataFrame({"id": ["1", "2"], **columns}).write_parquet(path)


def damaged(start: int, stop: int | None, change: bytes = b""):
    """A Parquet file in which some bytes are replaced."""

    def write(path: Path) -> None:
        parquet(path)
        raw = path.read_bytes()
        path.write_bytes(raw[:start] + change + (raw[stop:] if stop else b""))

    return write


def no_such_file(bench: Bench) -> Said:
    return bench.saber("corpus", "check", bench.folder / "gone.jsonl", at=("gone.jsonl: ",))


def twice(bench: Bench) -> Said:
    path = bench.write("a.jsonl", jsonl({}))
    bench.write("b.jsonl", lambda other: other.symlink_to(path))
    assert "1 fault(s)" in bench.saber("corpus", "check", path, "b.jsonl").text
    return bench.saber("corpus", "check", path, path, at=("a.jsonl: is given",))


def not_utf_8(bench: Bench) -> Said:
    path = bench.folder / os.fsdecode(b"caf\xe9.jsonl")
    assert "caf\ufffd.jsonl: does not exist" in bench.saber("corpus", "check", path).text
    path.write_text(TWO)
    return bench.saber("corpus", "check", path, at=("caf\ufffd.jsonl: ",))


def special(bench: Bench) -> Said:
    assert "/dev/null: is not a regular file" in bench.saber("corpus", "check", "/dev/null").text
    os.mkfifo(bench.folder / "a.jsonl")
    return bench.saber("corpus", "check", bench.folder / "a.jsonl", at=("a.jsonl: ",))


def in_two_files(bench: Bench) -> Said:
    one = bench.write("one/a.jsonl", jsonl({}))
    two = bench.write("two/a.jsonl", jsonl({"problem": "q"}))
    return bench.saber("corpus", "check", one, two, at=("two/a.jsonl:1: id:",))


def without(*names: str, id: str = "1") -> str:
    kept = {"id": id, **GOOD}
    return json.dumps({name: text for name, text in kept.items() if name not in names}) + "\n"


def same_document(line_end: str):
    """CRLF gives the document that LF gives."""

    def case(bench: Bench) -> Said:
        from saber_dagster.corpus import build_corpus, read_problems

        content = jsonl({"problem": "a\nb"})
        path = bench.write("a.jsonl", content.replace("\\n", "\\r\\n").replace("\n", line_end))
        plain = bench.write("b.jsonl", content)
        ids = [build_corpus(read_problems(file).rows).frame["doc_id"][0] for file in (path, plain)]
        assert ids[0] == ids[1]
        return bench.saber("corpus", "check", path, at=("1 problems can be read; 0 fault(s)",))

    return case


FILES: dict[str, Case] = {
    "file-missing": no_such_file,
    "file-directory": checked("a.jsonl", lambda path: path.mkdir()),
    "file-unreadable": checked("a.jsonl", lambda path: path.symlink_to(path)),
    "file-special": special,
    "file-name-not-utf-8": not_utf_8,
    "file-named-twice": twice,
    "file-unknown-extension": checked("a.xlsx", TWO),
    "file-empty": checked("a.jsonl", b""),
    "file-blank": checked("a.jsonl", "\n\n"),
    "file-parquet-as-jsonl": checked("a.jsonl", parquet),
    "file-gzip-as-jsonl": checked("a.jsonl", packed()),
    "file-spreadsheet-as-csv": checked("a.csv", b"PK\x03\x04\x14\x00"),
    "file-other-compression": checked("a.jsonl", lzma.compress(TWO.encode() * 500)),
    "file-no-text": checked("a.jsonl", "{}\0é\n".encode("latin-1") * 30),
    "file-csv-as-jsonl": checked("a.jsonl", CSV),
    "file-jsonl-as-csv": checked("a.csv", TWO, at="a.csv:1:"),
    "file-not-gzip": checked("a.jsonl.gz", TWO),
    "file-gzip-cut": checked("a.jsonl.gz", packed(-10)),
    "file-utf-16": checked("a.jsonl", TWO.encode("utf-16")),
    "file-latin-1": checked("a.csv", (CSV + "2,café,s\n").encode("latin-1"), at="a.csv:3:"),
    "file-byte-order-mark": checked("a.jsonl", "\ufeff" + TWO, at="2 problems can be read; 0"),
    "file-crlf": same_document("\r\n"),
    "file-many-faults": checked(
        "a.jsonl",
        jsonl({}, {"problem": "", "solution": 3}) + "{\n",
        at="a.jsonl:2: solution:",
    ),
    "file-one-fault-everywhere": checked(
        "a.jsonl", "".join(without("problem", id=n) for n in "123"), at="a.jsonl: problem:"
    ),
}

JSONL: dict[str, Case] = {
    "jsonl-array": checked("a.jsonl", json.dumps([GOOD, GOOD], indent=1)),
    "jsonl-pretty": checked("a.jsonl", json.dumps(GOOD, indent=1)),
    "jsonl-cut-off": checked("a.jsonl", TWO[:-9], at="a.jsonl:2:"),
    "jsonl-half-line": checked("a.jsonl", jsonl({})[:-9] + "\n" + TWO, at="a.jsonl:1:"),
    "jsonl-broken-line": checked("a.jsonl", TWO + '{"id": "1" "problem": "p"}\n', at="a.jsonl:3:"),
    "jsonl-two-objects": checked("a.jsonl", TWO.replace("\n", "\r"), at="a.jsonl:1:"),
    "jsonl-single-backslash": checked(
        "a.jsonl", TWO + '{"id": "3", "problem": "\\sum"}\n', at="a.jsonl:3:"
    ),
    "jsonl-not-an-object": checked("a.jsonl", TWO + "[1]\n", at="a.jsonl:3:"),
    "jsonl-key-twice": checked(
        "a.jsonl",
        '{"id": "1", "problem": "a", "problem": "b", "solution": "s"}\n' + TWO,
        at="a.jsonl:1:",
    ),
    "jsonl-too-deep": checked("a.jsonl", TWO + "[" * 100_000 + "\n", at="a.jsonl:3:"),
    "jsonl-unknown-field": checked("a.jsonl", jsonl({"subject": 3}), at="1 problems can"),
    "jsonl-misspelt-field": checked(
        "a.jsonl", without("licence")[:-2] + ', "license": "MIT"}\n', at="a.jsonl: license:"
    ),
}

TABLES: dict[str, Case] = {
    "csv-open-quote": checked("a.csv", CSV + '2,"p,s\n3,p,\n', at="a.csv:4: solution:"),
    "csv-stray-quote": checked("a.csv", CSV + '2,"a"b,s\n', at="a.csv:3:"),
    "csv-long-row": checked("a.csv", CSV + "2,p,s,x\n", at="a.csv:3:"),
    "csv-short-row": checked("a.csv", CSV + "2,p\n", at="a.csv:3:"),
    "csv-semicolons": checked("a.csv", CSV.replace(",", ";"), at="a.csv:1:"),
    "csv-tabs": checked("a.csv", CSV.replace(",", "\t"), at="a.csv:1:"),
    "tsv-commas": checked("a.tsv", CSV, at="a.tsv:1:"),
    "csv-no-header": checked("a.csv", "1,p,s\n2,q,t\n", at="a.csv:1:"),
    "csv-column-twice": checked("a.csv", "id,problem,problem,solution\n1,p,q,s\n", at="a.csv:1:"),
}

PARQUET: dict[str, Case] = {
    "parquet-half-written": checked("a.parquet", damaged(100, None)),
    "parquet-corrupt": checked("a.parquet", damaged(-8, -4, b"\xff\xff\xff\x7f")),
    "parquet-not-parquet": checked("a.parquet", TWO),
    "parquet-no-column": checked(
        "a.parquet",
        lambda path: parquet(path, question=["p", "q"], solution=["s", "s"]),
        at="a.parquet: problem:",
    ),
    "parquet-types": checked(
        "a.parquet",
        lambda path: parquet(path, problem=["p", "q"], solution=["s", "s"], answer=[b"1", b"2"]),
        at="a.parquet: answer:",
    ),
}

MAPPINGS: dict[str, Case] = {
    "map-absent-column": checked(
        "a.jsonl", TWO, "--map", "problem=question", at="a.jsonl: question:"
    ),
    "map-absent-optional": checked("a.jsonl", TWO, "--map", "answer=final", at="a.jsonl: final:"),
    "map-unknown-field": checked(
        "a.jsonl", TWO, "--map", "problme=question", at="a.jsonl: problme:"
    ),
    "map-two-fields": checked("a.jsonl", TWO, "--map", "solution=problem", at="a.jsonl: problem:"),
    "map-malformed": checked("a.jsonl", TWO, "--map", "problem", at="--map 'problem':"),
}
