"""The IO manager: tables by contract, atomically, with their provenance."""

from collections.abc import Mapping
from dataclasses import dataclass

import dagster as dg
import polars as pl

from saber_dagster.contracts import TABLES
from saber_dagster.errors import SaberError
from saber_dagster.storage import storage_path
from saber_dagster.tables import Provenance, TableStore, input_name

TABLE_KEY = "saber/table"
"""Metadata of an asset: the name of its table in the contracts."""


@dataclass(frozen=True)
class StoredTable:
    """What an asset hands to the IO manager: a checked frame and how it came about."""

    frame: pl.DataFrame
    provenance: Provenance


@dataclass(frozen=True)
class LoadedTable:
    """What an asset gets: one frame, and the data version of each partition that is in it."""

    frame: pl.DataFrame
    versions: Mapping[str, str]


class ParquetIOManager(dg.ConfigurableIOManager):
    """Stores a frame per partition; hands over one frame, however many partitions it comes from."""

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
        """Read the upstream partitions that the step depends on, always as one frame.

        Raises:
            SaberError: if one of them is missing, damaged, or failed a check that downstream relies on.
        """
        upstream = context.upstream_output
        if upstream is None:
            raise SaberError(f"input {context.name} is not an asset of this project")
        table = str(upstream.definition_metadata[TABLE_KEY])
        asset = context.asset_key.path
        keys = list(context.asset_partition_keys) if context.has_asset_partitions else [None]
        frames, versions = [], {}
        loaded = self.store.load(table, asset, keys)
        for key, (frame, provenance) in zip(keys, loaded, strict=True):
            if provenance is None:
                raise SaberError(f"{input_name(asset, key)} does not say how it came about")
            if provenance.failed_checks:
                raise SaberError(
                    f"{input_name(asset, key)} failed a check; mend that before building on it."
                    f" {'; '.join(provenance.failed_checks)}"
                )
            frames.append(frame)
            versions[input_name(asset, key)] = provenance.data_version
        return LoadedTable(self.store.join(table, asset, frames), versions)
