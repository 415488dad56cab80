"""Users' own classes, named in settings as ``python:package.module:Class``."""

import importlib
from typing import Any

from saber_dagster.errors import SaberError

PREFIX = "python:"


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
    except ImportError as error:
        raise SaberError(
            f"{what}: module {module_name} cannot be imported ({error}). Check its name, and that it"
            " is installed or on PYTHONPATH"
        ) from error
    factory = getattr(module, class_name, None)
    if not callable(factory):
        raise SaberError(f"{what}: module {module_name} has no class {class_name}")
    return factory
