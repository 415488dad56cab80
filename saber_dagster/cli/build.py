"""``saber build``: from a corpus of problems to a leaderboard."""

import sys
from collections import defaultdict
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from saber_dagster import progress
from saber_dagster.cli.common import (
    JsonOption,
    MapOption,
    console,
    current_home,
    errors,
    parse_mapping,
    print_json,
)
from saber_dagster.cli.reports import board_table, leaderboard_rows
from saber_dagster.errors import SaberError
from saber_dagster.home import Home
from saber_dagster.releases import release_of

if TYPE_CHECKING:
    from saber_dagster.materialize import BuildReport, Event


def build(
    corpus: Annotated[
        list[Path] | None,
        typer.Option(help="Problems with solutions: JSONL, CSV or Parquet; may be given again."),
    ] = None,
    queries: Annotated[
        Path | None, typer.Option(help="Your own queries: ids of the corpus, or texts.")
    ] = None,
    ontology: Annotated[
        Path | None, typer.Option(help="Your own topics: edge list or nested JSON.")
    ] = None,
    mapping: MapOption = None,
    queries_mapping: Annotated[
        list[str] | None, typer.Option("--map-queries", help="The same for --queries.")
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help="demo (default) or paper; for a new home.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Materialize whatever is not fresh, and print the leaderboard.

    Without --corpus the home's corpus is used; a new home starts with the 270 competition problems of
    champ-dataset. Options are kept in saber.yaml of the home. Interrupt it at any time: the next build
    goes on from there.
    """
    home = configure(
        current_home(),
        corpus,
        queries,
        ontology,
        parse_mapping(mapping),
        parse_mapping(queries_mapping),
        preset,
    )
    report = run_build(home, quiet=as_json)
    rows = leaderboard_rows(home)
    if as_json:
        print_json(_as_json(home, report, rows))
        return
    console.print(_cost_table(report) if report.runs else "Everything is fresh; nothing was run.")
    console.print()
    for judge in home.judges:
        console.print(board_table(rows, judge.slug, judge.engine == "embedded"))
        console.print()
    for note in notes(home):
        console.print(f"[yellow]note:[/] {escape(note)}", soft_wrap=True)
    console.print(_where(home), highlight=False, soft_wrap=True)


def configure(
    home: Home,
    corpus: list[Path] | None,
    queries: Path | None,
    ontology: Path | None,
    mapping: dict[str, str],
    queries_mapping: dict[str, str],
    preset: str | None,
) -> Home:
    """Put the command's options into the home's settings.

    Raises:
        SaberError: if a file is missing, or a pinned release was made from other files.
    """
    for path in (*(corpus or ()), *(p for p in (queries, ontology) if p)):
        if not path.is_file():
            raise SaberError(f"{path} is not a file")
    for used, given, option in (
        (corpus, mapping, "--map needs --corpus"),
        (queries, queries_mapping, "--map-queries needs --queries"),
    ):
        if given and not used:
            raise SaberError(option)
    old = home.settings
    section: dict[str, Any] = old.corpus.model_dump(mode="json", exclude_defaults=True)
    changes: dict[str, Any] = {}
    if corpus:
        files = [str(path.resolve()) for path in corpus]
        _refuse_other_corpus(home, files)
        section["files"] = [{"path": file, **_mapped(mapping)} for file in files]
    if queries:
        section["queries"] = {"path": str(queries.resolve()), **_mapped(queries_mapping)}
        _refuse_if_pinned(home, "--queries", old.corpus.queries, section["queries"]["path"])
    if corpus or queries:
        changes["corpus"] = section
    if ontology:
        changes["ontology"] = {"file": str(ontology.resolve())}
        _refuse_if_pinned(home, "--ontology", old.ontology.file, changes["ontology"]["file"])
    if preset:
        changes = {"preset": preset, **changes}
    return home.change_settings(changes) if changes else home


def run_build(home: Home, quiet: bool = False, only: Any = None) -> "BuildReport":
    """Build with a progress bar per stage."""
    from saber_dagster.definitions import load
    from saber_dagster.materialize import build as materialize

    selects = {"until": only} if only else {}
    if quiet or not sys.stderr.isatty():
        watch = _ignore if quiet else _log
        return materialize(home, load(home), watch, **selects)
    columns = (
        TextColumn("{task.description:<34}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[calls]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=errors) as bars:
        opening = bars.add_task("loading the graph", total=1, calls="")
        defs = load(home)
        bars.update(opening, completed=1)
        watcher = _Bars(bars)
        progress.set_sink(watcher.calls)
        try:
            return materialize(home, defs, watcher, **selects)
        finally:
            progress.set_sink(None)


class _Bars:
    """One progress bar per level of the graph."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._task: Any = None
        self._before = 0
        self._run = 0

    def __call__(self, event: "Event") -> None:
        if event.kind == "level":
            self._before = self._run = 0
            title = _title(event.assets)
            self._task = self._bars.add_task(title, total=event.total, calls="")
        elif event.kind == "done":
            self._before += self._run
            self._run = 0
            self._bars.advance(self._task)

    def calls(self, stage: str, done: int, total: int) -> None:
        self._run = done
        if self._task is not None:
            self._bars.update(self._task, calls=f"{self._before + done:,} calls")


def _ignore(event: "Event") -> None:
    """Print nothing."""


def _log(event: "Event") -> None:
    if event.kind == "level":
        errors.print(f"{_title(event.assets)}: {event.total} run(s)", highlight=False)


def _title(assets: tuple[str, ...]) -> str:
    lanes = defaultdict(list)
    for name in assets:
        lane, _, rest = name.partition("/")
        lanes[lane if rest else name].append(rest)
    return ", ".join(
        f"{n} {len(r)}×" if len(r) > 1 else "/".join([n, *r]).rstrip("/") for n, r in lanes.items()
    )


def _mapped(mapping: dict[str, str]) -> dict[str, Any]:
    return {"mapping": dict(mapping)} if mapping else {}


def _refuse_if_pinned(home: Home, option: str, before: Any, after: str) -> None:
    release = release_of(home.releases, home.settings)
    was = getattr(before, "path", before)
    if release.complete and was != after:
        raise SaberError(
            f"{option}: release {release.name} of {home.root} was made"
            f" {'from ' + was if was else 'without it'}, and a release does not change. Set SABER_HOME to"
            " a new folder (copy ledger/ into it, and no call is paid twice), or change saber.yaml and"
            " make a new release with `saber release create NAME`"
        )


def _refuse_other_corpus(home: Home, files: list[str]) -> None:
    release = release_of(home.releases, home.settings)
    old = [source.path for source in home.settings.corpus.files]
    if release.complete and not set(old or [""]) <= set(files):
        was = ", ".join(old) or "champ-dataset"
        raise SaberError(
            f"release {release.name} of {home.root} was made from {was}. For another benchmark set"
            f" SABER_HOME to a new folder, as in SABER_HOME=.saber-mine saber build --corpus {files[0]};"
            " to grow this one, name its old files too"
        )


def notes(home: Home) -> list[str]:
    """What a person should know about a finished build."""
    from saber_dagster.tables import TableStore

    found = []
    store = TableStore(home.tables)
    thresholds = store.read("thresholds", ["thresholds"], None)
    for row in thresholds.iter_rows(named=True):
        required = home.settings.thresholds.queries_required
        if row["eligible_queries"] < required:
            found.append(
                f"{row['domain']}: {row['eligible_queries']} eligible queries, fewer than {required}"
                f" ({row['n_queries']} documents could be queries); see the check on thresholds"
            )
    release = release_of(home.releases, home.settings)
    pinned = set(release.read("release_texts")["doc_id"])
    index = store.read("problem_index", ["problem_index"], None)
    new = sum(doc not in pinned for doc in index.filter("is_document")["doc_id"])
    if new:
        found.append(
            f"{new} document(s) of the corpus are not in release {release.name}, which stays as it was;"
            " `saber release create NAME` makes a release with them"
        )
    return found


def _cost_table(report: "BuildReport") -> Table:
    table = Table(title=f"Built in {report.seconds:.0f} s", title_justify="left")
    table.add_column("asset", no_wrap=True)
    for name in ("partitions", "seconds", "peak MiB", "rows", "calls asked", "calls made"):
        table.add_column(name, justify="right")
    for name, (runs, cost, peak) in report.by_asset().items():
        calls = (cost.calls_asked, cost.calls_made) if cost.calls_asked else ()
        numbers = (f"{n:,}" for n in (cost.rows, *calls))
        table.add_row(escape(name), str(runs), f"{cost.seconds:.1f}", f"{peak:,.0f}", *numbers)
    return table


def _where(home: Home) -> str:
    release = release_of(home.releases, home.settings)
    own = home.settings_file
    settings = str(own) if own.exists() else f"the defaults of preset {home.settings.preset}"
    return (
        f"tables    {home.tables}\nrelease   {release.folder}\nledger    {home.ledger}\n"
        f"settings  {settings}\n"
        "next      `saber ui` to look at the graph, `saber leaderboard` for other settings"
    )


def _as_json(home: Home, report: "BuildReport", rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "home": str(home.root),
        "release": home.settings.release,
        "seconds": report.seconds,
        "fresh_partitions": report.fresh,
        "runs": [asdict(run) for run in report.runs],
        "notes": notes(home),
        "leaderboard": rows,
    }
