"""docs/checks.md lists the checks of the graph; a planted fault stops whatever builds on the table."""

import dataclasses
import json
import re
from pathlib import Path

import dagster as dg
import numpy as np
import polars as pl
import pytest
from homes import SHARDS, TinyHome, write_problems

from saber_dagster.build_failures import BuildError
from saber_dagster.definitions import load
from saber_dagster.home import Home
from saber_dagster.materialize import graph_of
from saber_dagster.tables import TableStore

DOCUMENT = Path(__file__).parents[2] / "docs" / "checks.md"
GAMES, RATINGS = "judge/embedded/tournament_rounds", "judge/embedded/ratings"
BENCHMARK, RUN = "judge/embedded/benchmark", "retriever/bm25/run"

pytestmark = pytest.mark.definitions


def lane(name: str) -> str:
    return re.sub(r"^(judge|retriever)/[^/]+/", r"\1/*/", name)


@pytest.fixture(scope="module")
def blocking(tmp_path_factory):
    """(asset, check) → whether it blocks, of the graph of a new home; lanes by ``*``."""
    graph = load(Home(tmp_path_factory.mktemp("graph"))).resolve_asset_graph()
    specs = [graph.get_check_spec(key) for key in graph.asset_check_keys]
    return {(lane(spec.asset_key.to_user_string()), spec.name): spec.blocking for spec in specs}


def test_the_document_lists_the_checks_of_the_graph_and_no_other(blocking):
    rows = re.findall(
        r"^\| `([^`]+)` \| `([^`]+)` \| .+ \| (blocks|warns)\b.* \| .+ \|$",
        DOCUMENT.read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    assert len(rows) == len(set(rows))
    assert {(asset, check): word == "blocks" for asset, check, word in rows} == blocking


# planted faults


def where(condition, **values):
    """Columns with other values in some rows."""
    return [
        pl.when(condition).then(value).otherwise(pl.col(name)).alias(name)
        for name, value in values.items()
    ]


def sources(build):
    other = build.frame["problem"][0]
    row = pl.int_range(pl.len()) == 1
    return dataclasses.replace(
        build, frame=build.frame.with_columns(where(row, problem=pl.lit(other)))
    )


def tree(build):
    return dataclasses.replace(build, frame=build.frame.with_columns(pl.col("depth") + 1))


def tags(result):
    frame, counts = result
    deep = frame.filter(pl.col("node_id").str.contains("/")).head(1)
    above = deep.with_columns(
        pl.col("node_id").str.replace("/[^/]+$", ""), pl.lit(0.5).alias("normalized")
    )
    return pl.concat([frame, above]), counts


def pairs(made):
    """The first query is also paired with itself, below both floors; topic signals are all different."""
    rows = made.rows
    some = np.searchsorted(rows.documents[: rows.indptr[1]], rows.queries[0])
    topics = np.insert(np.arange(len(rows), dtype=np.uint32) + 1, some, 0)
    return dataclasses.replace(
        made,
        rows=dataclasses.replace(
            rows,
            indptr=np.append(0, rows.indptr[1:] + 1),
            documents=np.insert(rows.documents, some, rows.queries[0]),
            topics=topics,
            overlaps=np.insert(rows.overlaps, some, 0),
        ),
        population=made.population.with_columns(n_pairs=pl.lit(0, dtype=pl.Int64)),
    )


def queries(frame):
    more = frame.with_columns(pl.format("{}x", "query_id").alias("query_id"))
    return pl.concat([frame, more])


def candidates(sample):
    row = pl.int_range(pl.len()) == 0
    frame = sample.frame.with_columns(where(row, doc_id=pl.col("query_id")))
    return dataclasses.replace(sample, frame=frame)


def games(frame):
    last = pl.col("round") == pl.col("round").max()
    frame = frame.filter(~last)
    again = (
        frame.filter(pl.col("round") == 1).head(1).with_columns(pl.lit(2, pl.Int32).alias("round"))
    )
    frame = pl.concat([frame, again])
    return frame.with_columns(where(pl.int_range(pl.len()) == 0, status=pl.lit("truncated")))


def ratings(frame):
    kept = frame.filter(pl.int_range(pl.len()) > 0)
    return kept.with_columns(pl.col("rating") / 2 + 1, pl.col("rank") + 1)


FAULTS = {
    "raw_sources": ("assets.corpus.read_sources", sources),
    "corpus": ("assets.corpus.corpus_shard_of", lambda shard: "c09"),
    "ontology_tree": ("assets.ontology.build_tree", tree),
    "topic_tags": ("assets.annotation.tag_documents", tags),
    "summaries": (
        "assets.annotation.summarize_documents",
        lambda t: t.with_columns(core_idea=pl.lit("word " * 31)),
    ),
    "problem_index": (
        "assets.signals.build_index",
        lambda t: t.with_columns(
            domains=pl.lit(["number_theory"]), is_query=pl.lit(True), words=pl.col("words").list.head(0)
        ),
    ),
    "topic_statistics": (
        "assets.signals.count_topics",
        lambda t: t.with_columns(pl.col("count") + 1),
    ),
    "signal_shards": ("assets.signals.compute_signals", pairs),
    "thresholds": (
        "assets.thresholds.fit_thresholds",
        lambda result: dataclasses.replace(
            result, frame=result.frame.with_columns(pl.col("eligible_queries") + 1)
        ),
    ),
    "query_set": ("saber_dagster.candidates.select_queries", queries),
    "candidate_sets": ("saber_dagster.candidates.sample_candidates", candidates),
    GAMES: ("assets.judges.run_tournament", games),
    RATINGS: ("assets.judges.rate", ratings),
    RUN: (
        "assets.retrievers.make_run",
        lambda t: t.filter(pl.int_range(pl.len()) > 0).with_columns(pl.col("rank") + 1),
    ),
    "query_metrics": ("assets.leaderboard.metrics_of", lambda t: t.filter(pl.int_range(pl.len()) > 0)),
    "leaderboard": (
        "assets.leaderboard.build",
        lambda t: t.with_columns(pl.col("value") * 0.9, pl.col("tied_group") + 1),
    ),
}  # fmt: skip
"""Asset → the library's function whose result gets faults, and the faults: all its rules at once."""

OTHERWISE_TESTED = {
    ("topic_tags", "coverage"),
    ("summaries", "coverage"),
    ("problem_index", "has_queries"),
    ("thresholds", "some_query_is_eligible"),
    ("query_set", "not_empty"),
    ("candidate_sets", "groups_are_full"),
    *(("judge/*/tournament_rounds", check) for check in ("coverage", "connected", "prefers")),
    ("leaderboard", "oracle_is_one"),
}
"""Checks that test_assets.py and test_judge_checks.py see fail."""


@pytest.fixture(scope="module")
def graph(finished):
    return graph_of(load(Home(finished.root)))


@pytest.fixture
def stops(home, graph, blocking):
    """Build: it stops after the asset, which fails all its blocking checks that can be planted."""

    def build(asset):
        with pytest.raises(BuildError, match=asset):
            home.build()
        node = graph[tuple(asset.split("/"))]
        store = TableStore(home.root / "tables")
        tables = [store.provenance(node.key, partition) for partition in node.partitions]
        failed = {check.partition(":")[0] for table in tables for check in table.failed_checks}
        rules = {c for (a, c), blocks in blocking.items() if a == lane(asset) and blocks}
        assert {c for c in rules if (lane(asset), c) not in OTHERWISE_TESTED} <= failed
        below = {node.key}
        for key, other in graph.items():  # in topological order
            if below & set(other.parents):
                below.add(key)
        ran = {tuple(name.split("/")) for name, _ in home.ran}
        assert ran & below == {node.key}

    return build


@pytest.mark.parametrize("asset", FAULTS)
def test_a_planted_fault_stops_what_builds_on_the_table(asset, home, stops, monkeypatch):
    target, fault = FAULTS[asset]
    module, _, name = target.rpartition(".")
    original = getattr(__import__(module, fromlist=[name]), name)
    monkeypatch.setattr(target, lambda *args, **kwargs: fault(original(*args, **kwargs)))
    for folder in sorted((home.root / "releases").rglob("*"), reverse=True):
        if asset in {"topic_statistics", "thresholds", "query_set", "candidate_sets"}:
            folder.rmdir() if folder.is_dir() else folder.unlink()
    if asset == "query_set":
        home.change(queries={"per_domain": 1})
        monkeypatch.setattr(
            "assets.candidates.candidates.select_queries",
            lambda groups, index, per_domain, *args, **options: queries(
                original(groups, index, 2, *args, **options)
            ),
        )
    home.forget(asset)
    stops(asset)


def test_a_release_that_somebody_changed_stops_what_reads_it(home, stops):
    path = home.root / "releases" / "r1" / "release_texts.parquet"
    texts = pl.read_parquet(path)
    used = home.table("candidate_sets", SHARDS)["doc_id"].unique().sort()
    changed = texts.filter(pl.col("doc_id") != used[0]).with_columns(
        where(pl.col("doc_id") == used[1], problem=pl.lit("another problem"))
    )
    changed.write_parquet(path)
    home.forget("release")
    stops("release")
    named = texts.filter(pl.col("doc_id") == used[1])["source_id"].item()
    assert any(
        f"{named!r} of tiny" in reason["reason"] for reason in home.status()["release"]["reasons"]
    ), "in the user's words"


def test_a_release_with_a_wrong_text_is_not_made(home):
    for path in sorted((home.root / "releases").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    used = home.table("candidate_sets", SHARDS)["doc_id"].min()
    home.tamper("corpus", lambda t: t.filter(pl.col("doc_id") != used), "c00")
    with pytest.raises(
        BuildError, match=r"release: .*every_text_is_there: 1 candidates lack a text"
    ):
        home.build()
    assert not list((home.root / "releases").iterdir())


def test_rows_that_a_benchmark_loses_stop_the_metrics(home, stops):
    used = home.table("candidate_sets", SHARDS)["doc_id"].min()
    home.tamper(
        "release",
        lambda t: t.filter(pl.col("doc_id") != used).with_columns(pl.lit("").alias("source_id")),
    )
    home.forget(BENCHMARK)
    stops(BENCHMARK)


def test_every_blocking_check_has_a_planted_fault(blocking):
    covered = {lane(asset) for asset in (*FAULTS, "release", BENCHMARK)}
    assert {asset for (asset, _), blocks in blocking.items() if blocks} == covered
    assert set(blocking) >= OTHERWISE_TESTED


def test_a_sound_home_passes_all_checks_but_that_of_the_licence(finished):
    instance = finished.instance
    seen, bad = set(), set()
    for run in instance.get_runs():
        for log in instance.all_logs(
            run.run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION
        ):
            result = log.dagster_event.event_specific_data
            name = (result.asset_key.to_user_string(), result.check_name)
            seen.add(name)
            bad |= set() if result.passed else {name}
    assert bad == {("raw_sources", "licences_are_known")}, "the file names none"
    assert len(seen) > 50


def test_a_pinned_table_is_not_measured_by_the_settings_of_today(tmp_path):
    corpus = write_problems(tmp_path / "tiny.jsonl", 0, 50)
    ids = [json.loads(line)["id"] for line in corpus.read_text().splitlines()]
    queries = tmp_path / "queries.txt"
    queries.write_text("".join(f"{name}\n" for name in ids))
    home = TinyHome.make(tmp_path / "home", corpus)
    home.change(corpus={"queries": {"path": str(queries)}})
    home.build()
    assert home.table("query_set").height > 4, "more than a sample of today's settings"
    home.change(corpus={"queries": None})
    assert ("query_set", None) in home.build()
