"""The corpus: problems with solutions, one row per distinct document.

A document's identity is its content: ``doc_id`` is a digest of problem and solution, so that it is
stable across runs and row orders, and a corrected document is a new one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import polars as pl

from saber_dagster.contracts import TABLES
from saber_dagster.corpus_files import file_stem, read_records
from saber_dagster.corpus_rows import (
    CORPUS,
    FIELDS,
    UNKNOWN_LICENCE,
    Problem,
    check_records,
    misspelt_columns,
    normalize,
    repeated_ids,
    warnings_of,
)
from saber_dagster.errors import Fault, InputError
from saber_dagster.hashing import canonical_json, sha256_hex

__all__ = [
    "CorpusBuild",
    "Problem",
    "ProblemFile",
    "build_corpus",
    "cluster_id",
    "content_sha256",
    "read_problems",
]

ID_DIGITS = 20
NO_MAPPING: Mapping[str, str] = MappingProxyType({})
_DUPLICATES = ("source", "source_id", "kept_source", "kept_source_id")


@dataclass(frozen=True)
class ProblemFile:
    """The rows without a fault, every fault, and what deserves a look but stops nothing."""

    rows: list[Problem]
    faults: list[Fault]
    warnings: list[Fault]


@dataclass(frozen=True)
class CorpusBuild:
    """A corpus, and the exact duplicates that were left out of it.

    ``frame`` follows ``contracts.TABLES["corpus"]``. ``duplicates`` has one row per left-out row:
    source, source_id, kept_source, kept_source_id.
    """

    frame: pl.DataFrame
    duplicates: pl.DataFrame


def read_problems(
    path: Path,
    mapping: Mapping[str, str] = NO_MAPPING,
    source: str | None = None,
    language: str = "en",
    licence: str | None = None,
) -> ProblemFile:
    """Read and check a file of problems; nothing is written.

    Args:
        path: ``.jsonl``, ``.ndjson``, ``.csv``, ``.tsv`` (each also ``.gz``) or ``.parquet``.
        mapping: the file's column of a field where the names differ: ``{"problem": "question"}``.
        source: source of rows that name none; the file's stem by default.
        language: language of rows that name none.
        licence: licence of rows that name none; else "unknown", with a warning.

    Returns:
        Rows in file order with normalized texts; every fault; warnings.
    """
    source = source or file_stem(path)
    records = read_records(path, {name: mapping.get(name, name) for name in FIELDS})
    checked, faults = check_records(records, mapping, CORPUS, source)
    rows = [
        to_problem(texts, records.file, row, source, language, licence) for row, texts in checked
    ]
    warnings = misspelt_columns(records, mapping, CORPUS) + warnings_of(rows)
    return ProblemFile(rows, faults, warnings)


def to_problem(
    texts: Mapping[str, str], file: str, row: int, source: str, language: str, licence: str | None
) -> Problem:
    """A checked row as a problem, with the file's source, language and licence as defaults."""
    return Problem(
        source=texts["source"] or source,
        source_id=texts["id"],
        problem=texts["problem"],
        solution=texts["solution"],
        answer=texts["answer"] or None,
        language=texts["language"] or language,
        licence=texts["licence"] or licence or UNKNOWN_LICENCE,
        url=texts["url"] or None,
        file=file,
        row=row,
    )


def content_sha256(problem: str, solution: str) -> str:
    """SHA-256 of a document's canonical JSON; its first 20 digits are the ``doc_id``."""
    return sha256_hex(canonical_json([normalize(problem), normalize(solution)]))


def cluster_id(problem: str) -> str:
    """Equal for problems that differ in case and white space only, whatever their solutions."""
    return "c" + sha256_hex(" ".join(normalize(problem).casefold().split()))[:ID_DIGITS]


def build_corpus(rows: Sequence[Problem]) -> CorpusBuild:
    """One row per distinct document; a function of the set of rows, not of their order.

    Of exact duplicates (equal problem and solution) the smallest (source, source_id) is kept.

    Args:
        rows: problems of all files together.

    Raises:
        InputError: if two rows share source and id.
    """
    faults = repeated_ids((row.source, row.source_id, row.file, row.row) for row in rows)
    if faults:
        raise InputError(faults)
    kept: dict[str, Problem] = {}
    left_out: list[tuple[str, str, str, str]] = []
    for row in sorted(rows, key=lambda row: (row.source, row.source_id)):
        first = kept.setdefault(content_sha256(row.problem, row.solution), row)
        if first is not row:
            left_out.append((row.source, row.source_id, first.source, first.source_id))
    frame = corpus_frame(corpus_row(row, sha) for sha, row in kept.items())
    return CorpusBuild(frame, duplicates_frame(left_out))


def corpus_row(row: Problem, sha256: str, is_document: bool = True) -> dict[str, Any]:
    """A row of the corpus table; every row may be a query until queries are applied."""
    return {
        "doc_id": sha256[:ID_DIGITS],
        "source": row.source,
        "source_id": row.source_id,
        "problem": normalize(row.problem),
        "solution": normalize(row.solution),
        "answer": row.answer,
        "language": row.language,
        "licence": row.licence,
        "url": row.url,
        "sha256": sha256,
        "cluster_id": cluster_id(row.problem),
        "is_document": is_document,
        "is_query": True,
    }


def corpus_frame(rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """Rows as a checked corpus table."""
    table = TABLES["corpus"]
    return table.check(pl.DataFrame(list(rows), schema=table.schema, orient="row"))


def duplicates_frame(rows: Iterable[tuple[str, str, str, str]]) -> pl.DataFrame:
    """Left-out rows (source, id, kept source, kept id) as a sorted table."""
    schema = dict.fromkeys(_DUPLICATES, pl.String)
    return pl.DataFrame(list(rows), schema=schema, orient="row").sort(_DUPLICATES)
