"""What is wrong with settings, in words: the key, the rule, what was found."""

import difflib
import reprlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from saber_dagster.settings import SLUG

_RULES = {
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "string_type": "must be text; quote it if it is a date or a number",
    "tuple_type": "must be a list, as in [one, two]",
    "dict_type": "must have 'key: value' lines below it",
    "model_type": "must have 'key: value' lines below it",
    "greater_than": "must be above {gt:g}",
    "greater_than_equal": "must be at least {ge:g}",
    "less_than_equal": "must be at most {le:g}",
    "literal_error": "must be {expected}",
    "string_too_long": "must have at most {max_length} letters",
    "too_short": "must have at least {min_length} entry",
    "value_error": "{error}",
}
"""The rule that each kind of Pydantic's errors stands for."""


def explain_errors(model: type[BaseModel], error: ValidationError) -> str:
    """Every error of a validation in one line."""
    items = error.errors()
    # A list of which every entry is wrong counts as too short besides.
    within = {item["loc"][:-1] for item in items}
    kept = (item for item in items if item["type"] != "too_short" or item["loc"] not in within)
    return "; ".join(_explain(model, item) for item in kept)


def booleans_as_numbers(given: Any, validated: Any, place: str = "") -> Iterator[str]:
    """Keys with true or false where a number is wanted; Pydantic would read 1 or 0.

    Args:
        given: the values before validation.
        validated: what became of them.
        place: the key of the values; empty for all.
    """
    if isinstance(given, bool):
        if not isinstance(validated, bool):
            yield f"{place}: {_RULES['float_type']} (found {str(given).lower()})"
    elif isinstance(given, Mapping) and isinstance(validated, BaseModel):
        for key, value in given.items():
            yield from booleans_as_numbers(value, getattr(validated, key), _join(place, key))
    elif isinstance(given, Sequence) and isinstance(validated, tuple):
        for number, (value, made) in enumerate(zip(given, validated, strict=False)):
            yield from booleans_as_numbers(value, made, _join(place, number))


def _explain(model: type[BaseModel], item: Any) -> str:
    place = ".".join(str(part) for part in item["loc"])
    if item["type"] == "extra_forbidden":
        known = _known_keys(model, item["loc"][:-1])
        near = difflib.get_close_matches(str(item["loc"][-1]), known, 1, 0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"known keys are {', '.join(known)}"
        return f"unknown key {place!r}; {hint}"
    if item["type"] == "missing":
        return f"{place}: is missing"
    if item["type"] == "value_error" and not place:
        return str(item["ctx"]["error"])
    rule = item["msg"]
    if item["type"] in _RULES:
        rule = _RULES[item["type"]].format_map(item.get("ctx", {}))
    elif item["type"] == "string_pattern_mismatch" and item["ctx"]["pattern"] == SLUG.pattern:
        rule = "must be of small letters, digits, - and _, and begin with a letter or digit"
    return f"{place}: {rule} (found {_shown(item['input'])})"


def _shown(value: Any) -> str:
    """A value as a person wrote it, shortened."""
    if value is None:
        return "nothing"
    json_like = isinstance(value, bool | int | float | str | list | tuple | dict)
    return reprlib.repr(value) if json_like else str(value)


def _known_keys(model: type[BaseModel], loc: tuple[Any, ...]) -> list[str]:
    for part in loc:
        if isinstance(part, int):
            continue
        annotation = model.model_fields[part].annotation
        for nested in (annotation, *getattr(annotation, "__args__", ())):
            if isinstance(nested, type) and issubclass(nested, BaseModel):
                model = nested
    return sorted(model.model_fields)


def _join(place: str, key: object) -> str:
    return f"{place}.{key}" if place else str(key)
