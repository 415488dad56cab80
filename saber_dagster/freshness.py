"""What is fresh, what is stale, and why: decided from the provenance inside the tables.

Dagster calls a partitioned asset fresh as a whole whatever its partitions are; this report does not.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal, get_args

from saber_dagster.tables import Place, Provenance, TableStore, input_name

Key = tuple[str, ...]
Partition = str | None
Condition = Literal["fresh", "behind", "stale", "missing", "failed"]
"""``behind``: fresh with what lies upstream now, some of which is not fresh itself."""
DAMAGED = "its file is damaged; `saber build` makes it again"
CONDITIONS: tuple[Condition, ...] = get_args(Condition)


@dataclass(frozen=True)
class Node:
    """An asset of the graph: what freshness needs of it."""

    key: Key
    table: str
    group: str
    code_version: str
    partitions: tuple[Partition, ...]
    parents: tuple[Key, ...]
    level: int
    """Length of the longest path from a source; assets of a level do not depend on each other."""

    @property
    def name(self) -> str:
        """The key as it is written: ``judge/embedded/ratings``."""
        return "/".join(self.key)


@dataclass(frozen=True)
class State:
    """The condition of one partition, the reason if it is not fresh, and how its table came about."""

    node: Node
    partition: Partition
    condition: Condition
    reason: str = ""
    provenance: Provenance | None = None


Graph = Mapping[Key, Node]


def states(
    store: TableStore, graph: Graph, nodes: Iterable[Node], absent: Collection[Key] = ()
) -> Iterator[State]:
    """The condition of every partition of some assets; each provenance is read once.

    Assets in ``absent`` count as missing whatever their tables are; damaged tables are missing, too.
    """
    nodes = list(nodes)
    read = store.look(_places(graph, nodes))
    for node in nodes:
        for partition in node.partitions:
            table = read[node.key, partition]
            provenance = table if isinstance(table, Provenance) else None
            found = None if node.key in absent else provenance
            condition, reason = _condition(node, found)
            if table == "damaged" and node.key not in absent:
                reason = DAMAGED
            if found is not None and condition == "fresh":
                for key, upstream in inputs_of(graph, node, partition):
                    source = read[key, upstream]
                    name = input_name(key, upstream)
                    if not isinstance(source, Provenance):
                        condition, reason = "stale", f"{name} is {source}"
                    elif found.inputs.get(name) != source.data_version:
                        condition, reason = "stale", f"{name} has other data"
                    if condition != "fresh":
                        break
            yield State(node, partition, condition, reason, provenance)


def _places(graph: Graph, nodes: Iterable[Node]) -> Iterator[Place]:
    """The partitions whose provenance decides, their own and their inputs'."""
    for node in nodes:
        for partition in node.partitions:
            yield node.key, partition
            yield from inputs_of(graph, node, partition)


def report(store: TableStore, graph: Graph, absent: Collection[Key] = ()) -> list[State]:
    """The condition of every partition of the graph, in topological order, ``behind`` included."""
    conditions: dict[tuple[Key, Partition], Condition] = {}
    found = []
    for state in states(store, graph, graph.values(), absent):
        node, partition, condition = state.node, state.partition, state.condition
        if condition == "fresh":
            for key, upstream in inputs_of(graph, node, partition):
                if conditions[key, upstream] != "fresh":
                    condition = "behind"
                    reason = f"{input_name(key, upstream)} is not fresh"
                    state = replace(state, condition=condition, reason=reason)
                    break
        conditions[node.key, partition] = condition
        found.append(state)
    return found


def inputs_of(graph: Graph, node: Node, partition: Partition) -> Iterator[tuple[Key, Partition]]:
    """The upstream partitions that a partition reads: its own in an asset cut alike, else all."""
    for parent in node.parents:
        source = graph[parent]
        same = source.partitions == node.partitions
        for upstream in (partition,) if same else source.partitions:
            yield parent, upstream


def _condition(node: Node, found: Provenance | None) -> tuple[Condition, str]:
    if found is None:
        return "missing", "never materialized"
    if found.code_version != node.code_version:
        return "stale", "its code, settings, engine or input files changed"
    if found.failed_checks:
        return "failed", f"check failed: {'; '.join(found.failed_checks)}"
    return "fresh", ""
