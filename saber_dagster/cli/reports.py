"""``saber status`` and ``saber settings``."""

import sys
from collections import Counter
from contextlib import redirect_stdout
from typing import Any

import typer
from rich.markup import escape
from rich.table import Table

from saber_dagster.cli.common import JsonOption, console, current_home, print_json
from saber_dagster.errors import SaberError
from saber_dagster.freshness import CONDITIONS, Key, State, report
from saber_dagster.storage import is_local
from saber_dagster.tables import TableStore
from saber_dagster.yaml_files import dump_yaml


def status(as_json: JsonOption = False) -> None:
    """Say of every asset which partitions are fresh, and why the others are not."""
    from saber_dagster.definitions import load
    from saber_dagster.materialize import absent_assets, graph_of

    home = current_home()
    if not home.root.exists():
        raise SaberError(f"there is no home at {home.root}; `saber build` makes one")
    with redirect_stdout(sys.stderr):
        graph = graph_of(load(home))
    store = TableStore(home.tables)
    by_asset: dict[Key, list[State]] = {key: [] for key in graph}
    for state in report(store, graph, absent_assets(home)):
        by_asset[state.node.key].append(state)
    rows: list[dict[str, Any]] = []
    for node in graph.values():
        found = by_asset[node.key]
        counts = Counter(state.condition for state in found)
        reasons = [
            {"partition": s.partition, "condition": s.condition, "reason": s.reason}
            for s in found
            if s.condition != "fresh"
        ]
        version = None
        if as_json or is_local(home.root):  # nobody at a terminal waits for a download
            try:
                version = table_version(store, node.table, found)
            except SaberError as error:
                reasons.append({"partition": None, "condition": "damaged", "reason": str(error)})
        rows.append(
            {
                "asset": node.name,
                "table": node.table,
                "partitions": len(found),
                **{c: counts[c] for c in CONDITIONS},
                "rows": sum(s.provenance.rows for s in found if s.provenance),
                "data_version": version,
                "reasons": reasons,
            }
        )
    if as_json:
        print_json(rows)
        return
    table = Table(title=f"{home.root}, release {home.settings.release}", title_justify="left")
    table.add_column("asset", no_wrap=True)
    for name in ("partitions", *CONDITIONS, "rows"):
        table.add_column(name, justify="right")
    table.add_column("why")
    for row in rows:
        often = Counter(item["reason"] for item in row["reasons"])
        why = "; ".join(f"{reason} ({n}×)" if n > 1 else reason for reason, n in often.items())
        numbers = (row[c] or "" for c in CONDITIONS)
        table.add_row(
            row["asset"],
            str(row["partitions"]),
            *map(str, numbers),
            f"{row['rows']:,}",
            escape(why),
        )
    console.print(table)


def settings(as_json: JsonOption = False) -> None:
    """Print every setting as it is now: preset, saber.yaml and environment together."""
    values = current_home().settings.model_dump(mode="json")
    if as_json:
        print_json(values)
    else:
        typer.echo(dump_yaml(values), nl=False)


def table_version(store: TableStore, table: str, found: list[State]) -> str | None:
    """The data version of a whole table, however it is cut; None while a partition is missing.

    Args:
        store: the tables.
        table: the contract.
        found: the states of all partitions.
    """
    if any(state.provenance is None for state in found):
        return None
    key, partitions = found[0].node.key, [state.partition for state in found]
    return store.version(table, key, partitions)
