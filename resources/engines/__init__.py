"""Engines: what answers calls. Each is injected by role: the annotator, and every judge."""

from collections.abc import Mapping
from typing import Any, cast

import dagster as dg
from pydantic import Field

from resources.engines.openai_options import refuse_secrets
from saber_dagster.engines import Engine, PromptRef
from saber_dagster.errors import SaberError
from saber_dagster.hashing import canonical_json
from saber_dagster.judging import TASK_OF_ASK
from saber_dagster.plugins import PREFIX, call_user, lacking, load_class, make, text_of
from saber_dagster.settings import Judge
from saber_dagster.tokens import tokenizer_sha256

BUILT_IN = {
    "embedded": "resources.engines.embedded:EmbeddedEngine",
    "openai": "resources.engines.openai:OpenAIEngine",
    "openai_batch": "resources.engines.openai_batch:BatchEngine",
    "vllm": "resources.engines.vllm:VLLMEngine",
}
"""Built-in engines: name → ``module:Class``. Nothing is imported before it is used."""

_MEMBERS = ("model", "revision", "params", "prompt", "messages", "answer")


def load_engine(engine: str, options: dict[str, Any]) -> Engine:
    """Make an engine from its name in the settings.

    Args:
        engine: a key of :data:`BUILT_IN`, or ``python:package.module:Class``.
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
    what = f"engine {engine}"
    call_user(what, "options", refuse_secrets, options, "")
    made = make(load_class(path, what), options, what)
    missing = lacking(made, _MEMBERS, what)
    if missing:
        raise SaberError(f"{what} lacks {', '.join(missing)} (see saber_dagster/engines.py)")
    for member in ("model", "revision"):
        text_of(made, member, what)
    return cast(Engine, made)


def judge_options(judge: Judge) -> dict[str, Any]:
    """The options of a judge's engine, its prompt among them."""
    if judge.prompt is None:
        return judge.options
    prompts = {**judge.options.get("prompts", {}), TASK_OF_ASK[judge.ask]: judge.prompt}
    return {**judge.options, "prompts": prompts}


def judge_engine(judge: Judge) -> Engine:
    """Make a judge's engine and see that it can be asked as the judge's entry says.

    Raises:
        SaberError: as :func:`load_engine` does, and if the engine cannot answer the judge's way to
            ask; the message names the ways that it can.
    """
    entry = f"judge {judge.slug}"
    try:
        engine = load_engine(judge.engine, judge_options(judge))
    except SaberError as error:
        if judge.prompt is not None and "no option 'prompts'" in str(error):
            raise SaberError(
                f"{entry}: engine {judge.engine} has no prompts that could be changed; take"
                f" `prompt: {judge.prompt}` out of judges.yaml"
            ) from error
        raise SaberError(f"{entry}: {error}") from error
    try:
        engine_identity(engine, TASK_OF_ASK[judge.ask])
    except SaberError as error:
        able = [ask for ask, task in TASK_OF_ASK.items() if _takes(engine, task)]
        if judge.ask in able or judge.prompt is not None:
            raise SaberError(f"{entry}: {error}") from error
        ways = f"It can be asked by {', '.join(able)}" if able else "It takes no judge's question"
        raise SaberError(
            f"{entry}: engine {judge.engine} cannot be asked by {judge.ask} ({error}). {ways}; change"
            " `ask` in judges.yaml"
        ) from error
    return engine


def _name_of(engine: Engine) -> str:
    """As settings name it."""
    path = f"{type(engine).__module__}:{type(engine).__qualname__}"
    return next((name for name, known in BUILT_IN.items() if known == path), PREFIX + path)


def _takes(engine: Engine, task: str) -> bool:
    try:
        call_user("engine", "prompt", engine.prompt, task)
    except SaberError:
        return False
    return True


def engine_identity(engine: Engine, task: str) -> dict[str, Any]:
    """All that makes the engine's answers to a task what they are; part of code versions.

    Raises:
        SaberError: if the engine raises, its parameters are not JSON, its prompt is no reference, its
            limit leaves nothing for a call, or the tokenizer that it cuts by is not there.
    """
    what = f"engine {_name_of(engine)}"
    prompt = call_user(what, f"prompt({task!r})", engine.prompt, task)
    if not isinstance(prompt, PromptRef):
        raise SaberError(f"{what}: prompt({task!r}) returned {prompt!r}; it must be a PromptRef")
    params = call_user(what, f"params({task!r})", engine.params, task)
    if not isinstance(params, Mapping):
        raise SaberError(f"{what}: params({task!r}) returned {params!r}; it must be a dict")
    try:
        canonical_json(dict(params))
    except (TypeError, ValueError) as error:
        raise SaberError(
            f"{what}: params({task!r}) is not JSON ({error}). Return numbers, texts, lists and dicts"
        ) from error
    limit_of = getattr(engine, "limit_of", None)
    limit = call_user(what, f"limit_of({task!r})", limit_of, task) if callable(limit_of) else None
    cuts: dict[str, Any] = {} if limit is None else {"input_limit": limit}
    if cuts and (file := getattr(engine, "tokenizer_file", None)):
        cuts["tokenizer"] = call_user(what, "tokenizer_file", tokenizer_sha256, file)
    return {
        **cuts,  # what decides which calls are cut, and where
        "model": text_of(engine, "model", what),
        "revision": text_of(engine, "revision", what),
        "params": dict(params),
        "prompt": [text_of(prompt, "name", what), text_of(prompt, "sha256", what)],
    }


class EngineResource(dg.ConfigurableResource[Engine]):
    """An engine by name and options, made when a step first needs it."""

    engine: str
    options: dict[str, Any] = Field(default={})

    def load(self) -> Engine:
        """The engine."""
        return load_engine(self.engine, self.options)
