"""Changes of ``judges.yaml``: entries come and go, and what people wrote around them stays."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from saber_dagster.errors import SaberError
from saber_dagster.home import Home
from saber_dagster.settings import Judge
from saber_dagster.settings_files import judges_from
from saber_dagster.storage import AnyPath, write_atomic
from saber_dagster.yaml_files import SettingsError, changed_yaml, parse_yaml, read_yaml

_BASELINE = {"slug": "embedded", "engine": "embedded"}
"""What a home without the file judges with; its first file keeps it."""
_NOTHING = re.compile(r"\s*(#.*)?")


@dataclass(frozen=True)
class Edit:
    """The file as it would be; nothing is written yet."""

    path: AnyPath
    text: str
    judges: tuple[Judge, ...]

    def write(self) -> None:
        """Put it in place of the file that there is, in one step."""
        write_atomic(self.path, self.text.encode())


def judge_named(home: Home, slug: str) -> Judge:
    """A judge of the home.

    Raises:
        SaberError: naming those that there are.
    """
    for judge in home.judges:
        if judge.slug == slug:
            return judge
    known = ", ".join(judge.slug for judge in home.judges)
    raise SaberError(f"{_file(home)} has no judge {slug!r}; there are {known}")


def with_judge(home: Home, entry: Mapping[str, Any]) -> Edit:
    """``judges.yaml`` with one more entry at its end.

    Args:
        home: the home; a home without the file gets one that keeps the baseline.
        entry: the keys of :class:`saber_dagster.settings.Judge`.

    Raises:
        SaberError: if the file or the entry is wrong, or a judge of this slug is there already.
    """
    if any(judge.slug == entry["slug"] for judge in home.judges):
        raise SaberError(
            f"{_file(home)} has a judge {entry['slug']!r} already; edit its entry there and run `saber"
            f" judges reload`, or take another slug"
        )
    return _edit(home, [*_entries(home), dict(entry)])


def without_judge(home: Home, slug: str) -> Edit:
    """``judges.yaml`` without one of its entries; comments stay.

    Raises:
        SaberError: if there is no such judge, or no other.
    """
    judge_named(home, slug)
    if len(home.judges) == 1:
        raise SaberError(
            f"{slug} is the only judge, and a benchmark needs one: add another one first"
        )
    left = [entry for entry in _entries(home) if entry["slug"] != slug]
    return _edit(home, left, _without_lines(_file(home), left))


def parse_options(pairs: Sequence[str], option: str = "--option") -> dict[str, Any]:
    """``["temperature=0", "extra_body={top_k: 1}"]`` → their values as YAML.

    Raises:
        SaberError: if a pair is none, a value is no YAML, or a key is given twice.
    """
    values: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise SaberError(f"{option} {key}: write KEY=VALUE, such as temperature=0")
        if key in values:
            raise SaberError(f"{option} names {key} twice; keep one")
        values[key] = parse_yaml(value, f"{option} {key}")
    return values


def _file(home: Home) -> AnyPath:
    return home.root / "judges.yaml"


def _entries(home: Home) -> list[dict[str, Any]]:
    """The entries as they are written."""
    return list(read_yaml(_file(home)).get("judges") or [_BASELINE])


def _edit(home: Home, entries: list[dict[str, Any]], text: str | None = None) -> Edit:
    path = _file(home)
    judges = judges_from({**read_yaml(path), "judges": entries}, path)
    return Edit(path, text or changed_yaml(path, {"judges": entries}), judges)


def _without_lines(path: AnyPath, left: list[dict[str, Any]]) -> str | None:
    """The file's text without the lines of the entry that leaves; None if they are not its own.

    YAML's own notion of a comment belongs to what stands before it, so that the words above an entry
    would go with its neighbour; lines keep them where they are.
    """
    lines = path.read_text(encoding="utf-8-sig").splitlines(keepends=True)
    for start, line in enumerate(lines):
        if not line.lstrip().startswith("-"):
            continue
        indent = _indent(line)
        end = start + 1
        while end < len(lines) and (_empty(lines[end]) or _indent(lines[end]) > indent):
            end += 1
        while _empty(lines[end - 1]):
            end -= 1
        text = "".join(lines[:start] + lines[end:])
        try:
            found = parse_yaml(text, str(path))
        except SettingsError:
            continue
        if isinstance(found, dict) and found.get("judges") == left:
            return text
    return None


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _empty(line: str) -> bool:
    return _NOTHING.fullmatch(line.rstrip("\r\n")) is not None
