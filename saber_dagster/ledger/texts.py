"""The archive of texts: what calls were made of, each text once, named by its SHA-256.

Texts longer than 64 characters, and long lists of short ones, do not stand in the rows of the ledger
but in packs, immutable Parquet files under ``<root>/texts/``; prompt files lie under
``<root>/prompts/``. With both, the messages of any row can be rendered again.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from json.encoder import encode_basestring
from typing import Any

import polars as pl

from saber_dagster.hashing import sha256_hex
from saber_dagster.ledger.index import Index
from saber_dagster.ledger.rows import LedgerError
from saber_dagster.ledger.segments import (
    Keys,
    key_halves,
    new_name,
    parquet_bytes,
    read_checked,
    read_keys,
    segment_files,
    write_keys,
)
from saber_dagster.storage import AnyPath, write_atomic

SHORT = 64
"""Texts of up to so many characters stand in the row itself."""
SHORT_LIST = 256
"""Lists of such texts do if they take no more characters than this, as JSON."""
PACK_SCHEMA = {"sha256": pl.String(), "content": pl.String()}


def packed(value: Any, keep: Callable[[str], str]) -> str:
    """A JSON value as canonical JSON whose long parts are replaced by references.

    A long text is ``{"$": sha256}``. A long list without one, such as the topics that many problems are
    scored against, is ``{"$list": sha256}`` of its JSON, which has no references.

    It is written out here, as every reply that is stored waits for it.

    Args:
        value: any JSON value. A name that begins with ``$`` gets a second one.
        keep: stores a text and returns its SHA-256.

    Raises:
        TypeError, ValueError: if the value is none of JSON.
    """
    return _written(value, keep, whole=False)


def _written(value: Any, keep: Callable[[str], str], whole: bool) -> str:
    """The same; ``whole``: within a list that has no long text, and stands for itself as a whole."""
    if isinstance(value, str):
        return encode_basestring(value) if len(value) <= SHORT else f'{{"$":"{keep(value)}"}}'
    if isinstance(value, dict | Mapping):
        items = ",".join(
            f"{encode_basestring('$' + name if name[:1] == '$' else name)}:"
            f"{_written(value[name], keep, whole)}"
            for name in sorted(value)
        )
        return f"{{{items}}}"
    if isinstance(value, list | tuple):
        short = whole or not _has_long_text(value)
        text = f"[{','.join([_written(inner, keep, short) for inner in value])}]"
        stays = whole or not short or len(text) <= SHORT_LIST
        return text if stays else f'{{"$list":"{keep(text)}"}}'
    return json.dumps(value, allow_nan=False)


def _has_long_text(value: Any) -> bool:
    """Whether a text in a JSON value stands for itself."""
    if isinstance(value, str):
        return len(value) > SHORT
    if isinstance(value, dict | Mapping):
        value = list(value.values())
    return isinstance(value, list | tuple) and any(map(_has_long_text, value))


def unpacked(value: Any, texts: Mapping[str, str]) -> Any:
    """The value that was packed, from its decoded JSON."""
    if isinstance(value, dict):
        if list(value) == ["$"]:
            return texts[value["$"]]
        if list(value) == ["$list"]:
            return unpacked(json.loads(texts[value["$list"]]), {})
        return {name.removeprefix("$"): unpacked(inner, texts) for name, inner in value.items()}
    return [unpacked(inner, texts) for inner in value] if isinstance(value, list) else value


def references(value: Any) -> list[str]:
    """The SHA-256 of every text that a packed value refers to."""
    if isinstance(value, dict):
        if list(value) in (["$"], ["$list"]):
            return list(value.values())
        value = list(value.values())
    return [sha for inner in value for sha in references(inner)] if isinstance(value, list) else []


def read_pack(path: AnyPath) -> pl.DataFrame:
    """A pack of texts.

    Raises:
        LedgerError: if it is damaged.
    """
    frame = read_checked(path)
    if frame.schema != PACK_SCHEMA:
        raise LedgerError(f"{path} is no pack of texts; move it away")
    return frame


def read_texts(path: AnyPath) -> pl.DataFrame:
    """A pack of texts, each of which has the SHA-256 that it is named by.

    Raises:
        LedgerError: if it is damaged, or a text was changed.
    """
    pack = read_pack(path)
    for sha, content in pack.iter_rows():
        if sha256_hex(content) != sha:
            raise LedgerError(
                f"{path} is damaged (the text {sha} was changed); restore it from a copy, or move it"
                " away"
            )
    return pack


def write_pack(path: AnyPath, texts: Mapping[str, str]) -> Keys:
    """Write texts by their SHA-256, and the file of their keys."""
    names = sorted(texts)
    frame = pl.DataFrame(
        {"sha256": names, "content": [texts[name] for name in names]}, schema=PACK_SCHEMA
    )
    keys = pack_keys_of(path, frame)
    write_atomic(path, parquet_bytes(frame))
    write_keys(path, keys)
    return keys


def pack_keys_of(path: AnyPath, frame: pl.DataFrame) -> Keys:
    """The keys of the texts in a pack."""
    high, low = key_halves(frame["sha256"].to_list())
    return Keys(((path.name, frame.height),), high, low, frame["sha256"].is_not_null().to_numpy())


class Archive:
    """The texts and prompts of a ledger. Nothing is read before it is asked for."""

    def __init__(self, root: AnyPath) -> None:
        self.packs = root / "texts"
        self._prompts = root / "prompts"

    @cached_property
    def _index(self) -> Index:
        index = Index()
        paths = segment_files(self.packs)
        index.add(zip(paths, pack_keys(paths), strict=True))
        return index

    def has(self, sha256: str) -> bool:
        """Whether a pack has a text."""
        return self._index.find([sha256])[0] is not None

    def add(self, texts: Mapping[str, str]) -> int:
        """Write those texts that are not there yet, as one pack; returns their number."""
        places = self._index.find(list(texts))
        new = {
            sha: text for (sha, text), place in zip(texts.items(), places, strict=True) if not place
        }
        if new:
            path = self.packs / new_name(".parquet")
            self._index.add([(path, write_pack(path, new))])
        return len(new)

    def read(self, digests: Iterable[str]) -> dict[str, str]:
        """Texts by their SHA-256.

        Raises:
            LedgerError: if one is missing.
        """
        wanted = list(dict.fromkeys(digests))
        try:
            return self._read(wanted)
        except (FileNotFoundError, LedgerError):  # others joined packs, or added some
            vars(self).pop("_index", None)
            return self._read(wanted)

    def _read(self, wanted: Sequence[str]) -> dict[str, str]:
        by_pack: dict[AnyPath, list[str]] = {}
        for sha, place in zip(wanted, self._index.find(wanted), strict=True):
            if place is None:
                raise LedgerError(
                    f"the text {sha} is missing in {self.packs}; restore the folder from a copy, or"
                    " import the ledger that the replies came from"
                )
            by_pack.setdefault(place[0], []).append(sha)
        texts: dict[str, str] = {}
        for path, digests in by_pack.items():
            texts.update(read_pack(path).filter(pl.col("sha256").is_in(digests)).iter_rows())
            if lacking := [sha for sha in digests if sha not in texts]:
                raise LedgerError(
                    f"{path} lacks the text {lacking[0]}, against the keys beside it; remove"
                    f" {path.with_suffix('.keys').name}"
                )
        return texts

    def restore(self, packed_json: str) -> Any:
        """The value that a packed JSON text stands for.

        Raises:
            LedgerError: if a text is missing.
        """
        value = json.loads(packed_json)
        return unpacked(value, self.read(references(value)))

    def prompt_text(self, sha256: str) -> str | None:
        """A prompt file, if it was archived."""
        try:
            return (self._prompts / f"{sha256}.md").read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def add_prompt(self, text: str) -> bool:
        """Archive a prompt file; False if it is there already."""
        path = self._prompts / f"{sha256_hex(text)}.md"
        if path.exists():
            return False
        write_atomic(path, text.encode())
        return True


def pack_keys(paths: Sequence[AnyPath]) -> Iterator[Keys]:
    """The keys of packs, in order."""
    return read_keys(paths, lambda path: pack_keys_of(path, read_pack(path)))
