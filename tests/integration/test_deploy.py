"""The files in deploy/: read as compose reads them, and their pieces started by hand.

No container engine is needed. PostgreSQL, S3, code server, web server, daemon and the run are real.
"""

import contextlib
import itertools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
import yaml
from homes import TinyHome, write_problems
from servers import free_port, moto_server, postgres

from resources.engines import EngineResource, judge_options
from saber_dagster.home import Home
from saber_dagster.instance import INSTANCE_YAML, instance_of
from saber_dagster.settings_files import load_judges
from saber_dagster.storage import storage_path
from saber_dagster.tables import TableStore

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]

DEPLOY = Path(__file__).parents[2] / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SERVICES = COMPOSE["services"]
EXAMPLE = (DEPLOY / ".env.example").read_text()
VARIABLE = re.compile(r"\$\{(\w+)(?:(:[-?])([^}]*))?\}")


def test_the_services_are_those_of_a_deployment():
    assert set(SERVICES) == {"postgres", "s3", "code", "webserver", "daemon", "vllm"}
    assert [name for name in SERVICES if SERVICES[name].get("profiles")] == ["vllm"]
    for name, service in SERVICES.items():
        assert service["healthcheck"]["test"], name
        image, _, tag = service["image"].rpartition(":")
        assert image, name
        assert re.search(r"\d+\.\d+", tag), f"{name}: {tag} is not pinned"
    ours = [SERVICES[name] for name in ("code", "webserver", "daemon")]
    assert len({service["image"] for service in ours}) == 1, "one image for the three"
    assert re.search(r"^FROM python:3\.11\.\d+-slim", (DEPLOY / "Dockerfile").read_text(), re.M)
    for name, service in SERVICES.items():
        for needed in service.get("depends_on", ()):
            assert needed in SERVICES, name
        for port in service.get("ports", ()):
            assert port.startswith("127.0.0.1:"), f"{name} listens on all addresses"


def test_every_variable_is_documented_and_no_secret_has_a_default():
    text = (DEPLOY / "compose.yaml").read_text()
    uncommented = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    used = {name: (kind, default) for name, kind, default in VARIABLE.findall(uncommented)}
    documented = dict(re.findall(r"^#?([A-Z_]+)=(.*)$", EXAMPLE, re.M))
    assert set(used) == set(documented)
    required = set(re.findall(r"^([A-Z_]+)=", EXAMPLE, re.M))
    assert {name for name, (kind, _) in used.items() if kind == ":?"} == required
    for name, (_, default) in used.items():
        if re.search("KEY|PASSWORD|TOKEN", name):
            assert default == "", f"{name} has a default"
            assert documented[name] == "", f"{name} has a value in .env.example"
        elif name not in required:
            assert documented[name] == default, name


def test_every_file_that_is_named_is_there():
    for name, service in SERVICES.items():
        for volume in service.get("volumes", ()):
            source = VARIABLE.sub(r"\3", volume).split(":")[0]
            if source.startswith("./") and source != "./data":
                assert (DEPLOY / source).is_file(), f"{name}: {source}"
            elif not source.startswith("./"):
                assert source in COMPOSE["volumes"], f"{name}: {source}"
        build = service.get("build")
        if build:
            assert (DEPLOY / build["context"] / build["dockerfile"]).is_file()
    root = DEPLOY.parent
    kept = re.findall(r"^!(\S+)$", (DEPLOY / "Dockerfile.dockerignore").read_text(), re.M)
    assert all((root / name).exists() for name in kept)
    packages = re.search(r"packages = \[(.*?)\]", (root / "pyproject.toml").read_text())
    assert set(re.findall(r'"(\w+)"', packages[1])) <= set(kept), "the image lacks a package"
    workspaces = [
        arg for s in SERVICES.values() for arg in s.get("command", ()) if "deploy/" in arg
    ]
    assert workspaces
    assert all((root / name).is_file() and name in kept for name in workspaces)


def test_the_judge_of_the_gpu_profile_is_the_model_that_it_serves():
    judges = load_judges(DEPLOY / "judges.gpu.yaml")
    (judge,) = (judge for judge in judges if judge.engine == "openai")
    command = SERVICES["vllm"]["command"]
    given = {name: VARIABLE.sub(r"\3", value) for name, value in itertools.pairwise(command)}
    assert judge.options["model"] == given["--served-model-name"]
    assert judge.options["revision"] == f"{given['--model']}@{given['--revision']}"
    assert judge.options["base_url"] == "http://vllm:8000/v1"
    assert judge.options["api_key_env"] in SERVICES["code"]["environment"]
    assert judge.options["context_tokens"] == int(given["--max-model-len"])
    assert EngineResource(engine="openai", options=judge_options(judge)).load().model == "judge"


def test_both_configurations_bound_runs_and_pools():
    for text in (INSTANCE_YAML, (DEPLOY / "dagster.yaml").read_text()):
        config = yaml.safe_load(text)
        assert config["concurrency"]["runs"]["max_concurrent_runs"] > 0
        assert config["concurrency"]["pools"]["default_limit"] > 0
        assert config["run_monitoring"]["free_slots_after_run_end_seconds"] > 0
        assert config["telemetry"] == {"enabled": False}
    assert config["run_retries"]["retry_on_asset_or_op_failure"] is False


class Deployment:
    """The three processes of compose.yaml, with the commands that it gives them."""

    def __init__(self, folder, database, s3):
        self.s3, self.folder = s3, folder
        self.code, self.web = free_port(), free_port()
        state = folder / "state"
        (state / "dagster").mkdir(parents=True)
        shutil.copy(DEPLOY / "dagster.yaml", state / "dagster")  # as compose mounts it
        port = s3.endpoint.rpartition(":")[2]
        given = {
            **s3.environ,
            "SABER_BUCKET": s3.bucket,
            "AWS_ENDPOINT_URL": f"http://localhost:{port}",  # a name, as in compose
            "DAGSTER_POSTGRES_HOST": "127.0.0.1",
            "DAGSTER_POSTGRES_PORT": str(database.port),
            "DAGSTER_POSTGRES_USER": database.user,
            "DAGSTER_POSTGRES_PASSWORD": database.password,
            "DAGSTER_POSTGRES_DB": database.database,
        }
        wanted = SERVICES["code"]["environment"]
        filled = {name: filled_in(value, given) for name, value in wanted.items()}
        assert filled["DAGSTER_HOME"] == f"{filled['SABER_STATE']}/dagster"
        self.environ = {
            **{name: value for name, value in os.environ.items() if name[:5] != "SABER"},
            **filled,
            "SABER_STATE": str(state),
            "DAGSTER_HOME": str(state / "dagster"),
            "SABER_CODE_HOST": "127.0.0.1",
            "SABER_CODE_PORT": str(self.code),
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        self.processes = []

    def start(self, service):
        """Start a service with its own command, on a port of ours."""
        program, *args = SERVICES[service]["command"]
        ports = {"4000": str(self.code), "3000": str(self.web), "0.0.0.0": "127.0.0.1"}
        args = [ports.get(arg, arg) for arg in args]
        with (self.folder / f"{service}.log").open("wb") as log:
            process = subprocess.Popen(
                [str(Path(sys.executable).parent / program), *args],
                cwd=DEPLOY.parent,
                env=self.environ,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.processes.append(process)

    def stop(self):
        for process in reversed(self.processes):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        for process in self.processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(15)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def logs(self):
        return "\n".join(
            f"{path.name}: {path.read_text(errors='replace')[-3000:]}"
            for path in self.folder.glob("*.log")
        )

    def until(self, what, ask, seconds=100):
        """The first answer that is not nothing."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            assert all(process.poll() is None for process in self.processes), self.logs()
            with contextlib.suppress(OSError):
                if found := ask():
                    return found
            time.sleep(0.2)
        raise AssertionError(f"{what}: not in {seconds} s\n{self.logs()}")

    def ask(self, query, **variables):
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.web}/graphql",
            json.dumps({"query": query, "variables": variables}).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            reply = json.load(response)
        assert "errors" not in reply, reply
        return reply["data"]


def filled_in(value, given):
    """A value of compose.yaml with its variables."""
    return VARIABLE.sub(lambda found: given.get(found[1], found[3]), str(value))


@pytest.fixture
def deployment(tmp_path, monkeypatch):
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))  # a build sets it
    with postgres(tmp_path) as database, moto_server(tmp_path) as s3:
        made = Deployment(tmp_path, database, s3)
        tiny = TinyHome.make(tmp_path / "tiny", write_problems(tmp_path / "tiny.jsonl", 0, 40))
        tiny.build("raw_sources")
        for name in ("saber.yaml", "retrievers.yaml", "tables/raw_sources/all.parquet"):
            body = (tiny.root / name).read_bytes()
            s3.client().put_object(Bucket=s3.bucket, Key=f"saber/{name}", Body=body)
        for name, value in made.environ.items():
            monkeypatch.setenv(name, value)
        try:
            yield made, database
        finally:
            made.stop()


LOCATIONS = "{ workspaceOrError { ... on Workspace { locationEntries { name loadStatus } } } }"

LAUNCH = """mutation($selector: JobOrPipelineSelector!, $tags: [ExecutionTag!]) {
  launchRun(executionParams: {selector: $selector, executionMetadata: {tags: $tags}}) {
    __typename
    ... on LaunchRunSuccess { run { runId } }
    ... on PythonError { message }
  }
}"""

RUN = """query($id: ID!) {
  runOrError(runId: $id) {
    ... on Run { status events: eventConnection(limit: 999) { events { __typename } } }
  }
}"""


def test_a_run_goes_through_queue_database_and_bucket(deployment):
    made, database = deployment
    made.start("code")
    made.until("the code server", lambda: socket.create_connection(("127.0.0.1", made.code), 1))
    made.start("webserver")
    made.start("daemon")
    location = "saber_dagster.definitions"

    def loaded():
        found = made.ask(LOCATIONS)["workspaceOrError"]["locationEntries"]
        return found == [{"name": location, "loadStatus": "LOADED"}]

    made.until("the web server", loaded)

    def run(asset, partition):
        selector = {
            "jobName": "__ASSET_JOB",
            "repositoryName": "__repository__",
            "repositoryLocationName": location,
            "assetSelection": [{"path": [asset]}],
        }
        tags = [{"key": "dagster/partition", "value": partition}]
        launched = made.ask(LAUNCH, selector=selector, tags=tags)["launchRun"]
        assert launched["__typename"] == "LaunchRunSuccess", launched

        def ended():
            found = made.ask(RUN, id=launched["run"]["runId"])["runOrError"]
            return found if found["status"] in ("SUCCESS", "FAILURE", "CANCELED") else None

        done = made.until(f"the run of {asset}", ended)
        assert done["status"] == "SUCCESS", made.logs()
        kinds = {event["__typename"] for event in done["events"]["events"]}
        assert "RunEnqueuedEvent" in kinds, "it did not go through the queue"
        return launched["run"]["runId"]

    run_id = run("corpus", "c00")
    home = Home(storage_path(made.environ["SABER_HOME"]))
    table = TableStore(home.tables).provenance(("corpus",), "c00")
    assert table.run_id == run_id
    keys = made.s3.listing()
    assert "saber/tables/corpus/c00.parquet" in keys
    made.until(
        "the compute log",
        lambda: [key for key in made.s3.listing("dagster-logs/") if run_id in key],
    )
    assert recorded(database, run_id) == {"corpus": "c00"}

    # `saber build` in the container uses the same instance, and overwrites nothing.
    kept = home.dagster / "dagster.yaml"
    instance = instance_of(home)
    assert kept.read_bytes() == (DEPLOY / "dagster.yaml").read_bytes()
    assert instance.get_run_by_id(run_id).status.value == "SUCCESS"
    instance.dispose()
    secrets = (database.password, made.environ["AWS_SECRET_ACCESS_KEY"])
    written = [
        path for path in made.folder.rglob("*") if path.is_file() and "pgdata" not in str(path)
    ]
    logged = [made.s3.read(key) for key in made.s3.listing()]
    for text in [*(path.read_bytes() for path in written), *logged]:
        assert not any(secret.encode() in text for secret in secrets)


def recorded(database, run_id):
    """Asset and partition of the materializations that PostgreSQL has of a run."""
    import psycopg2

    with (
        contextlib.closing(
            psycopg2.connect(
                host="127.0.0.1",
                port=database.port,
                user=database.user,
                password=database.password,
                dbname=database.database,
            )
        ) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute(
            "SELECT asset_key, partition FROM event_logs WHERE run_id = %s AND dagster_event_type ="
            " 'ASSET_MATERIALIZATION'",
            (run_id,),
        )
        return {json.loads(key)[0]: partition for key, partition in cursor.fetchall()}
