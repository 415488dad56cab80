"""What counts as a high signal: the paper's percentile rule, and the top-M rule."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

from saber_dagster.candidates import SmallestGroup, group_counts, group_pairs, rank_in_query
from saber_dagster.contracts import GROUPS, TABLES
from saber_dagster.errors import SaberError
from saber_dagster.signals import population

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ThresholdRule:
    """How thresholds are fitted.

    Args:
        rule: ``percentile`` (the paper's) or ``top_m``.
        per_group: K, the documents that an eligible query has in each group.
        queries_required: eligible queries that each domain needs.
        topic_floor: top_m: lowest high topic signal; percentile: the floor of the stored pairs.
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

    def m(self, c: float, per_group: int) -> int:
        """M = ceil(c K)."""
        return math.ceil(round(c * per_group, 9))

    def steps(self, n_documents: int, per_group: int) -> list[float]:
        """The values of c that a corpus of this size allows; the first always."""
        most = self.max_share * n_documents
        return [c for i, c in enumerate(self.c_steps) if i == 0 or self.m(c, per_group) <= most]


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
    rule: str

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
        if self.rule == "percentile":
            cures.append("lower signals.topic_floor and signals.summary_floor, which hide the rest")
        cures.append("add problems of this domain to the corpus")
        return (
            f"{self.domain}: {self.found} of {self.n_queries} possible queries have {self.per_group} "
            f"documents in each group, {self.wanted_queries} are needed; the group that most queries "
            f"are short of is {self.group}. Remedy: {', or '.join(cures)}"
        )


@dataclass(frozen=True)
class ThresholdResult:
    """Table ``thresholds``, one row per domain, and the domains that fall short."""

    frame: pl.DataFrame
    failures: tuple[Shortfall, ...]


def fit_thresholds(
    pairs: pl.DataFrame, index: pl.DataFrame, domains: Sequence[str], rule: ThresholdRule
) -> ThresholdResult:
    """Fit the thresholds of all domains.

    A domain's population is its queries, by membership, with every document outside the query's
    near-duplicate cluster; for percentiles and densities, the pairs of which both have the feature.

    ``percentile``: both signals share an upper-tail share u = 1 - percentile. At u the threshold of
    a signal is the smallest value in the population that at most the share u of the population
    exceeds. In each domain u is the smallest at which enough queries have K documents in each
    group, found exactly among all u at which a threshold changes. The thresholds are the minima
    over the domains. A u whose threshold is below the floor of the stored pairs is not available; a
    domain without an available u takes part in the minima only if no domain has one.

    ``top_m``: all domains start with the first c; those with too few eligible queries take the
    next, until none is short or may go on. A query of several domains follows its primary domain.

    Args:
        pairs: table ``signal_shards``, of all shards.
        index: table ``problem_index``.
        domains: the configured domains.
        rule: the rule.

    Returns:
        A row for every domain, also for those that fall short: they have the last c, or the
        percentile with the most eligible queries.

    Source: SABER-Math, appendix "Selecting the Similarity Thresholds"; ``top_m`` is ours.
    """
    search = (_Percentile if rule.rule == "percentile" else _TopM)(pairs, index, domains, rule)
    table, n, k = TABLES["thresholds"], rule.queries_required, rule.per_group
    limits = {
        domain: {"domain": domain, "rule": rule.rule, **own}
        for domain, own in search.limits().items()
    }
    applied = pl.DataFrame(list(limits.values()), schema=table.schema)
    counts = group_counts(group_pairs(pairs, index, applied), index)
    rows, failures = [], []
    for domain in domains:
        members = counts.filter(pl.col("domains").list.contains(domain))
        smallest = members.select(pl.min_horizontal(GROUPS)).to_series()
        found = int((smallest >= k).sum())
        short = {group: int((members[group] < k).sum()) for group in GROUPS}
        both = int(members["both"].sum())
        size = search.sizes.get(domain, {})
        row = limits[domain] | {"n_queries": members.height, "n_pairs": size.get("n_pairs", 0)}
        for signal in ("topic", "summary"):
            hits = both + int(members[f"{signal}_only"].sum())
            row[f"density_{signal}"] = hits / max(size.get(f"{signal}_pairs", 0), 1)
        row |= {"eligible_queries": found} | {f"short_{group}": short[group] for group in GROUPS}
        rows.append(row)
        if found < n:
            binding = max(reversed(GROUPS), key=lambda group: short[group])
            largest_k = search.largest_k(domain)
            if largest_k == k:  # enough by itself, but not by what all domains share
                largest_k = int(smallest.sort(descending=True)[n - 1])
            failures.append(
                Shortfall(domain, binding, n, found, members.height, k, largest_k, rule.rule)
            )
    return ThresholdResult(table.check(pl.DataFrame(rows, schema=table.schema)), tuple(failures))


_Limits = dict[str, float | int | None]


class _Search:
    """What both rules need: each pair's query, and who belongs to a domain."""

    def __init__(
        self, pairs: pl.DataFrame, index: pl.DataFrame, domains: Sequence[str], rule: ThresholdRule
    ) -> None:
        self.rule = rule
        self.domains = domains
        self.queries = index.filter("is_query").sort("doc_id")
        self.documents = index.filter("is_document")
        self.primary = self.queries["primary_domain"].to_list()
        if lost := sorted(set(self.primary) - set(domains)):
            raise SaberError(f"problem_index: no such domain: {lost[0]!r}. Materialize it again")
        self.member = {
            domain: self.queries["domains"].list.contains(domain).to_numpy() for domain in domains
        }
        rows = population(self.queries, self.documents).to_dicts()
        self.sizes = {row["domain"]: row for row in rows}
        ids = self.queries.select(pl.col("doc_id").alias("query_id")).with_row_index("query")
        self.pairs = pairs.drop("doc_id").join(ids, on="query_id")
        self.query = self.pairs["query"].to_numpy().astype(np.int64)
        self.signals = [
            (name, self.pairs[name].to_numpy(), floor)
            for name, floor in (("topic", rule.topic_floor), ("summary", rule.summary_floor))
        ]


class _TopM(_Search):
    """The level of a pair is its rank in the query: it is high from M = rank on."""

    def limits(self) -> dict[str, _Limits]:
        rule = self.rule
        steps = rule.steps(self.documents.height, rule.per_group)
        full = [self._smallest.at(rule.m(c, rule.per_group)) >= rule.per_group for c in steps]
        step = dict.fromkeys(self.domains, 0)
        while True:
            eligible = np.array(
                [full[step[d]][i] for i, d in enumerate(self.primary)], dtype=np.bool_
            )
            raised = [
                domain
                for domain, i in step.items()
                if i + 1 < len(steps)
                and np.sum(eligible[self.member[domain]]) < rule.queries_required
            ]
            if not raised:
                break
            step |= {domain: step[domain] + 1 for domain in raised}
        floors = {"topic": rule.topic_floor, "summary": rule.summary_floor}
        return {
            domain: {"c": steps[i], "m": rule.m(steps[i], rule.per_group), **floors}
            for domain, i in step.items()
        }

    def largest_k(self, domain: str) -> int:
        rule, member = self.rule, self.member[domain]
        for k in range(rule.per_group, 0, -1):
            for c in rule.steps(self.documents.height, k):
                sizes = self._smallest.at(rule.m(c, k))[member]
                if np.sum(sizes >= k) >= rule.queries_required:
                    return k
        return 0

    @cached_property
    def _smallest(self) -> SmallestGroup:
        ranks = self.pairs.select(rank_in_query("topic"), rank_in_query("summary"))
        topic, summary = (
            np.where((values >= floor) & (values > 0), rank.to_numpy(), np.inf)
            for (_, values, floor), rank in zip(self.signals, ranks, strict=True)
        )
        end = self.rule.m(max(self.rule.c_steps), self.rule.per_group) + 1
        return SmallestGroup(self.query, topic, summary, self.queries.height, end)


class _Percentile(_Search):
    """The level of a pair is the share of the population that is as large or larger."""

    def limits(self) -> dict[str, _Limits]:
        shares, done = {}, []
        for domain in self.domains:
            level, eligible = self._smallest(domain).eligible(self.rule.per_group)
            enough = np.flatnonzero(eligible >= self.rule.queries_required)
            if enough.size:
                done.append(domain)
                shares[domain] = float(level[enough[0]])
            elif level.size:  # the share with the most eligible queries; if none has any, the last
                best = np.argmax(eligible) if eligible.any() else -1
                shares[domain] = float(level[best])
        topic, summary = (
            min((self._threshold(d, signal, shares[d]) for d in done or shares), default=1.0)
            for signal in (0, 1)
        )
        percentiles = {domain: 1.0 - share for domain, share in shares.items()}
        return {
            domain: {"percentile": percentiles.get(domain), "topic": topic, "summary": summary}
            for domain in self.domains
        }

    def largest_k(self, domain: str) -> int:
        smallest, low, high = self._smallest(domain), 0, self.rule.per_group
        while low < high:  # at any share, fewer documents per group are easier to have
            middle = (low + high + 1) // 2
            _, eligible = smallest.eligible(middle)
            if np.any(eligible >= self.rule.queries_required):
                low = middle
            else:
                high = middle - 1
        return low

    @cached_property
    def _tails(self) -> dict[str, list[tuple[Floats, float, int]]]:
        """Of each domain and signal: stored values from the floor on, the floor, population."""
        tails: dict[str, list[tuple[Floats, float, int]]] = {}
        for domain in self.domains:
            mine, size = self.member[domain][self.query], self.sizes.get(domain, {})
            for name, values, floor in self.signals:
                tail = np.sort(values[mine & (values >= floor) & (values > 0)])
                tails.setdefault(domain, []).append((tail, floor, size.get(f"{name}_pairs", 0)))
        return tails

    def _smallest(self, domain: str) -> SmallestGroup:
        mine = self.member[domain][self.query]
        levels, end = [], math.inf
        for (_, values, _), (tail, floor, n) in zip(self.signals, self._tails[domain], strict=True):
            lowest = tail[0] if tail.size else math.inf
            shares = _share_at_least(tail, values[mine], n)
            levels.append(np.where(values[mine] >= lowest, shares, math.inf))
            if floor > 0:  # from this share on the threshold is below the floor
                end = min(end, tail.size / max(n, 1))
        return SmallestGroup(self.query[mine], levels[0], levels[1], self.queries.height, end)

    def _threshold(self, domain: str, signal: int, share: float) -> float:
        """The largest value that is not high at a share; 0 if there is none."""
        tail, _, n = self._tails[domain][signal]
        return float(np.max(tail[_share_at_least(tail, tail, n) > share], initial=0.0))


def _share_at_least(tail: Floats, values: Floats, n: int) -> Floats:
    return np.divide(tail.size - np.searchsorted(tail, values, side="left"), max(n, 1))
