"""The command line: ``saber``. Dagster and the graph are imported by the commands that need them."""

from saber_dagster.cli.app import app

__all__ = ["app"]
