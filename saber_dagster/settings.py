"""The typed settings of a home, section by section; :mod:`settings_files` reads them."""

import re
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from saber_dagster.hashing import digest

ORACLE = "oracle"
"""The leaderboard's row that ranks by a judge's own ratings."""

SLUG = re.compile(r"^[a-z0-9][a-z0-9_-]*$")

Slug = Annotated[str, Field(pattern=SLUG.pattern, max_length=64)]
Share = Annotated[float, Field(ge=0, le=1)]
Multiple = Annotated[float, Field(ge=0.001, le=1000)]
Builtin = Literal["starter", "champ"]
Ask = Literal["generate", "choice_logprobs", "relevance_logprobs", "ordinal"]
Setting = Literal["statement-full", "full-full", "statement-statement"]


class Section(BaseModel):
    """A part of the settings: unknown keys are errors, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Partitions(Section):
    """How tables are cut. Results do not depend on it."""

    corpus_shards: int = Field(2, ge=1, le=99, description="hash buckets of documents")
    query_shards: int = Field(1, ge=1, le=99, description="query shards in each domain")


class ProblemSource(Section):
    """One file of problems."""

    path: str
    source: str | None = Field(None, description="name of the source; default: the file's stem")
    mapping: dict[str, str] = Field({}, description="our field: the file's column")
    language: str = "en"
    licence: str | None = None


class Corpus(Section):
    """Where problems come from: your files, or the built-in sources while there is no file."""

    files: tuple[ProblemSource, ...] = ()
    builtin: tuple[Builtin, ...] = Field(
        ("starter", "champ"),
        min_length=1,
        description="while files is empty (else not read): the starter corpus and the problems of"
        " champ-dataset",
    )
    queries: ProblemSource | None = Field(None, description="only these are queries")

    @field_validator("builtin")
    @classmethod
    def _each_once_in_our_order(cls, builtin: tuple[Builtin, ...]) -> tuple[Builtin, ...]:
        if len(set(builtin)) != len(builtin):
            raise ValueError("must name each source once")
        return tuple(name for name in get_args(Builtin) if name in builtin)


class Ontology(Section):
    """The topics; no file means the shipped ontology."""

    file: str | None = None
    nodes: str | None = Field(None, description="JSONL of id, label, synonyms for an edge list")
    format: Literal["tsv", "csv", "jsonl", "json"] | None = Field(
        None, description="default: by the file's extension"
    )
    root_domains: dict[str, str] = Field({}, description="top-level topic: domain slug")
    max_depth: int = Field(5, ge=1, description="depth of the deepest topic kept; roots are 0")


class Topics(Section):
    """Topic assignment by top-down traversal."""

    threshold: Share = Field(0.85, description="tau: a normalized score above it keeps a topic")


class Summaries(Section):
    """Solution summaries."""

    max_words: int = Field(30, ge=1, description="longest core idea")
    min_words: int = Field(4, ge=0, description="fewest content words of a core idea that counts")


class Signals(Section):
    """The two pairwise signals."""

    epsilon: float = Field(1e-12, gt=0, le=1, description="in the denominator of Lin's similarity")
    topic_floor: Share = Field(0.3, description="pairs below both floors are not stored")
    summary_floor: Share = 0.05
    keep: Literal["floor", "top_m"] = Field(
        "floor",
        description="pairs above a floor; or of these only the M largest of each query, ties included",
    )


class Thresholds(Section):
    """What counts as a high signal."""

    rule: Literal["percentile", "top_m", "fixed"] = "top_m"
    queries_required: int = Field(150, ge=1, description="eligible queries each domain needs")
    c: Multiple = Field(4.0, description="top_m: M = ceil(c K)")
    c_steps: tuple[Multiple, ...] = Field(
        (5.0, 6.0, 8.0), description="top_m: c of domains with too few queries, in this order"
    )
    topic_floor: Share = Field(0.3, description="top_m: lowest high topic similarity")
    summary_floor: Share = Field(0.05, description="top_m: lowest high summary similarity")
    topic: Share | None = Field(
        None, description="fixed: a higher topic similarity is high; the paper's is 0.858"
    )
    summary: Share | None = Field(
        None, description="fixed: the same of summaries; the paper's is 0.211"
    )


class Candidates(Section):
    """Documents to be ranked for each query."""

    per_group: int = Field(
        50, ge=1, le=100_000, description="K documents from each of the three groups"
    )


class Queries(Section):
    """The queries of the benchmark."""

    per_domain: int = Field(200, ge=1, description="queries sampled in each domain")
    require_all_domains: bool = Field(
        False,
        description="a domain with too few queries stops the build, instead of taking part with those"
        " it has",
    )


class Tournament(Section):
    """The Swiss tournament."""

    rounds: int = Field(20, ge=1, description="R")
    both_orders: bool = Field(False, description="ask every pair in both orders, one game")


class Ratings(Section):
    """Bradley-Terry ratings."""

    prior_precision: float | None = Field(
        None, gt=0, description="lambda of the Gaussian prior; default: empirical Bayes"
    )


class Evaluation(Section):
    """The leaderboard."""

    cutoff: int = Field(10, ge=1, description="k of nDCG@k")
    settings: tuple[Setting, ...] = Field(
        ("statement-full", "full-full", "statement-statement"), min_length=1
    )
    statistics: Literal["corpus", "candidates"] = Field(
        "corpus", description="texts that lexical retrievers take their statistics from"
    )
    bootstrap_samples: int = Field(1000, ge=1)


class Ledger(Section):
    """The call ledger."""

    mode: Literal["live", "replay", "dry_run"] = Field(
        "live",
        description="replay: a missing reply is an error, no call is made; dry_run: count and price"
        " the missing replies, and make nothing",
    )
    budget_usd: float | None = Field(
        None, gt=0, description="a step stops when it has spent this, a build with all its steps"
    )
    budget_calls: int | None = Field(None, ge=1, description="the same, after so many calls")
    reasks: int = Field(
        1, ge=0, le=3, description="how often to ask again after a reply that does not parse"
    )


class Rejudging(Section):
    """Scheduled re-judging; schedule and sensor are off until they are switched on."""

    cron: str = Field("0 2 * * *", description="when the schedule asks for missing games")
    partitions_per_tick: int = Field(20, ge=1, description="most partitions that a tick starts")


class EngineSettings(Section):
    """An engine: a built-in name such as ``openai``, or ``python:package.module:Class``."""

    engine: str = "embedded"
    options: dict[str, Any] = Field({}, description="keyword arguments of the engine")


class Settings(Section):
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
    ledger: Ledger = Ledger()
    rejudging: Rejudging = Rejudging()
    pictures: bool = Field(
        True, description="figures in the metadata of tables; they decide nothing"
    )
    histogram_bins: int = Field(
        0, ge=0, le=10_000, description="of all pairs, in the metadata of signal_shards; 0: none"
    )

    @field_validator("domains")
    @classmethod
    def _distinct(cls, domains: tuple[str, ...]) -> tuple[str, ...]:
        if not domains or len(set(domains)) != len(domains) or "overall" in domains:
            raise ValueError("name at least one domain, each once, none of them 'overall'")
        return domains

    @model_validator(mode="after")
    def _what_is_kept_serves(self) -> "Settings":
        if self.signals.keep == "top_m" and self.thresholds.rule != "top_m":
            raise ValueError(
                "signals.keep is top_m, which serves thresholds.rule top_m alone; other rules need all"
                " pairs above the floors: set signals.keep to floor"
            )
        return self

    @model_validator(mode="after")
    def _both_or_no_thresholds_are_fixed(self) -> "Settings":
        own = self.thresholds
        fixed = [name for name in ("topic", "summary") if getattr(own, name) is not None]
        if own.rule == "fixed" and len(fixed) < 2:
            raise ValueError(
                "thresholds.rule is fixed: set thresholds.topic and thresholds.summary, too (the"
                " paper's are 0.858 and 0.211)"
            )
        if own.rule != "fixed" and fixed:
            raise ValueError(
                f"thresholds.{fixed[0]} is set, but thresholds.rule is {own.rule}, which finds the"
                " thresholds: set thresholds.rule to fixed"
            )
        return self

    @model_validator(mode="after")
    def _floors_are_stored(self) -> "Settings":
        rule = self.thresholds.rule
        for signal in ("topic", "summary"):
            floor = f"{signal}_floor"
            name = {"top_m": floor, "fixed": signal}.get(rule)
            high = getattr(self.thresholds, name) if name else None
            stored = getattr(self.signals, floor)
            if high is not None and high < stored:
                raise ValueError(
                    f"thresholds.{name} {high} is below signals.{floor} {stored}, from which pairs are"
                    f" stored; set signals.{floor} to {high} or less"
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


class Lane(Section):
    """A lane of its own in the graph, named by its slug."""

    slug: Slug

    @field_validator("slug")
    @classmethod
    def _not_reserved(cls, slug: str) -> str:
        if slug == ORACLE:
            raise ValueError(
                "the name of the row that ranks by a judge's own ratings; take another"
            )
        return slug


class Judge(Lane):
    """A judge: a lane of its own in the graph."""

    engine: str = "embedded"
    ask: Ask = Field("generate", description="how it is asked, see judging.py")
    prompt: str | None = Field(
        None, description="name of a prompt, or path of a file; default: that of the task"
    )
    options: dict[str, Any] = Field({}, description="keyword arguments of the engine")


class RetrieverEntry(Lane):
    """A retriever: a lane of its own in the graph."""

    retriever: str
    options: dict[str, Any] = {}


class JudgeRegistry(Section):
    """``judges.yaml``."""

    judges: tuple[Judge, ...] = (Judge(slug="embedded", engine="embedded"),)

    @field_validator("judges")
    @classmethod
    def _some(cls, judges: tuple[Judge, ...]) -> tuple[Judge, ...]:
        if not judges:
            raise ValueError(
                "judges.yaml lists no judge; name one, or remove the file for the baseline"
            )
        return judges


class RetrieverRegistry(Section):
    """``retrievers.yaml``."""

    retrievers: tuple[RetrieverEntry, ...] = tuple(
        RetrieverEntry(slug=name, retriever=name)
        for name in ("bm25", "tfidf", "jaccard", "minilm", "random")
    )
