"""Prompt files: read strictly; every message names the file and the remedy."""

import difflib
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from prompts.template import Form, Pieces, Prompt
from prompts.values import PLACEHOLDERS
from saber_dagster.engines import TASKS, PromptRef
from saber_dagster.errors import SaberError
from saber_dagster.hashing import canonical_json, sha256_hex
from saber_dagster.replies import CHOICES, JSON_TASKS
from saber_dagster.settings import SLUG
from saber_dagster.yaml_files import parse_yaml

REMINDER = (
    "An earlier reply could not be read. Keep to the form above, to the letter, and end with it."
)
"""Appended when a prompt without a ``reminder`` of its own is asked again."""

_FILE = re.compile(r"\A---\n(?P<front>.*?)^---\n(?P<body>.*)\Z", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^# +(.*?) *$\n?", re.MULTILINE)
_SECTIONS = ("system", "user", "form tagged", "form json")
_LIKE_A_PLACE = re.compile(r"\{\{([\w \t-]*)\}\}")
_KEYS = ("name", "task", "version", "choices", "stop", "schema", "reminder")


def load_prompt(name_or_path: str) -> Prompt:
    """A shipped prompt by its name, or a user's by the path of its file.

    Args:
        name_or_path: what ends in ``.md`` or has a slash in it is a path.

    Raises:
        SaberError: if there is no such file, or something in it is wrong; the message names the file,
            what is wrong and the remedy.
    """
    if not name_or_path.endswith(".md") and not re.search(r"[/\\]", name_or_path):
        return _shipped(name_or_path)
    path = Path(name_or_path).expanduser()
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SaberError(f"prompt {path}: {error.strerror}. Check the path") from None
    return _read(data, str(path), path.stem)


def shipped_prompts() -> list[str]:
    """The names of the prompts that come with the package, sorted."""
    found = (path.name for path in files("prompts").iterdir())
    return sorted(name.removesuffix(".md") for name in found if name.endswith(".md"))


@cache
def _shipped(name: str) -> Prompt:
    path = files("prompts").joinpath(f"{name}.md")
    if not path.is_file():
        raise SaberError(
            f"there is no prompt {name!r}; shipped are {', '.join(shipped_prompts())}. One of your own"
            " is named by the path of its .md file"
        )
    return _read(path.read_bytes(), f"prompts/{name}.md", name)


def _read(data: bytes, where: str, stem: str) -> Prompt:
    try:
        prompt = parse_prompt(data.decode("utf-8"), where)
    except UnicodeDecodeError as error:
        raise SaberError(
            f"prompt {where}: byte {error.start} is not UTF-8. Save it as UTF-8"
        ) from None
    if prompt.ref.name != stem:
        raise SaberError(
            f"prompt {where}: name is {prompt.ref.name!r}, but the file is called {stem}.md. Make them"
            " alike: the ledger knows a prompt by its name"
        )
    return prompt


def parse_prompt(text: str, name: str) -> Prompt:
    """Read the text of a prompt file.

    Args:
        text: the whole file.
        name: names it in messages.

    Raises:
        SaberError: if it is not a prompt; the message says where, what is wrong, and the remedy.
    """
    what = f"prompt {name}"
    match = _FILE.match(text.replace("\r\n", "\n").removeprefix("\ufeff"))
    if not match:
        raise SaberError(
            f"{what}: begins with no front matter. Write name:, task: and version: between two lines"
            " of ---"
        )
    front = _front(parse_yaml(match["front"], f"{what}, front matter"), what)
    sections = _sections(match["body"], what)
    _check_forms(front, sections, what)
    reminder = front.get("reminder", REMINDER).strip()
    _check_placeholders(front["task"], sections, reminder, what)
    return Prompt(
        ref=PromptRef(front["name"], sha256_hex(text)),
        task=front["task"],
        version=front["version"],
        schema=front.get("schema"),
        choices=tuple(front.get("choices", ())),
        stop=tuple(front.get("stop", ())),
        reminder=reminder,
        text=text,
        _messages={form: tuple(_messages(sections, form)) for form in _forms(sections)},
    )


def _front(front: Any, what: str) -> dict[str, Any]:
    if not isinstance(front, dict):
        raise SaberError(f"{what}: the front matter has no 'key: value' lines; write name:, task:")
    for key in front.keys() - set(_KEYS):
        near = difflib.get_close_matches(str(key), _KEYS, 1, 0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"known keys are {', '.join(_KEYS)}"
        raise SaberError(f"{what}: unknown key {key!r}; {hint}")
    for key in ("name", "task", "version"):
        if key not in front:
            raise SaberError(f"{what}: {key} is missing in the front matter. Add '{key}: …'")
    name, task, version = front["name"], front["task"], front["version"]
    if not isinstance(name, str) or not SLUG.match(name):
        raise SaberError(
            f"{what}: name {name!r} must be of small letters, digits, - and _, and begin with a letter"
            " or digit"
        )
    if task not in TASKS:
        near = difflib.get_close_matches(str(task), TASKS, 1, 0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"tasks are {', '.join(TASKS)}"
        raise SaberError(f"{what}: there is no task {task!r}; {hint}")
    if type(version) is not int or version < 1:
        raise SaberError(f"{what}: version {version!r} must be a whole number from 1 on")
    for key in ("choices", "stop"):
        texts = front.get(key, [])
        if not isinstance(texts, list) or not all(isinstance(t, str) and t for t in texts):
            raise SaberError(f'{what}: {key} must be a list of texts, each in quotes: ["1", "2"]')
        if len(set(texts)) < len(texts):
            raise SaberError(f"{what}: {key} {texts} are not distinct. Name each once")
    reminder = front.get("reminder", REMINDER)
    if not isinstance(reminder, str) or not reminder.strip():
        raise SaberError(f"{what}: reminder must be a text; leave it out for the usual one")
    return front


def _sections(body: str, what: str) -> dict[str, str]:
    before, *rest = _HEADING.split(body)
    if before.strip():
        raise SaberError(f"{what}: text before the first section: {before.strip()[:40]!r}")
    sections: dict[str, str] = {}
    for heading, content in zip(rest[::2], rest[1::2], strict=True):
        if heading not in _SECTIONS:
            raise SaberError(
                f"{what}: '# {heading}' is no section; they are"
                f" {', '.join(f'# {name}' for name in _SECTIONS)}. Write ## for a heading inside one"
            )
        if heading in sections:
            raise SaberError(f"{what}: section '# {heading}' is given twice; keep one of them")
        if not content.strip():
            raise SaberError(f"{what}: section '# {heading}' is empty. Fill it or leave it out")
        sections[heading] = content.strip()
    return sections


def _check_forms(front: Mapping[str, Any], sections: Mapping[str, str], what: str) -> None:
    task, schema = front["task"], front.get("schema")
    for section in ("user", "form tagged"):
        if section not in sections:
            raise SaberError(
                f"{what}: section '# {section}' is missing. Copy it from `saber prompts show {task}`"
            )
    if task not in JSON_TASKS and (schema is not None or "form json" in sections):
        raise SaberError(
            f"{what}: a reply of task {task} has no JSON form, because LaTeX breaks in JSON texts."
            " Remove schema and '# form json'"
        )
    if (schema is None) == ("form json" in sections):
        lacking = "schema" if schema is None else "section '# form json'"
        raise SaberError(
            f"{what}: {lacking} is missing. The JSON form needs both, schema and '# form json'; leave"
            " both out to have tagged replies only"
        )
    if schema is not None:
        try:
            canonical_json(schema)
            fits = schema.get("type") == "object" and isinstance(schema.get("properties"), dict)
        except (TypeError, ValueError, AttributeError):
            fits = False
        if not fits:
            raise SaberError(
                f"{what}: schema must be a JSON schema of type: object with properties:"
            )
    expected = CHOICES.get(task, ())
    if tuple(front.get("choices", ())) != expected:
        remedy = (
            f"Write choices: {canonical_json(expected).decode()}" if expected else "Remove them"
        )
        raise SaberError(
            f"{what}: choices {front.get('choices', [])} are not those of task {task}. {remedy}"
        )


def _check_placeholders(task: str, sections: Mapping[str, str], reminder: str, what: str) -> None:
    places = PLACEHOLDERS[task]
    known = places.needed | places.optional
    for text in (*sections.values(), reminder):
        for like in _LIKE_A_PLACE.findall(text):
            if like not in known:
                near = difflib.get_close_matches(like.strip().lower(), sorted(known), 1, 0.5)
                hint = f"did you mean {_place(near[0])}?" if near else f"they are {_list(known)}"
                raise SaberError(f"{what}: {_place(like)} is no placeholder of task {task}; {hint}")
    for form in _forms(sections):
        used = {name for _, pieces in _messages(sections, form) for name in pieces.names}
        if missing := places.needed - used:
            raise SaberError(
                f"{what}: {_list(missing)} does not occur, so the model would not see it. Put it in"
            )


def _list(names: frozenset[str]) -> str:
    return ", ".join(_place(name) for name in sorted(names))


def _place(name: str) -> str:
    return f"{{{{{name}}}}}"


def _forms(sections: Mapping[str, str]) -> Iterator[Form]:
    yield "tagged"
    if "form json" in sections:
        yield "json"


def _messages(sections: Mapping[str, str], form: Form) -> Iterator[tuple[str, Pieces]]:
    if "system" in sections:
        yield "system", Pieces.of(sections["system"])
    yield "user", Pieces.of(f"{sections['user']}\n\n{sections[f'form {form}']}")
