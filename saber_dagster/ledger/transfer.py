"""Takes replies out of a ledger and into another. Both are folders of the same form.

An export is itself a ledger: put in the place of a home's, it lets anybody build the benchmark again in
replay mode.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from saber_dagster.hashing import sha256_hex
from saber_dagster.ledger.index import Index
from saber_dagster.ledger.journal import settling
from saber_dagster.ledger.ledger import Ledger, names_below, stage_files
from saber_dagster.ledger.rows import SCHEMA, LedgerError, slug
from saber_dagster.ledger.segments import (
    keys_of_rows,
    new_name,
    read_checked,
    read_segment,
    segment_files,
    segment_keys,
    write_segment,
)
from saber_dagster.ledger.texts import Archive, read_texts, write_pack
from saber_dagster.storage import AnyPath, files_below

_REFERENCE = r'\{"\$(?:list)?":"([0-9a-f]{64})"\}'
_PACKED_TEXTS = 20_000


@dataclass(frozen=True)
class Transfer:
    """How many replies, texts and prompts were written, and how many were there already."""

    replies: int
    texts: int
    prompts: int
    present: int = 0


def export(
    ledger: Ledger, target: AnyPath, stage: str | None = None, model: str | None = None
) -> Transfer:
    """Copy replies with everything that they refer to.

    Args:
        ledger: not changed, except that journals of dead processes become segments.
        target: a folder that is empty or not there.
        stage: only this one.
        model: only this one.

    Raises:
        LedgerError: if the target is not empty, nothing is there to export, or anything is damaged.
    """
    if next(iter(files_below(target, "")), None) is not None:
        raise LedgerError(f"{target} is not empty; name a new folder")
    ledger.recover()
    files = [
        path
        for path in stage_files(ledger.root, ledger.root)
        if (stage is None or names_below(path, ledger.root)[0] == slug(stage))
        and (model is None or names_below(path, ledger.root)[1] == slug(model))
    ]
    if not files:
        there = sorted(
            {
                "/".join(names_below(path, ledger.root)[:2])
                for path in stage_files(ledger.root, ledger.root)
            }
        )
        raise LedgerError(
            f"the ledger has no replies of stage {stage or 'any'} and model {model or 'any'}; it has"
            f" {', '.join(there) or 'none at all'}"
        )
    rows, texts, prompts = 0, set[str](), set[str]()
    for path in files:
        frame = _whole(path)
        rows += frame.height
        texts |= _references(frame)
        prompts |= set(frame["prompt_sha256"].unique())
    wanted = sorted(texts)
    for start in range(0, len(wanted), _PACKED_TEXTS):
        some = ledger.archive.read(wanted[start : start + _PACKED_TEXTS])
        write_pack(target / "texts" / new_name(".parquet"), some)
    kept = [text for sha in sorted(prompts) if (text := ledger.prompt_text(sha)) is not None]
    for text in kept:
        Archive(target).add_prompt(text)
    for path in files:  # last, so that no row of a half export lacks a text
        new = target.joinpath(*names_below(path, ledger.root))
        write_segment(new, _whole(path))
    return Transfer(rows, len(wanted), len(kept))


def import_from(ledger: Ledger, source: AnyPath) -> Transfer:
    """Add the replies to calls that this ledger has no final reply to. What is there stays as it is.

    Replies that the ledger has, and those that are not final, are left out. Doing it again, or going on
    after a kill, adds what is missing.

    Args:
        ledger: where to add.
        source: an export, the ledger folder of another home, or that home.

    Raises:
        LedgerError: before anything is written, if anything in the source is damaged or is no ledger.
    """
    if (source / "ledger").is_dir():
        source = source / "ledger"
    files = stage_files(source, source)
    if not files:
        raise LedgerError(f"{source} has no segments of a ledger in it; name an exported folder")
    ledger.recover()
    texts, prompts = _checked_archive(source)
    lacking: set[str] = set()
    for path in files:
        lacking |= _references(_whole(path)) - texts.keys()
    if absent := [sha for sha in sorted(lacking) if not ledger.archive.has(sha)]:
        raise LedgerError(
            f"{source} is not whole: {len(absent)} texts are missing, such as {absent[0]}. Export it"
            " again. Nothing was changed"
        )
    new_texts = sum(
        ledger.archive.add(dict(read_texts(path).iter_rows()))
        for path in dict.fromkeys(texts.values())
    )
    new_prompts = sum(ledger.archive.add_prompt(text) for text in prompts)
    added = total = 0
    for folder in dict.fromkeys(path.parent.parent for path in files):
        mine = [path for path in files if path.parent.parent == folder]
        here = ledger.root.joinpath(*names_below(folder, source))
        theirs, ours = Index(), Index()
        theirs.add((path, keys_of_rows(path, _whole(path))) for path in mine)
        present = segment_files(here)
        ours.add(zip(present, segment_keys(present), strict=True))
        for path in mine:
            frame = _whole(path).select(*SCHEMA)
            keys = frame["key"].to_list()
            canonical = [place == (path, row) for row, place in enumerate(theirs.find(keys))]
            missing = [place is None for place in ours.find(keys)]
            total += sum(canonical)
            chosen = frame.filter(pl.Series(canonical) & pl.Series(missing))
            if chosen.height:
                with settling(ledger.place.journals.joinpath(*names_below(folder, source))):
                    write_segment(here / path.parent.name / new_name(".parquet"), chosen)
                added += chosen.height
    return Transfer(added, new_texts, new_prompts, total - added)


def _whole(path: AnyPath) -> pl.DataFrame:
    """A segment that is as it was written, with the column ``segment`` if it was joined."""
    raw, frame = read_checked(path), read_segment(path)
    return frame.with_columns(raw["segment"]) if "segment" in raw.columns else frame


def _references(frame: pl.DataFrame) -> set[str]:
    found = pl.concat([frame["inputs"], frame["messages"]]).str.extract_all(_REFERENCE)
    inner = found.explode().drop_nulls().str.extract(_REFERENCE)
    return set(inner.unique())


def _checked_archive(source: AnyPath) -> tuple[Mapping[str, AnyPath], list[str]]:
    """Where each text of the source lies, and its prompts.

    Raises:
        LedgerError: if one is not what its name says.
    """
    texts: dict[str, AnyPath] = {}
    for path in segment_files(source / "texts"):
        texts |= dict.fromkeys(read_texts(path)["sha256"], path)
    prompts = []
    for path in files_below(source / "prompts", ".md"):
        data = path.read_bytes()
        if sha256_hex(data) != path.stem:
            raise LedgerError(f"{path} was changed. Nothing was changed here")
        prompts.append(data.decode())
    return texts, prompts
