"""Figures of the tables: each takes Polars frames and returns a ``matplotlib`` figure.

Matplotlib is imported when a figure is made, so that definitions load without it. Nothing is stored
from here: a figure shows what is in a table and decides nothing.
"""
