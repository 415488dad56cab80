"""The calls behind a game: what was asked, what came back, and whether the key says the same."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from saber_dagster.engines import FINAL, Engine
from saber_dagster.errors import SaberError
from saber_dagster.ledger import Ledger, LedgerError
from saber_dagster.ledger.ledger import stage_files
from saber_dagster.ledger.rendering import Render, Rendering, rendering, row_key
from saber_dagster.ledger.rows import slug
from saber_dagster.ledger.segments import read_checked, read_segment, retried
from saber_dagster.storage import AnyPath

Row = Mapping[str, Any]


def traced_calls(
    ledger: Ledger, stage: str, keys: Sequence[str], render: Render, engines: Sequence[Engine]
) -> dict[str, dict[str, Any]]:
    """Everything that the ledger keeps of some calls, by key.

    Args:
        ledger: the ledger.
        stage: of the calls.
        keys: their keys.
        render: makes messages by an archived prompt.
        engines: of the home; they make the messages of calls that no archived prompt does.

    Returns:
        For each key the columns of its canonical reply, with ``messages`` as they were sent, ``found``,
        ``key_holds`` (true; false or None, if that cannot be told, for the reason in ``problem``),
        ``segment_holds`` (the file is as it was written) and ``paid``, the number of its replies.
    """
    ledger.recover()
    rows = retried(lambda: list(_stored(ledger, stage, set(keys))))
    rows.sort(key=lambda row: row["segment"])
    calls: dict[str, dict[str, Any]] = {}
    for key in keys:
        mine = [row for row in rows if row["key"] == key]
        final = [row for row in mine if row["status"] in FINAL]
        if not mine:
            calls[key] = {"found": False}
            continue
        row = (final or mine)[0]
        calls[key] = {"found": True, "paid": len(mine), **_checked(ledger, row, render, engines)}
    return calls


def _stored(ledger: Ledger, stage: str, keys: set[str]) -> Iterator[dict[str, Any]]:
    """The rows of some keys. Only the segments that hold one are read as a whole."""
    for path in stage_files(ledger.root / slug(stage), ledger.root):
        here = read_segment(path, ["key"])["key"].is_in(list(keys))
        if here.any():
            whole, holds = read_segment(path), _as_written(path)
            named = read_segment(path, ["segment"])
            hits = pl.concat([whole, named], how="horizontal").filter(here)
            for row in hits.iter_rows(named=True):
                yield {**row, "path": str(path), "segment_holds": holds}


def _as_written(path: AnyPath) -> bool:
    try:
        read_checked(path)
    except LedgerError:
        return False
    return True


def _checked(ledger: Ledger, row: Row, render: Render, engines: Sequence[Engine]) -> dict[str, Any]:
    """A row with the messages in it, and what its key says of them."""
    sent = rendering(row, ledger.archive, render)
    if sent.messages is None and row["inputs"]:
        sent = _by_engine(ledger, row, engines) or sent
    return {
        **row,
        "params": json.loads(row["params"] or "{}"),
        "inputs": ledger.call_of(row).inputs if sent.messages is not None else None,
        "messages": None if sent.messages is None else [dict(m) for m in sent.messages],
        "key_holds": sent.verified,
        "problem": sent.problem,
    }


def _by_engine(ledger: Ledger, row: Row, engines: Sequence[Engine]) -> Rendering | None:
    """The messages as an engine of the home makes them, which has no prompt file."""
    try:
        call = ledger.call_of(row)
    except SaberError:  # a text is missing: that is what the trace says
        return None
    for engine in engines:
        if (engine.model, engine.revision) == (row["model"], row["revision"]):
            messages = engine.messages(call)
            if row_key(row, messages) == row["key"]:
                return Rendering(messages, True)
            return Rendering(messages, False, "these messages do not give the key of the row")
    return None
