"""SIGKILL at random points of steps, compactions and imports: nothing that was paid is lost."""

import collections
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from ledgers import Judge, judge

from resources.engines.prompted import render_archived
from saber_dagster.ledger import Ledger
from saber_dagster.ledger.compact import compact
from saber_dagster.ledger.transfer import import_from
from saber_dagster.ledger.verify import verify

pytestmark = pytest.mark.integration

SCRIPT = '''
"""Fork children and kill each; argv: folder, kills. Polars is used in children only."""
import os, sys, time
from pathlib import Path
from ledgers import Judge, judge
from saber_dagster.hashing import hash64
from saber_dagster.ledger import Ledger, store
from saber_dagster.ledger import compact as compacting
from saber_dagster.ledger import transfer

folder, kills, n = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
store.SEGMENT_ROWS = 7
compacting.JOINED_ROWS = 40
paid = folder / "paid"


class Paid(Judge):
    def answer(self, calls):
        for position, reply in super().answer(calls):
            with paid.open("a") as file:
                file.write(calls[position].item + "\\n")
            yield position, reply


def work():
    ledger = Ledger(folder / "ledger")
    for start in range(0, n, 60):
        judge(ledger, range(start, start + 60), Paid(), partition=f"c{start // 120}")
        compacting.compact(ledger)
        transfer.import_from(Ledger(folder / "copy"), ledger.root)


def lines():
    return paid.read_bytes().count(b"\\n") if paid.exists() else 0


for number in range(kills + 1):
    pid = os.fork()
    if not pid:
        try:
            work()
            os._exit(0)
        except BaseException as error:
            print(repr(error), flush=True)
            os._exit(1)
    ended = 0
    if number < kills:
        # within the paying of a chunk, or in what comes after it
        start, dice = lines(), hash64("kill", number)
        target = start + 1 + dice % 50 if number % 2 else start + 60 - start % 60
        while not ended and lines() < target:
            time.sleep(0.0005)
            ended, code = os.waitpid(pid, os.WNOHANG)
        if not ended:
            time.sleep(0 if number % 2 else dice % 250 / 1000)
            os.kill(pid, 9)
    if not ended:
        code = os.waitpid(pid, 0)[1]
    if number == kills or code not in (0, 9):
        sys.exit(code)
'''


def test_kills_at_any_point_of_steps_compactions_and_imports(tmp_path):
    kills, n = 8, 420
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path), str(kills), str(n)],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
        env={"PYTHONPATH": f"{Path(__file__).parents[1] / 'helpers'}:{Path(__file__).parents[2]}"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    paid = collections.Counter((tmp_path / "paid").read_text().split())
    assert len(paid) == n
    assert sum(paid.values()) <= n + kills, "one call in flight for each kill"
    ledger, copy = Ledger(tmp_path / "ledger"), Ledger(tmp_path / "copy")
    frame = ledger.frame()
    assert frame.height == n, "no reply lost, none stored twice"
    assert frame["canonical"].all()
    for each in (ledger, copy):
        result = verify(each, render_archived)
        assert result.damaged == []
        assert result.keys_verified == n
    texts = pl.col("key"), pl.col("text")
    assert copy.frame().select(texts).sort("key").equals(frame.select(texts).sort("key"))
    before = judge(ledger, range(n), Judge())
    assert before[1].made == 0
    compact(ledger)
    assert judge(ledger, range(n), Judge())[0] == before[0]
    assert import_from(copy, ledger.root).replies == 0
