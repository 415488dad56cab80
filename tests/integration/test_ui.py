"""Dagster's own server on a home that ``saber build`` made."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """``saber ui`` on a port of its own."""

    def __init__(self, saber):
        self.port = free_port()
        command = [sys.executable, "-m", "saber_dagster", "ui", "--port", str(self.port)]
        self.process = subprocess.Popen(
            command,
            env=saber.environ,
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def wait(self):
        for _ in range(120):
            try:
                return self.ask("{ version }")["version"]
            except OSError:
                time.sleep(0.5)
        raise AssertionError("the server did not start")

    def ask(self, query, **variables):
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/graphql",
            json.dumps({"query": query, "variables": variables}).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            reply = json.load(response)
        assert "errors" not in reply, reply
        return reply["data"]

    def stop(self):
        os.killpg(self.process.pid, signal.SIGINT)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)


MY_JUDGE = """
from resources.engines.prompted import PromptedEngine
from saber_dagster.engines import Reply

class Judge(PromptedEngine):
    model, revision = "tosses", "1"

    def params(self, task):
        return {}

    def answer(self, calls):
        for i, call in enumerate(calls):
            longer = len(str(call.inputs["first"])) > len(str(call.inputs["second"]))
            yield i, Reply("ok", f"<verdict>{1 if longer else 2}</verdict>")
"""


@pytest.fixture
def served(small_home, problems, tmp_path):
    (tmp_path / "my_judge.py").write_text(MY_JUDGE)
    saber = small_home(PYTHONPATH=str(tmp_path))
    corpus = tmp_path / "mine.jsonl"
    corpus.write_text("".join(json.dumps(row) + "\n" for row in problems))
    saber("build", "--corpus", str(corpus))
    server = Server(saber)
    try:
        server.wait()
        yield saber, server
    finally:
        server.stop()


ASSETS = """{
  assetNodes {
    assetKey { path }
    isPartitioned
    partitionStats { numMaterialized numPartitions }
    assetMaterializations(limit: 1) { runId metadataEntries { label } }
  }
}"""

LAUNCH = """mutation Launch($params: ExecutionParams!) {
  launchRun(executionParams: $params) {
    __typename
    ... on LaunchRunSuccess { run { runId } }
    ... on PythonError { message }
  }
}"""

STATUS = "query Status($id: ID!) { runOrError(runId: $id) { ... on Run { status } } }"


def launch(server, job, **more):
    selector = {
        "jobName": job,
        "repositoryName": "__repository__",
        "repositoryLocationName": "saber_dagster.definitions",
        **more.pop("selector", {}),
    }
    launched = server.ask(LAUNCH, params={"selector": selector, "mode": "default", **more})
    assert launched["launchRun"]["__typename"] == "LaunchRunSuccess", launched
    run_id = launched["launchRun"]["run"]["runId"]
    for _ in range(240):
        status = server.ask(STATUS, id=run_id)["runOrError"]["status"]
        if status in ("SUCCESS", "FAILURE", "CANCELED"):
            return status
        time.sleep(0.5)
    raise AssertionError("the run did not end")


def test_the_ui_shows_what_a_build_made_and_can_go_on_from_there(served):
    saber, server = served
    for asset in server.ask(ASSETS)["assetNodes"]:
        name = "/".join(asset["assetKey"]["path"])
        assert asset["assetMaterializations"], f"{name} has no materialization"
        labels = {e["label"] for e in asset["assetMaterializations"][0]["metadataEntries"]}
        assert {"dagster/row_count", "sample"} <= labels
        if asset["isPartitioned"]:
            stats = asset["partitionStats"]
            assert stats["numMaterialized"] == stats["numPartitions"] > 0

    before = saber.versions()
    partition = {"key": "dagster/partition", "value": "combinatorics|s00"}
    dimensions = [
        {"key": "dagster/partition/domain", "value": "combinatorics"},
        {"key": "dagster/partition/shard", "value": "s00"},
    ]
    rounds = {"path": ["judge", "embedded", "tournament_rounds"]}
    status = launch(
        server,
        "__ASSET_JOB",
        selector={"assetSelection": [rounds]},
        executionMetadata={"tags": [partition, *dimensions]},
    )
    assert status == "SUCCESS"
    assert saber.versions() == before
    made = replies(saber)

    judge = {"slug": "second", "engine": "python:my_judge:Judge"}
    (saber.home / "judges.yaml").write_text(json.dumps({"judges": [{"slug": "embedded"}, judge]}))
    assert launch(server, "rejudge") == "SUCCESS"
    after = replies(saber)
    assert {k: after[k] for k in made} == made, "the first judge was not asked again"
    assert after["tournament_rounds", "tosses"] > 0
    state = {row["asset"]: row for row in saber.json("status")}
    assert state["judge/second/benchmark"]["fresh"] == 1


def replies(saber):
    """Replies in the ledger by stage and model."""
    rows = saber.json("ledger", "stats")["rows"]
    return {(row["stage"], row["model"]): row["replies"] for row in rows}
