"""One run of a build: some assets of one partition, through Dagster, in this process."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import dagster as dg

from saber_dagster.build_report import AssetCost, RunRecord, forget_peak, peak_mib
from saber_dagster.freshness import Node, Partition
from saber_dagster.instance import BUILD_TAGS
from saber_dagster.run_metadata import STOPPED_BY

_CHECK_FAILED = "DagsterAssetCheckFailedError"
_INTERRUPTED = "Execution was interrupted"
"""What Dagster says of a run that a Ctrl-C ended."""
_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
"""A build shows progress instead of Dagster's log, which is kept with the run all the same."""


@dataclass(frozen=True)
class Failed:
    """Why a step failed."""

    reason: str
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def stopped_by(self) -> str:
        """``budget``, ``dry_run``, or nothing: it failed by itself."""
        return str(self.metadata.get(STOPPED_BY, ""))


@dataclass(frozen=True)
class RunResult:
    """What a run took, and the steps that failed by the name of their asset.

    A step of which a check failed is not among them: its table is there, and says so.
    """

    record: RunRecord
    failed: Mapping[str, Failed]


def run_assets(
    job: dg.JobDefinition,
    instance: dg.DagsterInstance,
    partition: Partition,
    nodes: list[Node],
    tags: Mapping[str, str],
) -> RunResult:
    """Materialize one partition of some assets that do not depend on each other.

    Args:
        job: Dagster's job of all assets.
        instance: where the run is recorded.
        partition: the partition; None for whole tables.
        nodes: the assets.
        tags: tags of the run besides those of a build.

    Raises:
        KeyboardInterrupt: if a Ctrl-C ended it.
    """
    costs = {node.name: AssetCost() for node in nodes}
    steps = {"__".join(node.key).replace("-", "_"): node.name for node in nodes}
    forget_peak()
    start = time.monotonic()
    try:
        result = job.execute_in_process(
            instance=instance,
            partition_key=partition,
            asset_selection=[dg.AssetKey(list(node.key)) for node in nodes],
            raise_on_error=False,
            run_config=_QUIET,
            tags={**BUILD_TAGS, **tags},
        )
    except dg.DagsterExecutionInterruptedError:
        raise KeyboardInterrupt from None
    if any(_INTERRUPTED in (event.message or "") for event in result.all_events):
        raise KeyboardInterrupt
    record = RunRecord(partition, time.monotonic() - start, peak_mib(), costs)
    for event in result.get_asset_materialization_events():
        materialization = event.step_materialization_data.materialization
        metadata = _values(materialization.metadata)
        cost = costs["/".join(materialization.asset_key.path)]
        cost.rows = int(metadata["dagster/row_count"])
        cost.add_calls(metadata)
    for event in result.get_step_success_events():
        costs[steps[str(event.step_key)]].seconds = event.step_success_data.duration_ms / 1000
    failed = {}
    failures = result.get_step_failure_events()
    for event in failures:
        name, data = steps[str(event.step_key)], event.step_failure_data
        if data.error is None or data.error.cls_name == _CHECK_FAILED:
            continue
        told = data.user_failure_data
        failed[name] = Failed(_reason(data.error), _values(told.metadata) if told else {})
        costs[name].add_calls(failed[name].metadata)
    if not result.success and not failures:
        failed = {name: Failed(f"run {result.run_id} failed") for name in costs}
    return RunResult(record, failed)


def _values(metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value.value for name, value in metadata.items()}


def _reason(error: Any) -> str:
    """The innermost error, without the name of its class if it is ours."""
    while error.cause is not None:
        error = error.cause
    message = str(error.message).strip()
    if message.startswith("saber_dagster."):
        message = message.partition(": ")[2]
    return message
