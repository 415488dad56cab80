"""Workers on disjoint shards store the bytes that one worker stores, whatever their threads."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WORKER = ROOT / "tests" / "helpers" / "signal_worker.py"
SHARDS = ["algebra|s00", "algebra|s01", "geometry|s00", "number_theory|s01"]


def start(shards: list[str], threads: int) -> "subprocess.Popen[str]":
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environ = {**os.environ, "NUMBA_NUM_THREADS": str(threads), "PYTHONPATH": paths}
    command = [sys.executable, str(WORKER), *shards]
    return subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True)


def found(*workers: "subprocess.Popen[str]") -> list[str]:
    lines = [line for worker in workers for line in worker.communicate()[0].splitlines()]
    assert all(worker.returncode == 0 for worker in workers)
    return sorted(lines)


@pytest.mark.integration
def test_two_workers_store_the_bytes_of_one() -> None:
    alone = found(start(SHARDS, threads=1))
    assert len(alone) == len(SHARDS)
    assert all(int(line.split()[1]) > 0 for line in alone)
    assert found(start(SHARDS[::-1], threads=2)) == alone, "other threads, another order"
    together = start(SHARDS[::2], threads=2), start(SHARDS[1::2], threads=1)
    assert found(*together) == alone
