"""Thresholds: what counts as a high signal."""

from collections.abc import Mapping

import dagster as dg
import polars as pl

from assets.pinned import pinned_table
from assets.rules import RECOUNT
from assets.signal_pictures import curve_picture, threshold_pictures
from assets.signals import GROUP, SignalAssets
from assets.stage import Check, CheckRule, Made, Site, stage
from saber_dagster.rules import signals as pair_rules
from saber_dagster.signals.pairs import SignalShards
from saber_dagster.signals.tails import SignalTail
from saber_dagster.tables import TableParts
from saber_dagster.thresholds.fit import fit_thresholds
from saber_dagster.thresholds.rule import ThresholdRule

TAIL_SHARES = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
"""Upper-tail shares whose thresholds are shown."""


def threshold_asset(site: Site, signals: SignalAssets) -> dg.AssetsDefinition:
    """The asset of this stage."""
    settings = site.settings
    rule = ThresholdRule.of(settings)

    @stage(
        site,
        "thresholds",
        table="thresholds",
        version="2",
        group=GROUP,
        inputs={"signal_shards": signals.signal_shards, "problem_index": signals.problem_index},
        reads=["domains", "thresholds", "candidates", "release", "queries.require_all_domains"],
        checks=[
            CheckRule("some_query_is_eligible", "Some query has K documents in each group."),
            CheckRule(
                "every_domain_has_enough_queries",
                "Every domain has enough eligible queries.",
                blocking=settings.queries.require_all_domains,
            ),
            RECOUNT,
        ],
    )
    def thresholds(
        context: dg.AssetExecutionContext, signal_shards: TableParts, problem_index: pl.DataFrame
    ) -> Made:
        shards = SignalShards(signal_shards, problem_index)
        if pinned := pinned_table(site, "thresholds"):
            return Made(
                pinned.frame,
                {
                    **pinned.metadata,
                    **threshold_pictures(context, site, pinned.frame, shards, problem_index),
                },
                [*_released_checks(pinned.frame, rule), RECOUNT.pinned(pinned.metadata["release"])],
            )
        result = fit_thresholds(shards, problem_index, settings.domains, rule)
        recount = pair_rules.threshold_counts_are_right(
            result.frame, shards, problem_index, rule.per_group
        )
        short = [str(failure) for failure in result.failures]
        for line in short:
            context.log.warning(line)
        return Made(
            result.frame,
            {
                "pinned": False,
                "binding": dg.MetadataValue.json(result.binding),
                "eligible_curve": dg.MetadataValue.json(_by_domain(result.curve)),
                **({"tails": dg.MetadataValue.json(_tails(result.tails))} if result.tails else {}),
                **threshold_pictures(
                    context, site, result.frame, shards, problem_index, result.tails
                ),
                **(curve_picture(context, site, result.curve) if rule.rule != "fixed" else {}),
            },
            [*_checks(result.frame, rule, ".\n".join(short)), RECOUNT.verdict(recount)],
        )

    return thresholds


def _by_domain(curve: pl.DataFrame) -> dict[str, list[tuple[float, int]]]:
    """Domain → share or c, and how many queries would be eligible."""
    found: dict[str, list[tuple[float, int]]] = {}
    for domain, level, eligible in curve.iter_rows():
        found.setdefault(domain, []).append((level, eligible))
    return found


def _tails(tails: Mapping[str, Mapping[str, SignalTail]]) -> dict[str, dict[str, dict[str, float]]]:
    """Domain → signal → share → the value that at most this share of the pairs exceeds.

    A share that the stored pairs do not reach is left out.
    """
    return {
        domain: {
            signal: {
                f"{share:g}": threshold
                for share in TAIL_SHARES
                if (threshold := tail.threshold(share)) > 0
            }
            for signal, tail in signals.items()
        }
        for domain, signals in tails.items()
    }


def _released_checks(frame: pl.DataFrame, rule: ThresholdRule) -> list[Check]:
    return _checks(frame, rule, "as recorded when the release was made")


def _checks(frame: pl.DataFrame, rule: ThresholdRule, short: str) -> list[Check]:
    enough = frame.filter(pl.col("eligible_queries") >= rule.queries_required)
    some = frame.filter(pl.col("eligible_queries") > 0)
    verdict = (
        f"{enough.height} of {frame.height} domains have {rule.queries_required} eligible queries"
    )
    return [
        Check("some_query_is_eligible", some.height > 0, f"{verdict}. {short}".strip()),
        Check(
            "every_domain_has_enough_queries",
            enough.height == frame.height,
            f"{verdict}. {short}".strip(),
        ),
    ]
