"""``saber status`` and ``saber leaderboard``."""

from collections import Counter
from typing import Annotated, Any

import typer
import yaml
from rich.markup import escape
from rich.table import Table

from saber_dagster.cli.common import JsonOption, console, current_home, print_json
from saber_dagster.contracts import TABLES
from saber_dagster.errors import SaberError
from saber_dagster.freshness import CONDITIONS, Key, State, report
from saber_dagster.home import Home
from saber_dagster.leaderboard import BASELINE_WARNING
from saber_dagster.tables import TableStore


def status(as_json: JsonOption = False) -> None:
    """Say of every asset which partitions are fresh, and why the others are not."""
    from saber_dagster.definitions import load
    from saber_dagster.materialize import graph_of

    home = current_home()
    graph = graph_of(load(home))
    store = TableStore(home.tables)
    by_asset: dict[Key, list[State]] = {key: [] for key in graph}
    for state in report(store, graph):
        by_asset[state.node.key].append(state)
    rows: list[dict[str, Any]] = []
    for node in graph.values():
        found = by_asset[node.key]
        counts = Counter(state.condition for state in found)
        rows.append(
            {
                "asset": node.name,
                "table": node.table,
                "partitions": len(found),
                **{c: counts[c] for c in CONDITIONS},
                "rows": _rows(store, found),
                "data_version": table_version(store, node.table, node.key, node.partitions),
                "reasons": [
                    {"partition": s.partition, "condition": s.condition, "reason": s.reason}
                    for s in found
                    if s.condition != "fresh"
                ],
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
        reasons = Counter(item["reason"] for item in row["reasons"])
        why = "; ".join(f"{reason} ({n}×)" if n > 1 else reason for reason, n in reasons.items())
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
        typer.echo(yaml.safe_dump(values, sort_keys=False, allow_unicode=True), nl=False)


def leaderboard(
    judge: Annotated[str | None, typer.Option(help="Only this judge's board.")] = None,
    setting: Annotated[str, typer.Option(help="Which texts retrievers see.")] = "statement-full",
    as_json: JsonOption = False,
) -> None:
    """Print the leaderboard of every judge, by domain, with 95 % bootstrap intervals."""
    home = current_home()
    rows = leaderboard_rows(home)
    known = sorted({row["setting"] for row in rows})
    if setting not in known:
        raise SaberError(f"no setting {setting!r}; there are {', '.join(known)}")
    judges = sorted({row["judge"] for row in rows})
    if judge is not None and judge not in judges:
        raise SaberError(f"no judge {judge!r}; there are {', '.join(judges)}")
    if judge is not None:
        rows = [row for row in rows if row["judge"] == judge]
        judges = [judge]
    if as_json:
        print_json(rows)
        return
    embedded = {entry.slug for entry in home.judges if entry.engine == "embedded"}
    for slug in judges:
        console.print(board_table(rows, slug, slug in embedded, setting))


def leaderboard_rows(home: Home) -> list[dict[str, Any]]:
    """The rows of the table ``leaderboard``.

    Raises:
        SaberError: if there is none yet.
    """
    store = TableStore(home.tables)
    if store.provenance(["leaderboard"], None) is None:
        raise SaberError(f"{home.root} has no leaderboard yet; run `saber build`")
    return store.read("leaderboard", ["leaderboard"], None).to_dicts()


def board_table(
    rows: list[dict[str, Any]], judge: str, embedded: bool, setting: str = "statement-full"
) -> Table:
    """A judge's board in one setting: a row per retriever, a column per domain."""
    mine = [row for row in rows if row["judge"] == judge and row["setting"] == setting]
    if not mine:
        return Table(title=f"judge {judge}: no rows in {setting}", title_justify="left")
    columns = list(dict.fromkeys(row["domain"] for row in mine))
    columns.sort(key=lambda domain: (domain != "overall", domain))
    queries = {row["domain"]: row["n_queries"] for row in mine}
    title = f"{mine[0]['metric']}, judge {judge}, release {mine[0]['release']}, {setting}"
    table = Table(
        title=title,
        title_justify="left",
        caption=BASELINE_WARNING if embedded else None,
        caption_justify="left",
    )
    table.add_column("retriever", no_wrap=True)
    for domain in columns:
        heading = f"{domain.replace('_', ' ')}\n({queries[domain]} queries)"
        table.add_column(heading, justify="right", no_wrap=domain == "overall")
    cells = {(row["retriever"], row["domain"]): row for row in mine}
    retrievers = sorted(
        {row["retriever"] for row in mine},
        key=lambda name: (-cells[name, "overall"]["value"], name),
    )
    for name in retrievers:
        table.add_row(
            name, *(_cell(cells[name, domain], domain == "overall") for domain in columns)
        )
    return table


def _cell(row: dict[str, Any], with_interval: bool) -> str:
    if not with_interval:
        return f"{row['value']:.3f}"
    return f"{row['value']:.3f} \\[{row['low']:.3f}, {row['high']:.3f}]"


def table_version(
    store: TableStore, table: str, key: tuple[str, ...], partitions: tuple[str | None, ...]
) -> str | None:
    """The data version of a whole table, however it is cut; None while a partition is missing."""
    if any(store.provenance(key, partition) is None for partition in partitions):
        return None
    if partitions == (None,):
        return TABLES[table].version(store.read(table, key, None))
    return TABLES[table].version(store.read_all(table, key, [p for p in partitions if p]))


def _rows(store: TableStore, found: list[Any]) -> int:
    provenances = (store.provenance(state.node.key, state.partition) for state in found)
    return sum(provenance.rows for provenance in provenances if provenance)
