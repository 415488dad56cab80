"""The IO manager: tables by contract, atomically, with their provenance."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import dagster as dg
import polars as pl

from saber_dagster.contracts import TABLES
from saber_dagster.errors import SaberError
from saber_dagster.storage import storage_path
from saber_dagster.tables import Provenance, TableParts, TableStore, input_name

TABLE_KEY = "saber/table"
"""Metadata of an asset: the name of its table in the contracts."""


@dataclass(frozen=True)
class StoredTable:
    """What an asset hands to the IO manager: a checked frame and how it came about."""

    frame: pl.DataFrame
    provenance: Provenance


@dataclass(frozen=True)
class LoadedTable:
    """What an asset gets: the rows, and the data version of each partition that they are of."""

    rows: pl.DataFrame | TableParts
    """One frame; partition by partition if the table's rows name another table's by number."""
    versions: Mapping[str, str]


class ParquetIOManager(dg.ConfigurableIOManager):
    """Stores a frame per partition; hands over one frame, however many partitions it comes from.

    Of a table whose rows name those of another by number it hands over the partitions unread.
    """

    root: str

    @property
    def store(self) -> TableStore:
        """The tables of the home."""
        return TableStore(storage_path(self.root))

    def handle_output(self, context: dg.OutputContext, obj: StoredTable) -> None:
        """Write one partition."""
        table = TABLES[context.definition_metadata[TABLE_KEY]]
        self.store.write(table, obj.frame, obj.provenance, context.asset_key.path)

    def load_input(self, context: dg.InputContext) -> LoadedTable:
        """Read the upstream partitions that the step depends on.

        Raises:
            SaberError: if one of them is missing, damaged, or failed a check that downstream relies on.
        """
        upstream = context.upstream_output
        if upstream is None:
            raise SaberError(f"input {context.name} is not an asset of this project")
        table = str(upstream.definition_metadata[TABLE_KEY])
        asset = context.asset_key.path
        keys = list(context.asset_partition_keys) if context.has_asset_partitions else [None]
        if TABLES[table].numbers:
            parts = self.store.parts(table, asset, keys)
            return LoadedTable(parts, _versions(asset, parts.made))
        loaded = self.store.load(table, asset, keys)
        made = {key: provenance for key, (_, provenance) in zip(keys, loaded, strict=True)}
        frame = self.store.join(table, asset, [frame for frame, _ in loaded])
        return LoadedTable(frame, _versions(asset, made))


def _versions(asset: Sequence[str], made: Mapping[str | None, Provenance | None]) -> dict[str, str]:
    """The data version of each partition.

    Raises:
        SaberError: if one does not say how it came about, or failed a check.
    """
    versions = {}
    for key, provenance in made.items():
        name = input_name(asset, key)
        if provenance is None:
            raise SaberError(f"{name} does not say how it came about")
        if provenance.failed_checks:
            raise SaberError(
                f"{name} failed a check; mend that before building on it."
                f" {'; '.join(provenance.failed_checks)}"
            )
        versions[name] = provenance.data_version
    return versions
