"""The call ledger as a Dagster resource."""

from pathlib import Path

import dagster as dg

from saber_dagster.engines import Engine
from saber_dagster.ledger import Ledger, Mode, Session


class LedgerResource(dg.ConfigurableResource[Ledger]):
    """Opens the ledger for one step. ``mode`` is ``live`` or ``replay`` (a missing reply is an error)."""

    root: str
    mode: str = "live"

    def session(self, engine: Engine, stage: str, context: dg.AssetExecutionContext) -> Session:
        """A session for the partition and run of a step."""
        partition = context.partition_key if context.has_partition_key else "all"
        mode: Mode = "replay" if self.mode == "replay" else "live"
        return Ledger(Path(self.root)).session(engine, stage, partition, context.run.run_id, mode)
