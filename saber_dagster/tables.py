"""Tables on disk: one Parquet file per asset and partition, with its provenance inside.

Provenance travels in the file's own metadata, so table and provenance change in one atomic rename.
"""

import io
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import polars as pl

from saber_dagster.contracts import TABLES
from saber_dagster.schema import ContractError, Table
from saber_dagster.storage import write_atomic

WHOLE = "all"
"""The file name of a table that is not partitioned."""

_META = "saber"


@dataclass(frozen=True)
class Provenance:
    """How a table came about. ``inputs`` maps ``asset:partition`` to the data version that was read."""

    table: str
    asset: str
    partition: str
    code_version: str
    data_version: str
    rows: int
    inputs: dict[str, str] = field(default_factory=dict)
    run_id: str = ""
    failed_checks: tuple[str, ...] = ()
    """Blocking checks that failed, as ``name: what is wrong``.

    The table is there to look at, and nothing is built on it.
    """


def input_name(asset: Sequence[str], partition: str | None) -> str:
    """The name of an upstream partition in ``Provenance.inputs``."""
    return f"{'/'.join(asset)}:{partition or WHOLE}"


@dataclass(frozen=True)
class TableStore:
    """All tables of a home."""

    root: Path

    def path(self, asset: Sequence[str], partition: str | None) -> Path:
        """Where a partition lies; the two dimensions of ``domain|shard`` become folders."""
        return self.root.joinpath(*asset, *(partition or WHOLE).split("|")).with_suffix(".parquet")

    def write(
        self, table: Table, frame: pl.DataFrame, provenance: Provenance, asset: Sequence[str]
    ) -> None:
        """Write a checked frame and its provenance in one step."""
        buffer = io.BytesIO()
        frame.write_parquet(buffer, metadata={_META: json.dumps(asdict(provenance))})
        partition = None if provenance.partition == WHOLE else provenance.partition
        write_atomic(self.path(asset, partition), buffer.getvalue())

    def load(
        self, table: str, asset: Sequence[str], partition: str | None
    ) -> tuple[pl.DataFrame, Provenance | None]:
        """One partition and how it came about, from the same bytes.

        Raises:
            ContractError: if the file is missing, damaged or of another schema.
        """
        path = self.path(asset, partition)
        name = input_name(asset, partition)
        try:
            data = path.read_bytes()
            frame = pl.read_parquet(io.BytesIO(data), hive_partitioning=False)
            provenance = _parse(pl.read_parquet_metadata(io.BytesIO(data)).get(_META))
        except FileNotFoundError:
            raise ContractError(f"{path} is missing: materialize {name} first") from None
        except (pl.exceptions.PolarsError, OSError) as error:
            raise ContractError(
                f"{path} is damaged ({error}); delete it, and `saber build` makes it again"
            ) from None
        return TABLES[table].check(frame, str(path)), provenance

    def read(self, table: str, asset: Sequence[str], partition: str | None) -> pl.DataFrame:
        """One partition; see :meth:`load`."""
        return self.load(table, asset, partition)[0]

    def read_all(self, table: str, asset: Sequence[str], partitions: Sequence[str]) -> pl.DataFrame:
        """Several partitions as one frame, in the contract's order."""
        return self.join(table, asset, [self.read(table, asset, p) for p in partitions])

    @staticmethod
    def join(table: str, asset: Sequence[str], frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
        """Frames of several partitions as one, in the contract's order."""
        frame = pl.concat(frames) if frames else TABLES[table].empty()
        return TABLES[table].check(frame, input_name(asset, "several"))

    def why_unread(self, asset: Sequence[str], partition: str | None) -> str:
        """Why a partition has no provenance: ``missing``, or ``damaged`` if there is a file."""
        return "damaged" if self.path(asset, partition).exists() else "missing"

    def provenance(self, asset: Sequence[str], partition: str | None) -> Provenance | None:
        """How a partition came about; None if it is missing or unreadable."""
        try:
            return _parse(pl.read_parquet_metadata(self.path(asset, partition)).get(_META))
        except (pl.exceptions.PolarsError, OSError):
            return None


def _parse(raw: str | None) -> Provenance | None:
    try:
        values = json.loads(raw or "{}")
        return Provenance(**{**values, "failed_checks": tuple(values["failed_checks"])})
    except (ValueError, TypeError, KeyError):
        return None
