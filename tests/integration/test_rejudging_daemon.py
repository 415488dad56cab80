"""Judges come and go while Dagster runs: its servers show them, its daemon completes their lanes."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from homes import SHARDS, TinyHome, write_problems
from servers import free_port

from saber_dagster.home import Home
from saber_dagster.instance import instance_of
from saber_dagster.schedules import NIGHTLY, ON_CHANGE

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

HELPERS = Path(__file__).parents[1] / "helpers"
NEW = ["add", "new", "--engine", "python:clumsy:ClumsyEngine", "--option", "failure=parse_error"]
NEW += ["--option", "percent=0"]
GAMES = "judge/new/tournament_rounds"


class Site:
    """A home, its web server's port, and what to start processes with."""

    def __init__(self, home: TinyHome, folder: Path) -> None:
        self.home, self.folder, self.port = home, folder, free_port()
        self.environ = {
            **{k: v for k, v in os.environ.items() if not k.startswith("SABER_")},
            "SABER_HOME": str(home.root),
            "DAGSTER_HOME": str(home.root / "dagster"),
            "PYTHONPATH": str(HELPERS),
            "DAGSTER_DISABLE_TELEMETRY": "yes",
            "PYTHONWARNINGS": "ignore",
        }

    @contextmanager
    def running(self, *command: str, name: str):
        """A process with all its children; its output lies beside the home."""
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", *command],
                env=self.environ,
                cwd=self.folder,
                start_new_session=True,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        try:
            yield process
        finally:
            os.killpg(process.pid, signal.SIGINT)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def saber(self, *args: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        """A command of ``saber judges``, in a process of its own as a person would run it."""
        command = [sys.executable, "-m", "saber_dagster", "judges", *args]
        done = subprocess.run(command, env=self.environ, capture_output=True, text=True)
        assert done.returncode == code, done.stdout + done.stderr
        return done

    def ask(self, query: str, **variables):
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/graphql",
            json.dumps({"query": query, "variables": variables}).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            reply = json.load(response)
        assert "errors" not in reply, reply
        return reply["data"]

    def wait(self) -> None:
        """Until the web server shows the home."""
        for _ in range(240):
            try:
                if "judge/embedded/tournament_rounds" in self.shown():
                    return
            except OSError:
                pass
            time.sleep(0.5)
        raise AssertionError("the servers do not show the home")

    def shown(self) -> set[str]:
        """The assets that the server shows."""
        nodes = self.ask("{ assetNodes { assetKey { path } } }")["assetNodes"]
        return {"/".join(node["assetKey"]["path"]) for node in nodes}


@pytest.fixture
def home(tmp_path):
    """Settings of a tiny home, and Dagster's instance; nothing is built."""
    made = TinyHome.make(tmp_path / "home", write_problems(tmp_path / "tiny.jsonl", 0, 50))
    instance_of(Home(made.root))
    return made


@pytest.fixture
def site(home, tmp_path):
    return Site(home, tmp_path)


@contextmanager
def separate_servers(site: Site, *code_server: str):
    """A code server by itself, and a web server that knows only its address."""
    port = str(free_port())
    workspace = site.folder / "workspace.yaml"
    server = {"grpc_server": {"host": "127.0.0.1", "port": int(port), "location_name": "mine"}}
    workspace.write_text(yaml.safe_dump({"load_from": [server]}))
    code = ("dagster", *code_server, "-m", "saber_dagster.definitions", "-h", "127.0.0.1")
    web = ("dagster_webserver", "-w", str(workspace), "-h", "127.0.0.1", "-p", str(site.port))
    with site.running(*code, "-p", port, name="code"), site.running(*web, name="web"):
        site.wait()
        yield f"http://127.0.0.1:{site.port}"


def test_a_code_server_that_imports_anew_shows_a_new_judge_without_a_restart(site):
    with separate_servers(site, "code-server", "start") as url:
        done = site.saber(*NEW, "--url", url)
        assert f"{url} shows 2 judge(s): embedded, new" in done.stdout
        assert GAMES in site.shown()
        site.environ["SABER_WEBSERVER_URL"] = url
        path = site.home.root / "judges.yaml"
        before = path.read_text()
        path.write_text(before + "    no_such_option: 1\n")
        failed = site.saber("reload", code=1)
        assert "no_such_option" in failed.stderr
        path.write_text(before)
        done = site.saber("remove", "new")
        assert f"{url} shows 1 judge(s): embedded" in done.stdout
        assert GAMES not in site.shown()


@pytest.mark.slow
def test_a_code_server_that_does_not_is_found_out(site):
    with separate_servers(site, "api", "grpc") as url:
        done = site.saber(*NEW, "--url", url)
        assert f"{url} still does not show new: restart the code server" in done.stderr
        assert "new is in" in done.stdout
        assert GAMES not in site.shown()


SWITCH = """mutation Switch($sensor: SensorSelector!) { startSensor(sensorSelector: $sensor) {
  __typename ... on PythonError { message } } }"""
SWITCH_OFF = """mutation Switch($id: String!) { stopSensor(id: $id) { __typename
  ... on PythonError { message } } }"""
SCHEDULE = """mutation Switch($schedule: ScheduleSelector!) {
  startSchedule(scheduleSelector: $schedule) { __typename ... on PythonError { message } } }"""
TICKS = """query Ticks($of: InstigationSelector!) { instigationStateOrError(instigationSelector: $of) {
  ... on InstigationState { id ticks(limit: 40) { timestamp status skipReason runKeys
    error { message } } } } }"""


class Watched(Site):
    """A home under ``saber ui``, with what its daemon did."""

    def selector(self, name: str, of: str = "name") -> dict[str, str]:
        location = "saber_dagster.definitions"
        return {of: name, "repositoryName": "__repository__", "repositoryLocationName": location}

    def state(self, name: str) -> dict:
        return self.ask(TICKS, of=self.selector(name))["instigationStateOrError"]

    def ticks(self, name: str) -> list[dict]:
        """Oldest first; none of them failed."""
        ticks = sorted(self.state(name).get("ticks", ()), key=lambda tick: tick["timestamp"])
        assert not [tick["error"] for tick in ticks if tick["error"]]
        return [tick for tick in ticks if tick["status"] != "STARTED"]

    def next_tick(self, name: str, said: str = "", after: float | None = None) -> dict:
        """The first tick from now on that says so, or requests runs if ``said`` is empty."""
        start = time.time() if after is None else after
        for _ in range(600):
            for tick in self.ticks(name):
                right = said in (tick["skipReason"] or "") if said else tick["runKeys"]
                if tick["timestamp"] >= start and right:
                    return tick
            time.sleep(1)
        raise AssertionError(f"no tick of {name} says {said!r}: {self.ticks(name)}")

    def runs(self) -> list[tuple[str, str | None, str]]:
        """Asset, partition and status of every run that the daemon started, oldest first."""
        found = []
        for run in self.home.instance.get_runs(ascending=True):
            if "dagster/run_key" in run.tags:
                (asset,) = run.asset_selection or ()
                partition = run.tags.get("dagster/partition")
                found.append((asset.to_user_string(), partition, run.status.value))
        return found

    def quiet(self) -> None:
        """Until no run is left open."""
        for _ in range(600):
            if all(status in ("SUCCESS", "FAILURE") for _, _, status in self.runs()):
                return
            time.sleep(1)
        raise AssertionError(f"runs do not end: {self.runs()}")


@pytest.mark.slow
def test_the_daemon_completes_a_new_judges_lane_and_a_changed_one_and_does_no_more(home, tmp_path):
    home.change(rejudging={"cron": "* * * * *"})
    home.build()
    site = Watched(home, tmp_path)
    lane = {f"judge/new/{name}" for name in ("rating_prior", "judge_card", "benchmark")}
    free = {(name, None) for name in lane} | {("judge/new/ratings", shard) for shard in SHARDS}
    paid = {(GAMES, shard) for shard in SHARDS}
    with site.running("saber_dagster", "ui", "--port", str(site.port), name="ui"):
        site.wait()
        site.ask(SWITCH, sensor=site.selector(ON_CHANGE, "sensorName"))
        site.next_tick(ON_CHANGE, "watching 1 judge(s)", 0.0)
        replies = site.home.replies()

        added = site.saber(*NEW)
        assert "shows 2 judge(s): embedded, new" in added.stdout
        site.next_tick(ON_CHANGE, "new: nothing is due, every partition is fresh")
        made = site.runs()
        assert {status for *_, status in made} == {"SUCCESS"}
        assert len(made) == len(paid | free), "each once, and nothing but the lane"
        assert {run[:2] for run in made} == paid | free
        first = site.home.replies()
        assert first > replies

        site.ask(SWITCH_OFF, id=site.state(ON_CHANGE)["id"])
        path = site.home.root / "judges.yaml"
        path.write_text(path.read_text() + "    revision: '2'\n")
        site.saber("reload")
        site.ask(SCHEDULE, schedule=site.selector(NIGHTLY, "scheduleName"))
        site.next_tick(NIGHTLY)
        site.quiet()
        again = site.runs()[len(made) :]
        assert sorted(run[:2] for run in again) == sorted(paid), "its games alone"
        second = site.home.replies()
        assert second - first == first - replies, "another revision: every call anew"

        site.ask(SWITCH, sensor=site.selector(ON_CHANGE, "sensorName"))
        site.next_tick(ON_CHANGE, "new: nothing is due, every partition is fresh")
        then = {run[:2] for run in site.runs()[len(made) + 2 :]}
        assert then == free - {("judge/new/benchmark", None)}, "equal ratings, an equal benchmark"

        done = site.runs()
        start = time.time()
        site.next_tick(ON_CHANGE, "no judge has changed", start)
        site.next_tick(NIGHTLY, "nothing is due", start)
        assert site.runs() == done
        assert site.home.replies() == second
