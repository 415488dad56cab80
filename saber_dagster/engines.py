"""The protocol between the pipeline and whatever answers its questions.

An engine answers calls. A call is a task and its inputs; tasks and the shape of their inputs are:

==================  =================================================================
task                inputs
==================  =================================================================
topic_scores        ``problem``, ``solution``, ``candidates``: a tuple of ``{"label", "synonyms",
                    "terms"}``; ``terms`` are the names of everything below the candidate
solution_summary    ``problem``, ``solution``, ``max_words``
pairwise_judgment   ``query``, ``first``, ``second``: each ``{"problem", "solution"}``
==================  =================================================================

The text of a reply follows the grammar in :mod:`saber_dagster.replies`, whatever the engine.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from saber_dagster.hashing import canonical_json, sha256_hex

TOPIC_SCORES = "topic_scores"
SOLUTION_SUMMARY = "solution_summary"
PAIRWISE_JUDGMENT = "pairwise_judgment"
TASKS = (TOPIC_SCORES, SOLUTION_SUMMARY, PAIRWISE_JUDGMENT)

Status = Literal["ok", "parse_error", "refused", "truncated", "transport_error"]
FINAL: frozenset[str] = frozenset({"ok", "parse_error", "refused", "truncated"})
"""Statuses that are not asked again. ``transport_error`` is retried by the next run."""

Message = Mapping[str, str]
"""One chat message: ``role`` and ``content``."""


@dataclass(frozen=True, slots=True)
class Call:
    """One question. ``item`` names it for readers of the ledger; it is never part of the key."""

    task: str
    inputs: Mapping[str, Any]
    item: str
    sample: int = 0


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one reply."""

    prompt: int = 0
    completion: int = 0
    reasoning: int = 0
    cached: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back: ``ok`` means a complete text, not that it parses."""

    status: Status
    text: str = ""
    reasoning: str = ""
    finish_reason: str = "stop"
    usage: Usage = field(default_factory=Usage)
    price: float = 0.0
    latency: float = 0.0
    error: str = ""


@dataclass(frozen=True, slots=True)
class PromptRef:
    """The prompt that an engine renders for a task; part of code versions and ledger rows."""

    name: str
    sha256: str


@runtime_checkable
class Engine(Protocol):
    """Anything that answers calls. Its answer depends on the call alone, never on the corpus."""

    @property
    def model(self) -> str:
        """Name of the model."""
        ...

    @property
    def revision(self) -> str:
        """Exact revision of the model or of the data that the engine ships."""
        ...

    def params(self, task: str) -> Mapping[str, Any]:
        """Sampling parameters for a task: JSON values that can change an answer."""
        ...

    def prompt(self, task: str) -> PromptRef:
        """The prompt that :meth:`messages` renders."""
        ...

    def messages(self, call: Call) -> Sequence[Message]:
        """The call as it is sent: everything that the answer may depend on."""
        ...

    def answer(self, calls: Sequence[Call]) -> Iterator[tuple[int, Reply]]:
        """Yield (position in ``calls``, reply) in any order, each as soon as it is there."""
        ...


def call_key(engine: Engine, call: Call) -> str:
    """The ledger key of a call: a digest of everything that can change its answer.

    Item id, partition, round, run and concurrency are not part of it.
    """
    return sha256_hex(
        canonical_json(
            [
                engine.model,
                engine.revision,
                dict(engine.params(call.task)),
                [dict(message) for message in engine.messages(call)],
                call.sample,
            ]
        )
    )
