"""What Dagster recorded of the runs of a home."""

from collections.abc import Sequence
from dataclasses import dataclass

import dagster as dg

from saber_dagster.home import Home
from saber_dagster.instance import instance_of

_PARTITION = "dagster/partition"
_AT_A_TIME = 500


@dataclass(frozen=True)
class RecordedRun:
    """A run; ``known`` is false if it happened in another home, or its record was deleted."""

    run_id: str
    known: bool = False
    status: str = ""
    started: float | None = None
    ended: float | None = None
    partition: str | None = None
    assets: tuple[str, ...] = ()

    @property
    def judge(self) -> str:
        """The judge whose lane it was about; empty if none or several."""
        lanes = {name.split("/")[1] for name in self.assets if name.startswith("judge/")}
        return lanes.pop() if len(lanes) == 1 else ""

    def __str__(self) -> str:
        """Its assets and partition, or its id."""
        what = ", ".join(self.assets) or self.run_id
        return f"{what} {self.partition or ''}".rstrip()


def recorded_runs(home: Home, run_ids: Sequence[str]) -> dict[str, RecordedRun]:
    """The runs of some ids; nothing is written, also if the home has no Dagster instance yet."""
    found = {run_id: RecordedRun(run_id) for run_id in run_ids}
    if not (home.dagster / "dagster.yaml").exists():
        return found
    instance = instance_of(home)
    ids = [run_id for run_id in found if run_id]
    for start in range(0, len(ids), _AT_A_TIME):
        some = dg.RunsFilter(run_ids=ids[start : start + _AT_A_TIME])
        for record in instance.get_run_records(filters=some):
            run = record.dagster_run
            found[run.run_id] = RecordedRun(
                run_id=run.run_id,
                known=True,
                status=run.status.value,
                started=record.start_time,
                ended=record.end_time,
                partition=run.tags.get(_PARTITION),
                assets=tuple(sorted("/".join(key.path) for key in run.asset_selection or ())),
            )
    return found
