"""The ledger in a real S3 server: segments as replies come, two machines at once, all commands."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from ledgers import Judge, judge, judgment
from servers import SECRET, moto_server

from resources.engines.prompted import render_archived
from saber_dagster.ledger import Ledger, LedgerError, store
from saber_dagster.ledger.compact import compact
from saber_dagster.ledger.reparse import reparse
from saber_dagster.ledger.transfer import export, import_from
from saber_dagster.ledger.verify import verify
from saber_dagster.storage import storage_path

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with moto_server(tmp_path_factory.mktemp("moto")) as server:
        yield server


@pytest.fixture
def at(server, tmp_path, monkeypatch):
    """A ledger in the bucket as a machine sees it."""
    for name, value in server.environ.items():
        monkeypatch.setenv(name, value)
    prefix = f"s3://{server.bucket}/{tmp_path.name}"

    def of(machine="one", name="ledger"):
        return Ledger(storage_path(f"{prefix}/{name}"), tmp_path / machine)

    return of


def test_segments_are_written_as_replies_come_and_replayed(at, server, tmp_path, monkeypatch):
    monkeypatch.setattr(store, "REMOTE_SEGMENT_ROWS", 20)
    outcomes, counts = judge(at(), range(50))
    assert counts.made == 50
    keys = server.listing(f"{tmp_path.name}/ledger/tournament_rounds/org-judge/c00/")
    assert sum(key.endswith(".parquet") for key in keys) == 3
    assert not list(tmp_path.rglob("*.journal"))
    again, counts = judge(at("two"), range(50))
    assert (again, counts.made) == (outcomes, 0)
    ledger = at("two")
    assert verify(ledger, render_archived).keys_verified == 50
    before = ledger.frame()
    row = before.row(7, named=True)
    assert ledger.call_of(row).item == row["item"]
    assert ledger.lookup(row["key"][:10])[0]["key"] == row["key"]
    assert compact(ledger).files_after == 2
    assert ledger.frame().equals(before)
    assert judge(at(), range(50))[1].made == 0
    reparse(ledger, write=True, parse=lambda task, inputs, text: {}["unread"])
    export(ledger, storage_path(f"s3://{server.bucket}/{tmp_path.name}/out"))
    assert import_from(at(name="other"), storage_path(f"s3://{server.bucket}/{tmp_path.name}/out"))
    assert import_from(Ledger(tmp_path / "local"), at().root).replies == 50
    assert judge(Ledger(tmp_path / "local"), range(50))[0] == outcomes
    everything = [server.read(key) for key in server.listing(tmp_path.name)]
    assert not any(SECRET.encode() in data for data in everything)


def test_a_killed_step_is_recovered_on_its_machine_and_loses_little_elsewhere(at, monkeypatch):
    monkeypatch.setattr(store, "REMOTE_SEGMENT_ROWS", 20)
    pid = os.posix_spawn(
        sys.executable,
        [sys.executable, "-c", STEP, str(at().root), str(at().place.journals), "70"],
        {**os.environ, "DIE_AT": "50", "PYTHONPATH": PATHS},
    )
    assert os.waitpid(pid, 0)[1] == 9
    assert judge(at("two"), range(50))[1].made == 10, "the last segment is not full yet"
    assert at().recover() == 10
    _, counts = judge(at(), range(50))
    assert (counts.made, counts.replayed) == (0, 50)
    frame = at().frame()
    assert (frame.height, frame["canonical"].sum()) == (60, 50)


def test_two_machines_that_pay_the_same_calls_at_once_agree_afterwards(at, tmp_path):
    steps = [
        subprocess.Popen(
            [sys.executable, "-c", STEP, str(at().root), str(tmp_path / machine), "40"],
            env={**os.environ, "MEET": str(tmp_path), "PYTHONPATH": PATHS},
        )
        for machine in ("one", "two")
    ]
    codes = sorted(step.wait(60) for step in steps)
    assert codes in ([0, 0], [0, 3]), "whoever sees other replies that count, fails"
    frame = at().frame()
    assert (frame.height, frame["canonical"].sum()) == (80, 40)
    values = [judge(at(machine), range(40), Judge())[0] for machine in ("one", "two", "three")]
    assert values[0] == values[1] == values[2]
    with at().session(Judge(), "tournament_rounds", "c00") as session:
        said = session.ask([judgment(n) for n in range(40)], lambda _, text: text)
    canonical = dict(frame.filter("canonical").select("key", "text").iter_rows())
    assert {outcome.key: outcome.value for outcome in said} == canonical


def test_a_bucket_needs_a_folder_for_journals(at):
    with pytest.raises(LedgerError, match="name a local folder for its journals"):
        Ledger(at().root)


PATHS = f"{Path(__file__).parents[1] / 'helpers'}:{Path(__file__).parents[2]}"
STEP = """
import os, sys, time
from pathlib import Path
from ledgers import Judge, judge
from saber_dagster.ledger import Ledger, LedgerError, store
from saber_dagster.storage import storage_path

if "DIE_AT" in os.environ:
    store.REMOTE_SEGMENT_ROWS = 20


class Engine(Judge):
    def answer(self, calls):
        if meet := os.environ.get("MEET"):
            (Path(meet) / f"at-{os.getpid()}").touch()
            while len(list(Path(meet).glob("at-*"))) < 2:
                time.sleep(0.01)
        for position, reply in super().answer(calls):
            if str(position) == os.environ.get("DIE_AT"):
                os.kill(os.getpid(), 9)
            yield position, reply


try:
    judge(Ledger(storage_path(sys.argv[1]), Path(sys.argv[2])), range(int(sys.argv[3])), Engine())
except LedgerError as error:
    sys.exit(3 if "another step paid the same calls" in str(error) else 1)
"""
