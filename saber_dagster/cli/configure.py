"""Put the options of ``saber build`` into the home's settings, once they are known to be good."""

from pathlib import Path
from typing import Any

from rich.markup import escape

from saber_dagster.cli.common import errors
from saber_dagster.errors import Fault, InputError, SaberError
from saber_dagster.home import Home
from saber_dagster.ontology import build_tree
from saber_dagster.ontology_files import read_ontology
from saber_dagster.releases import release_of
from saber_dagster.settings import Settings
from saber_dagster.settings_files import PRESETS
from saber_dagster.sources import read_sources
from saber_dagster.yaml_files import read_yaml

_WARNINGS_SHOWN = 20


def configure(
    home: Home,
    corpus: list[Path] | None = None,
    queries: Path | None = None,
    ontology: Path | None = None,
    mapping: dict[str, str] | None = None,
    queries_mapping: dict[str, str] | None = None,
    preset: str | None = None,
) -> Home:
    """Put the options into ``saber.yaml``; what the file says besides stays.

    Raises:
        SaberError: before anything is written, if an option or a file is faulty, the home was made with
            other settings, a pinned release from other files, or a build holds the home.
    """
    if preset and preset not in PRESETS:
        raise SaberError(f"--preset {preset}: there are {', '.join(PRESETS)}")
    named = (*(corpus or ()), *(path for path in (queries, ontology) if path))
    if absent := [str(path) for path in named if not path.is_file()]:
        raise SaberError(f"{', '.join(absent)}: no such file. Check the path")
    for used, given, option in (
        (corpus, mapping, "--map needs --corpus"),
        (queries, queries_mapping, "--map-queries needs --queries"),
    ):
        if given and not used:
            raise SaberError(option)
    changes = _changes(home, corpus, queries, ontology, mapping, queries_mapping)
    if preset:
        changes["preset"] = preset
    if not changes:
        return home
    settings = home.settings_with(changes)
    refuse_overridden("preset", preset, settings.preset)
    if problem := home.mismatch(settings):
        raise SaberError(problem)
    warnings = _check_files(settings, bool(corpus or queries), bool(ontology))
    for warning in warnings[:_WARNINGS_SHOWN]:
        errors.print(f"[yellow]warning[/] {escape(str(warning))}", soft_wrap=True, highlight=False)
    with home.locked():
        return home.change_settings(changes)


def refuse_overridden(name: str, wanted: str | None, found: str) -> None:
    """Refuse to write a setting that an environment variable overrides.

    Raises:
        SaberError: if another value than the wanted one would hold.
    """
    if wanted and wanted != found:
        raise SaberError(
            f"SABER_{name.upper()}={found} in the environment overrides {name} {wanted}: unset it"
        )


def _changes(
    home: Home,
    corpus: list[Path] | None,
    queries: Path | None,
    ontology: Path | None,
    mapping: dict[str, str] | None,
    queries_mapping: dict[str, str] | None,
) -> dict[str, Any]:
    """The sections of ``saber.yaml`` as the options change them."""
    old = home.settings  # checks the file before its values are used
    values = read_yaml(home.settings_file)
    changes: dict[str, Any] = {}
    section = dict(values.get("corpus") or {})
    if corpus:
        files = [str(path.resolve()) for path in corpus]
        _refuse_other_corpus(home, files)
        known = {_resolved(entry["path"]): entry for entry in section.get("files") or ()}
        section["files"] = [_entry(known.get(file), file, mapping) for file in files]
    if queries:
        file = str(queries.resolve())
        before = _resolved(old.corpus.queries.path) if old.corpus.queries else None
        _refuse_if_pinned(home, "--queries", before, file)
        same = section.get("queries") if before == file else None
        section["queries"] = _entry(same, file, queries_mapping)
    if corpus or queries:
        changes["corpus"] = section
    if ontology:
        file = str(ontology.resolve())
        before = _resolved(old.ontology.file) if old.ontology.file else None
        _refuse_if_pinned(home, "--ontology", before, file)
        topics = dict(values.get("ontology") or {})
        if before and before != file:  # these describe the other file
            topics = {key: topics[key] for key in topics if key not in ("nodes", "format")}
        changes["ontology"] = {**topics, "file": file}
    return changes


def _resolved(path: str) -> str:
    return str(Path(path).resolve())


def _entry(known: Any, file: str, mapping: dict[str, str] | None) -> dict[str, Any]:
    """The entry of a file: what a person wrote into it, and the columns if they are given."""
    return {**(known or {}), "path": file, **({"mapping": dict(mapping)} if mapping else {})}


def _check_files(settings: Settings, sources: bool, ontology: bool) -> list[Fault]:
    """Read what a build would read; returns the warnings.

    Raises:
        InputError: with the faults of the sources and of the ontology together.
    """
    warnings: list[Fault] = []
    faults: list[Fault] = []
    try:
        if sources:
            warnings = read_sources(settings.corpus).warnings
    except InputError as error:
        faults += error.faults
    try:
        if ontology:
            _read_ontology(settings)
    except InputError as error:
        faults += error.faults
    except SaberError:
        if not faults:
            raise
    if faults:
        raise InputError(faults)
    return warnings


def _read_ontology(settings: Settings) -> None:
    own = settings.ontology
    assert own.file is not None
    nodes = Path(own.nodes) if own.nodes else None
    graph = read_ontology(Path(own.file), format=own.format, nodes=nodes)
    build_tree(graph, own.root_domains, settings.domains, own.max_depth)


def _refuse_if_pinned(home: Home, option: str, before: str | None, after: str) -> None:
    release = release_of(home.releases, home.settings)
    if release.complete and before != after:
        raise SaberError(
            f"{option}: release {release.name} of {home.root} was made"
            f" {'from ' + before if before else 'without it'}, and a release does not change. Set"
            " SABER_HOME to a new folder (copy ledger/ into it, and no call is paid twice), or change"
            " saber.yaml and make a new release with `saber release create NAME`"
        )


def _refuse_other_corpus(home: Home, files: list[str]) -> None:
    release = release_of(home.releases, home.settings)
    old = [_resolved(source.path) for source in home.settings.corpus.files]
    if release.complete and not set(old or [""]) <= set(files):
        was = ", ".join(old or home.settings.corpus.builtin)
        renamed = (
            f"; if a file was only renamed, change its path in {home.settings_file}" if old else ""
        )
        raise SaberError(
            f"release {release.name} of {home.root} was made from {was}. For another benchmark set"
            f" SABER_HOME to a new folder, as in SABER_HOME=.saber-mine saber build --corpus {files[0]};"
            f" to grow this one, name its old files too{renamed}"
        )
