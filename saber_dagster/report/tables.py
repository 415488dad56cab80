"""The tables of a home as a report reads them: what is there, and in what condition."""

import sys
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from functools import cached_property

import polars as pl

from saber_dagster.contracts import TABLES
from saber_dagster.errors import SaberError
from saber_dagster.freshness import Graph, Key, Node, State, report
from saber_dagster.home import Home
from saber_dagster.report.roles import Role, roles_of
from saber_dagster.signals.pairs import SignalShards
from saber_dagster.storage import files_below
from saber_dagster.tables import WHOLE, Provenance, TableStore


class MissingTableError(SaberError):
    """A section needs a table that is not there, or not all of it."""


@dataclass(frozen=True)
class Tables:
    """The tables of a home.

    Attributes:
        home: the home.
        graph: its assets, in topological order; where its definitions cannot be loaded, those of
            the folder of the tables.
        states: the condition of each partition; empty where definitions cannot be loaded.
        roles: which engine or retriever makes which asset; likewise.
        trouble: why definitions cannot be loaded; empty if they can.
    """

    home: Home
    graph: Graph
    states: tuple[State, ...]
    roles: tuple[Role, ...]
    trouble: str
    _read: dict[str, pl.DataFrame] = field(default_factory=dict, repr=False)

    @classmethod
    def open(cls, home: Home) -> "Tables":
        """The tables of a home.

        Raises:
            SaberError: if nothing has been built yet.
        """
        store = TableStore(home.tables)
        found = _on_disk(store)
        if not found:
            raise SaberError(f"{home.root} has no build to report yet; run `saber build`")
        from saber_dagster.definitions import load
        from saber_dagster.materialize import absent_assets, graph_of

        try:
            with redirect_stdout(sys.stderr):
                defs = load(home)
                graph = graph_of(defs)
                roles = roles_of(defs)
        except SaberError as error:
            return cls(home, found, (), (), _without_path(home, error))
        states = tuple(report(store, graph, absent_assets(home)))
        return cls(home, graph, states, roles, "")

    @cached_property
    def store(self) -> TableStore:
        """Where the tables lie."""
        return TableStore(self.home.tables)

    def need(self, asset: str) -> pl.DataFrame:
        """All rows of an asset.

        Raises:
            MissingTableError: if a partition is missing or damaged.
        """
        if asset not in self._read:
            self._read[asset] = self._load(asset)
        return self._read[asset]

    def get(self, asset: str) -> pl.DataFrame | None:
        """All rows of an asset; None if a partition is missing or damaged."""
        try:
            return self.need(asset)
        except MissingTableError:
            return None

    def shards(self) -> SignalShards:
        """All pairs with their signals, a part at a time.

        Raises:
            MissingTableError: if a partition is missing, damaged or of another problem_index.
        """
        index = self.need("problem_index")
        node = self._node("signal_shards")
        made = self.store.provenance(["problem_index"], None)
        try:
            parts = self.store.parts(node.table, node.key, node.partitions)
            parts.refuse_other_numbers(made.data_version if made else "")
        except SaberError as error:
            why = _without_path(self.home, error)
            raise MissingTableError(f"signal_shards cannot be read: {why}") from None
        return SignalShards(parts, index)

    def extent(self, asset: str) -> tuple[int, str] | None:
        """How many rows an asset has, and their version; None if a partition is missing or damaged."""
        node = self.graph.get(tuple(asset.split("/")))
        if node is not None and TABLES[node.table].numbers:
            try:
                parts = self.store.parts(node.table, node.key, node.partitions)
            except SaberError:
                return None
            return parts.rows, self.store.version(node.table, node.key, node.partitions)
        frame = self.get(asset)
        if node is None or frame is None:
            return None
        return frame.height, TABLES[node.table].version(frame)

    def not_fresh(self) -> list[str]:
        """What is not fresh: a line per asset with the reason, and one for all that are behind."""
        lines: dict[str, str] = {}
        behind = []
        for state in self.states:
            name = state.node.name
            if state.condition == "behind":
                behind.append(name)
            elif state.condition != "fresh":
                lines.setdefault(name, f"{name} is {state.condition}: {state.reason}")
        late = [name for name in dict.fromkeys(behind) if name not in lines]
        return [*lines.values(), *([f"made from older tables: {', '.join(late)}"] if late else [])]

    def _node(self, asset: str) -> Node:
        node = self.graph.get(tuple(asset.split("/")))
        if node is None:
            raise MissingTableError(f"there is no table {asset}")
        return node

    def _load(self, asset: str) -> pl.DataFrame:
        node = self._node(asset)
        looks = self.store.look((node.key, part) for part in node.partitions).values()
        if "missing" in looks:
            some = any(found != "missing" for found in looks)
            raise MissingTableError(
                f"not all of {asset} is built yet" if some else f"{asset} is not built yet"
            )
        try:
            loaded = self.store.load(node.table, node.key, node.partitions)
        except SaberError as error:
            why = _without_path(self.home, error)
            raise MissingTableError(f"the table {asset} cannot be read: {why}") from None
        return TableStore.join(node.table, node.key, [frame for frame, _ in loaded])


def _without_path(home: Home, error: SaberError) -> str:
    """A message for a page that may be published: where the home lies is nobody else's business."""
    return str(error).replace(str(home.root), "SABER_HOME")


def _on_disk(store: TableStore) -> dict[Key, Node]:
    """The assets that have a file, as if each were complete."""
    nodes: dict[Key, Node] = {}
    places = []
    for path in sorted(files_below(store.root, ".parquet"), key=str):
        inner = str(path).removeprefix(str(store.root)).removesuffix(".parquet")
        *folder, name = inner.strip("/").split("/")
        places.append((tuple(folder), name))
    for found in store.look(places).values():
        if not isinstance(found, Provenance) or found.table not in TABLES:
            continue
        key = tuple(found.asset.split("/"))
        before = nodes[key].partitions if key in nodes else ()
        partition = None if found.partition == WHOLE else found.partition
        nodes[key] = Node(key, found.table, "", "", (*before, partition), (), 0)
    return nodes
