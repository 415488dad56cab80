"""Which engine or retriever made a table, read from the definitions."""

from dataclasses import dataclass
from typing import Any

MODEL_KEY = "saber/model"
REVISION_KEY = "saber/revision"
"""Metadata of an asset: what answers its calls, or ranks its candidates."""
FREE_KEY = "saber/free"
"""Metadata of an asset whose engine says that its answers cost nothing."""


@dataclass(frozen=True)
class Role:
    """An asset that calls an engine, or is made by a retriever."""

    asset: str
    model: str
    revision: str


def roles_of(defs: Any) -> tuple[Role, ...]:
    """The roles of a home's definitions, in topological order.

    Args:
        defs: ``dagster.Definitions`` of the home.
    """
    graph = defs.resolve_asset_graph()
    found = []
    for key in graph.toposorted_asset_keys:
        facts = graph.get(key).metadata
        if MODEL_KEY in facts:
            found.append(Role("/".join(key.path), str(facts[MODEL_KEY]), str(facts[REVISION_KEY])))
    return tuple(found)
