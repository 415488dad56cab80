"""The tables on the way of a trace: what was read, and how each came about."""

from dataclasses import asdict
from typing import Any

import polars as pl

from saber_dagster.contracts import TABLES
from saber_dagster.errors import SaberError
from saber_dagster.freshness import Key, Partition
from saber_dagster.home import Home
from saber_dagster.recorded_runs import recorded_runs
from saber_dagster.tables import WHOLE, Place, Provenance, TableStore, input_name


class TracedTables:
    """Reads tables of a home and remembers which."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._store = TableStore(home.tables)
        self._read: dict[tuple[Key, Partition], pl.DataFrame] = {}

    def need(self, table: str, key: Key, partition: Partition = None) -> pl.DataFrame:
        """A table that the trace cannot do without.

        Raises:
            SaberError: if it is missing or damaged.
        """
        if (key, partition) not in self._read:
            if not self._store.path(key, partition).exists():
                raise SaberError(f"{input_name(key, partition)} is not made yet; run `saber build`")
            self._read[key, partition] = self._store.read(table, key, partition)
        return self._read[key, partition]

    def provenance(self) -> list[dict[str, Any]]:
        """How every table that was read came about, in the order of reading.

        Raises:
            SaberError: if a table does not say so.
        """
        found = {place: self._made(place) for place in self._read}
        runs = recorded_runs(self._home, [made.run_id for made in found.values()])
        named = {name: _place(name) for made in found.values() for name in made.inputs}
        now = self._store.look(named.values())
        return [
            {
                "asset": made.asset,
                "partition": made.partition,
                "path": str(self._store.path(*place)),
                "rows": made.rows,
                "code_version": made.code_version,
                "data_version": made.data_version,
                "data_version_holds": made.data_version
                == TABLES[made.table].version(self._read[place]),
                "failed_checks": list(made.failed_checks),
                "inputs": [
                    {
                        "table": name,
                        "data_version": version,
                        "unchanged": isinstance(there := now[named[name]], Provenance)
                        and there.data_version == version,
                    }
                    for name, version in sorted(made.inputs.items())
                ],
                "run": asdict(runs[made.run_id]),
            }
            for place, made in found.items()
        ]

    def _made(self, place: Place) -> Provenance:
        made = self._store.provenance(*place)
        if made is None:
            path = self._store.path(*place)
            raise SaberError(f"{path} does not say how it came about; `saber build` makes it again")
        return made


def _place(name: str) -> Place:
    """``asset:partition``, as provenance names an input."""
    asset, _, partition = name.rpartition(":")
    return tuple(asset.split("/")), None if partition == WHOLE else partition
