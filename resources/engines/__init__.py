"""Engines: what answers calls. Each is injected by role: the annotator, and every judge."""

from typing import Any

import dagster as dg
from pydantic import Field

from saber_dagster.engines import Engine
from saber_dagster.errors import SaberError
from saber_dagster.plugins import PREFIX, load_class

BUILT_IN = {
    "embedded": "resources.engines.embedded:EmbeddedEngine",
    "openai": "resources.engines.openai:OpenAIEngine",
}
"""Built-in engines: name → ``module:Class``. Nothing is imported before it is used."""


def load_engine(engine: str, options: dict[str, Any]) -> Engine:
    """Make an engine from its name in the settings.

    Args:
        engine: ``embedded``, ``openai``, or ``python:package.module:Class``.
        options: keyword arguments of the engine's class.

    Raises:
        SaberError: if the name, the class or an option is wrong; the message names the remedy.
    """
    if engine in BUILT_IN:
        path = BUILT_IN[engine]
    elif engine.startswith(PREFIX):
        path = engine.removeprefix(PREFIX)
    else:
        raise SaberError(
            f"there is no engine {engine!r}; use {', '.join(BUILT_IN)} or {PREFIX}package.module:Class"
        )
    factory = load_class(path, f"engine {engine}")
    try:
        made = factory(**options)
    except TypeError as error:
        raise SaberError(f"engine {engine}: wrong options {sorted(options)}: {error}") from None
    if not isinstance(made, Engine):
        lacking = [
            n
            for n in ("model", "revision", "params", "prompt", "messages", "answer")
            if not hasattr(made, n)
        ]
        raise SaberError(
            f"engine {engine} lacks {', '.join(lacking)} (see saber_dagster/engines.py)"
        )
    return made


def engine_identity(engine: Engine, task: str) -> dict[str, Any]:
    """All that makes the engine's answers to a task what they are; part of code versions."""
    prompt = engine.prompt(task)
    return {
        "model": engine.model,
        "revision": engine.revision,
        "params": dict(engine.params(task)),
        "prompt": [prompt.name, prompt.sha256],
    }


class EngineResource(dg.ConfigurableResource[Engine]):
    """An engine by name and options, made when a step first needs it."""

    engine: str
    options: dict[str, Any] = Field(default={})

    def load(self) -> Engine:
        """The engine."""
        return load_engine(self.engine, self.options)
