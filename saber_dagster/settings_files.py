"""Reading settings: ``saber.yaml`` over its preset under the environment, and the registries."""

import difflib
import os
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from saber_dagster.errors import SaberError
from saber_dagster.settings import (
    Judge,
    JudgeRegistry,
    RetrieverEntry,
    RetrieverRegistry,
    Section,
    Settings,
)

PRESETS = ("demo", "paper")
_ENV_PREFIX = "SABER_"

_Model = TypeVar("_Model", bound=Section)
_Entry = TypeVar("_Entry", Judge, RetrieverEntry)


class SettingsError(SaberError):
    """The settings are wrong; the message names file, key and remedy."""


def preset_values(name: str) -> dict[str, Any]:
    """The values of a preset."""
    if name not in PRESETS:
        raise SettingsError(f"unknown preset {name!r}; there are {', '.join(PRESETS)}")
    text = files("saber_dagster").joinpath(f"presets/{name}.yaml").read_text(encoding="utf-8")
    values: dict[str, Any] = yaml.safe_load(text)
    return values


def load_settings(path: Path, environ: Mapping[str, str] = os.environ) -> Settings:
    """Read ``saber.yaml`` over its preset; environment variables override both.

    ``SABER_QUERIES__PER_DOMAIN=3`` sets ``queries.per_domain``. A missing file is an empty one.

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
    values = _merge(preset_values(str(own.get("preset", "demo"))), own)
    overrides = sorted(name for name in environ if name.startswith(_ENV_PREFIX) and "__" in name)
    for name in overrides:
        keys = name.removeprefix(_ENV_PREFIX).lower().split("__")
        try:
            nested: Any = yaml.safe_load(environ[name])
        except yaml.YAMLError as error:
            raise SettingsError(f"environment variable {name}: not readable: {error}") from None
        for key in reversed(keys):
            nested = {key: nested}
        values = _merge(values, nested)
    return validated(Settings, values, " with ".join([where, *overrides]))


def load_judges(path: Path) -> tuple[Judge, ...]:
    """Read ``judges.yaml``; a missing file means the embedded baseline alone."""
    registry = validated(JudgeRegistry, read_yaml(path), str(path))
    return _unique_slugs(registry.judges, path)


def load_retrievers(path: Path) -> tuple[RetrieverEntry, ...]:
    """Read ``retrievers.yaml``; a missing file means the built-in ones."""
    registry = validated(RetrieverRegistry, read_yaml(path), str(path))
    return _unique_slugs(registry.retrievers, path)


def read_yaml(path: Path) -> dict[str, Any]:
    """A YAML mapping; empty if the file is missing."""
    if not path.exists():
        return {}
    try:
        value = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError, OSError) as error:
        raise SettingsError(f"{path}: not readable as YAML: {error}") from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise SettingsError(f"{path}: expected 'key: value' lines, found a {type(value).__name__}")
    return value


def validated(model: type[_Model], values: Mapping[str, Any], where: str) -> _Model:
    """Validate values against a model, with errors that a user can act on."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        lines = [_explain(model, item) for item in error.errors()]
        raise SettingsError(f"{where}: " + "; ".join(lines)) from None


def _explain(model: type[BaseModel], item: Any) -> str:
    place = ".".join(str(part) for part in item["loc"])
    if item["type"] != "extra_forbidden":
        return f"{place}: {item['msg']} (found {item['input']!r})"
    known = _known_keys(model, item["loc"][:-1])
    near = difflib.get_close_matches(str(item["loc"][-1]), known, 1, 0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"known keys are {', '.join(known)}"
    return f"unknown key {place!r}; {hint}"


def _known_keys(model: type[BaseModel], loc: tuple[Any, ...]) -> list[str]:
    for part in loc:
        if isinstance(part, int):
            continue
        annotation = model.model_fields[part].annotation
        for nested in (annotation, *getattr(annotation, "__args__", ())):
            if isinstance(nested, type) and issubclass(nested, BaseModel):
                model = nested
    return sorted(model.model_fields)


def _unique_slugs(entries: tuple[_Entry, ...], path: Path) -> tuple[_Entry, ...]:
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
