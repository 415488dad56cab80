"""Bring a home up to date through Dagster, in this process.

Assets are materialized level by level, one run per partition. Only partitions that are not fresh run,
so a build that was interrupted goes on where it was, and a build of a fresh home does nothing.
"""

import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import dagster as dg

from saber_dagster.build_report import AssetCost, BuildReport, RunRecord, forget_peak, peak_mib
from saber_dagster.errors import SaberError
from saber_dagster.freshness import Graph, Key, Node, Partition, State, states
from saber_dagster.home import Home
from saber_dagster.instance import (
    BUILD_TAGS,
    end_runs_of_killed_builds,
    instance_of,
    recorded_versions,
)
from saber_dagster.interrupts import remembered_interrupts
from saber_dagster.releases import PINNED_ASSETS, list_releases, release_of
from saber_dagster.tables import TableStore

_TABLE_KEY = "saber/table"
_ABANDONED_S = 60
"""A file that was begun longer ago, and is not finished, has no writer."""
_CHECK_FAILED = "DagsterAssetCheckFailedError"
_INTERRUPTED = "Execution was interrupted"
"""What Dagster says of a run that a Ctrl-C ended."""
_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
"""A build shows progress instead of Dagster's log, which is kept with the run all the same."""


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


def absent_assets(home: Home) -> set[Key]:
    """Assets whose table is not all there is to them: a release is its pinned folder, too."""
    return set() if release_of(home.releases, home.settings).complete else {("release",)}


def build(
    home: Home,
    defs: dg.Definitions,
    watch: Watch = lambda event: None,
    until: Callable[[Node], bool] = lambda node: True,
    new_release: bool = False,
) -> BuildReport:
    """Materialize whatever is not fresh.

    Args:
        home: the home; it is held for the time of the build.
        defs: its definitions.
        watch: told of progress.
        until: the assets to bring up to date; what they depend on is among them, or fresh.
        new_release: whether a release may be made beside those there are; the first always may.

    Returns:
        What was run.

    Raises:
        SaberError: if another build holds the home, it or its release was made with other settings,
            or what the selected assets depend on is not fresh.
        BuildError: if a run failed. The other partitions of its level have been finished.
    """
    report = BuildReport()
    start = time.monotonic()
    with home.locked(), remembered_interrupts() as interrupted:
        home.found()
        _check_release(home, until, new_release)
        _sweep(home)
        instance = instance_of(home)
        end_runs_of_killed_builds(instance)
        graph = graph_of(defs)
        store = TableStore(home.tables)
        absent = absent_assets(home)
        _refuse_without_inputs(store, graph, until, absent)
        for _, level in sorted(_by_level(graph, until).items()):
            if interrupted():
                raise KeyboardInterrupt
            seen = recorded_versions(instance, level)
            due = [
                state
                for state in states(store, graph, level, absent)
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
                if interrupted():
                    raise KeyboardInterrupt
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
    forget_peak()
    start = time.monotonic()
    try:
        result = defs.resolve_implicit_global_asset_job_def().execute_in_process(
            instance=instance,
            partition_key=partition,
            asset_selection=[dg.AssetKey(list(node.key)) for node in nodes],
            raise_on_error=False,
            run_config=_QUIET,
            tags=BUILD_TAGS,
        )
    except dg.DagsterExecutionInterruptedError:
        raise KeyboardInterrupt from None
    record = RunRecord(partition, time.monotonic() - start, peak_mib(), costs)
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
    if any(_INTERRUPTED in (event.message or "") for event in result.all_events):
        raise KeyboardInterrupt
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


def _is_recorded(store: TableStore, seen: dict[tuple[Key, Partition], str], state: State) -> bool:
    """Whether Dagster knows the table that is on disk; a kill between the two loses the event."""
    provenance = store.provenance(state.node.key, state.partition)
    version = seen.get((state.node.key, state.partition))
    return provenance is not None and provenance.data_version == version


def _sweep(home: Home) -> None:
    """Remove what a killed build had not finished writing."""
    for part in home.root.rglob(".*.part"):
        if part.is_file() and time.time() - part.stat().st_mtime > _ABANDONED_S:
            part.unlink(missing_ok=True)


def _check_release(home: Home, until: Callable[[Node], bool], new_release: bool) -> None:
    """A pinned release must still be what the settings say; one that is not made must be meant."""
    release = release_of(home.releases, home.settings)
    if release.complete:
        release.check_settings(home.settings)
        return
    others = [other.name for other in list_releases(home.releases)]
    if others and not new_release:
        raise SaberError(
            f"release {release.name}, which the settings name, is not made; there are"
            f" {', '.join(others)}. Make it with `saber release create {release.name}`, or name another"
        )


def _refuse_without_inputs(
    store: TableStore, graph: Graph, until: Callable[[Node], bool], absent: set[Key]
) -> None:
    """Part of the graph is built only on fresh tables; else it would be paid for in vain."""
    outside = {
        parent: graph[parent]
        for node in graph.values()
        if until(node)
        for parent in node.parents
        if not until(graph[parent])
    }
    pinned = set() if absent else PINNED_ASSETS
    for state in states(store, graph, outside.values(), absent):
        if state.condition == "stale" and state.node.key in pinned:
            continue  # it hands out the release, whatever has changed upstream
        if state.condition != "fresh":
            raise SaberError(
                f"{state.node.name}{f' {state.partition}' if state.partition else ''} is"
                f" {state.condition} ({state.reason}); bring it up to date first, by `saber build`"
            )
