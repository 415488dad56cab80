"""``python -m saber_dagster``: the command line."""

from saber_dagster.cli import app

app(prog_name="saber")
