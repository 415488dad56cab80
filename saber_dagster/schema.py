"""What a table's contract is: columns, keys and bounds, and how a frame is checked against it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from saber_dagster.errors import SaberError
from saber_dagster.hashing import data_version, digest


class ContractError(SaberError):
    """A table does not follow its contract."""


@dataclass(frozen=True)
class Column:
    """One column: its type, meaning and allowed values."""

    dtype: pl.DataType | type[pl.DataType]
    description: str
    nullable: bool = False
    low: float | None = None
    high: float | None = None
    storage: bool = False
    """Says where or when a row was stored, not what it says: not part of the data version."""


@dataclass(frozen=True)
class Table:
    """A table's contract. ``key`` is unique and gives the order of rows on disk."""

    name: str
    description: str
    key: tuple[str, ...]
    columns: Mapping[str, Column] = field(default_factory=dict)
    numbers: str = ""
    """The table whose rows this one names by position, if it does.

    It has no key then: its rows stay in their order, its version is for its stage to say, it is read
    a partition at a time, and only together with the version of the other table that it was made from.
    """

    @property
    def schema(self) -> dict[str, pl.DataType | type[pl.DataType]]:
        """Column names and Polars types, in order."""
        return {name: column.dtype for name, column in self.columns.items()}

    @property
    def schema_sha(self) -> str:
        """A digest of names, types and keys; part of the code version of the writing asset."""
        return digest([self.name, list(self.key), [[n, str(t)] for n, t in self.schema.items()]], 8)

    def empty(self) -> pl.DataFrame:
        """A frame of this table with no rows."""
        return pl.DataFrame(schema=self.schema)

    def version(self, frame: pl.DataFrame) -> str:
        """The data version of a frame of this table (see :func:`hashing.data_version`)."""
        storage = [name for name, column in self.columns.items() if column.storage]
        return data_version(frame, exclude=storage)

    def check(self, frame: pl.DataFrame, where: str = "") -> pl.DataFrame:
        """Check a frame and put it in the contract's column and row order.

        Raises:
            ContractError: naming table, column, number of rows and a sample value.
        """
        place = f"{self.name} ({where})" if where else self.name
        missing = [name for name in self.columns if name not in frame.columns]
        extra = [name for name in frame.columns if name not in self.columns]
        if missing or extra:
            raise ContractError(f"{place}: missing columns {missing}, unknown columns {extra}")
        frame = frame.select(list(self.columns))
        for name, column in self.columns.items():
            series = frame[name]
            if series.dtype != column.dtype:
                if series.dtype == pl.Null and column.nullable:
                    frame = frame.with_columns(series.cast(column.dtype))
                    continue
                raise ContractError(
                    f"{place}: column {name} is {series.dtype}, the contract says {column.dtype}"
                )
            self._check_values(place, name, column, series)
        if self.numbers:
            return frame
        duplicated = frame.select(self.key).is_duplicated()
        if duplicated.any():
            sample = frame.filter(duplicated).select(self.key).row(0)
            raise ContractError(
                f"{place}: {int(duplicated.sum())} rows share a key {self.key}, such as {sample}"
            )
        return frame.sort(self.key)

    @staticmethod
    def _check_values(place: str, name: str, column: Column, series: pl.Series) -> None:
        def reject(bad: pl.Series, what: str) -> None:
            if bad.any():
                found = series.filter(bad)
                raise ContractError(
                    f"{place}: column {name} has {what} in {len(found)} row(s), such as {found[0]!r}"
                )

        if not column.nullable:
            reject(series.is_null(), "no value")
        if isinstance(series.dtype, pl.List):
            reject(series.list.eval(pl.element().is_null()).list.any(), "an empty item")
        if series.dtype.is_float():
            reject(~series.is_finite(), "NaN or infinity")
        if column.low is not None:
            reject(series < column.low, f"less than {column.low}")
        if column.high is not None:
            reject(series > column.high, f"more than {column.high}")
