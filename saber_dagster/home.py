"""A home: the one folder under which all state of a build lies.

::

    saber.yaml, judges.yaml, retrievers.yaml    settings, edited by people
    home.json        what a home cannot change: preset and shard counts
    tables/          one Parquet file per asset and partition
    releases/NAME/   pinned tables of a release
    ledger/          every reply of an engine
    dagster/         Dagster's own runs and events (DAGSTER_HOME)
"""

import json
import os
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from saber_dagster.errors import SaberError
from saber_dagster.settings import Judge, RetrieverEntry, Settings
from saber_dagster.settings_files import (
    load_judges,
    load_retrievers,
    load_settings,
    settings_from,
)
from saber_dagster.storage import write_atomic
from saber_dagster.yaml_files import changed_yaml, read_yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

DEFAULT_HOME = ".saber"


def home_path() -> Path:
    """``SABER_HOME``, or ``.saber`` in the current folder, as an absolute path."""
    return Path(os.environ.get("SABER_HOME") or DEFAULT_HOME).resolve()


@dataclass(frozen=True)
class Home:
    """The paths and settings of a home; reading it changes nothing on disk."""

    root: Path

    @cached_property
    def settings(self) -> Settings:
        """The settings as they stand in ``saber.yaml`` and the environment."""
        return load_settings(self.settings_file)

    @cached_property
    def judges(self) -> tuple[Judge, ...]:
        """The judges' registry."""
        return load_judges(self.root / "judges.yaml")

    @cached_property
    def retrievers(self) -> tuple[RetrieverEntry, ...]:
        """The retrievers' registry."""
        return load_retrievers(self.root / "retrievers.yaml")

    @property
    def settings_file(self) -> Path:
        """``saber.yaml``."""
        return self.root / "saber.yaml"

    @property
    def tables(self) -> Path:
        """Folder of the tables."""
        return self.root / "tables"

    @property
    def releases(self) -> Path:
        """Folder of the releases."""
        return self.root / "releases"

    @property
    def ledger(self) -> Path:
        """Folder of the call ledger."""
        return self.root / "ledger"

    @property
    def dagster(self) -> Path:
        """Dagster's instance folder."""
        return self.root / "dagster"

    def settings_with(self, changes: dict[str, Any]) -> Settings:
        """The settings after a change of top-level keys of ``saber.yaml``; nothing is written.

        Raises:
            SettingsError: if the result is not valid.
        """
        return settings_from({**read_yaml(self.settings_file), **changes}, str(self.settings_file))

    def change_settings(self, changes: dict[str, Any]) -> "Home":
        """Write changed top-level keys of ``saber.yaml`` and return the home read anew.

        Comments and everything else in the file stay.

        Raises:
            SettingsError: before anything is written, if the result is not valid.
        """
        self.settings_with(changes)
        text = changed_yaml(self.settings_file, changes)
        write_atomic(self.settings_file, text.encode())
        return Home(self.root)

    def mismatch(self, settings: Settings) -> str:
        """What keeps this home from being built with these settings; empty if nothing does.

        Raises:
            SaberError: if the record of what the home was made with is damaged.
        """
        record = self.root / "home.json"
        try:
            then = json.loads(record.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return ""
        except ValueError as error:
            then = str(error)
        if not isinstance(then, dict):
            raise SaberError(
                f"{record} is damaged; restore it from a copy, or remove it if preset, domains and"
                " partitions in saber.yaml are those that the home was made with"
            )
        now = _cut(settings)
        changed = [
            f"{key} {then.get(key)!r} → {now[key]!r}" for key in now if then.get(key) != now[key]
        ]
        if not changed:
            return ""
        return (
            f"{self.root} was made with other settings: {'; '.join(changed)}. Tables that were cut"
            " one way cannot be read another. Restore the value in saber.yaml, or set SABER_HOME"
            " to a new folder (copy ledger/ into it, and no call is paid twice)"
        )

    def found(self) -> None:
        """Record what this home was made with, or check that it still is.

        Raises:
            SaberError: if preset or shard counts differ from those the tables were cut with.
        """
        if problem := self.mismatch(self.settings):
            raise SaberError(problem)
        record = self.root / "home.json"
        if not record.exists():
            text = json.dumps(_cut(self.settings), indent=2) + "\n"
            write_atomic(record, text.encode())

    @contextmanager
    def locked(self) -> "Iterator[None]":
        """Hold the home for one build.

        Raises:
            SaberError: if another build holds it.
        """
        import fcntl

        self.root.mkdir(parents=True, exist_ok=True)
        with (self.root / "build.lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise SaberError(
                    f"another `saber build` is at work in {self.root}; wait for it, or set SABER_HOME"
                ) from None
            yield


def _cut(settings: Settings) -> dict[str, Any]:
    """The settings by which tables are cut."""
    return {
        "preset": settings.preset,
        "corpus_shards": settings.partitions.corpus_shards,
        "query_shards": settings.partitions.query_shards,
        "domains": list(settings.domains),
    }
