"""Reads all of a ledger and names what is wrong. It changes nothing."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, get_args

import numpy as np
import polars as pl

from saber_dagster.engines import FINAL, Status
from saber_dagster.hashing import sha256_hex
from saber_dagster.ledger.journal import dead_journals, readable_line
from saber_dagster.ledger.ledger import Ledger, stage_files
from saber_dagster.ledger.rendering import Render, rendered, text_references
from saber_dagster.ledger.rows import SCHEMA, LedgerError
from saber_dagster.ledger.segments import (
    Keys,
    keys_beside,
    keys_of_rows,
    read_checked,
    read_segment,
)
from saber_dagster.ledger.texts import pack_keys_of, read_pack
from saber_dagster.storage import AnyPath, files_below

_RESTORE = "Restore it from a copy; or move it away, and its calls are paid again"


@dataclass(frozen=True, order=True)
class Finding:
    """Something that is wrong, or worth knowing if ``damage`` is false."""

    place: str
    problem: str
    remedy: str
    damage: bool = True

    def __str__(self) -> str:
        """``place: problem. Remedy``."""
        return f"{self.place}: {self.problem}. {self.remedy}"


@dataclass
class Verification:
    """What was read and what was found.

    Attributes:
        segments: files of replies.
        replies: rows in them.
        texts: texts in the archive.
        prompts: prompt files in the archive.
        keys_verified: rows whose messages were made again and gave their key.
        keys_unverifiable: rows of which something that the key depends on is not kept, by reason.
        findings: what is wrong, by place.
    """

    segments: int = 0
    replies: int = 0
    texts: int = 0
    prompts: int = 0
    keys_verified: int = 0
    keys_unverifiable: dict[str, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    @property
    def damaged(self) -> list[Finding]:
        """The findings that are damage."""
        return [finding for finding in self.findings if finding.damage]

    def as_json(self) -> dict[str, Any]:
        """The result as a JSON object."""
        return {**asdict(self), "damaged": len(self.damaged)}


def verify(ledger: Ledger, render: Render) -> Verification:
    """Read every file of a ledger.

    Args:
        ledger: need not be idle.
        render: makes messages by an archived prompt.
    """
    result = Verification()
    found = result.findings
    prompts = dict(_prompts(ledger, result))
    packs = _packs(ledger, result)
    answers: list[pl.DataFrame] = []
    seen: set[str] = set()
    for path in stage_files(ledger.root, ledger.root):
        frame, problems = _segment(path)
        found += problems
        result.segments += 1
        if frame is None:
            continue
        frame = frame.filter(~pl.col("segment").is_in(list(seen)))  # two files have it after a kill
        seen |= set(frame["segment"].unique())
        result.replies += frame.height
        found += _rows(path, frame, packs, prompts, render, result)
        answers.append(
            frame.filter(pl.col("status").is_in(list(FINAL))).select(
                "stage", "key", "segment", pl.col("text").hash().alias("answer")
            )
        )
    if answers:
        found += _duplicates(pl.concat(answers))
    found += _leftovers(ledger)
    found.sort()
    return result


def _segment(path: AnyPath) -> tuple[pl.DataFrame | None, list[Finding]]:
    try:
        read_checked(path)
        frame = read_segment(path, [*SCHEMA, "segment"])
        made = keys_of_rows(path, frame)
    except FileNotFoundError:  # joined with others meanwhile; its rows are in the new file
        return None, []
    except LedgerError as error:
        return None, [_damaged(path, error)]
    return frame, list(_beside(path, made))


def _damaged(path: AnyPath, error: LedgerError) -> Finding:
    """An error ``path problem; remedy`` as a finding."""
    problem, _, remedy = str(error).removeprefix(f"{path} ").rpartition("; ")
    return Finding(str(path), problem, remedy[:1].upper() + remedy[1:])


def _beside(path: AnyPath, made: Keys) -> Iterator[Finding]:
    """Whether the file of keys beside a Parquet file is the one that its rows give."""
    place, beside = path.with_suffix(".keys"), keys_beside(path)
    if beside is None:
        if place.exists():
            problem = "is damaged, or of an older version"
            yield Finding(str(place), problem, "The next step that needs it makes it again", False)
    elif not (
        beside.parts == made.parts
        and np.array_equal(beside.high, made.high)
        and np.array_equal(beside.low, made.low)
        and np.array_equal(beside.final, made.final)
    ):
        problem = "has other keys than the file that it belongs to"
        yield Finding(str(place), problem, "Remove this file alone")


def _rows(
    path: AnyPath,
    frame: pl.DataFrame,
    packs: dict[str, AnyPath],
    prompts: dict[str, str],
    render: Render,
    result: Verification,
) -> Iterator[Finding]:
    """Check rows one by one: their statuses, texts and keys."""
    wrong: dict[str, list[str]] = {}
    rows = frame.to_dicts()
    needed = {sha for row in rows for sha in text_references(row)}
    texts: dict[str, str] = {}
    for pack in {packs[sha] for sha in needed if sha in packs}:
        texts.update(read_pack(pack).filter(pl.col("sha256").is_in(list(needed))).iter_rows())
    for row in rows:
        if row["status"] not in get_args(Status):
            wrong.setdefault(f"have a status such as {row['status']!r}", []).append(row["key"])
        elif missing := [sha for sha in text_references(row) if sha not in texts]:
            problem = f"refer to texts that are missing, such as {missing[0]}"
            wrong.setdefault(problem, []).append(row["key"])
        else:
            made = rendered(row, texts, prompts.get(row["prompt_sha256"]), render)
            if made.verified:
                result.keys_verified += 1
            elif made.verified is None:
                unverifiable = result.keys_unverifiable
                unverifiable[made.problem] = unverifiable.get(made.problem, 0) + 1
            else:
                wrong.setdefault("have a key that their content does not give", []).append(
                    row["key"]
                )
    for problem, keys in wrong.items():
        yield Finding(str(path), f"{len(keys)} rows {problem} (key {keys[0][:12]} …)", _RESTORE)


def _prompts(ledger: Ledger, result: Verification) -> Iterator[tuple[str, str]]:
    for path in files_below(ledger.root / "prompts", ".md"):
        result.prompts += 1
        data = path.read_bytes()
        if sha256_hex(data) == path.stem:
            yield path.stem, data.decode()
        else:
            result.findings.append(
                Finding(str(path), "has another SHA-256 than its name", _RESTORE)
            )


def _packs(ledger: Ledger, result: Verification) -> dict[str, AnyPath]:
    """Check the packs of texts; returns where each text lies that is as it should be."""
    good: dict[str, AnyPath] = {}
    for path in files_below(ledger.archive.packs, ".parquet"):
        try:
            pack = read_pack(path)
        except FileNotFoundError:
            continue
        except LedgerError as error:
            result.findings.append(_damaged(path, error))
            continue
        bad = 0
        for sha, content in pack.iter_rows():
            if sha256_hex(content) == sha:
                good[sha] = path
            else:
                bad += 1
        result.findings += _beside(path, pack_keys_of(path, pack))
        if bad:
            problem = f"{bad} of {pack.height} texts have another SHA-256 than their name"
            result.findings.append(Finding(str(path), problem, _RESTORE))
    result.texts = len(good)
    return good


def _duplicates(answers: pl.DataFrame) -> Iterable[Finding]:
    several = answers.group_by("stage", "key").agg(
        pl.col("answer").n_unique().alias("answers"), pl.len().alias("replies")
    )
    several = several.filter(pl.col("answers") > 1)
    for stage, rows in several.sort("key").group_by("stage", maintain_order=True):
        yield Finding(
            str(stage[0]),
            f"{rows.height} calls were paid more than once and got different replies (key"
            f" {rows['key'][0][:12]} …)",
            "The one in the oldest segment counts everywhere; nothing is to be done",
            damage=False,
        )


def _leftovers(ledger: Ledger) -> Iterator[Finding]:
    folder = ledger.place.journals
    for path, lines in dead_journals(folder):
        readable = sum(readable_line(line) is not None for line in lines)
        yield Finding(
            str(path),
            f"is the journal of a step that was killed ({readable} of {len(lines)} lines readable)",
            "The next step or `saber ledger stats` makes a segment of it",
        )
    for damaged in files_below(folder, ".damaged"):
        yield Finding(
            str(damaged),
            "has lines of a journal that this version could not read",
            "Look at it, then remove it",
        )
    roots = {folder, ledger.root}
    for root in [root for root in roots if isinstance(root, Path)]:
        for part in (*root.rglob(".*.part"), *root.rglob("*.new")):
            problem = "is what a kill left of a file"
            yield Finding(str(part), problem, "Remove it once no step runs", damage=False)
