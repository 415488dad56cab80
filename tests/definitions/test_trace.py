"""Traces through a real home with two judges: one with a prompt, and the embedded one."""

import json

import dagster as dg
import polars as pl
import pytest
import yaml
from homes import SHARDS

from saber_dagster.errors import SaberError
from saber_dagster.home import Home
from saber_dagster.ledger.segments import read_segment, write_segment
from saber_dagster.trace import SCHEMA

pytestmark = pytest.mark.definitions

GAMES = "judge/priced/tournament_rounds"
JUDGES = [{"slug": "priced", "engine": "python:priced:PricedEngine"}, {"slug": "embedded"}]


@pytest.fixture(scope="module")
def judged(finished, tmp_path_factory):
    """A finished home with two judges; only to be looked at or copied."""
    home = finished.copy(tmp_path_factory.mktemp("judged") / "home")
    (home.root / "judges.yaml").write_text(yaml.safe_dump({"judges": JUDGES}))
    home.build()
    return home


@pytest.fixture(scope="module")
def pair(judged):
    """Source ids of a query and of a candidate with at least three games."""
    row = judged.table("judge/priced/benchmark").sort("query_id", "rank").row(0, named=True)
    return row["query_source_id"], row["doc_source_id"]


def trace(home, *args):
    """The exported chain."""
    result = home.saber("trace", *args, "--json", "-")
    assert result.exit_code == 0, result.exception
    return json.loads(result.stdout)


def refused(home, *args):
    result = home.saber("trace", *args)
    assert isinstance(result.exception, SaberError)
    return str(result.exception)


@pytest.mark.parametrize("judge", ["priced", "embedded"])
def test_a_document_is_traced_to_replies_whose_keys_verify(judged, pair, judge):
    query, doc = pair
    found = trace(judged, "--query", query, "--doc", doc, "--judge", judge)
    assert (found["schema"], found["judge"]) == (SCHEMA, judge)
    assert (found["query"]["query_source_id"], found["document"]["doc_source_id"]) == pair
    mine = found["document"]["doc_id"]
    games = judged.table(f"judge/{judge}/tournament_rounds", SHARDS).filter(
        (pl.col("query_id") == found["query"]["query_id"])
        & ((pl.col("doc_a") == mine) | (pl.col("doc_b") == mine))
    )
    assert len(found["games"]) == games.height > 0
    assert sum(game["outcome"] for game in found["games"]) == pytest.approx(found["rating"]["wins"])
    assert set(found["calls"]) == {key for game in found["games"] for key in game["call_keys"]}
    for call in found["calls"].values():
        assert (call["key_holds"], call["segment_holds"], call["paid"]) == (True, True, 1)
        shown = {text["problem"] for text in call["inputs"].values()}
        assert {found["query"]["problem"], found["document"]["problem"]} < shown
        assert call["run"]["status"] == "SUCCESS"
        assert f"judge/{judge}/tournament_rounds" in call["run"]["assets"]
        assert call["run"]["partition"] in SHARDS
    assert all(game["follows"] is True for game in found["games"])
    if judge == "priced":
        assert all(c["text"].startswith("The first has") for c in found["calls"].values())
        shown = [c["messages"][-1]["content"] for c in found["calls"].values()]
        assert all(found["document"]["problem"] in content for content in shown)
    tables = {table["asset"]: table for table in found["tables"]}
    assert tables[f"judge/{judge}/tournament_rounds"]["data_version_holds"]
    assert all(source["unchanged"] for table in found["tables"] for source in table["inputs"])


def test_a_cell_is_traced_from_its_figure_down(judged):
    cell = ("--retriever", "bm25", "--domain", "combinatorics", "--setting", "full-full")
    found = trace(judged, *cell)
    values = [row["value"] for row in found["queries"]["all"]]
    assert found["figure"]["value"] == pytest.approx(sum(values) / len(values))
    assert values == sorted(values)
    assert found["queries"]["worst"]["query_id"] == found["query"]["query_id"]
    assert found["ranking"]["top"][0]["doc_id"] == found["document"]["doc_id"]
    assert found["calls"]
    best = found["queries"]["best"]["query_source_id"]
    other = trace(judged, *cell, "--query", best, "--judge", "embedded")
    assert other["query"]["query_source_id"] == best
    assert trace(judged, "--retriever", "oracle")["ranking"]["top"][0]["rating"] == 5.0

    text = judged.saber("trace", *cell).stdout
    assert f"nDCG@10 {found['figure']['value']:.4f}" in text
    assert "verified: it is the digest" in text
    assert found["queries"]["worst"]["query_source_id"] in text


def test_ids_that_there_are_not_are_answered_with_the_nearest(judged, pair):
    query, doc = pair
    assert f"nearest: {query}" in refused(judged, "--query", f"{query}x", "--doc", doc)
    assert "no candidate of query" in refused(judged, "--query", query, "--doc", query)
    assert "did you mean priced?" in refused(
        judged, "--query", query, "--doc", doc, "--judge", "price"
    )
    assert "no retriever 'tfidf'; there are" in refused(judged, "--retriever", "tfidf")
    assert "did you mean combinatorics?" in refused(
        judged, "--retriever", "bm25", "--domain", "combinatoric"
    )
    assert "say what to trace" in refused(judged, "--query", query)


def test_a_reply_or_a_call_that_was_tampered_with_does_not_verify(judged, pair, tmp_path):
    home = judged.copy(tmp_path / "home")
    args = ("--query", pair[0], "--doc", pair[1])
    key = next(iter(trace(home, *args)["calls"]))

    def change(column, value, write):
        for path in (Home(home.root).ledger / "tournament_rounds" / "priced").rglob("*.parquet"):
            frame = read_segment(path)
            new = pl.when(pl.col("key") == key).then(pl.lit(value)).otherwise(pl.col(column))
            write(path, frame.with_columns(new.alias(column)))

    change("params", '{"temperature":0}', write_segment)
    found = trace(home, *args)["calls"]
    assert found.pop(key)["key_holds"] is False
    assert all(call["key_holds"] for call in found.values())
    assert "KEY DOES NOT VERIFY" in home.saber("trace", *args).stdout

    change("params", '{"temperature":0.5}', write_segment)
    change("text", "<verdict>1</verdict>", lambda path, frame: frame.write_parquet(path))
    found = trace(home, *args)["calls"][key]
    assert (found["key_holds"], found["segment_holds"]) == (True, False)
    assert "SEGMENT CHANGED" in home.saber("trace", *args).stdout

    told = set()
    for verdict in ("1", "2"):
        change("text", f"<verdict>{verdict}</verdict>", write_segment)
        first = trace(home, *args)["games"][0]
        won = first["shown_first"] == (verdict == "1")
        assert first["follows"] is (won == (first["outcome"] == 1.0))
        told.add(first["follows"])
        text = home.saber("trace", *args).stdout
        assert ("DOES NOT FOLLOW from these replies" in text) is not first["follows"]
        said = "yes, all" if first["follows"] else "NO, 1 do not"
        assert f"outcomes   follow from the replies: {said}" in text
    assert told == {True, False}


def test_a_call_that_the_ledger_lacks_or_whose_prompt_is_lost_is_said(judged, pair, tmp_path):
    home = judged.copy(tmp_path / "home")
    args = ("--query", pair[0], "--doc", pair[1], "--judge", "embedded")
    for path in (home.root / "ledger" / "tournament_rounds" / "embedded-baseline").rglob("*"):
        if path.is_file():
            path.unlink()
    found = trace(home, *args)
    assert found["calls"]
    assert not any(call["found"] for call in found["calls"].values())
    assert all(game["follows"] is None for game in found["games"])
    assert "missing in the ledger" in home.saber("trace", *args).stdout


def test_the_same_chain_can_be_reached_in_the_ui(judged):
    def of(asset):
        event = judged.instance.get_latest_materialization_event(dg.AssetKey(asset.split("/")))
        return event.asset_materialization

    games = of(GAMES)
    values = {name: value.value for name, value in games.metadata.items()}
    assert values["calls_made"] + values["calls_replayed"] == values["calls_asked"] > 0
    assert values["price_usd"] == 0.25 * values["calls_made"]
    assert values["tokens_reasoning"] == 5 * values["calls_made"]
    assert (values["model"], values["revision"], values["prompt"]) == (
        "priced",
        "1",
        "pairwise_judgment",
    )
    prompt = judged.root / "ledger" / "prompts" / f"{values['prompt_sha256']}.md"
    assert values["prompt_file"] == str(prompt)
    assert prompt.is_file()
    assert values["games"].count("\n") == 4, "a heading, and three games"
    assert games.tags["saber/model"] == "priced"
    assert games.tags["saber/prompt_sha256"] == values["prompt_sha256"][:12]
    command = values["trace"].split()
    assert command[:2] == ["saber", "trace"]
    assert judged.saber(*command[1:]).exit_code == 0
    board = of("leaderboard").metadata
    assert judged.saber(*board["trace_priced"].value.split()[1:]).exit_code == 0
    folder = judged.root / "tables" / "judge" / "priced" / "tournament_rounds"
    assert f"`{folder}`" in board["made_from"].value
    assert folder.is_dir()


def test_costs_have_their_judge_if_several_were_built_together(home):
    """Also without a budget: a reply's judge is known by the run that paid it."""
    two = {**JUDGES[0], "slug": "other", "options": {"revision": "2"}}
    (home.root / "judges.yaml").write_text(yaml.safe_dump({"judges": [*JUDGES, two]}))
    home.build()
    rows = json.loads(home.saber("cost", "--by", "judge", "--json").stdout)["rows"]
    paid = {(row["judge"], row["model"], row["revision"]): row["calls"] for row in rows}
    for judge, revision in (("priced", "1"), ("other", "2")):
        games = home.table(f"judge/{judge}/tournament_rounds", SHARDS)
        assert paid[judge, "priced", revision] == games["call_keys"].explode().n_unique()
    assert not any(model == "priced" and not judge for judge, model, _ in paid)


def test_costs_are_summed_by_judge_and_run(judged):
    result = judged.saber("cost", "--by", "judge", "--json")
    found = json.loads(result.stdout)
    by_judge = {row["judge"]: row for row in found["rows"]}
    games = judged.table(GAMES, SHARDS)
    calls = games["call_keys"].explode().n_unique()
    assert by_judge["priced"]["calls"] == by_judge["priced"]["ok"] == calls
    assert by_judge["priced"]["price_usd"] == found["total"]["price_usd"] == 0.25 * calls
    assert set(by_judge) == {"", "embedded", "priced"}, "the annotator is no judge's"
    runs = json.loads(judged.saber("cost", "--by", "run", "--json").stdout)["rows"]
    assert {row["partition"] for row in runs if row["stage"] == "tournament_rounds"} == set(SHARDS)
    assert all(row["known"] for row in runs)
    assert "price $" in judged.saber("cost").stdout
