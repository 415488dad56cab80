"""Releases: what paid lanes read, pinned under a name.

A release keeps topic statistics, thresholds, query set, candidate sets and all texts, as they were when
it was made. While the settings name a complete release, the assets of these tables hand out what is
pinned instead of computing it, so that growth of the corpus moves nothing that was judged.
"""

import io
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from saber_dagster.contracts import TABLES
from saber_dagster.errors import SaberError
from saber_dagster.settings import Settings
from saber_dagster.storage import AnyPath, is_local, read_many, write_atomic

PINNED = ("topic_statistics", "thresholds", "query_set", "candidate_sets", "release_texts")
"""The tables of a release."""

PINNED_ASSETS = {("release" if name == "release_texts" else name,) for name in PINNED}
"""The assets that hand out a complete release: what lies upstream of them does not matter then."""

SETTINGS_READ = (
    "seed",
    "domains",
    "signals",
    "thresholds",
    "candidates",
    "queries",
    "summaries.min_words",
)
"""The settings that decide a release; with others it would not be the same release."""

_MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Growth:
    """What a release shares with the one before it."""

    before: str
    after: str
    queries_before: int
    queries_after: int
    queries_kept: int
    pairs_before: int
    pairs_after: int
    pairs_kept: int


@dataclass(frozen=True)
class Release:
    """A release by name, complete or not yet made."""

    folder: AnyPath

    @property
    def name(self) -> str:
        """Its name."""
        return self.folder.name

    @property
    def complete(self) -> bool:
        """Whether it is pinned: its manifest comes last."""
        return (self.folder / _MANIFEST).exists()

    def manifest(self) -> dict[str, Any]:
        """Name, settings, data versions and row counts."""
        value: dict[str, Any] = json.loads((self.folder / _MANIFEST).read_text(encoding="utf-8"))
        return value

    def read(self, table: str) -> pl.DataFrame:
        """A pinned table.

        Raises:
            SaberError: if its file is missing or damaged.
        """
        path = self.folder / f"{table}.parquet"
        (data,) = read_many([path])
        if data is None:
            raise SaberError(f"{path} is missing; restore it from a copy")
        try:
            frame = pl.read_parquet(io.BytesIO(data), hive_partitioning=False)
        except (pl.exceptions.PolarsError, OSError) as error:
            raise SaberError(f"{path} is damaged ({error}); restore it from a copy") from None
        return TABLES[table].check(frame, f"release {self.name}")

    def check_settings(self, settings: Settings) -> None:
        """Check that the settings still are those that the release was made with.

        Raises:
            SaberError: naming what changed; a pinned release would ignore the change.
        """
        # a setting that there was not yet had the effect of its default
        then = {**_settings_of(Settings(preset=settings.preset)), **self.manifest()["settings"]}
        now = _settings_of(settings)
        changed = [
            f"{key} {then.get(key)!r} → {now[key]!r}" for key in now if then.get(key) != now[key]
        ]
        if changed:
            raise SaberError(
                f"release {self.name} was made with other settings: {'; '.join(changed)}. A release does"
                f" not change: make a new one with `saber release create NAME`, or restore the setting"
            )

    def pin(self, frames: Mapping[str, pl.DataFrame], settings: Settings) -> None:
        """Make the release, all of it or nothing.

        A folder becomes one in a rename. In a bucket, which has none, a release is what its manifest
        says, written last: tables without one are what a killed build left, and are written anew.

        Raises:
            SaberError: if its folder is there already, or it refers to a document without a text.
        """
        local = is_local(self.folder)
        if self.folder.exists() if local else self.complete:
            raise SaberError(
                f"{self.folder} is there already, and a release does not change: take another name, or"
                " remove the folder if it is not a release"
            )
        checked = {
            name: TABLES[name].check(frames[name], f"release {self.name}") for name in PINNED
        }
        queries = set(checked["query_set"]["query_id"])
        if queries != set(checked["candidate_sets"]["query_id"]):
            raise SaberError(
                f"release {self.name}: query_set and candidate_sets are not of the same queries;"
                " `saber build` brings them up to date"
            )
        used = {*queries, *checked["candidate_sets"]["doc_id"]}
        lost = sorted(used - set(checked["release_texts"]["doc_id"]))
        if lost:
            raise SaberError(
                f"release {self.name} refers to {len(lost)} document(s) that the corpus no longer has,"
                f" such as {lost[0]}: make a new one with `saber release create NAME`"
            )
        part = self.folder.with_name(f".{self.name}.part") if local else self.folder
        if isinstance(part, Path):
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(parents=True)
        versions = {}
        for name, frame in checked.items():
            buffer = io.BytesIO()
            frame.write_parquet(buffer)
            (part / f"{name}.parquet").write_bytes(buffer.getvalue())
            versions[name] = {"rows": frame.height, "data_version": TABLES[name].version(frame)}
        manifest = {"name": self.name, "settings": _settings_of(settings), "tables": versions}
        write_atomic(part / _MANIFEST, (json.dumps(manifest, indent=2) + "\n").encode())
        if isinstance(part, Path) and isinstance(self.folder, Path):
            part.rename(self.folder)


def release_of(releases: AnyPath, settings: Settings) -> Release:
    """The release that the settings name."""
    return Release(releases / settings.release)


def list_releases(releases: AnyPath) -> list[Release]:
    """Every complete release, by name."""
    if not releases.exists():
        return []
    found = [Release(folder) for folder in releases.iterdir() if not folder.name.startswith(".")]
    return sorted((r for r in found if r.complete), key=lambda release: release.name)


def growth(before: Release, after: Release) -> Growth:
    """How many queries and judged pairs (query, document) a release keeps of another."""
    queries = [set(release.read("query_set")["query_id"]) for release in (before, after)]
    pairs = [
        set(release.read("candidate_sets").select("query_id", "doc_id").iter_rows())
        for release in (before, after)
    ]
    return Growth(
        before=before.name,
        after=after.name,
        queries_before=len(queries[0]),
        queries_after=len(queries[1]),
        queries_kept=len(queries[0] & queries[1]),
        pairs_before=len(pairs[0]),
        pairs_after=len(pairs[1]),
        pairs_kept=len(pairs[0] & pairs[1]),
    )


def _settings_of(settings: Settings) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for path in SETTINGS_READ:
        value = settings.value_of(path)
        if isinstance(value, dict):
            flat.update({f"{path}.{key}": item for key, item in value.items()})
        else:
            flat[path] = value
    return flat
