"""A home in a bucket: the same tables as on local disk, whatever happens meanwhile."""

import json
import os
import subprocess
import sys
import time

import pytest
from homes import TinyHome, write_problems
from servers import SECRET, juicefs_server, moto_server
from typer.testing import CliRunner

from saber_dagster.cli import app
from saber_dagster.definitions import load
from saber_dagster.errors import SaberError
from saber_dagster.home import Home
from saber_dagster.releases import Release, list_releases
from saber_dagster.storage import storage_path

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

UP_TO_SUMMARIES = ("ontology_tree", "raw_sources", "corpus", "topic_tags", "summaries")


@pytest.fixture(autouse=True, scope="module")
def _own_environment(tmp_path_factory):
    from saber_dagster.buckets import _Store

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DAGSTER_HOME", str(tmp_path_factory.getbasetemp()))  # a build sets it
        _Store.clear_instance_cache()
        yield
        _Store.clear_instance_cache()


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    """A home on local disk with everything built."""
    folder = tmp_path_factory.mktemp("local")
    home = TinyHome.make(folder / "home", write_problems(folder / "tiny.jsonl", 0, 40))
    home.build()
    return home


@pytest.fixture(scope="module")
def expected(local):
    return {asset: row["data_version"] for asset, row in local.status().items()}


class BucketHome:
    """A home in a bucket, used by the command line in processes of their own."""

    def __init__(self, server, local, folder, prefix="tiny"):
        self.server, self.prefix, self.folder = server, prefix, folder
        for name in ("saber.yaml", "retrievers.yaml"):
            body = (local.root / name).read_bytes()
            server.client().put_object(Bucket=server.bucket, Key=f"{prefix}/{name}", Body=body)

    def environ(self, machine="one"):
        """The environment on a machine: its local folder is its own."""
        return {
            **{name: value for name, value in os.environ.items() if name[:5] != "SABER"},
            **self.server.environ,
            "SABER_HOME": f"s3://{self.server.bucket}/{self.prefix}",
            "SABER_STATE": str(self.folder / machine),
        }

    def start(self, *command, machine="one"):
        """A process of Python."""
        return subprocess.Popen(
            [sys.executable, *command],
            env=self.environ(machine),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def saber(self, *args, machine="one"):
        """Run a command; returns standard output."""
        result = CliRunner().invoke(app, args, env=self.environ(machine))
        assert SECRET not in result.output
        if result.exception:
            raise result.exception
        return result.stdout

    def json(self, *args, **options):
        return json.loads(self.saber(*args, "--json", **options))

    def versions(self):
        return {row["asset"]: row["data_version"] for row in self.json("status")}

    def listing(self, folder=""):
        return self.server.listing(f"{self.prefix}/{folder}")

    def replies(self):
        """Replies in the ledger by stage."""
        rows = self.json("ledger", "stats")["rows"]
        return {row["stage"]: row["distinct"] for row in rows}


@pytest.fixture(scope="module")
def home(local, tmp_path_factory):
    """A home on moto's server, built in spite of a kill."""
    folder = tmp_path_factory.mktemp("moto")
    with moto_server(folder) as server:
        home = BucketHome(server, local, folder)
        first = home.start("-m", "saber_dagster", "build")
        try:
            while len(home.listing("tables/")) < 6:
                assert first.poll() is None, first.communicate()
                time.sleep(0.1)
        finally:
            first.kill()
            first.communicate()
        home.before = home.listing("tables/")
        home.went_on = home.json("build")
        yield home


def test_a_killed_build_goes_on_and_ends_in_the_tables_of_a_local_one(home, expected):
    assert 6 <= len(home.before) < len(home.listing("tables/"))
    assert home.went_on["fresh_partitions"] >= len(home.before) - 1, "one may be unrecorded"
    assert home.versions() == expected
    kept = {key.split("/")[1] for key in home.listing()}
    folders = {"tables", "indexes", "releases", "ledger"}
    wanted = {*folders, "saber.yaml", "retrievers.yaml", "home.json"}
    assert kept == wanted, "what is local stays local"
    assert (home.folder / "one" / "dagster" / "dagster.yaml").exists()


def test_a_second_build_runs_nothing_on_any_machine(home, expected):
    assert home.json("build")["runs"] == []
    rows = home.json("status", machine="two")
    assert all(row["fresh"] == row["partitions"] for row in rows)


def test_a_status_asks_for_each_table_once(home):
    log = home.folder / "moto.log"
    before = len(log.read_text().splitlines())
    home.saber("status")
    asked = log.read_text().splitlines()[before:]
    tables = [line.split('"')[1] for line in asked if "/tables/" in line]
    assert len(tables) == len(set(tables)) == len(home.listing("tables/"))
    assert all('" 206 ' in line for line in asked if "/tables/" in line), "only their ends"
    assert len(asked) - len(tables) <= 10


def test_the_other_commands_work(home):
    assert "bm25" in home.saber("leaderboard")
    assert home.json("release", "list")[0]["release"] == "r1"
    assert "per_group: 3" in home.saber("settings")
    home.saber("report")
    page = home.server.read(f"{home.prefix}/report.html").decode()
    home.server.client().delete_object(Bucket=home.server.bucket, Key=f"{home.prefix}/report.html")
    assert "bm25" in page
    assert home.server.endpoint not in page
    assert "s3://" not in page


def test_the_local_folder_of_one_home_is_not_taken_for_another(home, local):
    other = BucketHome(home.server, local, home.folder, "other")
    said = f"is the local folder of s3://{home.server.bucket}/{home.prefix}; set SABER_STATE"
    with pytest.raises(SaberError, match=said):
        other.saber("build")
    assert other.listing("tables/") == []


AGAIN = """
import sys
import dagster as dg
from saber_dagster.cli import app
from saber_dagster.definitions import load
from saber_dagster.errors import SaberError
from saber_dagster.home import Home, home_path
from saber_dagster.instance import instance_of

home = Home(home_path())
job = load(home).resolve_implicit_global_asset_job_def()
instance = instance_of(home)
print("ready", flush=True)
sys.stdin.readline()
key = dg.AssetKey(["judge", "embedded", "tournament_rounds"])
job.execute_in_process(instance=instance, asset_selection=[key], partition_key=sys.argv[1])
"""
"""Materializes one partition as soon as it is told to."""


def test_two_machines_that_ask_at_once_lose_nothing(home, expected):
    before = home.replies()
    gone = [{"Key": key} for key in home.listing("ledger/tournament_rounds/") if "combin" in key]
    home.server.client().delete_objects(Bucket=home.server.bucket, Delete={"Objects": gone})
    assert 0 < home.replies()["tournament_rounds"] < before["tournament_rounds"]
    both = [home.start("-c", AGAIN, "combinatorics|s00", machine=name) for name in ("one", "two")]
    for process in both:
        assert process.stdout.readline() == "ready\n", process.communicate()
    for process in both:
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in both:
        _, err = process.communicate(timeout=100)
        assert process.returncode == 0, err
    assert home.replies() == before
    home.saber("ledger", "verify")  # fails if anything is damaged
    assert home.versions() == expected


@pytest.mark.slow
def test_it_works_on_a_server_that_checks_signatures(local, expected, tmp_path, monkeypatch):
    from saber_dagster import materialize
    from saber_dagster.buckets import _Store

    with juicefs_server(tmp_path) as server:
        home = BucketHome(server, local, tmp_path)
        for name, value in home.environ().items():
            monkeypatch.setenv(name, value)
        _Store.clear_instance_cache()
        here = Home(storage_path(os.environ["SABER_HOME"]))
        made = materialize.build(here, load(here), until=lambda node: node.name in UP_TO_SUMMARIES)
        assert len(made.runs) == 3
        again = materialize.build(here, load(here), until=lambda node: node.name in UP_TO_SUMMARIES)
        assert again.runs == []
        versions = home.versions()
        assert {name: versions[name] for name in UP_TO_SUMMARIES} == {
            name: expected[name] for name in UP_TO_SUMMARIES
        }
        whole = Release(local.root / "releases" / "r1")
        _pin_in_spite_of_a_kill(here, whole)
        _Store.clear_instance_cache()


def _pin_in_spite_of_a_kill(home, whole):
    """What a killed build left of a release is none, and does not hinder the next build."""
    release = Release(home.releases / "r1")
    (release.folder / "query_set.parquet").write_bytes(b"half")
    assert not release.complete
    assert list_releases(home.releases) == []
    frames = {name: whole.read(name) for name in whole.manifest()["tables"]}
    release.pin(frames, home.settings)
    assert release.complete
    assert [each.name for each in list_releases(home.releases)] == ["r1"]
    assert release.manifest() == whole.manifest()
    assert all(release.read(name).equals(frame) for name, frame in frames.items())
    with pytest.raises(Exception, match="is there already, and a release does not change"):
        release.pin(frames, home.settings)
