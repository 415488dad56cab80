"""The protocol between the pipeline and whatever answers its questions.

An engine answers calls. A call is a task and its inputs; tasks and the shape of their inputs are:

===================  =================================================================
task                 inputs
===================  =================================================================
topic_scores         ``problem``, ``solution``, ``candidates``: a tuple of ``{"label", "synonyms",
                     "terms"}``; ``terms`` are the names of everything below the candidate
solution_summary     ``problem``, ``solution``, ``max_words``
pairwise_judgment    ``query``, ``first``, ``second``: each ``{"problem", "solution"}``
pairwise_choice      the same; the answer is one token, with log-probabilities
relevance_choice     ``query``, ``document``: each ``{"problem", "solution"}``; one token likewise
ordinal_judgment     the same; the answer is a number from 0 to 100
latex_formatting     ``text``
solution_selection   ``problem``, ``solutions``: a tuple of texts
segmentation         ``text``: a document that holds several problems
cleaning             ``text``
translation          ``text``, ``language``: the name of the language it is in
===================  =================================================================

The text of a reply follows the grammar in :mod:`saber_dagster.replies`, whatever the engine.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from saber_dagster.hashing import canonical_json, sha256_hex

TOPIC_SCORES = "topic_scores"
SOLUTION_SUMMARY = "solution_summary"
PAIRWISE_JUDGMENT = "pairwise_judgment"
PAIRWISE_CHOICE = "pairwise_choice"
RELEVANCE_CHOICE = "relevance_choice"
ORDINAL_JUDGMENT = "ordinal_judgment"
LATEX_FORMATTING = "latex_formatting"
SOLUTION_SELECTION = "solution_selection"
SEGMENTATION = "segmentation"
CLEANING = "cleaning"
TRANSLATION = "translation"
TASKS = (
    TOPIC_SCORES,
    SOLUTION_SUMMARY,
    PAIRWISE_JUDGMENT,
    PAIRWISE_CHOICE,
    RELEVANCE_CHOICE,
    ORDINAL_JUDGMENT,
    LATEX_FORMATTING,
    SOLUTION_SELECTION,
    SEGMENTATION,
    CLEANING,
    TRANSLATION,
)

Status = Literal["ok", "parse_error", "refused", "truncated", "transport_error"]
FINAL: frozenset[str] = frozenset({"ok", "parse_error", "refused", "truncated"})
"""Statuses that are not asked again. ``transport_error`` is retried by the next run."""

Message = Mapping[str, str]
"""One chat message: ``role`` and ``content``."""


@dataclass(frozen=True, slots=True)
class Call:
    """One question.

    Attributes:
        task: one of :data:`TASKS`.
        inputs: JSON values, by the table above.
        item: names it for readers of the ledger; it is never part of the key.
        sample: number of a repeated question; part of the key.
        attempt: 0, or n for the n-th time of asking again after a reply that did not parse. An engine
            that can say so in its messages adds a reminder of the form; then the key is another one.
    """

    task: str
    inputs: Mapping[str, Any]
    item: str
    sample: int = 0
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one reply."""

    prompt: int = 0
    completion: int = 0
    reasoning: int = 0
    cached: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back: ``ok`` means a complete text, not that it parses.

    ``truncated_input`` says that the call was cut to fit into the model's context.
    """

    status: Status
    text: str = ""
    reasoning: str = ""
    finish_reason: str = "stop"
    usage: Usage = field(default_factory=Usage)
    price: float = 0.0
    latency: float = 0.0
    error: str = ""
    truncated_input: bool = False


@dataclass(frozen=True, slots=True)
class PromptRef:
    """The prompt that an engine renders for a task; part of code versions and ledger rows."""

    name: str
    sha256: str


@runtime_checkable
class Engine(Protocol):
    """Anything that answers calls. Its answer depends on the call alone, never on the corpus.

    An engine that has several calls in flight may also have a method ``stop()``: it begins no further
    call, and :meth:`answer` ends after those in flight. One without it is stopped by closing the
    iterator. One whose answers cost nothing may say so by ``free = True``; no budget stops it.
    """

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
