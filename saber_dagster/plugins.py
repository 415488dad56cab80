"""Users' own classes, named in settings as ``python:package.module:Class``.

Whatever goes wrong in one becomes a :class:`SaberError` that says in which, where and why.
"""

import difflib
import importlib
import inspect
import os
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from saber_dagster.errors import SaberError
from saber_dagster.hashing import canonical_json

PREFIX = "python:"

_ROOT = Path(__file__).parents[1]
_NOT_THEIRS = (
    "<",  # frozen importlib
    f"{Path(importlib.__file__).parent}{os.sep}",
    *(f"{_ROOT / ours}{os.sep}" for ours in ("saber_dagster", "resources")),
)
_MESSAGE_CHARS = 500
_PLAIN: Mapping[Any, str] = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "text (quote it)",
    NoneType: "null",
}
"""Types of options that are checked before the class sees them, and what a person calls them."""

Value = TypeVar("Value")


def load_class(path: str, what: str) -> Any:
    """Import ``package.module:Class``.

    Args:
        path: module and class.
        what: what asks for it, for messages: ``engine python:mine:Judge``.

    Raises:
        SaberError: if the path has another form, the module cannot be imported, or lacks the class.
    """
    module_name, _, class_name = path.partition(":")
    if not module_name or not class_name:
        raise SaberError(f"{what} is not of the form {PREFIX}package.module:Class")
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        unknown = isinstance(error, ModuleNotFoundError) and f"{module_name}.".startswith(
            f"{error.name}."
        )
        remedy = (
            "Check its name, and that it is installed or on PYTHONPATH"
            if unknown
            else "Mend it, or install what it needs"
        )
        raise SaberError(
            f"{what}: module {module_name} cannot be imported: {_said(error)}. {remedy}"
        ) from error
    factory = getattr(module, class_name, None)
    if not callable(factory):
        raise SaberError(f"{what}: module {module_name} has no class {class_name}")
    return factory


def make(factory: Callable[..., Any], options: Mapping[str, Any], what: str) -> Any:
    """Make an instance of a loaded class.

    Args:
        factory: the class.
        options: its keyword arguments, JSON values.
        what: as in :func:`load_class`.

    Raises:
        SaberError: if an option is unknown, missing or no JSON value, or the class raises.
    """
    _check_options(factory, options, what)
    for name, value in options.items():
        try:
            canonical_json(value)
        except (TypeError, ValueError) as error:
            raise SaberError(
                f"{what}: option {name} is no JSON value ({error}). Quote it if it is a date, and give"
                " finite numbers"
            ) from error
    _check_types(factory, options, what)
    given = f"Check its options ({', '.join(options)}) and the class" if options else ""
    return call_user(what, "the class", factory, remedy=given or "Mend the class", **options)


def call_user(
    what: str,
    part: str,
    function: Callable[..., Value],
    *args: Any,
    remedy: str = "Mend the class",
    **kwargs: Any,
) -> Value:
    """Call a user's function, or ``getattr`` for a property.

    Args:
        what: whose it is, for messages: ``engine python:mine:Judge``.
        part: what is called, for messages: ``revision``.
        function: called with ``args`` and ``kwargs``.
        args: positional arguments.
        remedy: what to do if it raises.
        kwargs: keyword arguments.

    Raises:
        SaberError: if the function raises; it has the exception's type and message, and the file
            and line of the user's code. A ``SaberError`` is passed on under the same name.
    """
    try:
        return function(*args, **kwargs)
    except SaberError as error:
        raise SaberError(f"{what}: {error}") from error
    except Exception as error:
        raise SaberError(f"{what}: {part} raised {_said(error)}. {remedy}") from error


def lacking(thing: Any, names: Sequence[str], what: str) -> list[str]:
    """Which attributes a user's object does not have; no property is run to find out."""
    absent = object()
    return [
        name
        for name in names
        if inspect.getattr_static(thing, name, absent) is absent
        and not call_user(what, name, hasattr, thing, name)
    ]


def text_of(thing: Any, name: str, what: str, remedy: str = "Mend the class") -> str:
    """An attribute of a user's object that is a text.

    Raises:
        SaberError: if reading it raises, or it is no text or empty.
    """
    value = call_user(what, name, getattr, thing, name, remedy=remedy)
    if not isinstance(value, str) or not value.strip():
        raise SaberError(f"{what}: {name} is {value!r}; it must be a str that is not empty")
    return value


def _check_options(factory: Callable[..., Any], options: Mapping[str, Any], what: str) -> None:
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):
        return  # not everything that can be called has a signature
    known = {p.name: p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    listed = f"Its options are {', '.join(known)}" if known else "It takes none"
    missing = [n for n, p in known.items() if p.default is p.empty and n not in options]
    unknown = [name for name in options if name not in known]
    if unknown and not any(p.kind is p.VAR_KEYWORD for p in parameters):
        near = difflib.get_close_matches(unknown[0], known, 1)
        hint = f", did you mean {near[0]!r}?" if near else "."
        raise SaberError(f"{what} has no option {unknown[0]!r}{hint} {listed}")
    if missing:
        raise SaberError(f"{what} needs the option(s) {', '.join(missing)}. {listed}")


def _check_types(factory: Callable[..., Any], options: Mapping[str, Any], what: str) -> None:
    """Refuse an option that is not of the plain types that the class declares for it."""
    try:
        declared = get_type_hints(factory.__init__ if inspect.isclass(factory) else factory)
    except Exception:
        return  # annotations that cannot be resolved are the user's own affair
    for name, value in options.items():
        kind = declared.get(name)
        kinds = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
        if all(kind in _PLAIN for kind in kinds) and not any(_is_a(value, kind) for kind in kinds):
            wanted = " or ".join(_PLAIN[kind] for kind in kinds)
            raise SaberError(f"{what}: option {name} is {value!r}; it must be {wanted}")


def _is_a(value: Any, kind: Any) -> bool:
    """Whether a value is of a plain type: an int is a float, too, and a bool is neither."""
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, (int, float) if kind is float else kind)


def _said(error: BaseException) -> str:
    """Type, message and place of an exception, in one line."""
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    message = " ".join(text.split())[:_MESSAGE_CHARS]
    place = _place(error)
    return (
        type(error).__name__
        + (f": {message}" if message else "")
        + (f" ({place})" if place else "")
    )


def _place(error: BaseException) -> str:
    """``file:line`` of the innermost frame in the folder of the outermost one that is the user's."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    places = [
        (Path(frame.f_code.co_filename), line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if not frame.f_code.co_filename.startswith(_NOT_THEIRS)
    ]
    beside = [(file, line) for file, line in places if file.parent == places[0][0].parent]
    return f"{beside[-1][0]}:{beside[-1][1]}" if beside else ""
