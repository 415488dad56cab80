"""Where the tables come from: condition, data version and code version of each."""

from collections import Counter
from dataclasses import dataclass

from saber_dagster.report.tables import Tables
from saber_dagster.tables import Provenance


@dataclass(frozen=True)
class TableRow:
    """A table as it is."""

    asset: str
    table: str
    partitions: int
    rows: int | None
    condition: str
    data_version: str
    code_version: str


def provenance(tables: Tables) -> tuple[TableRow, ...]:
    """A row for every asset, in topological order."""
    conditions: dict[str, Counter[str]] = {}
    for state in tables.states:
        conditions.setdefault(state.node.name, Counter())[state.condition] += 1
    nodes = tables.graph.values()
    read = tables.store.look((node.key, part) for node in nodes for part in node.partitions)
    rows = []
    for node in nodes:
        found = [read[node.key, partition] for partition in node.partitions]
        size, version = tables.extent(node.name) or (None, "")
        codes = sorted({each.code_version for each in found if isinstance(each, Provenance)})
        counts = conditions.get(node.name, Counter())
        rows.append(
            TableRow(
                asset=node.name,
                table=node.table,
                partitions=len(node.partitions),
                rows=size,
                condition=_spoken(counts, len(node.partitions)),
                data_version=version,
                code_version=", ".join(codes),
            )
        )
    return tuple(rows)


def _spoken(counts: Counter[str], partitions: int) -> str:
    if not counts:
        return "not known"
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{n} of {partitions} {condition}" for condition, n in sorted(counts.items()))
