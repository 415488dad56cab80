"""Bring a home up to date through Dagster, in this process.

Assets are materialized level by level, one run per partition. Only partitions that are not fresh run,
so a build that was interrupted goes on where it was, and a build of a fresh home does nothing.
"""

import os
import socket
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dagster as dg

from saber_dagster.errors import SaberError
from saber_dagster.freshness import Graph, Key, Node, Partition, State, states
from saber_dagster.home import Home, write_atomic
from saber_dagster.releases import release_of
from saber_dagster.tables import TableStore

_PROCESS_TAG = ".dagster/saber_process"
"""Host and process of a build; tags of this prefix are not shown in the UI."""
_TABLE_KEY = "saber/table"
_CHECK_FAILED = "DagsterAssetCheckFailedError"
_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
"""A build shows progress instead of Dagster's log, which is kept with the run all the same."""

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


@dataclass
class Event:
    """What a build tells whoever watches it."""

    kind: str
    """``level`` when a level starts; ``run`` and ``done`` around each run."""
    assets: tuple[str, ...] = ()
    partition: Partition = None
    total: int = 0
    """Runs of the level."""


Watch = Callable[[Event], None]


@dataclass
class AssetCost:
    """What one partition of an asset took to materialize."""

    seconds: float = 0.0
    rows: int = 0
    calls_asked: int = 0
    calls_made: int = 0


@dataclass
class RunRecord:
    """One run: its assets with what each took, and the peak memory of the process meanwhile."""

    partition: Partition
    seconds: float
    peak_mib: float
    assets: dict[str, AssetCost]


@dataclass
class BuildReport:
    """What a build did."""

    runs: list[RunRecord] = field(default_factory=list)
    fresh: int = 0
    seconds: float = 0.0

    def by_asset(self) -> dict[str, tuple[int, AssetCost, float]]:
        """Of each asset the number of partitions run, their summed cost, and the peak memory."""
        totals: dict[str, tuple[int, AssetCost, float]] = {}
        for run in self.runs:
            for name, cost in run.assets.items():
                n, total, peak = totals.get(name, (0, AssetCost(), 0.0))
                summed = AssetCost(
                    total.seconds + cost.seconds,
                    total.rows + cost.rows,
                    total.calls_asked + cost.calls_asked,
                    total.calls_made + cost.calls_made,
                )
                totals[name] = (n + 1, summed, max(peak, run.peak_mib))
        return totals


class BuildError(SaberError):
    """A run failed; the message names the asset, the partition and the reason."""


def graph_of(defs: dg.Definitions) -> dict[Key, Node]:
    """The asset graph as freshness needs it, in topological order."""
    assets = defs.resolve_asset_graph()
    nodes: dict[Key, Node] = {}
    for asset_key in assets.toposorted_asset_keys:
        asset = assets.get(asset_key)
        parents = tuple(sorted(tuple(parent.path) for parent in asset.parent_keys))
        partitions: tuple[Partition, ...] = (None,)
        if asset.partitions_def is not None:
            partitions = tuple(str(key) for key in asset.partitions_def.get_partition_keys())
        key = tuple(asset_key.path)
        nodes[key] = Node(
            key=key,
            table=str(asset.metadata[_TABLE_KEY]),
            group=asset.group_name or "",
            code_version=asset.code_version or "",
            partitions=partitions,
            parents=parents,
            level=1 + max((nodes[parent].level for parent in parents), default=-1),
        )
    return nodes


def instance_of(home: Home) -> dg.DagsterInstance:
    """The home's Dagster instance; its configuration is written if there is none."""
    config = home.dagster / "dagster.yaml"
    if not config.exists():
        write_atomic(config, INSTANCE_YAML.encode())
    os.environ["DAGSTER_HOME"] = str(home.dagster)
    return dg.DagsterInstance.from_config(str(home.dagster))


def build(
    home: Home,
    defs: dg.Definitions,
    watch: Watch = lambda event: None,
    until: Callable[[Node], bool] = lambda node: True,
) -> BuildReport:
    """Materialize whatever is not fresh.

    Args:
        home: the home; it is held for the time of the build.
        defs: its definitions.
        watch: told of progress.
        until: the assets to bring up to date; what they depend on must be among them.

    Returns:
        What was run.

    Raises:
        SaberError: if another build holds the home, or it was made with other settings.
        BuildError: if a run failed. The other partitions of its level have been finished.
    """
    report = BuildReport()
    start = time.monotonic()
    with home.locked():
        home.found()
        instance = instance_of(home)
        _end_runs_of_dead_processes(instance)
        graph = graph_of(defs)
        store = TableStore(home.tables)
        if not release_of(home.releases, home.settings).complete:
            store.discard(["release"])  # its materialization pins the release
        for _, level in sorted(_by_level(graph, until).items()):
            seen = _recorded(instance, level)
            due = [
                state
                for state in states(store, graph, level)
                if state.condition != "fresh" or not _is_recorded(store, seen, state)
            ]
            report.fresh += sum(len(node.partitions) for node in level) - len(due)
            runs: dict[Partition, list[Node]] = defaultdict(list)
            for state in due:
                runs[state.partition].append(state.node)
            if runs:
                names = tuple(dict.fromkeys(state.node.name for state in due))
                watch(Event("level", names, total=len(runs)))
            failures = []
            for partition, nodes in runs.items():
                record, problems = _run(defs, instance, partition, nodes, watch)
                report.runs.append(record)
                failures += problems
            failures += [
                f"{s.node.name}{f' {s.partition}' if s.partition else ''}: {s.reason}"
                for s in states(store, graph, level)
                if s.condition == "failed"
            ]
            if failures:
                raise BuildError("\n".join(dict.fromkeys(failures)))
    report.seconds = time.monotonic() - start
    return report


def _run(
    defs: dg.Definitions,
    instance: dg.DagsterInstance,
    partition: Partition,
    nodes: list[Node],
    watch: Watch,
) -> tuple[RunRecord, list[str]]:
    costs = {node.name: AssetCost() for node in nodes}
    names = tuple(costs)
    steps = {"__".join(node.key).replace("-", "_"): node.name for node in nodes}
    watch(Event("run", names, partition))
    _forget_peak()
    start = time.monotonic()
    result = defs.resolve_implicit_global_asset_job_def().execute_in_process(
        instance=instance,
        partition_key=partition,
        asset_selection=[dg.AssetKey(list(node.key)) for node in nodes],
        raise_on_error=False,
        run_config=_QUIET,
        tags={_PROCESS_TAG: _this_process()},
    )
    record = RunRecord(partition, time.monotonic() - start, _peak_mib(), costs)
    for event in result.get_asset_materialization_events():
        materialization = event.step_materialization_data.materialization
        metadata: dict[str, Any] = {
            name: value.value for name, value in materialization.metadata.items()
        }
        cost = costs["/".join(materialization.asset_key.path)]
        cost.rows = int(metadata["dagster/row_count"])
        cost.calls_asked = int(metadata.get("calls_asked", 0))
        cost.calls_made = int(metadata.get("calls_made", 0))
    for event in result.get_step_success_events():
        costs[steps[str(event.step_key)]].seconds = event.step_success_data.duration_ms / 1000
    watch(Event("done", names, partition))
    failures = [(e.step_key, e.step_failure_data.error) for e in result.get_step_failure_events()]
    problems = [
        f"{steps[str(step)]}{f' {partition}' if partition else ''}: {_reason(error)}"
        for step, error in failures
        if error is not None and error.cls_name != _CHECK_FAILED  # freshness tells of those
    ]
    if not result.success and not failures:
        problems = [f"{', '.join(names)} {partition or ''}: run {result.run_id} failed"]
    return record, problems


def _reason(error: Any) -> str:
    """The innermost error, without the name of its class if it is ours."""
    while error.cause is not None:
        error = error.cause
    message = str(error.message).strip()
    if message.startswith("saber_dagster."):
        message = message.partition(": ")[2]
    return message


def _by_level(graph: Graph, until: Callable[[Node], bool]) -> dict[int, list[Node]]:
    levels: dict[int, list[Node]] = defaultdict(list)
    for node in graph.values():
        if until(node):
            levels[node.level].append(node)
    return levels


def _recorded(instance: dg.DagsterInstance, nodes: list[Node]) -> dict[tuple[Key, Partition], str]:
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


def _is_recorded(store: TableStore, seen: dict[tuple[Key, Partition], str], state: State) -> bool:
    """Whether Dagster knows the table that is on disk; a kill between the two loses the event."""
    provenance = store.provenance(state.node.key, state.partition)
    version = seen.get((state.node.key, state.partition))
    return provenance is not None and provenance.data_version == version


def _this_process() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


def _end_runs_of_dead_processes(instance: dg.DagsterInstance) -> None:
    """A killed build leaves its run marked as started, with its pool slots; end it."""
    open_runs = dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.STARTING])
    for run in instance.get_runs(filters=open_runs):
        host, _, pid = run.tags.get(_PROCESS_TAG, "").rpartition(":")
        if host != socket.gethostname() or Path(f"/proc/{pid}").exists():
            continue
        instance.report_run_failed(run, "the process of this build was killed")
        instance.event_log_storage.free_concurrency_slots_for_run(run.run_id)


def _forget_peak() -> None:
    """Start the process's peak memory anew, where the system can (Linux)."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def _peak_mib() -> float:
    """The process's peak memory since it was last forgotten."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
    except (OSError, StopIteration):
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
