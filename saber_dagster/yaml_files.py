"""YAML that people edit: read strictly, changed without losing comments."""

import io
import re
from collections.abc import Mapping
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.constructor import DuplicateKeyError
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from saber_dagster.errors import SaberError
from saber_dagster.storage import AnyPath

_NESTED_KEY = re.compile(r"^\S[^\n]*:[^\n]*\n( +)[^\s#-]", re.MULTILINE)
_FIRST_ITEM = re.compile(r"^( *)[^\s#-][^\n]*:[^\n]*\n(\1 *)(- +)\S", re.MULTILINE)


class SettingsError(SaberError):
    """The settings are wrong; the message names file, key and remedy."""


def parse_yaml(text: str, where: str) -> Any:
    """The value of a YAML text.

    Args:
        text: the text.
        where: its file or variable, for messages.

    Raises:
        SettingsError: if it is no YAML, or a key is given twice; the message names the line.
    """
    try:
        return YAML(typ="safe", pure=True).load(text)
    except DuplicateKeyError as error:
        key = str(error.problem).partition(" with value")[0].removeprefix("found duplicate key ")
        remedy = "keep one of them"
        raise SettingsError(
            f"{where}, {_line(error)}: key {key} is given twice; {remedy}"
        ) from None
    except MarkedYAMLError as error:
        tab = "'\\t'" in str(error.problem)
        hint = "; indent with spaces, not tabs" if tab else ""
        raise SettingsError(
            f"{where}: not readable as YAML: {error.problem}, {_line(error)}{hint}"
        ) from None
    except RecursionError:
        raise SettingsError(f"{where}: not readable as YAML: nested too deeply") from None
    except (YAMLError, ValueError) as error:  # ValueError: a date such as 2026-99-99
        raise SettingsError(f"{where}: not readable as YAML: {error}") from None
    except (
        LookupError,
        TypeError,
        AttributeError,
        ArithmeticError,
    ) as error:  # a tag such as !!bool
        raise SettingsError(
            f"{where}: not readable as YAML: a value does not fit its tag, or a key is a list"
            f" ({error})"
        ) from None


def read_yaml(path: AnyPath) -> dict[str, Any]:
    """A YAML mapping; empty if the file is missing.

    Raises:
        SettingsError: see :func:`parse_yaml`.
    """
    value = parse_yaml(_text(path), str(path))
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise SettingsError(f"{path}: expected 'key: value' lines, found a {type(value).__name__}")
    return value


def changed_yaml(path: AnyPath, changes: Mapping[str, Any]) -> str:
    """The text of a YAML mapping with some of its keys changed; comments and all else stay.

    Args:
        path: a file that :func:`read_yaml` can read; it is not written.
        changes: the new values of top-level keys.
    """
    text = _text(path)
    yaml = _printer(text)
    document = yaml.load(text)
    if document is None:  # comments alone are no document, so they are carried by hand
        return (text.rstrip() + "\n" if text.strip() else "") + dump_yaml(changes)
    for key, value in changes.items():
        if key in document:
            document[key] = _changed(document[key], value)
        else:
            document[key] = value
    stream = io.StringIO()
    yaml.dump(document, stream)
    return stream.getvalue()


def dump_yaml(value: Any) -> str:
    """A value as YAML in block style, keys in their order."""
    stream = io.StringIO()
    _printer().dump(value, stream)
    return stream.getvalue()


def _printer(like: str = "") -> YAML:
    """Prints as a text is indented."""
    yaml = YAML()
    if nested := _NESTED_KEY.search(like):
        yaml.map_indent = len(nested[1])
    if item := _FIRST_ITEM.search(like):
        yaml.sequence_dash_offset = len(item[2]) - len(item[1])
        yaml.sequence_indent = yaml.sequence_dash_offset + len(item[3])
    yaml.preserve_quotes = True
    yaml.width = 10_000
    yaml.representer.add_representer(
        type(None), lambda own, _: own.represent_scalar("tag:yaml.org,2002:null", "null")
    )
    return yaml


def _changed(old: Any, new: Any) -> Any:
    """``new``, made by changing ``old`` in place where it can be, for its comments."""
    if old == new:
        return old
    if isinstance(old, dict) and isinstance(new, Mapping):
        for key in [key for key in old if key not in new]:
            del old[key]
        for key, value in new.items():
            old[key] = _changed(old[key], value) if key in old else value
        return old
    if isinstance(old, list) and isinstance(new, list):
        del old[len(new) :]
        for place, value in enumerate(new):
            if place < len(old):
                old[place] = _changed(old[place], value)
            else:
                old.append(value)
        return old
    return new


def _text(path: AnyPath) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        row = error.object[: error.start].count(b"\n") + 1
        raise SettingsError(
            f"{path}: not readable as YAML: line {row} is not UTF-8; save the file as UTF-8"
        ) from None
    except OSError as error:
        raise SettingsError(f"{path}: not readable: {error.strerror}") from None


def _line(error: MarkedYAMLError) -> str:
    return f"line {error.problem_mark.line + 1}" if error.problem_mark else "at its end"
