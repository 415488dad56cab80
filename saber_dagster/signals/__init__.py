"""Both relevance signals of all pairs of a query and a document: found, stored, read, counted.

The kernels that find and compare pairs are in :mod:`saber_dagster.similarity`.
"""
