"""The IO manager: tables by contract, atomically, with their provenance."""

from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import polars as pl

from saber_dagster.contracts import TABLES
from saber_dagster.errors import SaberError
from saber_dagster.tables import Provenance, TableStore

TABLE_KEY = "saber/table"
"""Metadata of an asset: the name of its table in the contracts."""


@dataclass(frozen=True)
class StoredTable:
    """What an asset hands to the IO manager: a checked frame and how it came about."""

    frame: pl.DataFrame
    provenance: Provenance


class ParquetIOManager(dg.ConfigurableIOManager):
    """Stores a frame per partition; hands over one frame, however many partitions it comes from."""

    root: str

    @property
    def store(self) -> TableStore:
        """The tables of the home."""
        return TableStore(Path(self.root))

    def handle_output(self, context: dg.OutputContext, obj: StoredTable) -> None:
        """Write one partition."""
        table = TABLES[context.definition_metadata[TABLE_KEY]]
        self.store.write(table, obj.frame, obj.provenance, context.asset_key.path)

    def load_input(self, context: dg.InputContext) -> pl.DataFrame:
        """Read the upstream partitions that the step depends on, always as one frame.

        Raises:
            SaberError: if one of them failed a check that downstream relies on.
        """
        upstream = context.upstream_output
        if upstream is None:
            raise SaberError(f"input {context.name} is not an asset of this project")
        table = str(upstream.definition_metadata[TABLE_KEY])
        asset = context.asset_key.path
        keys = list(context.asset_partition_keys) if context.has_asset_partitions else [None]
        for key in keys:
            provenance = self.store.provenance(asset, key)
            if provenance and provenance.failed_checks:
                raise SaberError(
                    f"{'/'.join(asset)} {key or ''} failed a check; mend that before building on it."
                    f" {'; '.join(provenance.failed_checks)}"
                )
        if not context.has_asset_partitions:
            return self.store.read(table, asset, None)
        return self.store.read_all(table, asset, [key for key in keys if key])
