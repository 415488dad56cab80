"""Reading settings: ``saber.yaml`` over its preset under the environment, and the registries."""

import difflib
import os
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from saber_dagster.settings import (
    Judge,
    JudgeRegistry,
    RetrieverEntry,
    RetrieverRegistry,
    Section,
    Settings,
)
from saber_dagster.settings_errors import booleans_as_numbers, explain_errors
from saber_dagster.storage import AnyPath
from saber_dagster.yaml_files import SettingsError, parse_yaml, read_yaml

__all__ = [
    "PRESETS",
    "SettingsError",
    "judges_from",
    "load_judges",
    "load_retrievers",
    "load_settings",
    "preset_values",
    "settings_from",
    "validated",
]

PRESETS = ("demo", "paper")
_ENV_PREFIX = "SABER_"
_NO_SETTINGS = ("SABER_HOME", "SABER_STATE", "SABER_TEST_DATA", "SABER_REQUIRE_TEST_DATA")

_Model = TypeVar("_Model", bound=Section)
_Entry = TypeVar("_Entry", Judge, RetrieverEntry)


def preset_values(name: str) -> dict[str, Any]:
    """The values of one of :data:`PRESETS`."""
    text = files("saber_dagster").joinpath(f"presets/{name}.yaml").read_text(encoding="utf-8")
    values: dict[str, Any] = parse_yaml(text, name)
    return values


def load_settings(path: AnyPath, environ: Mapping[str, str] = os.environ) -> Settings:
    """Read ``saber.yaml`` over its preset; environment variables override both.

    ``SABER_SEED=3`` sets ``seed``, ``SABER_QUERIES__PER_DOMAIN=3`` sets ``queries.per_domain``; values
    are YAML. A missing file is an empty one.

    Raises:
        SettingsError: on an unknown key, naming the nearest known one, or a wrong value.
    """
    return settings_from(read_yaml(path), str(path), environ)


def settings_from(
    own: Mapping[str, Any], where: str, environ: Mapping[str, str] = os.environ
) -> Settings:
    """The settings that ``saber.yaml`` would give if it held ``own``.

    Args:
        own: the file's values.
        where: the file, for messages.
        environ: environment variables.

    Raises:
        SettingsError: see :func:`load_settings`.
    """
    overrides = _overrides(environ)
    values = dict(own)
    for name, keys in overrides.items():
        nested = parse_yaml(environ[name], f"environment variable {name}")
        for key in reversed(keys):
            nested = {key: nested}
        values = _merge(values, nested)
    where = " with ".join([where, *overrides])
    preset = values.get("preset", "demo")
    if preset not in PRESETS:
        raise SettingsError(f"{where}: unknown preset {preset!r}; there are {', '.join(PRESETS)}")
    return validated(Settings, _merge(preset_values(preset), values), where)


def _overrides(environ: Mapping[str, str]) -> dict[str, list[str]]:
    """The keys that each environment variable sets, of those that are settings.

    Raises:
        SettingsError: on the name of another variable if it looks like a misspelt setting.
    """
    found = {}
    known = [_variable(path) for path in _paths(Settings)]
    for name in sorted(environ):
        if not name.startswith(_ENV_PREFIX) or name in _NO_SETTINGS:
            continue
        if name in known or "__" in name:
            found[name] = name.removeprefix(_ENV_PREFIX).lower().split("__")
        elif near := difflib.get_close_matches(name, known, 1, 0.8):
            raise SettingsError(f"environment variable {name} is unknown; did you mean {near[0]}?")
    return found


def _variable(path: tuple[str, ...]) -> str:
    return _ENV_PREFIX + "__".join(path).upper()


def _paths(model: type[BaseModel]) -> Iterator[tuple[str, ...]]:
    """Every key of a model and of the sections inside."""
    for name, info in model.model_fields.items():
        yield (name,)
        if isinstance(info.annotation, type) and issubclass(info.annotation, BaseModel):
            yield from ((name, *rest) for rest in _paths(info.annotation))


def load_judges(path: AnyPath) -> tuple[Judge, ...]:
    """Read ``judges.yaml``; a missing file means the embedded baseline alone."""
    return judges_from(read_yaml(path), path)


def judges_from(values: Mapping[str, Any], path: AnyPath) -> tuple[Judge, ...]:
    """The judges that ``judges.yaml`` would give if it held ``values``.

    Raises:
        SettingsError: see :func:`validated`, and if two slugs are too much alike.
    """
    registry = validated(JudgeRegistry, values, str(path))
    return _unique_slugs(registry.judges, path)


def load_retrievers(path: AnyPath) -> tuple[RetrieverEntry, ...]:
    """Read ``retrievers.yaml``; a missing file means the built-in ones."""
    registry = validated(RetrieverRegistry, read_yaml(path), str(path))
    return _unique_slugs(registry.retrievers, path)


def validated(model: type[_Model], values: Mapping[str, Any], where: str) -> _Model:
    """Validate values against a model, with errors that a user can act on."""
    try:
        made = model.model_validate(values)
    except ValidationError as error:
        raise SettingsError(f"{where}: {explain_errors(model, error)}") from None
    if wrong := "; ".join(booleans_as_numbers(values, made)):
        raise SettingsError(f"{where}: {wrong}")
    return made


def _unique_slugs(entries: tuple[_Entry, ...], path: AnyPath) -> tuple[_Entry, ...]:
    """Dagster writes both - and _ as _, so slugs must differ in more than that."""
    seen: dict[str, str] = {}
    for slug in (entry.slug for entry in entries):
        other = seen.setdefault(slug.replace("-", "_"), slug)
        if other != slug:
            raise SettingsError(f"{path}: slugs {other!r} and {slug!r} differ only in - and _")
    if len(seen) < len(entries):
        slugs = [entry.slug for entry in entries]
        twice = next(slug for slug in slugs if slugs.count(slug) > 1)
        raise SettingsError(f"{path}: slug {twice!r} is given twice; every entry needs its own")
    return entries


def _merge(base: dict[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        merged[key] = (
            _merge(old, value) if isinstance(old, dict) and isinstance(value, Mapping) else value
        )
    return merged
