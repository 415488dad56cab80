"""Real builds of a tiny home: what runs, what is pinned, and which checks stop what."""

import dataclasses
import re
from pathlib import Path

import dagster as dg
import polars as pl
import pytest
from homes import SHARDS, TinyHome, write_problems

from assets.annotation import coverage
from saber_dagster.build_failures import BuildError
from saber_dagster.contracts import TABLES
from saber_dagster.errors import SaberError
from saber_dagster.jobs import JOBS
from saber_dagster.metrics import ndcg
from saber_dagster.tables import TableStore

pytestmark = pytest.mark.definitions

PINNED = ("topic_statistics", "thresholds", "query_set", "candidate_sets")
UP_TO_SIGNALS = (
    "raw_sources",
    "corpus",
    "topic_tags",
    "summaries",
    "problem_index",
    "topic_statistics",
    "signal_shards",
)
GAMES = "judge/embedded/tournament_rounds"
RUN = "retriever/bm25/run"
CLUMSY = "python:clumsy:ClumsyEngine"


@pytest.fixture
def new_home(corpus, tmp_path):
    return TinyHome.make(tmp_path / "home", corpus)


def without_release(home):
    """As if the release had not been made yet."""
    for path in sorted((home.root / "releases").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()


# what runs


def test_pictures_are_shown_where_they_are_wanted_and_change_nothing(corpus, finished, tmp_path):
    drawn = TinyHome.make(tmp_path / "drawn", corpus, pictures=True, histogram_bins=256)
    drawn.build()
    assert drawn.versions("thresholds") == finished.versions("thresholds")

    def labels(home, asset):
        event = home.instance.get_latest_materialization_event(dg.AssetKey([asset]))
        return set(event.asset_materialization.metadata)

    assert "plot" in labels(drawn, "candidate_sets")
    assert {"plot_eligible", "plot_tails", "plot_curve"} <= labels(drawn, "thresholds")
    assert {"binding", "eligible_curve"} <= labels(finished, "thresholds")
    assert not any(label.startswith("plot") for label in labels(finished, "thresholds"))
    assert {"plot_histogram", "histogram"} <= labels(drawn, "signal_shards")
    assert "histogram" not in labels(finished, "signal_shards")
    drawn.change(pictures=False, histogram_bins=0)
    assert drawn.build() == set()


def test_a_finished_home_is_fresh_and_its_tables_say_so(home):
    assert home.build() == set()
    assert all(row["fresh"] == row["partitions"] for row in home.status().values())
    assert (home.root / "releases" / "r1").is_dir()
    assert home.table("leaderboard")["release"].unique().to_list() == ["r1"]


def test_what_dagster_has_no_record_of_runs_again_and_nothing_else(home):
    home.forget("query_metrics", "signal_shards")
    assert home.build() == {("query_metrics", None), *(("signal_shards", s) for s in SHARDS)}
    assert home.build() == set()


def test_a_run_that_a_killed_build_left_is_ended_whatever_process_it_names(home):
    instance = home.instance
    tags = instance.get_runs(limit=1)[0].tags
    for run_id, own in (("killed", tags), ("somebody-elses", {})):
        run = dg.DagsterRun("__ASSET_JOB", run_id, status=dg.DagsterRunStatus.STARTED, tags=own)
        instance.add_run(run)
    home.build()
    assert instance.get_run_by_id("killed").status == dg.DagsterRunStatus.FAILURE
    assert instance.get_run_by_id("somebody-elses").status == dg.DagsterRunStatus.STARTED


def test_a_home_that_is_cut_otherwise_is_refused(home):
    home.change(partitions={"query_shards": 2})
    before = home.files()
    with pytest.raises(SaberError, match="query_shards 1 → 2"):
        home.build()
    assert home.ran == set()
    assert home.files() == before


def test_an_engine_that_fails_holds_up_what_depends_on_it(new_home):
    options = {"failure": "transport_error", "percent": 100, "task": "topic_scores"}
    new_home.change(annotator={"engine": CLUMSY, "options": options})
    with pytest.raises(BuildError, match=r"topic_tags c00: .*the line is dead"):
        new_home.build()
    assert {asset for asset, _ in new_home.ran} == {
        "raw_sources",
        "ontology_tree",
        "corpus",
        "topic_tags",
        "summaries",
    }
    status = new_home.status()
    assert status["topic_tags"]["missing"] == 1
    assert status["summaries"]["fresh"] == 1, "the others of the level are finished"
    assert status["problem_index"]["missing"] == 1


# a pinned release


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"candidates": {"per_group": 2}}, "candidates.per_group 3 → 2"),
        ({"seed": 8}, "seed 7 → 8"),
    ],
)
@pytest.mark.parametrize("job", ["build", "rejudge"])
def test_a_setting_that_a_pinned_release_was_made_with_does_not_change(home, change, named, job):
    home.change(**change)
    home.judge("other", failure="parse_error", percent=0)
    before = home.files(), home.replies()
    with pytest.raises(SaberError, match=f"release r1 was made with other settings: {named}"):
        home.build(until=JOBS[job][1])
    assert home.ran == set()
    assert (home.files(), home.replies()) == before


def test_growth_of_the_corpus_moves_nothing_that_is_pinned(home, corpus, tmp_path):
    before, index = home.versions(*PINNED), home.versions("problem_index", "release")
    more = write_problems(tmp_path / "more.jsonl", 50, 80)
    home.use(corpus, more)
    replies = home.replies()
    ran = {asset for asset, _ in home.build()}
    assert {*PINNED, "problem_index", "signal_shards"} <= ran
    assert not any(asset.startswith(("judge/", "retriever/")) for asset in ran)
    assert home.versions(*PINNED) == before
    after = home.versions("problem_index", "release")
    assert after["problem_index"] != index["problem_index"]
    assert after["release"] == index["release"]
    assert home.replies() > replies, "the annotator was asked about the new documents"
    assert taken_over(home) == [True, True]
    grown = [home.table("signal_shards", [shard]) for shard in SHARDS]
    version = home.versions("signal_shards")
    (kept,) = (home.root / "indexes").iterdir()
    kept.unlink()
    home.forget("signal_shards")
    home.build()
    assert taken_over(home) == [False, False]
    assert all(
        home.table("signal_shards", [shard]).equals(rows)
        for shard, rows in zip(SHARDS, grown, strict=True)
    )
    assert home.versions("signal_shards") == version


@pytest.mark.parametrize("change", [{"code_version": "another"}, {"failed_checks": ("floors",)}])
def test_signals_of_other_code_or_with_a_failed_check_are_not_taken_over(
    home, corpus, tmp_path, change
):
    store = TableStore(home.root / "tables")
    made = store.provenance(["signal_shards"], SHARDS[0])
    rows = store.read("signal_shards", ["signal_shards"], SHARDS[0])
    other = dataclasses.replace(made, **change)
    store.write(TABLES["signal_shards"], rows, other, ["signal_shards"])
    home.use(corpus, write_problems(tmp_path / "more.jsonl", 50, 80))
    ran = home.build(*UP_TO_SIGNALS)
    assert {("signal_shards", shard) for shard in SHARDS} < ran
    assert taken_over(home) == [False, True]


def taken_over(home):
    """Whether the last signals of each shard were made from those before."""
    key = dg.AssetKey("signal_shards")
    found = []
    for shard in SHARDS:
        records = dg.AssetRecordsFilter(asset_key=key, asset_partitions=[shard])
        (record,) = home.instance.fetch_materializations(records, limit=1).records
        found.append(record.asset_materialization.metadata["taken_over"].value)
    return found


def test_pairs_are_read_as_the_documentation_says(finished, monkeypatch):
    text = (Path(__file__).parents[2] / "docs" / "signals.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    monkeypatch.chdir(finished.root)
    printed: list = []
    names: dict = {"print": printed.append}
    exec(code.replace("algebra/s00", SHARDS[0].replace("|", "/")), names)  # our own document
    index, pairs = finished.table("problem_index"), pl.concat(printed)
    assert pairs.columns == ["query_id", "doc_id", "topic", "summary"]
    assert set(pairs["query_id"]) <= set(index.filter("is_query")["doc_id"])
    assert pairs.height == finished.table("signal_shards", SHARDS[:1]).height > 0


def test_the_largest_signals_of_each_query_give_the_same_candidates(home):
    before = home.versions("thresholds", "query_set", "candidate_sets")
    pairs = home.table("signal_shards", SHARDS).height
    without_release(home)
    home.change(signals={"keep": "top_m"}, thresholds={"c_steps": [4.5]})
    home.build("signal_shards", *before)
    assert home.versions(*before) == before
    assert home.table("signal_shards", SHARDS).height < pairs
    home.change(thresholds={"c_steps": [4.5, 20.0]})
    ran = home.build("signal_shards")
    assert {asset for asset, _ in ran} == {"signal_shards"}, "M is another one"


def test_thresholds_that_are_fixed_are_those_of_the_settings(home):
    without_release(home)
    home.change(
        signals={"topic_floor": 0.2, "summary_floor": 0.05},
        thresholds={"rule": "fixed", "topic": 0.4, "summary": 0.1},
    )
    home.build("signal_shards", "thresholds")
    rows = home.table("thresholds").select("rule", "topic", "summary").unique().rows()
    assert rows == [("fixed", 0.4, 0.1)]
    pairs = home.table("signal_shards", SHARDS)
    assert pairs.filter(pl.col("topic") > 400_000).height > 0


def test_a_changed_byte_of_stored_signals_stops_whoever_reads_them(home):
    without_release(home)
    path = home.root / "tables" / "signal_shards" / f"{SHARDS[0].replace('|', '/')}.parquet"
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 1
    path.write_bytes(bytes(data))
    said = home.launch("thresholds")
    assert f"{path} is damaged (it has another SHA-256 than when it was written)" in said
    assert "`saber build` makes it again" in said


def test_new_statistics_leave_nothing_to_take_over(home, corpus, tmp_path):
    without_release(home)
    home.use(corpus, write_problems(tmp_path / "more.jsonl", 50, 80))
    ran = home.build(*UP_TO_SIGNALS)
    assert {("signal_shards", shard) for shard in SHARDS} < ran
    assert taken_over(home) == [False, False]


def test_signals_are_read_with_the_index_that_they_were_made_from_only(home):
    """Rows name problems by number, so that another index would make other pairs of them."""
    index = home.table("problem_index")
    store = TableStore(home.root / "tables")
    made = store.provenance(["problem_index"], None)
    other = dataclasses.replace(made, data_version="0" * 64)
    store.write(TABLES["problem_index"], index, other, ["problem_index"])
    said = home.launch("query_set")
    assert "signal_shards:combinatorics|s00 names the rows of another problem_index" in said
    assert "Materialize signal_shards again" in said


def test_another_release_beside_one_that_is_pinned_must_be_meant(home):
    home.change(release="r2")
    before = home.files()
    with pytest.raises(SaberError, match="release create r2"):
        home.build()
    assert home.ran == set()
    assert home.files() == before


@pytest.mark.parametrize("job", ["evaluate", "rejudge"])
def test_lanes_do_not_run_without_their_release(home, job):
    home.judge("other", failure="parse_error", percent=0)
    home.change(release="r2")
    before = home.files(), home.replies()
    assert "release r2" in home.job(job)
    assert (home.files(), home.replies()) == before

    home.change(release="r1")
    without_release(home)
    before = home.files(), home.replies()
    assert "release is missing" in home.job(job)
    assert (home.files(), home.replies()) == before


def test_a_release_is_not_made_from_what_is_not_fresh(home):
    home.change(release="r2", summaries={"max_words": 20})
    before = home.files()
    why = home.launch("release")
    assert "SaberError" in why
    assert "summaries:c00 is stale" in why
    assert home.files() == before


def test_a_board_is_not_made_from_what_is_not_fresh(home):
    assert home.launch("leaderboard") == ""
    home.change(tournament={"rounds": 5})
    before = home.files()
    why = home.launch("leaderboard")
    assert "SaberError" in why
    assert "tournament_rounds" in why
    assert "is stale" in why
    assert home.files() == before


def test_what_changes_above_a_pinned_release_does_not_hold_up_lanes_and_board(
    home, corpus, tmp_path
):
    home.use(corpus, write_problems(tmp_path / "more.jsonl", 50, 60))
    home.change(summaries={"max_words": 20})
    replies = home.replies()
    assert home.launch("leaderboard") == ""
    assert home.job("evaluate") == ""
    assert home.job("rejudge") == ""
    assert home.replies() == replies, "nothing was asked"


def test_a_release_that_cannot_be_made_leaves_the_old_one_named(home):
    home.change(candidates={"per_group": 30})
    before = (home.root / "saber.yaml").read_bytes()
    result = home.saber("release", "create", "r2")
    assert isinstance(result.exception, SaberError)
    assert "0 of 2 domains have 2 eligible queries" in str(result.exception)
    assert (home.root / "saber.yaml").read_bytes() == before
    assert [path.name for path in (home.root / "releases").iterdir()] == ["r1"]


def test_another_corpus_is_refused_on_a_pinned_home(home, tmp_path):
    other = write_problems(tmp_path / "other.jsonl", 50, 80)
    before = home.files()
    result = home.saber("build", "--corpus", str(other))
    assert isinstance(result.exception, SaberError)
    assert "release r1" in str(result.exception)
    assert "SABER_HOME" in str(result.exception)
    assert home.files() == before


# checks


def refused(home, message, failed, partition=None):
    """The build fails with the message, and says of the asset that it failed."""
    with pytest.raises(BuildError, match=message):
        home.build()
    status = home.status()[failed]
    assert status["failed"] >= 1
    reasons = [r for r in status["reasons"] if r["condition"] == "failed"]
    assert partition is None or partition in [reason["partition"] for reason in reasons]
    return {asset for asset, _ in home.ran}


def test_coverage_means_99_percent():
    assert coverage(99, 100, "games").passed
    assert not coverage(9899, 10000, "games").passed


@pytest.mark.parametrize(
    ("task", "asset"), [("topic_scores", "topic_tags"), ("solution_summary", "summaries")]
)
def test_documents_without_an_answer_stop_the_build(new_home, task, asset):
    options = {"failure": "parse_error", "task": task}
    new_home.change(annotator={"engine": CLUMSY, "options": options})
    ran = refused(new_home, rf"{asset} c00: .*coverage: 4\d of 50 documents", asset, "c00")
    assert "problem_index" not in ran
    assert "problem_index" not in {asset for asset, _ in new_home.ran}
    why = new_home.launch("problem_index")
    assert f"{asset}:c00 failed a check" in why
    assert "coverage" in why
    assert new_home.status()["problem_index"]["missing"] == 1


def test_games_without_a_verdict_stop_the_build(home):
    home.judge("clumsy", failure="parse_error")
    lane = "judge/clumsy/tournament_rounds"
    ran = refused(home, rf"{lane} .*coverage: \d+ of \d+ games have an answer", lane)
    assert ran == {lane}, "its first level is all that ran"
    assert "failed a check" in home.launch("judge/clumsy/rating_prior")
    assert home.status()["judge/clumsy/rating_prior"]["missing"] == 1
    games = home.table(lane, SHARDS)
    assert games.filter(pl.col("status") == "parse_error")["outcome"].null_count() > 0
    assert games.filter(pl.col("status") == "ok")["outcome"].null_count() == 0


def test_games_that_do_not_connect_the_candidates_stop_the_build(home):
    home.change(tournament={"rounds": 1})
    assert refused(home, rf"{GAMES} .*connected: .*tournament.rounds", GAMES) == {GAMES}


def test_queries_without_full_groups_stop_the_build(home):
    without_release(home)
    home.forget("candidate_sets")
    query = home.table("query_set").filter(pl.col("primary_domain") == "combinatorics")["query_id"]
    place = home.table("problem_index")["doc_id"].index_of(query[0])
    home.tamper("signal_shards", lambda t: t.filter(pl.col("query") != place), SHARDS[0])
    ran = refused(home, "candidate_sets .*groups_are_full", "candidate_sets", SHARDS[0])
    assert ran == {"candidate_sets"}
    assert not list((home.root / "releases").iterdir())


def test_a_corpus_that_is_too_small_is_told_by_how_much(home):
    without_release(home)
    home.change(candidates={"per_group": 30})
    message = (
        r"thresholds: .*combinatorics: 0 of \d+ possible queries have 30 documents in each group, 2 are"
        r" needed.*\bRemedy: set candidates.per_group to \d"
    )
    assert refused(home, f"(?s){message}", "thresholds") == {"thresholds"}


def test_every_domain_is_required_only_if_the_settings_say_so(home):
    without_release(home)
    home.change(thresholds={"queries_required": 1000})
    assert home.build("thresholds") == {("thresholds", None)}
    home.change(queries={"require_all_domains": True})
    refused(home, "every_domain_has_enough_queries: 0 of 2 domains", "thresholds")


def test_the_judges_own_ratings_must_score_1(home):
    oracle = pl.col("retriever") == "oracle"
    worse = pl.when(oracle & (pl.col("query_id") == pl.col("query_id").min()))
    home.tamper(
        "query_metrics",
        lambda t: t.with_columns(worse.then(0.9).otherwise(pl.col("value")).alias("value")),
    )
    home.forget("leaderboard")
    refused(home, "leaderboard: .*oracle_is_one", "leaderboard")


def test_a_document_without_a_row_of_tags_is_an_error(home):
    doc = home.table("topic_tags", ["c00"])["doc_id"].max()
    home.tamper("topic_tags", lambda t: t.filter(pl.col("doc_id") != doc), "c00")
    home.forget("problem_index")
    with pytest.raises(BuildError, match=f"problem_index: topic_tags: .*{doc}"):
        home.build("problem_index")


# settings of the lanes


def test_both_orders_are_two_calls_of_one_game(home):
    assert home.table(GAMES, SHARDS)["call_keys"].list.n_unique().unique().to_list() == [1]
    home.change(tournament={"both_orders": True})
    assert home.build(GAMES) == {(GAMES, shard) for shard in SHARDS}
    games = home.table(GAMES, SHARDS)
    assert games["call_keys"].list.n_unique().unique().to_list() == [2]
    assert games.filter(pl.struct("query_id", "doc_a", "doc_b").is_duplicated()).is_empty()


def test_the_statistics_of_a_lexical_retriever_come_from_where_the_settings_say(home):
    key = ["query_id", "doc_id", "setting"]
    of_corpus = home.table(RUN, SHARDS).sort(key)
    home.change(evaluation={"statistics": "candidates"})
    assert home.build(RUN) == {(RUN, shard) for shard in SHARDS}
    of_candidates = home.table(RUN, SHARDS).sort(key)
    assert of_candidates.select(key).equals(of_corpus.select(key))
    assert of_candidates["score"].ne(of_corpus["score"]).mean() > 0.5


def test_the_cutoff_of_the_metric_is_that_of_the_settings(home):
    home.change(evaluation={"cutoff": 5})
    assert home.build("query_metrics") == {("query_metrics", None)}
    metrics = home.table("query_metrics").filter(pl.col("retriever") == "bm25")
    assert metrics["metric"].unique().to_list() == ["nDCG@5"]
    benchmark = home.table("judge/embedded/benchmark").select("query_id", "doc_id", "rating")
    run = home.table(RUN, SHARDS).join(benchmark, on=["query_id", "doc_id"])
    for row in metrics.iter_rows(named=True):
        mine = run.filter(query_id=row["query_id"], setting=row["setting"]).sort("rank")["rating"]
        assert row["value"] == pytest.approx(ndcg(mine.to_list(), mine.to_list(), 5))
