"""The schedule and the sensor on a real home: what they request, when, and what they leave alone."""

from datetime import datetime

import clumsy
import dagster as dg
import pytest
import yaml
from homes import SHARDS

import assets.judges
import resources.ledger
from saber_dagster.definitions import load
from saber_dagster.errors import SaberError
from saber_dagster.home import Home
from saber_dagster.instance import BUILD_TAGS
from saber_dagster.run_metadata import BUDGET_USD
from saber_dagster.schedules import JUDGE, NIGHTLY, ON_CHANGE

pytestmark = pytest.mark.definitions

NEW = "judge/new/tournament_rounds"


class Daemon:
    """Does to a home what Dagster's daemon does: evaluates ticks and starts what they request."""

    def __init__(self, home):
        self.home = home
        self.cursor = None
        self.reload()

    def reload(self):
        self.definitions = load(Home(self.home.root))
        self.repository = self.definitions.get_repository_def()

    def judges(self, *entries):
        """Write ``judges.yaml``: the baseline and these, and load the definitions anew."""
        listed = [{"slug": "embedded"}, *entries]
        (self.home.root / "judges.yaml").write_text(yaml.safe_dump({"judges": listed}))
        self.reload()

    def sensor(self):
        """A tick of the sensor: requests, and why there are none."""
        with dg.build_sensor_context(
            instance=self.home.instance, cursor=self.cursor, repository_def=self.repository
        ) as context:
            data = self.repository.get_sensor_def(ON_CHANGE).evaluate_tick(context)
        self.cursor = data.cursor or self.cursor
        return data.run_requests, data.skip_message

    def night(self):
        """A tick of the schedule, likewise."""
        with dg.build_schedule_context(
            instance=self.home.instance,
            scheduled_execution_time=datetime(2026, 11, 30, 2),
            repository_def=self.repository,
        ) as context:
            data = self.repository.get_schedule_def(NIGHTLY).evaluate_tick(context)
        return data.run_requests, data.skip_message

    def start(self, requests):
        """Run them; returns whether each succeeded."""
        job = self.definitions.resolve_implicit_global_asset_job_def()
        return [
            job.execute_in_process(
                instance=self.home.instance,
                asset_selection=request.asset_selection,
                partition_key=request.partition_key,
                tags={**request.tags, "dagster/run_key": request.run_key},
                raise_on_error=False,
            ).success
            for request in requests
        ]

    def until_quiet(self):
        """Tick the sensor until it starts nothing; returns the places in order, and the last word."""
        made = []
        for _ in range(12):
            requests, why = self.sensor()
            if not requests:
                return made, why
            assert all(self.start(requests))
            made += places(requests)
        raise AssertionError("the sensor starts things for ever")


def places(requests):
    return [(r.asset_selection[0].to_user_string(), r.partition_key) for r in requests]


def entry(revision="1", failure="parse_error", percent=0):
    options = {"failure": failure, "percent": percent, "revision": revision}
    return {"slug": "new", "engine": "python:clumsy:ClumsyEngine", "options": options}


@pytest.fixture
def daemon(home):
    return Daemon(home)


def test_a_new_judges_lane_is_completed_and_nothing_else(daemon):
    home = daemon.home
    assert "watching 1 judge(s) from now on" in daemon.sensor()[1]
    assert daemon.sensor() == ([], "no judge has changed")
    paid = home.replies()
    daemon.judges(entry())
    made, why = daemon.until_quiet()
    assert why == "new: nothing is due, every partition is fresh"
    assert made[:2] == [(NEW, shard) for shard in SHARDS]
    assert len(made) == len(set(made))
    lane = {name: row for name, row in home.status().items() if name.startswith("judge/new/")}
    assert {name for name, _ in made} == set(lane)
    assert all(row["fresh"] == row["partitions"] for row in lane.values())
    assert home.replies() > paid

    paid = home.replies()
    daemon.reload()
    assert daemon.sensor() == ([], "no judge has changed")
    assert daemon.night() == ([], "nothing is due, every partition is fresh")
    assert home.replies() == paid

    daemon.judges(entry(revision="2"))
    requests, _ = daemon.sensor()
    assert places(requests) == [(NEW, shard) for shard in SHARDS], "again"
    assert {r.tags[JUDGE] for r in requests} == {"new"}
    assert all(r.run_key.startswith("new@2:") for r in requests)

    assert all(daemon.start(requests))
    assert "no game is due, but 1 free partition(s) are" in daemon.night()[1]

    daemon.judges()
    assert daemon.sensor() == ([], "no judge has changed"), "a judge that left is left alone"
    assert home.table(NEW, SHARDS).height > 0, "and its tables stay"
    daemon.judges(entry(revision="2"))
    assert places(daemon.sensor()[0]) == [("judge/new/rating_prior", None)], "its games are fresh"


def test_a_night_starts_games_alone_so_many_and_within_its_budget(daemon):
    """A judge that is free has no share in it."""
    daemon.sensor()
    daemon.home.change(rejudging={"partitions_per_tick": 3}, ledger={"budget_usd": 6.0})
    priced = {"slug": "new", "engine": "python:priced:PricedEngine"}
    daemon.judges(priced, {"slug": "second", "engine": "embedded"})
    requests, _ = daemon.night()
    assert places(requests) == [
        (NEW, SHARDS[0]),
        ("judge/second/tournament_rounds", SHARDS[0]),
        (NEW, SHARDS[1]),
    ]
    assert [request.tags.get(BUDGET_USD) for request in requests] == ["3", None, "3"]
    assert daemon.night()[0] == requests, "a tick changes nothing"
    by_sensor, _ = daemon.sensor()
    assert [request.tags.get(BUDGET_USD) for request in by_sensor] == ["3", None, "3"]


def test_what_failed_is_tried_again_by_the_next_night_only_and_after_the_rest(daemon, monkeypatch):
    monkeypatch.setattr(resources.ledger, "RETRIES", 0)
    daemon.home.change(rejudging={"partitions_per_tick": 1})
    daemon.sensor()
    daemon.judges(entry(failure="transport_error", percent=100))
    requests, _ = daemon.sensor()
    assert places(requests) == [(NEW, SHARDS[0])]
    assert requests[0].run_key.endswith(":0")
    assert daemon.start(requests) == [False]
    requests, _ = daemon.sensor()
    assert places(requests) == [(NEW, SHARDS[1])]
    assert daemon.start(requests) == [False]
    requests, why = daemon.sensor()
    assert requests == []
    assert "2 partition(s) are due; they were tried before" in why
    assert daemon.sensor()[1] == "no judge has changed"

    requests, _ = daemon.night()
    assert (places(requests), requests[0].run_key[-2:]) == ([(NEW, SHARDS[0])], ":1")
    assert daemon.start(requests) == [False]
    requests, _ = daemon.night()
    assert (places(requests), requests[0].run_key[-2:]) == ([(NEW, SHARDS[1])], ":1")


def test_a_table_that_asks_nobody_is_tried_three_times(daemon, monkeypatch):
    def fail(*args):
        raise SaberError("the code server is tired")

    daemon.sensor()
    daemon.judges(entry())
    assert all(daemon.start(daemon.sensor()[0]))
    monkeypatch.setattr(assets.judges, "estimate_prior", fail)
    for attempt in range(3):
        requests, _ = daemon.sensor()
        assert (places(requests), requests[0].run_key[-2:]) == (
            [("judge/new/rating_prior", None)],
            f":{attempt}",
        )
        assert daemon.start(requests) == [False]
    requests, why = daemon.sensor()
    assert requests == []
    assert "1 partition(s) are due; they were tried before" in why


def test_what_is_queued_or_running_is_not_requested_again(daemon):
    daemon.sensor()
    daemon.judges(entry())
    job = daemon.definitions.resolve_implicit_global_asset_job_def()
    instance = daemon.home.instance
    first, second = daemon.night()[0]

    def leave_open(request, tags):
        return instance.create_run_for_job(
            job,
            asset_selection=frozenset(request.asset_selection),
            tags={**request.tags, **tags},
            status=dg.DagsterRunStatus.STARTED,
        )

    leave_open(first, {})
    assert places(daemon.night()[0]) == places([second])
    assert places(daemon.sensor()[0]) == places([second])
    of_a_build = leave_open(second, BUILD_TAGS)
    with Home(daemon.home.root).locked():
        assert daemon.night() == ([], "2 partition(s) are queued or running")
    assert places(daemon.night()[0]) == places([second]), "the build was killed"
    assert instance.get_run_by_id(of_a_build.run_id).status is dg.DagsterRunStatus.FAILURE


def test_definitions_that_are_not_those_of_the_files_request_nothing(daemon, monkeypatch):
    daemon.sensor()
    path = daemon.home.root / "judges.yaml"
    before = path.read_text() if path.exists() else ""
    path.write_text(yaml.safe_dump({"judges": [{"slug": "embedded"}, entry()]}))
    for requests, why in (daemon.sensor(), daemon.night()):
        assert requests == []
        assert "judges.yaml changed since the definitions were loaded" in why
        assert "saber judges reload" in why
    path.write_text("judges: [")
    assert "judges.yaml: not readable as YAML" in daemon.sensor()[1]
    path.write_text(before)
    daemon.home.change(tournament={"rounds": 3})
    assert "saber.yaml changed" in daemon.night()[1]
    daemon.home.change(tournament={"rounds": 4}, rejudging={"cron": "at night"})
    with pytest.raises(SaberError, match=r"rejudging\.cron 'at night' is no cron schedule"):
        load(Home(daemon.home.root))
    daemon.home.change(rejudging={"cron": "0 2 * * *"})

    daemon.judges(entry())
    requests, _ = daemon.night()
    monkeypatch.setattr(clumsy.ClumsyEngine, "model", "renamed")
    known, daemon.definitions = daemon.definitions, load(Home(daemon.home.root))
    assert daemon.start(requests) == [True, True], "by other definitions than the tick's"
    daemon.definitions = known
    requests, why = daemon.night()
    assert requests == []
    assert "was made by another version than the loaded definitions have" in why
