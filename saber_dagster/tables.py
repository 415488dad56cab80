"""Tables on disk: one Parquet file per asset and partition, with its provenance inside.

Provenance travels in the file's own metadata, so table and provenance change in one atomic rename.
"""

import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Literal

import polars as pl

from saber_dagster.contracts import TABLES
from saber_dagster.hashing import sum_of_versions
from saber_dagster.schema import ContractError, Table
from saber_dagster.sealed import is_whole, sealed_parquet
from saber_dagster.storage import AnyPath, read_many, write_atomic

WHOLE = "all"
"""The file name of a table that is not partitioned."""

Place = tuple[tuple[str, ...], str | None]
"""An asset's key and a partition."""

Unread = Literal["missing", "damaged"]
"""Why a partition has no provenance."""

_META = "saber"
_SLICE = 1 << 22
"""Rows of a table that is read in slices."""
_END = 1 << 15
"""Bytes at the end of a file that hold its footer, as a rule several times over."""


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

    root: AnyPath

    def path(self, asset: Sequence[str], partition: str | None) -> AnyPath:
        """Where a partition lies; the two dimensions of ``domain|shard`` become folders."""
        return self.root.joinpath(*asset, *(partition or WHOLE).split("|")).with_suffix(".parquet")

    def write(
        self, table: Table, frame: pl.DataFrame, provenance: Provenance, asset: Sequence[str]
    ) -> None:
        """Write a checked frame and its provenance in one step."""
        # columns of small numbers: more effort takes time and saves little
        quick = {"compression_level": 1, "statistics": False, "row_group_size": _SLICE // 4}
        options = quick if table.numbers else {}
        data = sealed_parquet(frame, {_META: json.dumps(asdict(provenance))}, **options)
        partition = None if provenance.partition == WHOLE else provenance.partition
        write_atomic(self.path(asset, partition), data)

    def load(
        self, table: str, asset: Sequence[str], partitions: Sequence[str | None]
    ) -> list[tuple[pl.DataFrame, Provenance | None]]:
        """Partitions and how each came about, from the same bytes.

        Raises:
            ContractError: if a file is missing, damaged or of another schema.
        """
        paths = [self.path(asset, partition) for partition in partitions]
        loaded = []
        for partition, path, data in zip(partitions, paths, read_many(paths), strict=True):
            if data is None:
                name = input_name(asset, partition)
                raise ContractError(f"{path} is missing: materialize {name} first")
            _refuse_changed(path, data)
            try:
                frame = pl.read_parquet(io.BytesIO(data), hive_partitioning=False)
                provenance = _parse(pl.read_parquet_metadata(io.BytesIO(data)).get(_META))
            except (pl.exceptions.PolarsError, OSError) as error:
                raise ContractError(
                    f"{path} is damaged ({error}); delete it, and `saber build` makes it again"
                ) from None
            loaded.append((TABLES[table].check(frame, str(path)), provenance))
        return loaded

    def read(self, table: str, asset: Sequence[str], partition: str | None) -> pl.DataFrame:
        """One partition; see :meth:`load`."""
        return self.load(table, asset, [partition])[0][0]

    def read_all(
        self, table: str, asset: Sequence[str], partitions: Sequence[str | None]
    ) -> pl.DataFrame:
        """Several partitions as one frame, in the contract's order."""
        return self.join(table, asset, [frame for frame, _ in self.load(table, asset, partitions)])

    def parts(
        self, table: str, asset: Sequence[str], partitions: Sequence[str | None]
    ) -> "TableParts":
        """Several partitions, each to be read when it is asked for.

        Raises:
            ContractError: if a file is missing or damaged.
        """
        places = [(tuple(asset), partition) for partition in partitions]
        made = {}
        for place, found in self.look(places).items():
            name, path = input_name(*place), self.path(*place)
            if found == "missing":
                raise ContractError(f"{path} is missing: materialize {name} first")
            if found == "damaged":
                raise ContractError(
                    f"{path} is damaged; delete it, and `saber build` makes it again"
                )
            made[place[1]] = found
        return TableParts(self, table, tuple(asset), made)

    @staticmethod
    def join(table: str, asset: Sequence[str], frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
        """Frames of several partitions as one, in the contract's order."""
        frame = pl.concat(frames) if frames else TABLES[table].empty()
        return TABLES[table].check(frame, input_name(asset, "several"))

    def version(self, table: str, asset: Sequence[str], partitions: Sequence[str | None]) -> str:
        """The data version of a whole table, however it is cut.

        Raises:
            ContractError: if a partition is missing or damaged.
        """
        if TABLES[table].numbers:
            made = self.parts(table, asset, partitions).made.values()
            return sum_of_versions(each.data_version for each in made)
        return TABLES[table].version(self.read_all(table, asset, partitions))

    def look(self, wanted: Iterable[Place]) -> dict[Place, Provenance | Unread]:
        """How partitions came about, from the ends of their files: no rows are read.

        Raises:
            SaberError: if the store cannot be read.
        """
        places = list(dict.fromkeys(wanted))
        paths = [self.path(*place) for place in places]
        ends = dict(zip(places, read_many(paths, _END), strict=True))
        longer = [place for place in places if _footer(ends[place]) > _END]
        size = max((_footer(ends[place]) for place in longer), default=0)
        again = read_many([self.path(*place) for place in longer], size)
        ends.update(zip(longer, again, strict=True))
        return {place: _provenance_in(end) for place, end in ends.items()}

    def provenance(self, asset: Sequence[str], partition: str | None) -> Provenance | None:
        """How a partition came about; None if it is missing or damaged."""
        (found,) = self.look([(tuple(asset), partition)]).values()
        return found if isinstance(found, Provenance) else None


@dataclass(frozen=True)
class TableParts:
    """Partitions of a table that is too large to be one frame: each is read when it is its turn.

    Iterating yields their rows in slices of at most 4 million, and may be done as often as wanted.

    Args:
        store: where they lie.
        table: their contract.
        asset: their asset.
        made: partition → how it came about.
    """

    store: TableStore
    table: str
    asset: tuple[str, ...]
    made: Mapping[str | None, Provenance]

    @property
    def rows(self) -> int:
        """The number of rows of all partitions."""
        return sum(made.rows for made in self.made.values())

    def refuse_other_numbers(self, version: str) -> None:
        """Check that the rows' numbers are those of a version of the table that they refer to.

        Args:
            version: data version of the table ``TABLES[self.table].numbers`` at hand.

        Raises:
            ContractError: naming a partition that was made from another version.
        """
        numbers = TABLES[self.table].numbers
        for partition, made in self.made.items():
            if made.inputs.get(input_name([numbers], None)) != version:
                raise ContractError(
                    f"{input_name(self.asset, partition)} names the rows of another {numbers} than"
                    f" there is now. Materialize {'/'.join(self.asset)} again, or run `saber build`"
                )

    def __iter__(self) -> Iterator[pl.DataFrame]:
        """Read the partitions, one after the other.

        Raises:
            ContractError: if a file is missing, damaged, of another schema, or no longer the one that
                it was.
        """
        table = TABLES[self.table]
        for partition, before in self.made.items():
            path = self.store.path(self.asset, partition)
            (data,) = read_many([path])
            if data is None or _provenance_in(data) != before:
                raise ContractError(f"{path} has changed while it was read. Run this step again")
            _refuse_changed(path, data)
            for start in range(0, before.rows, _SLICE):
                try:
                    frame = pl.scan_parquet(io.BytesIO(data)).slice(start, _SLICE).collect()
                except (pl.exceptions.PolarsError, OSError) as error:
                    raise ContractError(
                        f"{path} is damaged ({error}); delete it, and `saber build` makes it again"
                    ) from None
                yield table.check(frame, str(path))


def _refuse_changed(path: AnyPath, data: bytes) -> None:
    """Stop at a file with another byte than when it was written."""
    if is_whole(data) is False:
        raise ContractError(
            f"{path} is damaged (it has another SHA-256 than when it was written); delete it, and"
            " `saber build` makes it again"
        )


def _footer(end: bytes | None) -> int:
    """The length of a Parquet file's footer; 0 if this is not the end of one."""
    return 8 + int.from_bytes(end[-8:-4], "little") if end and end.endswith(b"PAR1") else 0


def _provenance_in(end: bytes | None) -> Provenance | Unread:
    if end is None:
        return "missing"
    try:
        return _parse(pl.read_parquet_metadata(io.BytesIO(end)).get(_META)) or "damaged"
    except (pl.exceptions.PolarsError, OSError):
        return "damaged"


def _parse(raw: str | None) -> Provenance | None:
    try:
        values = json.loads(raw or "{}")
        return Provenance(**{**values, "failed_checks": tuple(values["failed_checks"])})
    except (ValueError, TypeError, KeyError):
        return None
