"""The thresholds of all domains, by one of the rules, and whom they leave as queries."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from saber_dagster.contracts import GROUPS, TABLES
from saber_dagster.errors import SaberError
from saber_dagster.pair_groups import group_counts
from saber_dagster.query_parts import Members
from saber_dagster.signals.statistics import population
from saber_dagster.signals.tails import SignalTail
from saber_dagster.thresholds.fixed import FixedThresholds
from saber_dagster.thresholds.percentile import PercentileSearch
from saber_dagster.thresholds.rule import Fitting, Shortfall, ThresholdRule
from saber_dagster.thresholds.top_m import TopMSearch

Search = PercentileSearch | TopMSearch | FixedThresholds
SEARCHES: Mapping[str, Callable[[Fitting], Search]] = {
    "percentile": PercentileSearch,
    "top_m": TopMSearch,
    "fixed": FixedThresholds,
}


@dataclass(frozen=True)
class ThresholdResult:
    """The thresholds and how they came about.

    Args:
        frame: table ``thresholds``, one row per domain.
        failures: the domains that fall short.
        curve: columns domain, share (percentile) or c (top_m), eligible: how many queries of each
            domain would be eligible at some shares, by the domain's own tails, or with each c.
        tails: percentile: domain → signal → the distribution that the shares are of.
        binding: what a domain decides for all, a threshold (percentile) or the largest c (top_m) →
            this domain, and the group that most of its other queries are short of.
    """

    frame: pl.DataFrame
    failures: tuple[Shortfall, ...]
    curve: pl.DataFrame
    tails: Mapping[str, Mapping[str, SignalTail]] | None
    binding: Mapping[str, Mapping[str, str]]


def fit_thresholds(
    shards: Iterable[pl.DataFrame],
    index: pl.DataFrame,
    domains: Sequence[str],
    rule: ThresholdRule,
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

    ``fixed``: a signal is high if it exceeds the rule's number.

    Args:
        shards: frames of numbered pairs, each with all pairs of its queries, no query in two of
            them. They are read several times (percentile 4, top_m 2, more where a domain falls
            short) and never kept.
        index: table ``problem_index``, which the pairs are numbered by.
        domains: the configured domains.
        rule: the rule.

    Returns:
        A row for every domain, also for those that fall short: they have the last c, or the
        percentile with the most eligible queries.

    Raises:
        SaberError: a query's primary domain is not configured.

    Source: SABER-Math, appendix "Selecting the Similarity Thresholds"; ``top_m`` is ours.
    """
    queries, documents = index.filter("is_query"), index.filter("is_document")
    if lost := sorted(set(queries["primary_domain"].unique()) - set(domains)):
        raise SaberError(f"problem_index: no such domain: {lost[0]!r}. Materialize it again")
    members = Members.of(index, domains)
    search = SEARCHES[rule.rule](Fitting(shards, index, members, rule))
    table, n, k = TABLES["thresholds"], rule.queries_required, rule.per_group
    limits = {
        domain: {"domain": domain, "rule": rule.rule, **own}
        for domain, own in search.limits().items()
    }
    applied = pl.DataFrame(list(limits.values()), schema=table.schema)
    counts = group_counts(shards, index, applied)
    sizes = {row["domain"]: row for row in population(queries, documents).to_dicts()}
    rows, short_of, smallest, lacked = [], {}, {}, {}
    for domain in domains:
        own = counts.filter(pl.col("domains").list.contains(domain))
        smallest[domain] = own.select(pl.min_horizontal(GROUPS)).to_series()
        found = int((smallest[domain] >= k).sum())
        short = {group: int((own[group] < k).sum()) for group in GROUPS}
        both = int(own["both"].sum())
        size = sizes.get(domain, {})
        row = limits[domain] | {"n_queries": own.height, "n_pairs": size.get("n_pairs", 0)}
        for signal in ("topic", "summary"):
            hits = both + int(own[f"{signal}_only"].sum())
            row[f"density_{signal}"] = hits / max(size.get(f"{signal}_pairs", 0), 1)
        row |= {"eligible_queries": found} | {f"short_{group}": short[group] for group in GROUPS}
        rows.append(row)
        group = max(reversed(GROUPS), key=lambda group: short[group])
        if short[group]:
            lacked[domain] = group
        if found < n:
            short_of[domain] = group
    frame = table.check(pl.DataFrame(rows, schema=table.schema))
    largest = search.largest_k(list(short_of)) if short_of else {}
    failures = []
    for domain, group in short_of.items():
        if largest.get(domain, k) == k:  # what decides are the limits that all domains share
            sizes_here = smallest[domain].sort(descending=True)
            largest[domain] = int(sizes_here[n - 1]) if sizes_here.len() >= n else 0
        row = frame.row(by_predicate=pl.col("domain") == domain, named=True)
        failures.append(
            Shortfall(
                domain, group, n, row["eligible_queries"], row["n_queries"], k, largest[domain], rule
            )
        )  # fmt: skip
    binding = {
        what: {"domain": domain} | ({"group": lacked[domain]} if domain in lacked else {})
        for what, domain in search.binding.items()
    }
    return ThresholdResult(frame, tuple(failures), search.curve(), search.tails, binding)
