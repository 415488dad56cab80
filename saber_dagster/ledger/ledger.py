"""The ledger as a whole: sessions for steps, and what is in it for readers."""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from saber_dagster.engines import FINAL, Call, Engine
from saber_dagster.ledger.budget import Budget
from saber_dagster.ledger.journal import Place, recover
from saber_dagster.ledger.rows import FOLDERS, SCHEMA, LedgerError, Mode, slug
from saber_dagster.ledger.segments import read_segment, retried, segment_files, segment_keys
from saber_dagster.ledger.session import Session
from saber_dagster.ledger.store import Store
from saber_dagster.ledger.texts import Archive
from saber_dagster.storage import AnyPath

SHORTEST_PREFIX = 6
_NO_BUDGET = Budget()


class Ledger:
    """All replies of a home.

    Args:
        root: folder or ``s3://`` path of segments, texts and prompts.
        journals: local folder of the journals; by default the root, which must then be local.
    """

    def __init__(self, root: AnyPath, journals: Path | None = None) -> None:
        self.root = root
        if journals is None:
            if not isinstance(root, Path):
                raise LedgerError(f"{root} is not local; name a local folder for its journals")
            journals = root
        self.place = Place(root, journals)
        self.archive = Archive(root)

    def session(
        self,
        engine: Engine,
        stage: str,
        partition: str,
        run_id: str = "",
        mode: Mode = "live",
        budget: Budget = _NO_BUDGET,
        reasks: int = 0,
        log: Callable[[str], None] | None = None,
    ) -> Session:
        """Open the ledger for one step; use it in a ``with`` block.

        Args:
            engine: answers what the ledger has no reply to.
            stage: the asset that asks; replies are shared within a stage.
            partition: of the asset; names a folder.
            run_id: Dagster's, for the rows.
            mode: see :data:`Mode`. The end of a dry run raises :class:`DryRun` if calls were missing.
            budget: what may be spent.
            reasks: how often a call is asked again whose reply does not parse.
            log: gets a line every 30 seconds and at the end.
        """
        store = Store(self.place, stage, engine.model, partition)
        return Session(store, engine, stage, partition, run_id, mode, budget, reasks, log)

    def recover(self) -> int:
        """Make segments of the journals of dead processes; returns the number of replies saved."""
        return recover(self.place, self.archive)

    def frame(self, stage: str | None = None, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """Every stored reply in canonical order.

        Journals of running steps are not part of it.

        Args:
            stage: only this one.
            columns: of :class:`Row`, all by default. Texts are most of a ledger's size, so name what
                you need.

        Returns:
            The columns, and ``partition`` (the folder of the reply), ``segment`` (where it was stored
            first) and ``canonical`` (it is the first final one of its stage and key).
        """
        self.recover()
        folder = self.root / slug(stage) if stage else self.root
        return retried(lambda: _frame(stage_files(folder, self.root), columns))

    def paid(self, stage: str, run_ids: Collection[str]) -> tuple[int, float]:
        """How many replies some runs stored at a stage, and what they cost in US dollars."""
        self.recover()

        def rows() -> pl.DataFrame:
            columns = ["run_id", "price", "segment"]
            frames = [
                pl.DataFrame(schema={name: SCHEMA.get(name, pl.String()) for name in columns})
            ]
            seen: set[str] = set()
            for path in stage_files(self.root / slug(stage), self.root):
                frame = read_segment(path, columns)
                new = ~pl.col("segment").is_in(list(seen))  # two files have it after a kill
                frames.append(frame.filter(new & pl.col("run_id").is_in(list(run_ids))))
                seen |= set(frame["segment"].unique())
            return pl.concat(frames)

        found = retried(rows)
        return found.height, float(found["price"].sum())

    def lookup(self, key_prefix: str) -> list[dict[str, Any]]:
        """Every stored reply whose key begins so, as dictionaries of the columns of :meth:`frame`.

        Raises:
            LedgerError: if the prefix is shorter than six digits or not hexadecimal.
        """
        prefix = key_prefix.lower()
        if len(prefix) < SHORTEST_PREFIX or prefix.strip("0123456789abcdef") or len(prefix) > 64:
            raise LedgerError(
                f"{key_prefix!r} is no key: give at least {SHORTEST_PREFIX} hexadecimal digits of it"
            )
        self.recover()
        frame = retried(lambda: _frame(self._files_with(prefix)))
        return frame.filter(pl.col("key").str.starts_with(prefix)).to_dicts()

    def _files_with(self, prefix: str) -> list[AnyPath]:
        """The segments that hold keys with this prefix, going by its first 16 digits."""
        digits = prefix[:16]
        shift = np.uint64(64 - 4 * len(digits))
        paths = stage_files(self.root, self.root)
        return [
            path
            for path, keys in zip(paths, segment_keys(paths), strict=True)
            if np.any(keys.high >> shift == np.uint64(int(digits, 16)))
        ]

    def call_of(self, row: Mapping[str, Any]) -> Call:
        """The call that a row answers, with its inputs restored (lists in the place of tuples).

        Raises:
            LedgerError: if a text is missing, or the row was stored by version 0.1, without inputs.
        """
        if not row["inputs"]:
            raise LedgerError(
                f"the reply {row['key'][:12]} was stored without its inputs, by version 0.1"
            )
        inputs = self.archive.restore(row["inputs"])
        return Call(row["task"], inputs, row["item"], row["sample"], row["attempt"])

    def prompt_text(self, sha256: str) -> str | None:
        """The prompt file of this digest, if an engine had one; see ``Row.prompt_sha256``."""
        return self.archive.prompt_text(sha256)


def names_below(path: AnyPath, root: AnyPath) -> tuple[str, ...]:
    """The names of the folders and of the file that lead from a root to a path."""
    return tuple(str(path).removeprefix(str(root)).strip("/").split("/"))


def stage_files(folder: AnyPath, root: AnyPath) -> list[AnyPath]:
    """The segments in a folder of a ledger, the oldest first; packs of texts are none."""
    return [path for path in segment_files(folder) if names_below(path, root)[0] not in FOLDERS]


def _frame(paths: Sequence[AnyPath], columns: Sequence[str] | None = None) -> pl.DataFrame:
    """The rows of segment files; those of a segment that lies in two files once."""
    wanted = list(SCHEMA if columns is None else columns)
    needed = list(dict.fromkeys([*wanted, "stage", "key", "status", "segment"]))
    schema = {name: SCHEMA.get(name, pl.String()) for name in (*needed, "partition")}
    frames = [pl.DataFrame(schema=schema)]
    seen: set[str] = set()
    for path in paths:
        frame = read_segment(path, needed)
        names = set(frame["segment"].unique())
        if again := names & seen:
            frame = frame.filter(~pl.col("segment").is_in(list(again)))
        seen |= names
        frames.append(frame.with_columns(pl.lit(path.parent.name).alias("partition")))
    final = pl.col("status").is_in(list(FINAL))
    first = pl.struct("stage", "key", final.alias("final")).is_first_distinct()
    return (
        pl.concat(frames)
        .sort("segment", maintain_order=True)
        .with_columns((final & first).alias("canonical"))
        .select(list(dict.fromkeys([*wanted, "partition", "segment", "canonical"])))
    )
