"""The chain from problem index to candidates as a home runs it, at low floors: CPU-seconds and memory.

``python -m benchmarks.signal_chain make FOLDER N DENSITY`` writes a corpus; ``run FOLDER``, and
``top FOLDER M`` for ``signals.keep: top_m``, print a JSON object of figures, in CPU-seconds of all
threads and MB. Tables are written and read as the assets do it: every partition of the signals reads
the index anew. What Dagster, checks and pictures take comes on top.
"""

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.hit_densities import EPSILON
from benchmarks.signal_parts import peak_mb, seconds, timed
from benchmarks.synthetic_corpus import DOMAINS, make_corpus, make_ontology, problem_index
from saber_dagster.candidates import choose_queries, sample_candidates
from saber_dagster.contracts import TABLES
from saber_dagster.ontology import OntologyTree
from saber_dagster.partitions import domain_and_shard
from saber_dagster.signals.join import SignalJoin, query_positions
from saber_dagster.signals.pairs import SignalShards
from saber_dagster.signals.statistics import topic_statistics
from saber_dagster.signals.storage import encode
from saber_dagster.tables import Provenance, TableStore
from saber_dagster.thresholds.fit import fit_thresholds
from saber_dagster.thresholds.rule import ThresholdRule

FLOORS = {"topic_floor": 0.6, "summary_floor": 0.15}
TOP_FLOORS = {"topic_floor": 0.3, "summary_floor": 0.05}
SHARDS = 4
"""Query shards of each domain."""
PER_GROUP, QUERIES_REQUIRED, PER_DOMAIN, SEED = 50, 150, 200, 7
INDEX, PAIRS = ["problem_index"], ["signal_shards"]


def provenance(table: str, partition: str = "all", rows: int = 0, version: str = "v") -> Provenance:
    """What a table of this run says of itself."""
    return Provenance(table, table, partition, "1", version, rows, {"problem_index:all": "v"})


def texts(index: pl.DataFrame) -> pl.DataFrame:
    """A corpus whose problems are the words of their summaries: long enough to be compared."""
    return index.select("doc_id", pl.col("words").list.join(" ").alias("problem"))


def join(
    store: TableStore,
    tree: OntologyTree,
    statistics: pl.DataFrame,
    partition: str,
    floors: Mapping[str, float] = FLOORS,
    most: int | None = None,
) -> int:
    """Compute and write one partition of the signals; returns its pairs."""
    with timed("index"):
        index = store.read("problem_index", INDEX, None)
    domain, shard = domain_and_shard(partition)
    mine = (pl.col("primary_domain") == domain) & (pl.col("shard") == shard)
    with timed("prepare"):
        asked = query_positions(index, index.filter("is_query", mine)["doc_id"])
        ready = SignalJoin(index, tree, statistics, **floors, epsilon=EPSILON, most=most)
    with timed("join"):
        rows = ready.rows(asked)
    with timed("store"):
        word_counts = index["words"].list.len().to_numpy()
        version = rows.version(index["doc_id"], word_counts)
        made = provenance("signal_shards", partition, len(rows), version)
        frame = encode(rows)
        del rows  # as an asset that returns
        store.write(TABLES["signal_shards"], frame, made, PAIRS)
    return frame.height


def make(folder: str, n: str, density: str) -> dict[str, float]:
    """Write what the chain begins with."""
    corpus = make_corpus(int(n), density)
    index = problem_index(corpus, SHARDS)
    statistics = topic_statistics(index, corpus.tree)
    store = TableStore(Path(folder))
    for name, frame in (("problem_index", index), ("topic_statistics", statistics)):
        store.write(TABLES[name], frame, provenance(name), [name])
    return {}


def top(folder: str, most: str) -> dict[str, float]:
    """The M largest signals of each query alone, of what :func:`make` wrote."""
    store = TableStore(Path(folder))
    tree = make_ontology()
    statistics = store.read("topic_statistics", ["topic_statistics"], None)
    pairs = sum(
        join(store, tree, statistics, f"{domain}|s{shard:02}", TOP_FLOORS, int(most))
        for domain in DOMAINS
        for shard in range(SHARDS)
    )
    n_bytes = sum(path.stat().st_size for path in Path(folder, *PAIRS).rglob("*.parquet"))
    return seconds | {"pairs": pairs, "bytes": n_bytes, "peak": peak_mb()}


def run(folder: str) -> dict[str, float]:
    """All figures of what :func:`make` wrote."""
    store = TableStore(Path(folder))
    tree = make_ontology()
    statistics = store.read("topic_statistics", ["topic_statistics"], None)
    partitions = [f"{domain}|s{shard:02}" for domain in DOMAINS for shard in range(SHARDS)]
    pairs = sum(join(store, tree, statistics, partition) for partition in partitions)
    signals_peak = peak_mb()
    n_bytes = sum(path.stat().st_size for path in Path(folder, *PAIRS).rglob("*.parquet"))
    index = store.read("problem_index", INDEX, None)
    shards = SignalShards(store.parts("signal_shards", PAIRS, partitions), index)
    rule = ThresholdRule("percentile", PER_GROUP, QUERIES_REQUIRED, **FLOORS)
    with timed("thresholds"):
        fitted = fit_thresholds(shards, index, DOMAINS, rule)
    with timed("query set"):
        chosen = choose_queries(
            shards, index, fitted.frame, PER_DOMAIN, PER_GROUP, SEED, texts(index)
        )
    queries = chosen.frame
    found = 0
    with timed("candidates"):
        for partition in partitions:
            domain, shard = domain_and_shard(partition)
            mine = queries.filter(primary_domain=domain, shard=shard)["query_id"]
            part = SignalShards(store.parts("signal_shards", PAIRS, [partition]), index)
            found += sample_candidates(
                part, index, fitted.frame, mine, PER_GROUP, SEED, texts(index)
            ).frame.height
    row = fitted.frame.row(0, named=True)
    return seconds | {
        "pairs": pairs,
        "bytes": n_bytes,
        "peak": peak_mb(),
        "signals peak": signals_peak,
        "queries": queries.height,
        "candidate rows": found,
        "eligible": float(np.min(fitted.frame["eligible_queries"].to_numpy())),
        "topic threshold": row["topic"],
        "summary threshold": row["summary"],
    }


if __name__ == "__main__":
    steps: dict[str, Callable[..., dict[str, float]]] = {"make": make, "run": run, "top": top}
    print(json.dumps(steps[sys.argv[1]](*sys.argv[2:]), default=float))
