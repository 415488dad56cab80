"""The typed settings of a home: ``saber.yaml``, its presets and environment overrides."""

import difflib
import os
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from saber_dagster.errors import SaberError
from saber_dagster.hashing import digest

PRESETS = ("demo", "paper")
SLUG = re.compile(r"^[a-z0-9][a-z0-9_-]*$")
_ENV_PREFIX = "SABER_"

Slug = Annotated[str, Field(pattern=SLUG.pattern)]
Share = Annotated[float, Field(ge=0, le=1)]
Setting = Literal["statement-full", "full-full", "statement-statement"]


class SettingsError(SaberError):
    """The settings are wrong; the message names file, key and remedy."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Partitions(_Section):
    """How tables are cut. Results do not depend on it."""

    corpus_shards: int = Field(2, ge=1, le=99, description="hash buckets of documents")
    query_shards: int = Field(1, ge=1, le=99, description="query shards in each domain")


class ProblemSource(_Section):
    """One file of problems."""

    path: str
    source: str | None = Field(None, description="name of the source; default: the file's stem")
    mapping: dict[str, str] = Field({}, description="our field: the file's column")
    language: str = "en"
    licence: str | None = None


class Corpus(_Section):
    """Where problems come from; no file means the competition problems of champ-dataset."""

    files: tuple[ProblemSource, ...] = ()
    queries: ProblemSource | None = Field(None, description="only these are queries")


class Ontology(_Section):
    """The topics; no file means the shipped ontology."""

    file: str | None = None
    nodes: str | None = Field(None, description="JSONL of id, label, synonyms for an edge list")
    format: Literal["tsv", "csv", "jsonl", "json"] | None = Field(
        None, description="default: by the file's extension"
    )
    root_domains: dict[str, str] = Field({}, description="top-level topic: domain slug")
    max_depth: int = Field(5, ge=1, description="depth of the deepest topic kept; roots are 0")


class Topics(_Section):
    """Topic assignment by top-down traversal."""

    threshold: Share = Field(0.85, description="tau: a normalized score above it keeps a topic")


class Summaries(_Section):
    """Solution summaries."""

    max_words: int = Field(30, ge=1, description="longest core idea")
    min_words: int = Field(4, ge=0, description="fewest content words of a core idea that counts")


class Signals(_Section):
    """The two pairwise signals."""

    epsilon: float = Field(1e-12, gt=0, description="in the denominator of Lin's similarity")
    topic_floor: Share = Field(0.3, description="pairs below both floors are not stored")
    summary_floor: Share = 0.05


class Thresholds(_Section):
    """What counts as a high signal."""

    rule: Literal["percentile", "top_m"] = "top_m"
    queries_required: int = Field(150, ge=1, description="eligible queries each domain needs")
    c: float = Field(4.0, gt=0, description="top_m: M = ceil(c K)")
    c_steps: tuple[float, ...] = Field((5.0, 6.0, 8.0), description="top_m: c of sparse domains")
    topic_floor: Share = Field(0.3, description="top_m: lowest high topic similarity")
    summary_floor: Share = Field(0.05, description="top_m: lowest high summary similarity")


class Candidates(_Section):
    """Documents to be ranked for each query."""

    per_group: int = Field(50, ge=1, description="K documents from each of the three groups")


class Queries(_Section):
    """The queries of the benchmark."""

    per_domain: int = Field(200, ge=1, description="queries sampled in each domain")
    require_all_domains: bool = Field(
        False, description="a domain with too few queries stops the build instead of being left out"
    )


class Tournament(_Section):
    """The Swiss tournament."""

    rounds: int = Field(20, ge=1, description="R")
    both_orders: bool = Field(False, description="ask every pair in both orders, one game")


class Ratings(_Section):
    """Bradley-Terry ratings."""

    prior_precision: float | None = Field(
        None, gt=0, description="lambda of the Gaussian prior; default: empirical Bayes"
    )


class Evaluation(_Section):
    """The leaderboard."""

    cutoff: int = Field(10, ge=1, description="k of nDCG@k")
    settings: tuple[Setting, ...] = ("statement-full", "full-full", "statement-statement")
    statistics: Literal["corpus", "candidates"] = Field(
        "corpus", description="texts that lexical retrievers take their statistics from"
    )
    bootstrap_samples: int = Field(1000, ge=1)


class EngineSettings(_Section):
    """An engine: ``embedded``, ``openai`` or ``python:package.module:Class``."""

    engine: str = "embedded"
    options: dict[str, Any] = Field({}, description="keyword arguments of the engine")


class Settings(_Section):
    """Everything that decides a build."""

    preset: Literal["demo", "paper"] = "demo"
    seed: int = 7
    release: Slug = "r1"
    domains: tuple[Slug, ...] = (
        "algebra",
        "geometry",
        "number_theory",
        "combinatorics",
        "calculus_analysis",
    )
    partitions: Partitions = Partitions()
    corpus: Corpus = Corpus()
    ontology: Ontology = Ontology()
    topics: Topics = Topics()
    summaries: Summaries = Summaries()
    signals: Signals = Signals()
    thresholds: Thresholds = Thresholds()
    candidates: Candidates = Candidates()
    queries: Queries = Queries()
    tournament: Tournament = Tournament()
    ratings: Ratings = Ratings()
    evaluation: Evaluation = Evaluation()
    annotator: EngineSettings = EngineSettings()

    @field_validator("domains")
    @classmethod
    def _distinct(cls, domains: tuple[str, ...]) -> tuple[str, ...]:
        if not domains or len(set(domains)) != len(domains) or "overall" in domains:
            raise ValueError("name at least one domain, each once, none of them 'overall'")
        return domains

    @model_validator(mode="after")
    def _floors_are_stored(self) -> "Settings":
        for name in ("topic_floor", "summary_floor"):
            high, stored = getattr(self.thresholds, name), getattr(self.signals, name)
            if self.thresholds.rule == "top_m" and high < stored:
                raise ValueError(
                    f"thresholds.{name} {high} is below signals.{name} {stored}, from which pairs are"
                    f" stored; set signals.{name} to {high} or less"
                )
        return self

    def digest_of(self, *paths: str) -> str:
        """A digest of the named sections or keys, such as ``"topics"`` or ``"signals.epsilon"``."""
        return digest({path: self.value_of(path) for path in paths})

    def value_of(self, path: str) -> Any:
        """The JSON value of a section or key."""
        value: Any = self.model_dump(mode="json")
        for part in path.split("."):
            value = value[part]
        return value


class Judge(_Section):
    """A judge: a lane of its own in the graph."""

    slug: Slug
    engine: str = "embedded"
    options: dict[str, Any] = {}


class RetrieverEntry(_Section):
    """A retriever: a lane of its own in the graph."""

    slug: Slug
    retriever: str
    options: dict[str, Any] = {}


class JudgeRegistry(_Section):
    """``judges.yaml``."""

    judges: tuple[Judge, ...] = (Judge(slug="embedded", engine="embedded"),)


class RetrieverRegistry(_Section):
    """``retrievers.yaml``."""

    retrievers: tuple[RetrieverEntry, ...] = tuple(
        RetrieverEntry(slug=name, retriever=name)
        for name in ("bm25", "tfidf", "jaccard", "minilm", "random")
    )


_Model = TypeVar("_Model", bound=_Section)
_Entry = TypeVar("_Entry", Judge, RetrieverEntry)


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
