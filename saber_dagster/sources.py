"""The sources that the settings name, read as one corpus."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import polars as pl

from saber_dagster import champ, starter
from saber_dagster.corpus import ProblemFile, build_corpus, read_problems
from saber_dagster.corpus_queries import apply_queries, read_queries
from saber_dagster.corpus_rows import Problem
from saber_dagster.errors import Fault, InputError
from saber_dagster.input_files import given_twice
from saber_dagster.settings import Corpus, ProblemSource


@dataclass(frozen=True)
class _Builtin:
    problems: Callable[[], list[Problem]]
    identity: Callable[[], str]


_BUILTIN: Mapping[str, _Builtin] = {
    starter.SOURCE: _Builtin(starter.starter_problems, starter.starter_identity),
    champ.SOURCE: _Builtin(
        champ.champ_problems, lambda: f"champ-dataset {version('champ-dataset')}"
    ),
}


@dataclass(frozen=True)
class Sources:
    """The corpus of all sources; duplicates and warnings are what a person should look at."""

    frame: pl.DataFrame
    duplicates: pl.DataFrame
    warnings: list[Fault]


def read_sources(corpus: Corpus) -> Sources:
    """Read every source, and the queries if the user brings their own.

    Raises:
        InputError: with all faults of all files; nothing has been written.
    """
    twice = given_twice((Path(source.path), source.source) for source in corpus.files)
    files = [_read(source) for n, source in enumerate(corpus.files) if n not in twice]
    rows = [row for file in files for row in file.rows]
    if not files:
        rows = [row for name in corpus.builtin for row in _BUILTIN[name].problems()]
    faults = [*twice.values(), *(fault for file in files for fault in file.faults)]
    warnings = [warning for file in files for warning in file.warnings]
    queries = None
    if corpus.queries:
        source = corpus.queries
        queries = read_queries(
            Path(source.path), source.mapping, source.source, source.language, source.licence
        )
        faults += queries.faults
        warnings += queries.warnings
    if faults:
        raise InputError(faults)
    build = build_corpus(rows)
    if queries:
        build = apply_queries(build, queries.rows)
    return Sources(build.frame, build.duplicates, warnings)


def sources_identity(corpus: Corpus) -> list[Any]:
    """What the sources contain, by SHA-256 of each file; a missing file is ``absent``."""
    named = [*corpus.files, *([corpus.queries] if corpus.queries else [])]
    identity = [_sha(source) for source in named]
    if not corpus.files:
        identity = [*(_BUILTIN[name].identity() for name in corpus.builtin), *identity]
    return identity


def _read(source: ProblemSource) -> ProblemFile:
    return read_problems(
        Path(source.path), source.mapping, source.source, source.language, source.licence
    )


def _sha(source: ProblemSource) -> str:
    path = Path(source.path)
    if not path.is_file():
        return "absent"
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
