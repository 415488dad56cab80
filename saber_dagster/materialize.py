"""Bring a home up to date through Dagster, in this process.

Assets are materialized level by level, one run per partition. Only partitions that are not fresh run,
so a build that was interrupted goes on where it was, and a build of a fresh home does nothing. What
fails holds up only what depends on it.
"""

import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import dagster as dg

from saber_dagster.build_failures import Failures
from saber_dagster.build_report import BuildReport
from saber_dagster.build_runs import run_assets
from saber_dagster.errors import SaberError
from saber_dagster.freshness import Graph, Key, Node, Partition, State, states
from saber_dagster.home import Home
from saber_dagster.instance import end_runs_of_killed_builds, instance_of, recorded_versions
from saber_dagster.interrupts import remembered_interrupts
from saber_dagster.ledger import Budget
from saber_dagster.ledger.budget import dollars
from saber_dagster.releases import PINNED_ASSETS, list_releases, release_of
from saber_dagster.report.roles import FREE_KEY, MODEL_KEY
from saber_dagster.run_metadata import BUDGET_CALLS, BUDGET_USD
from saber_dagster.tables import TableStore

_TABLE_KEY = "saber/table"
_ABANDONED_S = 60
"""A file that was begun longer ago, and is not finished, has no writer."""


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


def paid_assets(defs: dg.Definitions) -> dict[Key, str]:
    """The assets that ask an engine which is not free, and the name of its model."""
    assets = defs.resolve_asset_graph()
    found = (assets.get(key) for key in assets.toposorted_asset_keys)
    return {
        tuple(asset.key.path): str(asset.metadata[MODEL_KEY])
        for asset in found
        if asset.pools and FREE_KEY not in asset.metadata
    }


def absent_assets(home: Home) -> set[Key]:
    """Assets whose table is not all there is to them: a release is its pinned folder, too."""
    return set() if release_of(home.releases, home.settings).complete else {("release",)}


def build(
    home: Home,
    defs: dg.Definitions,
    watch: Watch = lambda event: None,
    until: Callable[[Node], bool] = lambda node: True,
    new_release: bool = False,
    budget: Budget | None = None,
) -> BuildReport:
    """Materialize whatever is not fresh.

    Args:
        home: the home; it is held for the time of the build.
        defs: its definitions.
        watch: told of progress.
        until: the assets to bring up to date; what they depend on is among them, or fresh.
        new_release: whether a release may be made beside those there are; the first always may.
        budget: what all runs together may spend; default: that of the settings.

    Returns:
        What was run.

    Raises:
        SaberError: if another build holds the home, it or its release was made with other settings,
            or what the selected assets depend on is not fresh.
        BudgetError: if only the budget kept it from being finished.
        BuildError: if a run failed. Either way, whatever does not depend on it has been finished.
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
        job = defs.resolve_implicit_global_asset_job_def()
        store = TableStore(home.tables)
        absent = absent_assets(home)
        _refuse_without_inputs(store, graph, until, absent)
        budget = budget or home_budget(home)
        paid = paid_assets(defs)
        paid_names = {graph[key].name for key in paid}
        failures = Failures(graph, () if absent else PINNED_ASSETS)
        for _, level in sorted(_by_level(graph, until).items()):
            if interrupted():
                raise KeyboardInterrupt
            seen = recorded_versions(instance, level)
            runs: dict[tuple[Partition, Key], list[Node]] = defaultdict(list)
            for state in states(store, graph, level, absent):
                due = state.condition != "fresh" or not _is_recorded(seen, state)
                report.fresh += not due
                if not failures.hold_up(state.node, state.partition, due) and due:
                    # A run of its own is told what is left, and says whose the replies are.
                    alone = state.node.key if state.node.key in paid else ()
                    runs[state.partition, alone].append(state.node)
            if runs:
                due_names = (node.name for nodes in runs.values() for node in nodes)
                watch(Event("level", tuple(dict.fromkeys(due_names)), total=len(runs)))
            for (partition, _), nodes in runs.items():
                names = tuple(node.name for node in nodes)
                watch(Event("run", names, partition))
                result = run_assets(
                    job, instance, partition, nodes, _left(budget, *report.paid(paid_names))
                )
                report.runs.append(result.record)
                watch(Event("done", names, partition))
                if interrupted():
                    raise KeyboardInterrupt
                for node in nodes:
                    failed = result.failed.get(node.name)
                    if failed and failed.stopped_by == "budget":
                        failures.add_unpaid(node, partition)
                    elif failed:
                        failures.add(node, partition, failed.reason)
            ran = {(node.key, part) for (part, _), nodes in runs.items() for node in nodes}
            for state in states(store, graph, level):
                if state.condition == "failed" and (state.node.key, state.partition) in ran:
                    failures.add(state.node, state.partition, state.reason)
    report.seconds = time.monotonic() - start
    calls, usd = report.paid(paid_names)
    failures.raise_any(report, _spent(budget, calls, usd))
    return report


def home_budget(home: Home) -> Budget:
    """The budget of the settings: of a build, or of a run that Dagster starts by itself."""
    return Budget(home.settings.ledger.budget_usd, home.settings.ledger.budget_calls)


def _spent(budget: Budget, calls: int, usd: float) -> str:
    """What was paid, and of what; no sum of money where no price is known."""
    of_usd = "" if budget.usd is None else f" of ${budget.usd:g}"
    of_calls = "" if budget.calls is None else f" of {budget.calls:,}"
    money = f"{dollars(usd)}{of_usd}, " if usd or of_usd else ""
    return f"{money}{calls:,}{of_calls} calls"


def _left(budget: Budget, calls: int, usd: float) -> dict[str, str]:
    """Tags with what a further run may spend, after so many calls and dollars."""
    tags = {}
    if budget.usd is not None:
        tags[BUDGET_USD] = repr(max(0.0, budget.usd - usd))
    if budget.calls is not None:
        tags[BUDGET_CALLS] = str(max(0, budget.calls - calls))
    return tags


def _by_level(graph: Graph, until: Callable[[Node], bool]) -> dict[int, list[Node]]:
    levels: dict[int, list[Node]] = defaultdict(list)
    for node in graph.values():
        if until(node):
            levels[node.level].append(node)
    return levels


def _is_recorded(seen: dict[tuple[Key, Partition], str], state: State) -> bool:
    """Whether Dagster knows the table that is on disk; a kill between the two loses the event."""
    version = seen.get((state.node.key, state.partition))
    return state.provenance is not None and state.provenance.data_version == version


def _sweep(home: Home) -> None:
    """Remove what a killed build had not finished writing on local disk."""
    for part in home.state.rglob(".*.part"):
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
