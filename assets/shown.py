"""A table as the UI shows it: its columns, and a few rows."""

from typing import Any

import dagster as dg
import polars as pl

from resources.parquet_io import TABLE_KEY
from saber_dagster.contracts import TABLES

_SAMPLE_ROWS = 5
_SAMPLE_CHARS = 120


def described(table: str) -> dict[str, Any]:
    """Metadata of an asset's definition: its table and the columns of it."""
    schema = dg.TableSchema(
        columns=[
            dg.TableColumn(
                name,
                type=str(column.dtype),
                description=column.description,
                constraints=dg.TableColumnConstraints(nullable=column.nullable),
            )
            for name, column in TABLES[table].columns.items()
        ]
    )
    return {TABLE_KEY: table, "dagster/column_schema": schema}


def sample(frame: pl.DataFrame) -> str:
    """A few rows as a Markdown table; long texts are cut."""
    if not frame.height:
        return "no rows"
    lines = ["| " + " | ".join(frame.columns) + " |", "|" + " --- |" * frame.width]
    for row in frame.head(_SAMPLE_ROWS).iter_rows():
        lines.append("| " + " | ".join(_cell(value) for value in row) + " |")
    return "\n".join(lines)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        value = ", ".join(str(item) for item in value)
    text = " ".join(str("" if value is None else value).split())
    text = text if len(text) <= _SAMPLE_CHARS else text[: _SAMPLE_CHARS - 1] + "…"
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("$", "\\$")
