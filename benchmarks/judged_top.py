"""Do judged documents share a technique with the query more often than unjudged candidates do?

Builds the demo in a temporary home, and compares the ten documents with the highest ratings of each
query with all its candidates; and, for every query that could be drawn, the ten that a way of
comparing documents puts first. Only problems of the starter corpus have labels; only techniques that
are held out count.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.labelled_pairs import Document, is_held_out
from benchmarks.results_file import Row
from saber_dagster import candidates
from saber_dagster.home import Home
from saber_dagster.pair_groups import eligible_queries, group_counts
from saber_dagster.signals.pairs import SignalShards
from saber_dagster.starter import SOURCE, starter_entries
from saber_dagster.tables import TableStore

TOP = 10
SEED = 7


def compare(
    methods: dict[str, Callable[[Document, Document], float]],
) -> tuple[list[Row], list[str]]:
    """Rows of figures, and a Markdown table."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "SABER_HOME": folder}
        command = [sys.executable, "-m", "saber_dagster", "build"]
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
        home = Home(Path(folder))
        store = TableStore(home.tables)
        corpus = store.read("corpus", ["raw_sources"], None)
        judged = store.read("benchmark", ["judge", "embedded", "benchmark"], None)
        index = store.read("problem_index", ["problem_index"], None)
        thresholds = store.read("thresholds", ["thresholds"], None)
        files = sorted((home.tables / "signal_shards").rglob("*.parquet"))
        shards = list(SignalShards((pl.read_parquet(file) for file in files), index))
        per_group, seed = home.settings.candidates.per_group, home.settings.seed
    labels = {entry.id: set(filter(is_held_out, entry.techniques)) for entry in starter_entries()}
    named = {
        doc: labels[source_id]
        for doc, source, source_id in corpus.select("doc_id", "source", "source_id").iter_rows()
        if source == SOURCE
    }
    texts = {
        doc: (p, s) for doc, p, s in corpus.select("doc_id", "problem", "solution").iter_rows()
    }
    rows: list[Row] = []
    table = [
        "| ranked by | queries | sharing candidates | shares a technique: top 10 | all candidates |"
        " ratio |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]

    def add(name: str, ranked: dict[str, list[str]]) -> None:
        lift = Lift.of(ranked, named)
        top, every, ratio = lift.figures()
        low, high = lift.interval()
        label = f"judged top 10: {name}: shares a held-out technique, {lift.n} queries"
        bar = 1.0 if name.startswith("the demo") else None
        rows.append(Row.at_least(label, top, "share", None, every))
        rows.append(Row.at_least(f"{label}, ratio", ratio, "×", bar, interval=(low, high)))
        table.append(
            f"| {name} | {lift.n} | {lift.counts[:, 2].sum():.0f} | {top:.3f} | {every:.3f} |"
            f" {ratio:.2f} [{low:.2f}, {high:.2f}] |"
        )

    by_query = judged.sort("query_id", "rank").group_by("query_id", maintain_order=True)
    add("the demo's ratings", dict(by_query.agg("doc_id").iter_rows()))
    counts = group_counts(shards, index, thresholds)
    queries = eligible_queries(counts, index, per_group)
    chosen = candidates.sample_candidates(
        shards, index, thresholds, queries, per_group, seed, corpus
    )
    every = dict(chosen.frame.group_by("query_id", maintain_order=True).agg("doc_id").iter_rows())
    for name, score in methods.items():
        ranked = {
            query: sorted(docs, key=lambda doc: (-score(texts[query], texts[doc]), doc))
            for query, docs in every.items()
        }
        add(name, ranked)
    return rows, table


class Lift:
    """Counts per query: shape (queries, 4), sharing and labelled in the top 10, and among all."""

    def __init__(self, counts: np.ndarray) -> None:
        self.counts = counts
        self.n = len(counts)

    @classmethod
    def of(cls, ranked: dict[str, list[str]], named: dict[str, set[str]]) -> "Lift":
        """Count for queries that have held-out techniques, by their ranked candidates."""
        counts = []
        for query, docs in ranked.items():
            if not named.get(query):
                continue
            shares = [bool(named[query] & named[doc]) if doc in named else None for doc in docs]
            top = [value for value in shares[:TOP] if value is not None]
            every = [value for value in shares if value is not None]
            counts.append((sum(top), len(top), sum(every), len(every)))
        return cls(np.array(counts, dtype=float).reshape(-1, 4))

    def figures(self) -> tuple[float, float, float]:
        """Share in the top 10, among all candidates, and their ratio."""
        return _figures(self.counts.sum(axis=0))

    def interval(self) -> tuple[float, float]:
        """95 % interval of the ratio, by drawing queries."""
        draws = np.random.default_rng(SEED).integers(0, self.n, (2000, self.n))
        ratios = [_figures(sums)[2] for sums in self.counts[draws].sum(axis=1)]
        low, high = np.quantile(ratios, [0.025, 0.975])
        return float(low), float(high)


def _figures(sums: np.ndarray) -> tuple[float, float, float]:
    top, every = sums[0] / max(sums[1], 1), sums[2] / max(sums[3], 1)
    return float(top), float(every), float(top / every) if every else 0.0
