"""How good and how fast the embedded baseline is: ``python -m benchmarks.engine_quality``.

Tags the problems of ``$SABER_TEST_DATA/sample.jsonl`` (default ``../shared/data``) with the shipped
ontology and compares the primary domains with the sample's, which the pipeline never reads; asks of
all pairs of CHAMP problems whether similar ones share an annotated concept.
"""

import json
import os
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from importlib.resources import files
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.stats import rankdata

from resources.engines.embedded import EmbeddedEngine
from resources.engines.embedded_judgments import similarity
from saber_dagster.champ import champ_problems
from saber_dagster.engines import PAIRWISE_JUDGMENT, SOLUTION_SUMMARY, Call
from saber_dagster.ledger import Outcome
from saber_dagster.ontology import OntologyTree, build_tree
from saber_dagster.ontology_files import read_ontology, shipped_ontology
from saber_dagster.replies import parse_summary
from saber_dagster.settings import Settings
from saber_dagster.tagging import tag_documents
from saber_dagster.text import content_words

HUMAN = {
    "Algebra": "algebra",
    "Geometry": "geometry",
    "Number Theory": "number_theory",
    "Combinatorics": "combinatorics",
    "Probability & Statistics": "combinatorics",
    "Calculus & Analysis": "calculus_analysis",
}
"""Domains of the sample; Precalculus lies across several and is left out."""

Rows = list[tuple[str, float]]


class Answers:
    """Asks the engine without a ledger and counts calls and seconds."""

    def __init__(self) -> None:
        self.engine = EmbeddedEngine()
        list(self.engine.answer([Call(SOLUTION_SUMMARY, {"problem": "", "solution": ""}, "")]))
        self.calls = 0
        self.seconds = 0.0

    def __call__(
        self, calls: Sequence[Call], parse: Callable[[Call, str], Any]
    ) -> list[Outcome[Any]]:
        """Outcomes of calls, in order."""
        start = time.perf_counter()
        replies = dict(self.engine.answer(calls))
        self.seconds += time.perf_counter() - start
        self.calls += len(calls)
        return [Outcome("", "ok", parse(call, replies[i].text)) for i, call in enumerate(calls)]


def sample() -> pl.DataFrame:
    """The sample with ``doc_id``."""
    path = Path(os.environ.get("SABER_TEST_DATA", "../shared/data")) / "sample.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return pl.DataFrame(rows).rename({"id": "doc_id"}).unique("doc_id")


def tree() -> OntologyTree:
    """The shipped ontology."""
    settings = Settings()
    graph = read_ontology(shipped_ontology())
    build = build_tree(
        graph, settings.ontology.root_domains, settings.domains, settings.ontology.max_depth
    )
    return OntologyTree.from_frame(build.frame)


def primary_domains(tags: pl.DataFrame, ontology: OntologyTree) -> dict[str, str]:
    """Largest sum of topic scores, ties by name."""
    sums: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for doc, node, score in tags.select("doc_id", "node_id", "score").drop_nulls().iter_rows():
        domain = ontology.domain[ontology.index[node]]
        if domain is not None:
            sums[doc][domain] += score
    return {doc: min(by, key=lambda d: (-round(by[d], 9), d)) for doc, by in sums.items()}


def topics() -> Rows:
    """Coverage, topics per document, agreement of domains, speed."""
    documents, ontology, ask = sample(), tree(), Answers()
    tags, counts = tag_documents(documents, ontology, ask, Settings().topics.threshold)
    primary = primary_domains(tags, ontology)
    rows: Rows = [
        ("share of documents with a topic", counts.tagged / counts.documents),
        ("topics per tagged document", tags["node_id"].drop_nulls().len() / counts.tagged),
        ("distinct topics assigned", tags["node_id"].drop_nulls().n_unique()),
        ("calls per document", counts.calls / counts.documents),
        ("topic calls per second, texts new", ask.calls / ask.seconds),
    ]
    agree: dict[str, list[bool]] = defaultdict(list)
    for doc, human in documents.select("doc_id", "domain").iter_rows():
        if human in HUMAN and doc in primary:
            agree[human].append(primary[doc] == HUMAN[human])
    rows.append(("primary domain agrees", float(np.mean([a for by in agree.values() for a in by]))))
    rows += [(f"  {human} ({len(by)})", float(np.mean(by))) for human, by in sorted(agree.items())]
    again = Answers()
    tag_documents(documents, ontology, again, Settings().topics.threshold)
    return [*rows, ("topic calls per second, texts known", again.calls / again.seconds)]


def pairs() -> Rows:
    """Area under the curve of "shares a concept" on CHAMP, for judgments and summaries; speed."""
    raw = files("champ_dataset").joinpath("dataset_files/v0.json").read_text(encoding="utf-8")
    marks = json.loads(raw)["problems"]
    problems = champ_problems()
    documents = [{"problem": p.problem, "solution": p.solution} for p in problems]
    concepts = [{c for c in marks[p.source_id]["ch_list"] if c[0] == "C"} for p in problems]
    both = list(combinations(range(len(problems)), 2))
    shares = np.array([bool(concepts[i] & concepts[j]) for i, j in both])

    ask = Answers()
    calls = [Call(SOLUTION_SUMMARY, document, "") for document in documents]
    found = [
        o.value.core_idea or "" if o.value else ""
        for o in ask(calls, lambda _, text: parse_summary(text, 30))
    ]
    words = [content_words(core) for core in found]
    rows: Rows = [
        ("summaries per second", ask.calls / ask.seconds),
        ("CHAMP solutions with a core idea", float(np.mean([bool(core) for core in found]))),
        ("content words per core idea", float(np.mean([len(w) for w in words if w]))),
    ]
    jaccard = [len(words[i] & words[j]) / max(1, len(words[i] | words[j])) for i, j in both]
    rows.append(("AUC of core ideas' Jaccard", auc(jaccard, shares)))
    keys = [(p.problem, p.solution) for p in problems]
    rows.append(("AUC of judgments", auc([similarity(keys[i], keys[j]) for i, j in both], shares)))
    similarity.cache_clear()
    ask = Answers()
    games = [
        {"query": documents[i], "first": documents[j], "second": documents[(i + j) % len(keys)]}
        for i, j in both[::4]
    ]
    ask([Call(PAIRWISE_JUDGMENT, game, "") for game in games], lambda _, text: text)
    return [*rows, ("judgments per second", ask.calls / ask.seconds)]


def auc(scores: Sequence[float], positive: np.ndarray) -> float:
    """Probability that a positive pair scores above a negative one; ties count half."""
    ranks = rankdata(scores)
    n = int(positive.sum())
    return float((ranks[positive].sum() - n * (n + 1) / 2) / (n * (len(positive) - n)))


if __name__ == "__main__":
    for name, value in topics() + pairs():
        print(f"{name:<44}{value:>12,.3f}")
