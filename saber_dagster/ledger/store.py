"""The stored replies of one model at one stage, and the journal of the step that adds to them."""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

import polars as pl

from saber_dagster.hashing import sha256_hex
from saber_dagster.ledger.index import Index
from saber_dagster.ledger.journal import Journal, Place, recover, settling
from saber_dagster.ledger.rows import FOLDERS, LedgerError, Row, slug
from saber_dagster.ledger.segments import (
    Keys,
    read_segment,
    retried,
    segment_files,
    segment_keys,
)
from saber_dagster.ledger.texts import Archive
from saber_dagster.storage import AnyPath, is_local

SEGMENT_ROWS = 5_000
"""A journal becomes a segment after this many replies: more would take more memory while it does."""
REMOTE_SEGMENT_ROWS = 1_000
"""The same where segments lie in an object store: a lost machine loses at most one reply less."""
_RECENT = 20
"""Segments from which a dry run takes the length of replies."""
_TEXTS_IN_MIND = 4096
Completions = Mapping[tuple[str, str], tuple[int, float]]
"""(Task, parameters as canonical JSON) → number and mean length, in tokens, of earlier replies."""
_SAID = ["key", "status", "text", "error", "truncated_input"]


class Said(NamedTuple):
    """What a reply said, as far as a replay needs it."""

    status: str
    text: str
    error: str
    truncated_input: bool


class Store:
    """Finds replies by key and keeps new ones. Texts stay on disk until they are asked for."""

    def __init__(self, place: Place, stage: str, model: str, partition: str) -> None:
        if slug(stage) in FOLDERS:
            raise LedgerError(
                f"a stage cannot be called {stage!r}; the ledger has a folder so named"
            )
        self.archive = Archive(place.root)
        self._folder = place / slug(stage) / slug(model)
        self._partition = self._folder / slug(partition)
        self._full = SEGMENT_ROWS if is_local(place.root) else REMOTE_SEGMENT_ROWS
        self._index = Index()
        self._journal: Journal | None = None
        self._fresh: dict[str, int] = {}
        """Key → place in the journal, of replies that are in no segment yet."""
        self._own: list[Keys] = []
        self._known: set[str] = set()
        """Segments that were there when the step began, and its own."""
        self.overruled: list[str] = []
        """Items of own replies to whose calls others stored another reply, which counts."""
        self._whole: set[AnyPath] = set()
        """Segments whose SHA-256 was compared."""
        self.keep: Callable[[str], str] = lru_cache(_TEXTS_IN_MIND)(self._keep)
        """Archives a text and returns its SHA-256."""

    @property
    def state(self) -> AnyPath:
        """Where an engine may keep a state of its own."""
        return self._partition.root / "state"

    def open(self) -> None:
        """Recover what killed steps left and find out what there is."""
        recover(self._folder, self.archive)
        self._index = self._read_index()
        self._known = set(self._index.parts)

    def known(self, keys: Iterable[str]) -> set[str]:
        """Which keys have a final reply."""
        wanted = list(keys)
        places = self._index.find(wanted)
        return {
            key
            for key, place in zip(wanted, places, strict=True)
            if place is not None or key in self._fresh
        }

    def read(self, keys: Iterable[str]) -> dict[str, Said]:
        """The canonical replies of known keys."""
        wanted = list(keys)
        try:
            return self._read(wanted)
        except FileNotFoundError:  # segments were joined meanwhile
            self._index = self._read_index()
            return self._read(wanted)

    def add(self, row: Row) -> None:
        """Keep a reply."""
        place = self._open_journal().append(row)
        if row.final:
            self._fresh.setdefault(row.key, place)
        if self._open_journal().rows >= self._full:
            self.flush()

    def flush(self) -> None:
        """Make a segment of the journal."""
        if self._journal is None:
            return
        with settling(self._folder.journals):
            try:
                self._compare(self._journal)
            finally:
                made = self._journal.close()
                self._journal = None
                self._fresh = {}
        if made:
            self._index.add([made])
            self._own.append(made[1])
            self._known.add(made[0].name)

    def duplicates(self) -> int:
        """How many of this step's replies others paid, too, since it began."""
        if not self._own:
            return 0
        others = Index(skip=self._known)
        _fill(others, self._folder.root)
        return sum(others.count(keys) for keys in self._own)

    def completions(self) -> Completions:
        """Number and mean length, in tokens, of the newest complete replies, by task and parameters."""
        paths = segment_files(self._folder.root)[-_RECENT:]
        columns = ["status", "task", "params", "completion_tokens"]
        frames = [read_segment(path, columns).filter(status="ok") for path in paths]
        if not frames:
            return {}
        tokens = pl.col("completion_tokens")
        groups = pl.concat(frames).group_by("task", "params").agg(pl.len(), tokens.mean())
        return {(task, params): (replies, mean) for task, params, replies, mean in groups.rows()}

    def _compare(self, journal: Journal) -> None:
        """Look what others stored meanwhile to the calls of the journal: it counts."""
        if not self._fresh:
            return
        _fill(self._index, self._folder.root)
        places = zip(self._fresh, self._index.find(list(self._fresh)), strict=True)
        for key, theirs in self.read(key for key, place in places if place is not None).items():
            own = journal.read(self._fresh[key])
            if (own.status, own.text) != (theirs.status, theirs.text):
                self.overruled.append(own.item)

    def _keep(self, text: str) -> str:
        sha = sha256_hex(text)
        if not self.archive.has(sha):
            self._open_journal().note(sha, text)
        return sha

    def _open_journal(self) -> Journal:
        if self._journal is None:
            self._journal = Journal(self._partition, self.archive)
        return self._journal

    def _read_index(self) -> Index:
        index = Index()
        _fill(index, self._folder.root)
        return index

    def _read(self, keys: list[str]) -> dict[str, Said]:
        said: dict[str, Said] = {}
        by_file: dict[AnyPath, list[int]] = {}
        for key, place in zip(keys, self._index.find(keys), strict=True):
            if place is not None:
                by_file.setdefault(place[0], []).append(place[1])
            elif key in self._fresh:
                row = self._open_journal().read(self._fresh[key])
                said[key] = Said(row.status, row.text, row.error, row.truncated_input)
        for path, rows in by_file.items():
            segment = read_segment(path, _SAID, check=path not in self._whole)
            self._whole.add(path)
            for key, *rest in segment[[n for n in rows if n < segment.height]].iter_rows():
                said[key] = Said(*rest)
        if lacking := [key for key in keys if key not in said]:
            raise LedgerError(
                f"the keys beside a segment in {self._folder.root} are not those in it (key"
                f" {lacking[0][:12]}); run `saber ledger verify`"
            )
        return said


def _fill(index: Index, folder: AnyPath) -> None:
    """Index the segments of a folder; list them again if some are joined meanwhile."""

    def read() -> list[tuple[AnyPath, Keys]]:
        paths = [path for path in segment_files(folder) if path.name not in index.parts]
        return list(zip(paths, segment_keys(paths), strict=True))

    index.add(retried(read))
