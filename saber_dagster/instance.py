"""The Dagster instance of a home: its configuration, and what it remembers of builds."""

import os
from collections.abc import Iterable

import dagster as dg
from dagster._core.instance.ref import InstanceRef

from saber_dagster.freshness import Key, Node, Partition
from saber_dagster.home import Home
from saber_dagster.storage import write_atomic

BUILD_TAGS = {".dagster/saber_build": "yes"}
"""Mark the runs of a build; tags of this prefix are not shown in the UI."""

INSTANCE_YAML = """\
# Dagster's instance of this home.
telemetry:
  enabled: false
concurrency:
  pools:
    default_limit: 4
    granularity: op
  runs:
    max_concurrent_runs: 4
run_monitoring:
  enabled: true
  free_slots_after_run_end_seconds: 60
"""


_NO_CAPTURE = {
    "compute_logs": {
        "module": "dagster._core.storage.noop_compute_log_manager",
        "class": "NoOpComputeLogManager",
    }
}
"""A build in this process prints to the terminal; captured, a Ctrl-C there ends in a traceback."""


def instance_of(home: Home) -> dg.DagsterInstance:
    """The home's Dagster instance.

    ``dagster.yaml`` in its folder is kept, such as one with PostgreSQL; else a plain one is written.
    """
    home.claim_state()
    config = home.dagster / "dagster.yaml"
    if not config.exists():
        write_atomic(config, INSTANCE_YAML.encode())
    os.environ["DAGSTER_HOME"] = str(home.dagster)
    reference = InstanceRef.from_dir(str(home.dagster), overrides=_NO_CAPTURE)
    return dg.DagsterInstance.from_ref(reference)


def recorded_versions(
    instance: dg.DagsterInstance, nodes: Iterable[Node]
) -> dict[tuple[Key, Partition], str]:
    """The data version that Dagster last recorded of each partition."""
    tag = "dagster/data_version"
    seen: dict[tuple[Key, Partition], str] = {}
    for node in nodes:
        asset_key = dg.AssetKey(list(node.key))
        if node.partitions == (None,):
            event = instance.get_latest_materialization_event(asset_key)
            if event and event.asset_materialization and event.asset_materialization.tags:
                seen[node.key, None] = event.asset_materialization.tags.get(tag, "")
            continue
        by_partition = instance.event_log_storage.get_latest_tags_by_partition(
            asset_key, dg.DagsterEventType.ASSET_MATERIALIZATION, [tag]
        )
        for partition, tags in by_partition.items():
            seen[node.key, partition] = tags.get(tag, "")
    return seen


def end_runs_of_killed_builds(instance: dg.DagsterInstance) -> None:
    """A killed build leaves its run marked as started, with its pool slots; end it.

    Only one build holds the home at a time, and this one has started nothing yet: every run of a build
    that is still marked as started is dead, whatever process it names.
    """
    open_runs = dg.RunsFilter(
        statuses=[dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.STARTING],
        tags=BUILD_TAGS,
    )
    for run in instance.get_runs(filters=open_runs):
        instance.report_run_failed(run, "the build was killed")
        instance.event_log_storage.free_concurrency_slots_for_run(run.run_id)
