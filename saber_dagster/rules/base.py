"""What a rule returns: how often it is violated, and where."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

FIRST = 3
"""Examples of a violation."""

_DOCUMENTS = {"query_id": "query", "doc_id": "document", "doc_a": "document", "doc_b": "document"}
_LABELS = {**_DOCUMENTS, "node_id": "topic"}


@dataclass(frozen=True)
class Violation:
    """A rule that does not hold: what, how often, and the first examples in order."""

    what: str
    count: int
    examples: tuple[str, ...] = ()

    def __str__(self) -> str:
        """The violation as a clause of a message."""
        shown = f", such as {'; '.join(self.examples)}" if self.examples else ""
        return f"{self.count:,} {self.what}{shown}"


def violations(
    bad: pl.DataFrame, what: str, show: str | Sequence[str], names: pl.DataFrame | None = None
) -> list[Violation]:
    """The rows that violate a rule as one violation; none if there is no row.

    Args:
        bad: the rows.
        what: what is wrong with them, after their number.
        show: the columns that name a row.
        names: doc_id, source and source_id, where they are at hand: examples then have the user's ids.
    """
    if not bad.height:
        return []
    columns = [show] if isinstance(show, str) else list(show)
    rows = bad.select(columns).unique().sort(columns, nulls_last=True).head(FIRST)
    own = {}
    if names is not None:
        ids = pl.concat([rows[name] for name in columns if name in _DOCUMENTS]).implode()
        named = names.filter(pl.col("doc_id").is_in(ids))
        own = {
            doc: f"{source_id!r} of {source} ({doc})"
            for doc, source, source_id in named.select("doc_id", "source", "source_id").iter_rows()
        }
    examples = [
        ", ".join(_cell(name, value, own) for name, value in zip(columns, row, strict=True))
        for row in rows.iter_rows()
    ]
    return [Violation(what, bad.height, tuple(examples))]


def low_share(part: int, whole: int, level: float, lacking: str) -> list[Violation]:
    """A violation if ``part`` of ``whole`` is a smaller share than ``level``; ``lacking`` what it is."""
    if part >= level * whole:
        return []
    what = f"of {whole:,} {lacking} ({part / whole:.1%} do, at least {level:.0%} are expected)"
    return [Violation(what, whole - part)]


def unlike(
    found: pl.DataFrame,
    expected: pl.DataFrame,
    on: Sequence[str],
    things: str,
    names: pl.DataFrame | None = None,
) -> list[Violation]:
    """Rows that are missing from ``found``, and rows that it should not have, by key."""
    missing = expected.join(found, on=on, how="anti")
    extra = found.join(expected, on=on, how="anti")
    return [
        *violations(missing, f"{things} are missing", on, names),
        *violations(extra, f"{things} should not be there", on, names),
    ]


def _cell(name: str, value: Any, own: dict[Any, str]) -> str:
    text = own.get(value, str(value)) if name in _DOCUMENTS else str(value)
    return f"{_LABELS.get(name, name)} {text}"
