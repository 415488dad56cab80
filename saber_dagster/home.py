"""A home: the one folder under which all state of a build lies.

::

    saber.yaml, judges.yaml, retrievers.yaml    settings, edited by people
    home.json        what a home cannot change: preset and shard counts
    tables/          one Parquet file per asset and partition
    releases/NAME/   pinned tables of a release
    ledger/          every reply of an engine
    dagster/         Dagster's own runs and events (DAGSTER_HOME)

A home may lie in a bucket. What needs a local disk then lies in a folder of this machine, ``state``:
``dagster/``, ``journals/`` of replies that no segment of the ledger holds yet, and the lock of a build.
"""

import json
import os
import re
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from saber_dagster.errors import SaberError
from saber_dagster.hashing import digest
from saber_dagster.settings import Judge, RetrieverEntry, Settings
from saber_dagster.settings_files import (
    load_judges,
    load_retrievers,
    load_settings,
    settings_from,
)
from saber_dagster.storage import AnyPath, is_local, storage_path, write_atomic
from saber_dagster.yaml_files import changed_yaml, read_yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

DEFAULT_HOME = ".saber"
DEFAULT_STATE = ".saber-state"


def home_path() -> AnyPath:
    """``SABER_HOME``, a folder or ``s3://bucket/prefix``; default: ``.saber`` in the current folder.

    Raises:
        SaberError: see :func:`saber_dagster.storage.storage_path`.
    """
    return storage_path(os.environ.get("SABER_HOME") or DEFAULT_HOME)


@dataclass(frozen=True)
class Home:
    """The paths and settings of a home; reading it changes nothing on disk."""

    root: AnyPath

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
    def settings_file(self) -> AnyPath:
        """``saber.yaml``."""
        return self.root / "saber.yaml"

    @property
    def tables(self) -> AnyPath:
        """Folder of the tables."""
        return self.root / "tables"

    @property
    def indexes(self) -> AnyPath:
        """Folder of the problem indexes that stored signals refer to."""
        return self.root / "indexes"

    @property
    def releases(self) -> AnyPath:
        """Folder of the releases."""
        return self.root / "releases"

    @property
    def ledger(self) -> AnyPath:
        """Folder of the call ledger."""
        return self.root / "ledger"

    @property
    def state(self) -> Path:
        """The local folder of this home: its root, if that is one.

        For a home in a bucket ``SABER_STATE``, or a folder of its own in ``.saber-state``.
        """
        if isinstance(self.root, Path):
            return self.root
        if own := os.environ.get("SABER_STATE"):
            return Path(own).resolve()
        where = str(self.root).rstrip("/")
        name = re.sub(r"[^a-z0-9]+", "-", where.removeprefix("s3://").lower())
        endpoint = os.environ.get("AWS_ENDPOINT_URL", "").rpartition("@")[2]
        return Path(DEFAULT_STATE, f"{name}-{digest([endpoint, where])[:8]}").resolve()

    @property
    def journals(self) -> Path:
        """Where replies lie until a segment of the ledger holds them: the ledger, if it is local."""
        return self.root / "ledger" if isinstance(self.root, Path) else self.state / "journals"

    @property
    def dagster(self) -> Path:
        """Dagster's instance folder."""
        return self.state / "dagster"

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

    def claim_state(self) -> None:
        """Make the local folder of a home in a bucket its own: journals of two must not mix.

        Raises:
            SaberError: if it is that of another home.
        """
        if is_local(self.root):
            return
        record = self.state / "home.txt"
        owner = record.read_text(encoding="utf-8").strip() if record.exists() else ""
        if not owner:
            write_atomic(record, f"{self.root}\n".encode())
        elif owner != str(self.root):
            raise SaberError(
                f"{self.state} is the local folder of {owner}; set SABER_STATE to a folder of its own"
            )

    @contextmanager
    def locked(self) -> "Iterator[None]":
        """Hold the home for one build on this machine.

        Raises:
            SaberError: if another build holds it.
        """
        import fcntl

        self.claim_state()
        self.state.mkdir(parents=True, exist_ok=True)
        with (self.state / "build.lock").open("w") as file:
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
