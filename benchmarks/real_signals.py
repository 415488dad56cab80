"""Signals, thresholds and candidates of 15,528 real problems: ``make bench-real-signals``.

Materializes what is up to the candidates through Dagster, from ``problems.jsonl.gz`` of SABER_TEST_DATA,
and records what the metadata of the assets say. Then the kernels are compared with the plain loops on
the same topics and words (``benchmarks/signal_parts.py``). ``--pictures FOLDER`` keeps the figures.
"""

import argparse
import base64
import os
import re
import tempfile
from pathlib import Path
from typing import Any

import dagster as dg
import numpy as np
import polars as pl

from benchmarks.hit_densities import SUMMARY_FLOOR, TOPIC_FLOOR
from benchmarks.results_file import Row, write
from benchmarks.signal_parts import save
from benchmarks.signals import Bench, Figures
from benchmarks.synthetic_corpus import SyntheticCorpus
from saber_dagster.cli.build import run_build
from saber_dagster.cli.configure import configure
from saber_dagster.home import Home
from saber_dagster.instance import instance_of
from saber_dagster.ontology import OntologyTree

DATA = Path(os.environ.get("SABER_TEST_DATA") or Path(__file__).parents[2] / "shared" / "data")
PROBLEMS = DATA / "problems.jsonl.gz"
SETTINGS = """\
preset: demo
partitions: {corpus_shards: 4, query_shards: 2}
signals: {topic_floor: 0.6, summary_floor: 0.15}
thresholds: {rule: percentile, queries_required: 50}
candidates: {per_group: 20}
queries: {per_domain: 50}
histogram_bins: 256
"""
GROUPS = {"corpus", "ontology", "annotation", "signals", "candidates"}
"""The groups of assets up to the candidates."""
SIGNALS = ("signal_shards", "thresholds", "query_set", "candidate_sets")
PICTURES = {"signal_shards": ("plot_histogram",), "thresholds": ("plot_tails", "plot_curve")}

Metadata = dict[str, dict[str, Any]]


def metadata_of(instance: dg.DagsterInstance, asset: str) -> Metadata:
    """Partition → key → value, as the asset's latest materializations have them."""
    found: Metadata = {}
    for record in instance.fetch_materializations(dg.AssetKey(asset), limit=1000).records:
        values = record.asset_materialization
        if values is not None and str(record.partition_key) not in found:
            found[str(record.partition_key)] = {k: v.value for k, v in values.metadata.items()}
    return found


def keep_pictures(asset: str, metadata: Metadata, folder: Path) -> None:
    """Write figures of the first partition as files."""
    first = metadata[min(metadata)]
    for key in PICTURES.get(asset, ()):
        kind, _, code = re.search(r"data:image/(\w+)(;base64),([^)]+)", first[key]).groups()  # type: ignore[union-attr]
        path = folder / f"real_{key.removeprefix('plot_')}.{kind}"
        path.write_bytes(base64.b64decode(code))


def corpus_of(index: pl.DataFrame, tree: pl.DataFrame) -> SyntheticCorpus:
    """The documents of an index as the parts of the benchmark take them."""
    found = OntologyTree.from_frame(tree)
    place = {node: i for i, node in enumerate(found.node_ids)}
    topics = [sorted(map(place.__getitem__, nodes)) for nodes in index["topics"].to_list()]
    counts = index["words"].explode().drop_nulls().value_counts(sort=True)
    rank = {word: i for i, word in enumerate(counts["words"].to_list())}
    words = [sorted(map(rank.__getitem__, some)) for some in index["words"].to_list()]

    def flat(lists: list[list[int]]) -> tuple[Any, Any]:
        ends = np.cumsum([0, *map(len, lists)])
        return ends, np.array([value for one in lists for value in one], dtype=np.int32)

    clusters = index["cluster_id"].rank("dense").cast(pl.Int32).to_numpy() - 1
    return SyntheticCorpus(found, *flat(topics), *flat(words), clusters)


def of_metadata(home: Home, pictures: Path | None) -> list[Row]:
    """What the assets of the signals say of themselves."""
    rows = []
    with instance_of(home) as instance:
        for asset in SIGNALS:
            metadata = metadata_of(instance, asset)
            if pictures:
                keep_pictures(asset, metadata, pictures)
            totals: dict[str, float] = {}
            for values in metadata.values():
                for key, value in values.items():
                    if isinstance(value, int | float) and not key.startswith("dagster/"):
                        totals[key] = totals.get(key, 0.0) + value
            rows.append(Row(f"{asset}: partitions", len(metadata), ""))
            rows += [Row(f"{asset}: {key}", value, "") for key, value in totals.items()]
    return rows


def of_tables(home: Home) -> list[Row]:
    """Thresholds by domain, and bytes."""
    rows = []
    for row in pl.read_parquet(home.tables / "thresholds" / "all.parquet").to_dicts():
        for key in ("n_queries", "eligible_queries", "percentile", "topic", "summary"):
            rows.append(Row(f"thresholds of {row['domain']}: {key}", row[key] or 0.0, ""))
    n_bytes = sum(
        path.stat().st_size for path in (home.tables / "signal_shards").rglob("*.parquet")
    )
    rows.append(Row("signal_shards: stored bytes", n_bytes / 1e6, "MB"))
    return rows


def against_loops(folder: Path, index: pl.DataFrame, tree: pl.DataFrame) -> list[Row]:
    """The kernels against the plain loops, at the paper's thresholds."""
    bench, path = Bench(folder), folder / "real.npz"
    documents = index.filter("is_document")
    save(corpus_of(documents, tree), path)
    n = documents.height
    rows = bench.run("rows", path, TOPIC_FLOOR, SUMMARY_FLOOR, 8)
    rows = bench.run("rows", path, TOPIC_FLOOR, SUMMARY_FLOOR, 8)  # compiled by now
    plain: Figures = bench.run("baselines", path)
    topic, summary = n * n / (rows["topic"] + rows["union"]), n * n / rows["summary"]
    return [
        Row("at the paper's thresholds: stored pairs by all pairs", rows["pairs"] / n**2, "share"),
        Row("at the paper's thresholds: bytes per pair", rows["bytes"] / rows["pairs"], "bytes"),
        Row.at_least("topic against plain loop", topic, "pairs/s", baseline=plain["topic"]),
        Row.at_least("summary against plain loop", summary, "pairs/s", baseline=plain["summary"]),
        Row.at_least("summary against SciPy", summary, "pairs/s", baseline=plain["scipy"]),
        Row.at_most(
            f"mismatches in {plain['compared']:.3g} pairs", plain["mismatches"], "pairs", 0
        ),
        Row.at_most("mismatches with twins in 5,000 pairs", plain["twins"], "pairs", 0),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pictures", type=Path, help="keep the figures in this folder")
    options = parser.parse_args()
    if not PROBLEMS.exists():
        raise SystemExit(f"{PROBLEMS} is absent; set SABER_TEST_DATA to the folder that has it")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "home")
        path.mkdir()
        (path / "saber.yaml").write_text(SETTINGS)
        home = configure(Home(path), [PROBLEMS])
        report = run_build(home, until=lambda node: node.group in GROUPS)
        rows = [Row("materialize up to candidates", report.seconds, "s")]
        for asset, (n, cost, peak) in report.by_asset().items():
            rows.append(Row(f"{asset}: {n} partition(s)", cost.seconds, "s"))
            rows.append(Row(f"{asset}: peak of the process", peak, "MiB"))
            rows.append(Row(f"{asset}: rows", cost.rows, "rows"))
        rows += of_metadata(home, options.pictures) + of_tables(home)
        index = pl.read_parquet(home.tables / "problem_index" / "all.parquet")
        tree = pl.read_parquet(home.tables / "ontology_tree" / "all.parquet")
        rows += against_loops(Path(folder), index, tree)
    write("real_signals", rows)


if __name__ == "__main__":
    main()
