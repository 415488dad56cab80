"""``saber release``: pin what judges and retrievers read."""

from dataclasses import asdict
from typing import Annotated

import typer
from rich.table import Table

from saber_dagster.cli.build import run_build
from saber_dagster.cli.common import JsonOption, console, current_home, print_json
from saber_dagster.cli.configure import refuse_overridden
from saber_dagster.errors import SaberError
from saber_dagster.releases import Release, growth, list_releases, release_of
from saber_dagster.settings import SLUG
from saber_dagster.storage import write_atomic

release_app = typer.Typer(
    help="Pin thresholds, queries, candidates and texts under a name.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@release_app.command("create")
def create(
    name: Annotated[str, typer.Argument(help="Name of the new release, such as r2.")],
    as_json: JsonOption = False,
) -> None:
    """Make a release from the corpus as it is now, and switch to it.

    The annotator is asked about new documents; no judge is asked.
    """
    home = current_home()
    if not SLUG.match(name):
        raise SaberError(f"release name {name!r}: use small letters, digits, - and _")
    if Release(home.releases / name).complete:
        raise SaberError(f"release {name} exists already; a release does not change")
    before = release_of(home.releases, home.settings)
    refuse_overridden("release", name, home.settings_with({"release": name}).release)
    with home.locked():
        old = home.settings_file.read_bytes() if home.settings_file.exists() else None
        home = home.change_settings({"release": name})
    try:
        run_build(
            home,
            quiet=as_json,
            until=lambda node: node.group in _UP_TO_RELEASE,
            new_release=True,
        )
    except BaseException:
        if old is None:
            home.settings_file.unlink(missing_ok=True)
        else:
            write_atomic(home.settings_file, old)
        raise
    after = release_of(home.releases, home.settings)
    report = growth(before, after) if before.complete and before.name != name else None
    if as_json:
        print_json({"release": name, "growth": asdict(report) if report else None})
        return
    console.print(f"Release {name} is pinned in {after.folder}", highlight=False, soft_wrap=True)
    if report:
        console.print(
            f"It keeps {report.queries_kept} of {report.queries_before} queries and"
            f" {report.pairs_kept:,} of {report.pairs_before:,} query-document pairs of {before.name};"
            f" it has {report.queries_after} queries and {report.pairs_after:,} pairs.\nGames between"
            " kept pairs are in the ledger and cost nothing. `saber build` judges the rest."
        )


_UP_TO_RELEASE = {"corpus", "ontology", "annotation", "signals", "candidates"}


@release_app.command("list")
def list_(as_json: JsonOption = False) -> None:
    """List releases; the current one is marked."""
    home = current_home()
    found = list_releases(home.releases)
    current = home.settings.release
    rows = [
        {
            "release": release.name,
            "current": release.name == current,
            **{name: table["rows"] for name, table in release.manifest()["tables"].items()},
        }
        for release in found
    ]
    if as_json:
        print_json(rows)
        return
    table = Table(title=str(home.releases), title_justify="left")
    for column in ("release", "queries", "candidates", "texts"):
        table.add_column(column, justify="left" if column == "release" else "right")
    for row in rows:
        mark = " (current)" if row["current"] else ""
        numbers = (row["query_set"], row["candidate_sets"], row["release_texts"])
        table.add_row(f"{row['release']}{mark}", *(f"{n:,}" for n in numbers))
    console.print(table)
    if current not in [release.name for release in found]:
        console.print(f"Release {current}, which saber.yaml names, is not made yet: `saber build`.")
