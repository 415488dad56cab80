"""Retrieval benchmarks for mathematics, judged pairwise and rated, as a Dagster asset graph."""

__version__ = "0.1.0"
