"""How well ways of finding topics do, by the subjects that sources give their problems."""

import gzip
import json
import math
import os
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks.results_file import Row
from resources.engines.embedded_topics import VECTORS, compile_candidates, nearness, topic_scores
from saber_dagster.engines import Call
from saber_dagster.hashing import sha256_hex
from saber_dagster.ledger import Outcome
from saber_dagster.ontology import OntologyTree, build_tree
from saber_dagster.ontology_files import read_ontology, shipped_ontology
from saber_dagster.problem_index import build_index
from saber_dagster.settings import Settings
from saber_dagster.starter import starter_entries
from saber_dagster.tagging import tag_documents

SUBJECTS = {
    "Algebra": "algebra",
    "Geometry": "geometry",
    "Number Theory": "number_theory",
    "Combinatorics": "combinatorics",
    "Probability & Statistics": "combinatorics",
    "Calculus & Analysis": "calculus_analysis",
}
"""Domains of the test data; Precalculus lies across several and is left out."""
LARGE = 1500
"""Problems drawn from the large set."""

Candidate = dict[str, Any]
Scorer = Callable[[str, str, tuple[Candidate, ...]], list[float]]


def _compiled(change: Callable[[Candidate], Candidate], vectors: float) -> Scorer:
    known: dict[int, Any] = {}

    def score(problem: str, solution: str, candidates: tuple[Candidate, ...]) -> list[float]:
        if id(candidates) not in known:
            known[id(candidates)] = compile_candidates([change(c) for c in candidates])
        return topic_scores(problem, solution, known[id(candidates)], vectors)

    return score


def _by_vectors() -> Scorer:
    known: dict[int, Any] = {}

    def score(problem: str, solution: str, candidates: tuple[Candidate, ...]) -> list[float]:
        if id(candidates) not in known:
            known[id(candidates)] = compile_candidates(candidates)
        near = nearness(problem, solution, known[id(candidates)])
        return [max(0.0, value) for value in near]

    return score


METHODS: dict[str, Callable[[], Scorer]] = {
    "names": lambda: _compiled(lambda c: {**c, "synonyms": ()}, 0.0),
    "names and synonyms": lambda: _compiled(dict, 0.0),
    "static vectors": _by_vectors,
    "together: the engine": lambda: _compiled(dict, VECTORS),
}


def compare() -> tuple[list[Row], list[str]]:
    """Rows of figures, and a Markdown table: methods × sets."""
    tree = shipped_tree()
    sets = [("starter corpus", starter()), *test_data()]
    rows: list[Row] = []
    head = "".join(
        f" {name}: with a topic | domain agrees (mean over domains) | topics each |"
        for name, _ in sets
    )
    table = [f"| topics |{head}", "| --- |" + " ---: |" * (3 * len(sets))]
    cells = []
    for name, documents in sets:
        known = documents["domain"].drop_nulls()
        share = known.value_counts()["count"].max() / known.len()
        label = f"topics: {name}: always the largest domain, primary domain agrees"
        rows.append(Row.at_least(label, share, "share"))
        cells.append(f" | {share:.3f} ({1 / known.n_unique():.3f}) | |")
    largest = "| always the largest domain |" + "".join(cells)
    for method, make in METHODS.items():
        cells = []
        for name, documents in sets:
            scorer = make()
            tags, counts = tag_documents(
                documents, tree, _asks(scorer), Settings().topics.threshold
            )
            primary = primary_domains(documents, tags, tree)
            by_domain: dict[str, list[bool]] = defaultdict(list)
            for doc, domain in documents.select("doc_id", "domain").iter_rows():
                if domain:
                    by_domain[domain].append(primary.get(doc) == domain)
            right = [hit for hits in by_domain.values() for hit in hits]
            tagged, agrees = counts.tagged / counts.documents, sum(right) / len(right)
            recall = sum(sum(hits) / len(hits) for hits in by_domain.values()) / len(by_domain)
            each = tags["node_id"].drop_nulls().len() / max(1, counts.tagged)
            label = f"topics: {name}: {method}"
            rows += [
                Row.at_least(f"{label}, share with a topic", tagged, "share"),
                Row.at_least(
                    f"{label}, primary domain agrees", agrees, "share", interval=wilson(right)
                ),
                Row.at_least(f"{label}, mean over domains", recall, "share"),
            ]
            cells.append(f" {tagged:.3f} | {agrees:.3f} ({recall:.3f}) | {each:.2f} |")
        table.append(f"| {method} |" + "".join(cells))
    return rows, [*table, largest]


def shipped_tree() -> OntologyTree:
    """The shipped ontology."""
    own = Settings().ontology
    graph = read_ontology(shipped_ontology())
    return OntologyTree.from_frame(
        build_tree(graph, own.root_domains, Settings().domains, own.max_depth).frame
    )


def starter() -> pl.DataFrame:
    """The starter corpus with the domain of its files."""
    return pl.DataFrame(
        {"doc_id": e.id, "problem": e.problem, "solution": e.solution, "domain": e.domain}
        for e in starter_entries()
    )


def test_data() -> list[tuple[str, pl.DataFrame]]:
    """Real problems with subjects, of SABER_TEST_DATA.

    Left out are CHAMP, the source of the weights, and the word problems of GSM8K, which have no
    subject.
    """
    folder = Path(os.environ.get("SABER_TEST_DATA", "../shared/data"))
    sample, large = folder / "sample.jsonl", folder / "problems.jsonl.gz"
    if not (sample.exists() and large.exists()):
        raise SystemExit(
            f"{folder} has no sample.jsonl and problems.jsonl.gz: set SABER_TEST_DATA. Without them"
            " the published tables would lose their columns"
        )
    rows = map(json.loads, sample.read_text(encoding="utf-8").splitlines())
    found = [("sample without CHAMP", _frame(r for r in rows if r["source"] != "CHAMP"))]
    with gzip.open(large, "rt", encoding="utf-8") as lines:
        every = [json.loads(line) for line in lines]
    every = [r for r in every if r["source"] not in ("CHAMP", "GSM8K")]
    every.sort(key=lambda row: sha256_hex(row["id"]))
    return [*found, (f"{LARGE:,} of the large set", _frame(every[:LARGE]))]


def primary_domains(
    documents: pl.DataFrame, tags: pl.DataFrame, tree: OntologyTree
) -> dict[str, str]:
    """The primary domains that the pipeline finds."""
    own = Settings()
    corpus = documents.select("doc_id", cluster_id="doc_id", is_document=True, is_query=True)
    summaries = documents.select("doc_id", core_idea=pl.lit(None, pl.String))
    index = build_index(corpus, tags, summaries, tree, own.domains, 1, own.summaries.min_words)
    return dict(index.select("doc_id", "primary_domain").drop_nulls().iter_rows())


def wilson(successes: Sequence[bool]) -> tuple[float, float]:
    """95 % interval of a share."""
    n, z = len(successes), 1.959964
    share = sum(successes) / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return centre - half, centre + half


def _frame(rows: Any) -> pl.DataFrame:
    columns = ("problem", "solution")
    return pl.DataFrame(
        {"doc_id": r["id"], **{c: r[c] for c in columns}, "domain": SUBJECTS.get(r["domain"])}
        for r in rows
    ).unique("doc_id", maintain_order=True)


def _asks(scorer: Scorer) -> Callable[..., list[Outcome[list[float]]]]:
    def ask(calls: Sequence[Call], _parse: Any) -> list[Outcome[list[float]]]:
        inputs = (call.inputs for call in calls)
        found = (scorer(i["problem"], i["solution"], i["candidates"]) for i in inputs)
        return [Outcome("", "ok", scores) for scores in found]

    return ask
