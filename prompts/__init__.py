"""Prompt templates as files; the SHA-256 of a file is its version."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import yaml

from saber_dagster.engines import PromptRef
from saber_dagster.errors import SaberError
from saber_dagster.hashing import sha256_hex

_FILE = re.compile(r"\A---\n(?P<front>.*?)\n---\n(?P<body>.*)\Z", re.DOTALL)
_ROLE = re.compile(r"^# (system|user)\n", re.MULTILINE)
_PLACE = re.compile(r"\{\{([a-z_]+)\}\}")


@dataclass(frozen=True)
class Prompt:
    """A template: its chat messages with ``{{name}}`` where a value goes."""

    ref: PromptRef
    task: str
    messages: tuple[tuple[str, str], ...]

    @property
    def placeholders(self) -> frozenset[str]:
        """The names of the values that the template takes."""
        return frozenset(name for _, text in self.messages for name in _PLACE.findall(text))

    def render(self, values: Mapping[str, str]) -> list[dict[str, str]]:
        """Put values in literally, in one pass: braces and ``{{…}}`` inside a value stay as they are.

        Raises:
            SaberError: if a value is missing or not used.
        """
        if values.keys() != self.placeholders:
            wrong = sorted(values.keys() ^ self.placeholders)
            raise SaberError(f"prompt {self.ref.name}: values and placeholders differ in {wrong}")
        return [
            {"role": role, "content": _PLACE.sub(lambda match: values[match[1]], text)}
            for role, text in self.messages
        ]


@cache
def load_prompt(name: str) -> Prompt:
    """Read ``prompts/<name>.md``.

    Raises:
        SaberError: if there is no such file, or it lacks its front matter or messages.
    """
    path = files("prompts").joinpath(f"{name}.md")
    if not path.is_file():
        raise SaberError(f"there is no prompt {name!r}")
    text = path.read_text(encoding="utf-8")
    match = _FILE.match(text)
    front = yaml.safe_load(match["front"]) if match else {}
    if match is None or front.get("name") != name or "task" not in front:
        raise SaberError(f"prompt {name}: needs front matter with name: {name} and task:")
    parts = _ROLE.split(match["body"])[1:]
    messages = tuple(
        (role, content.strip()) for role, content in zip(parts[::2], parts[1::2], strict=True)
    )
    if not messages:
        raise SaberError(f"prompt {name}: has neither '# system' nor '# user'")
    return Prompt(PromptRef(name, sha256_hex(text)), front["task"], messages)
