"""What a build would pay: the same steps as in a build, which ask nobody and make nothing.

Steps run on a Dagster instance of their own that is gone afterwards: nothing of it stays, neither
tables nor runs.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import dagster as dg

from saber_dagster.build_runs import run_assets
from saber_dagster.cost import speed
from saber_dagster.freshness import Condition, Graph, Key, Node, Partition, inputs_of, report
from saber_dagster.home import Home
from saber_dagster.ledger import Ledger
from saber_dagster.materialize import absent_assets, graph_of, paid_assets
from saber_dagster.releases import PINNED_ASSETS, release_of
from saber_dagster.run_metadata import DRY_RUN, FORECAST
from saber_dagster.settings import Judge, Settings
from saber_dagster.tables import TableStore, input_name


@dataclass(frozen=True)
class Planned:
    """What a partition would pay; ``price`` and ``seconds`` are None where nothing tells them."""

    asset: str
    partition: Partition
    calls: int
    replayed: int
    prompt_tokens: int
    completion_tokens: int
    price: float | None
    seconds: float | None
    basis: str


@dataclass(frozen=True)
class Unknown:
    """Partitions of an asset of which nothing can be said yet but, perhaps, a limit."""

    asset: str
    partitions: int
    reason: str
    at_most: int | None
    """Calls of all of them, without those asked again as a reply did not parse; None: no limit."""


@dataclass(frozen=True)
class Plan:
    """The forecast of a build."""

    planned: tuple[Planned, ...]
    unknown: tuple[Unknown, ...]

    @property
    def total(self) -> dict[str, Any]:
        """Sums over what is known; ``price`` and ``seconds`` are None if one of them is."""
        sums: dict[str, Any] = {
            name: sum(getattr(item, name) for item in self.planned)
            for name in ("calls", "replayed", "prompt_tokens", "completion_tokens")
        }
        for name in ("price", "seconds"):
            values = [getattr(item, name) for item in self.planned if item.calls]
            sums[name] = None if None in values else sum(values)
        return sums


def plan(home: Home, defs: dg.Definitions) -> Plan:
    """Forecast what the next build would pay.

    Every paid partition that is not fresh, and whose inputs are, is gone through with the ledger in
    dry run. Those that wait for others are unknown.
    """
    graph, paid = graph_of(defs), paid_assets(defs)
    absent = absent_assets(home)
    store = TableStore(home.tables)
    known: dict[tuple[Key, Partition], Condition] = {}
    for state in report(store, graph, absent):
        pinned = not absent and state.node.key in PINNED_ASSETS and state.condition != "missing"
        known[state.node.key, state.partition] = "fresh" if pinned else state.condition
    due = [(graph[k], p) for (k, p), c in known.items() if k in paid and c != "fresh"]
    job = defs.resolve_implicit_global_asset_job_def()
    ledger = Ledger(home.ledger, home.journals)
    rate = cache(lambda stage, model, tasks: speed(ledger, stage, model, tasks))
    planned, waiting = [], Counter[tuple[str, str]]()
    with dg.DagsterInstance.ephemeral() as instance:
        for node, partition in due:
            reason = _waits_for(graph, node, partition, known)
            if not reason:
                result = run_assets(job, instance, partition, [node], {DRY_RUN: "yes"})
                failed = result.failed.get(node.name)
                if failed and FORECAST in failed.metadata:
                    forecast = dict(failed.metadata[FORECAST])
                    tasks = tuple(forecast.pop("tasks"))
                    seconds = _seconds(forecast["calls"], rate(node.key[-1], paid[node.key], tasks))
                    planned.append(Planned(node.name, partition, **forecast, seconds=seconds))
                    continue
                reason = failed.reason if failed else "it does not use the ledger"
            waiting[node.name, reason] += 1
    limits = dict(_limits(home, store, known))
    unknown = (Unknown(name, n, reason, limits.get(name)) for (name, reason), n in waiting.items())
    return Plan(tuple(planned), tuple(unknown))


def _waits_for(
    graph: Graph,
    node: Node,
    partition: Partition,
    known: Mapping[tuple[Key, Partition], Condition],
) -> str:
    """Why a partition cannot be gone through yet; empty if it can."""
    for key, upstream in inputs_of(graph, node, partition):
        if (condition := known[key, upstream]) != "fresh":
            name = "/".join(key) if upstream else input_name(key, None)
            return f"{name.removesuffix(':all')} is {condition}"
    return ""


def _seconds(calls: int, rate: float | None) -> float | None:
    if not calls:
        return 0.0
    return calls / rate if rate else None


def _limits(
    home: Home, store: TableStore, known: Mapping[tuple[Key, Partition], Condition]
) -> Iterator[tuple[str, int]]:
    """The most calls of each asset of which that can be told."""
    sources = store.provenance(("raw_sources",), None)
    if sources and known[("raw_sources",), None] == "fresh":
        yield "summaries", sources.rows
    release = release_of(home.releases, home.settings)
    if release.complete:
        queries = int(release.manifest()["tables"]["query_set"]["rows"])
    elif home.settings.corpus.queries:
        return
    else:
        queries = home.settings.queries.per_domain * len(home.settings.domains)
    for judge in home.judges:
        yield f"judge/{judge.slug}/tournament_rounds", most_calls(home.settings, judge, queries)


def most_calls(settings: Settings, judge: Judge, queries: int) -> int:
    """The most calls that a judge's lane can take for a number of queries.

    Queries × rounds × ⌊candidates / 2⌋ × calls a game; one call for each query and candidate for a
    judge that is asked about single documents.
    """
    candidates = 3 * settings.candidates.per_group
    games = settings.tournament.rounds * (candidates // 2)
    if judge.ask == "generate":
        return queries * games * (2 if settings.tournament.both_orders else 1)
    if judge.ask == "choice_logprobs":
        return queries * games * 2
    return queries * min(candidates, 2 * games)
