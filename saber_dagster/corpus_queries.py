"""Queries that the user brings: ids of corpus documents, or texts of their own."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import polars as pl

from saber_dagster.corpus import (
    NO_MAPPING,
    CorpusBuild,
    Problem,
    content_sha256,
    corpus_frame,
    corpus_row,
    duplicates_frame,
    to_problem,
)
from saber_dagster.corpus_files import file_stem, read_records
from saber_dagster.corpus_rows import (
    FIELDS,
    QUERIES,
    check_records,
    misspelt_columns,
    repeated_ids,
    warnings_of,
)
from saber_dagster.errors import Fault, InputError

_SUGGESTIONS = 20  # an unknown id costs a comparison with every id; more are not shown anyway


@dataclass(frozen=True, slots=True)
class Reference:
    """A query that is a document of the corpus: its id there, and its source if given."""

    source: str | None
    source_id: str
    file: str = ""
    row: int = 0


@dataclass(frozen=True)
class QueryFile:
    """The queries without a fault, every fault, and what deserves a look but stops nothing."""

    rows: list[Reference | Problem]
    faults: list[Fault]
    warnings: list[Fault]


def read_queries(
    path: Path,
    mapping: Mapping[str, str] = NO_MAPPING,
    source: str | None = None,
    language: str = "en",
    licence: str | None = None,
) -> QueryFile:
    """Read and check a file of queries; nothing is written.

    A row with an id alone refers to a document of the corpus, a row with a problem is a text of its
    own. A text may lack its solution; then it gets no summary, hence no summary signal.

    Args:
        path: as for :func:`corpus.read_problems`, or ``.txt`` with one id per line.
        mapping: the file's column of a field where the names differ.
        source: source of texts that name none; the file's stem by default.
        language: language of texts that name none.
        licence: licence of texts that name none.

    Returns:
        Queries in file order, every fault, and warnings.
    """
    source = source or file_stem(path)
    records = read_records(path, {name: mapping.get(name, name) for name in FIELDS}, id_lists=True)
    checked, faults = check_records(records, mapping, QUERIES, source)
    rows: list[Reference | Problem] = []
    texts: list[Problem] = []
    for row, fields in checked:
        if fields["problem"]:
            texts.append(to_problem(fields, records.file, row, source, language, licence))
            rows.append(texts[-1])
        elif fields["solution"]:
            column = mapping.get("problem", "problem")
            remedy = "Give the problem too, or the id alone for a document of the corpus"
            faults.append(Fault(records.file, row, column, "is missing beside a solution", remedy))
        else:
            rows.append(Reference(fields["source"] or None, fields["id"], records.file, row))
    warnings = misspelt_columns(records, mapping, QUERIES) + warnings_of(texts)
    unsolved = [text for text in texts if not text.solution]
    if unsolved:
        problem = (
            f"{len(unsolved)} of {len(texts)} query texts have no solution, hence no summary and "
            "no summary signal: they cannot get a full candidate set"
        )
        remedy = f"Give a solution; the first without is row {unsolved[0].row}"
        warnings.append(Fault(records.file, unsolved[0].row, "solution", problem, remedy))
    return QueryFile(rows, sorted(faults), warnings)


def apply_queries(build: CorpusBuild, queries: Sequence[Reference | Problem]) -> CorpusBuild:
    """The corpus in which these queries, and only they, may be queries.

    A text becomes a row that is no document, unless a document has the same content: then that
    document is the query. An id of a left-out duplicate means the document that was kept. Equal
    texts are one query; of them the smallest (source, id) is kept. ``duplicates`` also lists the
    texts for which another row stands.

    Args:
        build: the corpus.
        queries: queries of all files together, in any order.

    Raises:
        InputError: for ids that are not in the corpus or in several sources of it, and for texts
            whose source and id are those of another row.
    """
    ids = _doc_ids(build)
    known = {sha: (source, source_id) for sha, source, source_id in _identities(build.frame)}
    faults: list[Fault] = []
    chosen: set[str] = set()
    added: dict[str, Problem] = {}
    left_out: set[tuple[str, str, str, str]] = set(build.duplicates.iter_rows())
    texts = [query for query in queries if isinstance(query, Problem)]
    faults += repeated_ids((text.source, text.source_id, text.file, text.row) for text in texts)
    for text in sorted(texts, key=lambda text: (text.source, text.source_id)):
        sha = content_sha256(text.problem, text.solution)
        own = (text.source, text.source_id)
        if sha in known:
            chosen.add(sha)
            if own != known[sha]:
                left_out.add((*own, *known[sha]))
        elif text.source in ids.get(text.source_id, {}):
            problem = f"{text.source_id!r} is the id of another text in the source {text.source!r}"
            remedy = "Give the query its own id or source, or the id alone to mean the document"
            faults.append(Fault(text.file, text.row, "id", problem, remedy))
        elif (first := added.setdefault(sha, text)) is not text:
            left_out.add((*own, first.source, first.source_id))
    unknown = 0
    references = [query for query in queries if isinstance(query, Reference)]
    for query in sorted(references, key=lambda query: (query.file, query.row)):
        found = _resolve(query, ids)
        if isinstance(found, str):
            chosen.add(found)
        else:
            unknown += not found
            faults.append(_unresolved(query, found, list(ids) if unknown <= _SUGGESTIONS else []))
    if faults:
        raise InputError(faults)
    frame = build.frame.with_columns(is_query=pl.col("sha256").is_in(list(chosen)))
    new = corpus_frame(corpus_row(text, sha, is_document=False) for sha, text in added.items())
    return CorpusBuild(corpus_frame(pl.concat([frame, new]).to_dicts()), duplicates_frame(left_out))


def _identities(frame: pl.DataFrame) -> list[tuple[str, str, str]]:
    return list(frame.select("sha256", "source", "source_id").iter_rows())


def _doc_ids(build: CorpusBuild) -> dict[str, dict[str, str]]:
    """SHA-256 of the document by source id and source; left-out rows lead to the kept one."""
    ids: dict[str, dict[str, str]] = defaultdict(dict)
    for sha, source, source_id in _identities(build.frame):
        ids[source_id][source] = sha
    for source, source_id, kept_source, kept_id in build.duplicates.iter_rows():
        ids[source_id][source] = ids[kept_id][kept_source]
    return dict(ids)


def _resolve(query: Reference, ids: Mapping[str, Mapping[str, str]]) -> str | list[str]:
    """The document's SHA-256, or the sources in which the id is found."""
    sources = ids.get(query.source_id, {})
    if query.source is not None:
        return sources.get(query.source, [])
    if len(set(sources.values())) == 1:
        return next(iter(sources.values()))
    if sources:
        return sorted(sources)
    head, colon, rest = query.source_id.partition(":")
    while colon:
        if sha := ids.get(rest, {}).get(head):
            return sha
        part, colon, rest = rest.partition(":")
        head = f"{head}:{part}"
    return []


def _unresolved(query: Reference, sources: list[str], ids: list[str]) -> Fault:
    if sources:
        problem = f"{query.source_id!r} is an id in the sources {', '.join(sources)}"
        remedy = f"Write source:id, as in {sources[0]}:{query.source_id}"
        return Fault(query.file, query.row, "id", problem, remedy)
    where = f"the source {query.source!r}" if query.source is not None else "the corpus"
    near = get_close_matches(query.source_id, sorted(ids), 3)
    hint = f"Nearest: {', '.join(near)}. " if near else ""
    remedy = f"{hint}Correct the id, or give the query its own problem"
    return Fault(query.file, query.row, "id", f"{query.source_id!r} is not in {where}", remedy)
