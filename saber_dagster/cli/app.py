"""The commands of ``saber``."""

from saber_dagster.cli import build, corpus, ledger, reports, ui
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
app.command("build")(build.build)
app.command("status")(reports.status)
app.command("leaderboard")(reports.leaderboard)
app.command("settings")(reports.settings)
app.command("ui")(ui.ui)
app.add_typer(corpus.corpus_app, name="corpus")
app.add_typer(ledger.ledger_app, name="ledger")
app.add_typer(release_app, name="release")
