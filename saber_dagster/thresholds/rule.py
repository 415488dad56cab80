"""The rules of what counts as a high signal, and what to do where they leave too few queries."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from saber_dagster.query_parts import Members
from saber_dagster.settings import Settings

Limits = dict[str, float | int | None]
"""What a rule says of a domain: columns of its row in table ``thresholds``."""


@dataclass(frozen=True)
class ThresholdRule:
    """How thresholds are fitted.

    Args:
        rule: ``percentile`` (the paper's), ``top_m`` or ``fixed``.
        per_group: K, the documents that an eligible query has in each group.
        queries_required: eligible queries that each domain needs.
        topic_floor: top_m: lowest high topic signal; percentile: the floor of the stored pairs;
            fixed: the threshold, which a high signal exceeds.
        summary_floor: the same of the summary signal.
        c_steps: top_m: the values of c in M = ceil(c K), tried in this order.
        max_share: top_m: c is raised only while M is at most this share of the documents.
    """

    rule: str
    per_group: int
    queries_required: int
    topic_floor: float
    summary_floor: float
    c_steps: tuple[float, ...] = (4.0, 5.0, 6.0, 8.0)
    max_share: float = 0.1

    @classmethod
    def of(cls, settings: Settings) -> "ThresholdRule":
        """The rule of a home."""
        own = settings.thresholds
        stored = settings.signals
        topic, summary = {
            "percentile": (stored.topic_floor, stored.summary_floor),
            "top_m": (own.topic_floor, own.summary_floor),
            "fixed": (own.topic or 0.0, own.summary or 0.0),
        }[own.rule]
        return cls(
            rule=own.rule,
            per_group=settings.candidates.per_group,
            queries_required=own.queries_required,
            topic_floor=topic,
            summary_floor=summary,
            c_steps=(own.c, *own.c_steps),
        )

    def name_of(self, signal: str) -> str:
        """The setting that is ``topic_floor`` or ``summary_floor`` here."""
        return {
            "percentile": f"signals.{signal}_floor",
            "top_m": f"thresholds.{signal}_floor",
            "fixed": f"thresholds.{signal}",
        }[self.rule]

    def largest_m(self) -> int:
        """The M of the largest c."""
        return self.m(max(self.c_steps), self.per_group)

    def m(self, c: float, per_group: int) -> int:
        """M = ceil(c K)."""
        return math.ceil(round(c * per_group, 9))

    def steps(self, n_documents: int, per_group: int) -> list[float]:
        """The values of c that a corpus of this size allows; the first always."""
        most = self.max_share * n_documents
        return [c for i, c in enumerate(self.c_steps) if i == 0 or self.m(c, per_group) <= most]


@dataclass(frozen=True)
class Fitting:
    """What thresholds are fitted to, and by which rule.

    Args:
        shards: frames of numbered pairs, each with all pairs of its queries.
        index: table ``problem_index``.
        members: the domains of its queries.
        rule: the rule.
    """

    shards: Iterable[pl.DataFrame]
    index: pl.DataFrame
    members: Members
    rule: ThresholdRule


@dataclass(frozen=True)
class Shortfall:
    """A domain with too few eligible queries: by how much, and what would do.

    ``group`` is the one that most queries lack documents of. ``largest_k`` is the largest K with
    which the domain by itself would have enough eligible queries, 0 if there is none; ``found`` is
    how many queries could be asked for with the K as it is.
    """

    domain: str
    group: str
    wanted_queries: int
    found: int
    n_queries: int
    per_group: int
    largest_k: int
    rule: ThresholdRule

    def __str__(self) -> str:
        """What is missing, and what to do."""
        if not self.n_queries:
            return (
                f"{self.domain}: no document may be a query. Remedy: add problems of this domain, or"
                " take it out of domains in saber.yaml"
            )
        cures = []
        if self.largest_k:
            cures.append(f"set candidates.per_group to {self.largest_k}")
        if self.found:
            cures.append(f"set thresholds.queries_required to {self.found}")
        moves = bool(cures) and self.rule.rule != "fixed"
        floors = {"topic": self.rule.topic_floor, "summary": self.rule.summary_floor}
        names = [self.rule.name_of(signal) for signal, floor in floors.items() if floor > 0]
        if names:
            cures.append(f"lower {' and '.join(names)}")
        cures.append("add problems of this domain to the corpus")
        return (
            f"{self.domain}: {self.found} of {self.n_queries} possible queries have {self.per_group} "
            f"documents in each group, {self.wanted_queries} are needed; the group that most queries "
            f"are short of is {self.group}. Remedy: {', or '.join(cures)}"
            + (
                " (the thresholds move with K and the number, so try again if it falls short)"
                if moves
                else ""
            )
        )
