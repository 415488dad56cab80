"""A step that is killed again and again pays for the calls in flight, and ends where it would have."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from model_server import ModelServer
from servers import moto_server
from tournament_step import CONCURRENCY

from saber_dagster.hashing import hash64
from saber_dagster.ledger import Ledger
from saber_dagster.storage import storage_path

pytestmark = pytest.mark.integration

KILLS = 20
SEGMENT_ROWS = 25
PROJECT = Path(__file__).parents[2]
PATHS = os.pathsep.join([str(PROJECT), str(PROJECT / "tests" / "helpers")])


class Step:
    """A tournament in a process of its own, against a model server that counts what is paid."""

    def __init__(self, server: ModelServer, root: str | Path, journals: Path, out: Path) -> None:
        self.server = server
        self.out = out
        self._command = [sys.executable, "-m", "tournament_step", server.url, str(root)]
        self._command += [str(journals), str(out), str(SEGMENT_ROWS)]

    def start(self) -> subprocess.Popen[bytes]:
        environ = {**os.environ, "PYTHONPATH": PATHS, "NO_PROXY": "127.0.0.1"}
        return subprocess.Popen(self._command, env=environ, stderr=subprocess.PIPE)

    def finish(self) -> tuple[str, int]:
        """Run to the end; the data version of the games, and the calls made."""
        process = self.start()
        _, errors = process.communicate(timeout=100)
        assert process.returncode == 0, errors.decode()
        version, made = self.out.read_text().split()
        return version, int(made)

    def kill_at_random(self, number: int) -> bool:
        """Kill it some calls after it began to ask; whether it was still at work."""
        before, process = self.server.paid.total(), self.start()
        calls = hash64("calls", number) % 20
        while process.poll() is None and self.server.paid.total() <= before + calls:
            time.sleep(0.001)
        time.sleep(hash64("pause", number) % 20 / 1000)
        alive = process.poll() is None
        process.kill()
        process.communicate(timeout=60)
        return alive


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Data version and calls of a step that nobody killed."""
    folder, server = tmp_path_factory.mktemp("whole"), ModelServer()
    version, made = Step(server, folder, folder, folder / "games.txt").finish()
    server.close()
    assert made == server.paid.total() == len(server.paid) > 100
    return version, made


@pytest.fixture
def server():
    running = ModelServer(latency_s=0.02)
    yield running
    running.close()


def test_twenty_kills_on_local_disk(whole, server, tmp_path):
    version, calls = whole
    step = Step(server, tmp_path / "ledger", tmp_path / "ledger", tmp_path / "games.txt")
    kills = sum(step.kill_at_random(number) for number in range(KILLS))
    assert kills >= KILLS // 2, "the kills came too late to test anything"
    assert step.finish()[0] == version
    assert len(server.paid) == calls
    assert server.paid.total() <= calls + CONCURRENCY * kills
    frame = Ledger(tmp_path / "ledger").frame()
    assert frame["key"].n_unique() == frame.height == calls, "nothing is stored twice"


@pytest.mark.slow
def test_twenty_kills_of_machines_that_are_lost(whole, server, tmp_path, monkeypatch):
    """Object storage alone: with the machine its journals are gone, up to a segment but one reply."""
    version, calls = whole
    with moto_server(tmp_path) as bucket:
        for name, value in bucket.environ.items():
            monkeypatch.setenv(name, value)
        root, journals = f"s3://{bucket.bucket}/home/ledger", tmp_path / "journals"
        step = Step(server, root, journals, tmp_path / "games.txt")
        kills = 0
        for number in range(KILLS):
            kills += step.kill_at_random(number)
            shutil.rmtree(journals, ignore_errors=True)
        assert kills >= KILLS // 2, "the kills came too late to test anything"
        assert step.finish()[0] == version
        assert len(server.paid) == calls
        assert server.paid.total() <= calls + (CONCURRENCY + SEGMENT_ROWS - 1) * kills
        frame = Ledger(storage_path(root), tmp_path / "reader").frame()
        assert frame.filter(frame["canonical"])["key"].n_unique() == calls
