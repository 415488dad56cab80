"""Ontologies for tests, from their node ids alone."""

from collections.abc import Callable, Iterable

import polars as pl

from saber_dagster.contracts import TABLES
from saber_dagster.ontology import OntologyTree


def tree_of(
    node_ids: Iterable[str], domain: Callable[[str], str | None] = lambda node: "algebra"
) -> OntologyTree:
    """The tree whose node ids are paths: ``["a", "a/b"]``."""
    rows = [
        {
            "node_id": node,
            "path": node,
            "label": node,
            "synonyms": [],
            "parent_id": node.rpartition("/")[0] or None,
            "depth": node.count("/"),
            "domain": domain(node),
            "source_node": node,
        }
        for node in node_ids
    ]
    return OntologyTree.from_frame(pl.DataFrame(rows, schema=TABLES["ontology_tree"].schema))
