"""The commands of ``saber``."""

from importlib.metadata import version
from typing import Annotated

import typer

from saber_dagster.cli import (
    boards,
    build,
    corpus,
    cost,
    judges,
    ledger,
    ontology,
    prompts,
    report,
    reports,
    trace,
    ui,
)
from saber_dagster.cli.common import SaberTyper
from saber_dagster.cli.releases import release_app

app = SaberTyper(
    name="saber",
    help=(
        "Build and audit LLM-judged retrieval benchmarks for mathematics. All state lies under"
        " SABER_HOME (default .saber)."
    ),
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"saber_dagster {version('saber-dagster')}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    pass


app.command("build")(build.build)
app.command("status")(reports.status)
app.command("leaderboard")(boards.leaderboard)
app.command("report")(report.report)
app.command("cost")(cost.cost)
app.command("settings")(reports.settings)
app.command("trace")(trace.trace)
app.command("ui")(ui.ui)
app.add_typer(corpus.corpus_app, name="corpus")
app.add_typer(ontology.ontology_app, name="ontology")
app.add_typer(ledger.ledger_app, name="ledger")
app.add_typer(judges.judges_app, name="judges")
app.add_typer(release_app, name="release")
app.add_typer(prompts.prompts_app, name="prompts")
