"""The figures of the signals: domains and topics, tails, and eligible queries."""

from collections.abc import Mapping

import dagster as dg
import numpy as np
import numpy.typing as npt
import polars as pl

from assets.pictures import picture
from assets.stage import Site
from saber_dagster.plots.signals import (
    curve_figure,
    eligible_figure,
    histogram_figure,
    tail_lines,
    tails_figure,
)
from saber_dagster.plots.topics import domains_figure, tags_of, topic_weights, topics_figure
from saber_dagster.signals.pairs import SignalShards
from saber_dagster.signals.tails import SignalTail, signal_tails

Pictures = dict[str, dg.MetadataValue]


def index_pictures(
    context: dg.AssetExecutionContext, site: Site, index: pl.DataFrame, tree: pl.DataFrame
) -> Pictures:
    """The documents by domain, and by topic."""
    domains = site.settings.domains
    documents = int(index["is_document"].sum())

    def weights() -> pl.DataFrame:
        return topic_weights(tags_of(index), tree)

    return {
        **picture(
            site,
            context,
            "plot",
            "Bars: the problems of the corpus by domain",
            lambda: domains_figure(weights(), domains, f"Domains of {documents:,} problems"),
        ),
        **picture(
            site,
            context,
            "plot_topics",
            "Bars: the problems of the corpus by first-level topic",
            lambda: topics_figure(weights(), domains, f"Topics of {documents:,} problems"),
        ),
    }


def shard_pictures(
    context: dg.AssetExecutionContext,
    site: Site,
    shards: SignalShards,
    asked: npt.NDArray[np.int32],
    index: pl.DataFrame,
) -> Pictures:
    """The tails of one partition's pairs, if all above the floors are stored."""
    if site.settings.signals.keep != "floor":
        return {}
    domain, shard = context.partition_key.split("|")

    def lines() -> pl.DataFrame:
        mine = np.zeros(index.height, dtype=np.bool_)
        mine[asked] = True
        own = index.with_columns(domains=pl.concat_list(pl.lit(domain)), is_query=pl.Series(mine))
        return tail_lines(signal_tails(shards, own, [domain], _stored_floors(site)))

    title = f"Pairs of {asked.size:,} possible queries of {domain}, shard {shard}"
    return picture(
        site,
        context,
        "plot",
        "Lines: the tail of both signals",
        lambda: tails_figure(lines(), site.settings.domains, title),
    )


def threshold_pictures(
    context: dg.AssetExecutionContext,
    site: Site,
    thresholds: pl.DataFrame,
    shards: SignalShards,
    index: pl.DataFrame,
    tails: Mapping[str, Mapping[str, SignalTail]] | None = None,
) -> Pictures:
    """Who is eligible, and the tails of all pairs, if known, with what counts as high."""
    settings = site.settings

    def lines() -> pl.DataFrame:
        floors = _stored_floors(site)
        return tail_lines(tails or signal_tails(shards, index, settings.domains, floors))

    figures = picture(
        site,
        context,
        "plot_eligible",
        "Bars: eligible queries by domain, and the group that others are short of",
        lambda: eligible_figure(
            thresholds,
            settings.domains,
            settings.thresholds.queries_required,
            settings.candidates.per_group,
        ),
    )
    if settings.signals.keep == "floor":
        figures |= picture(
            site,
            context,
            "plot_tails",
            "Lines: the tail of both signals by domain, with what counts as high",
            lambda: tails_figure(
                lines(), settings.domains, "How rare high signals are", thresholds
            ),
        )
    return figures


def histogram_of(
    context: dg.AssetExecutionContext, site: Site, counts: Mapping[str, npt.NDArray[np.int64]]
) -> Pictures:
    """How many pairs of a partition have a signal of so much."""
    domain, shard = context.partition_key.split("|")
    bins = {signal: values.tolist() for signal, values in counts.items()}
    return {
        "histogram": dg.MetadataValue.json(bins),
        **picture(
            site,
            context,
            "plot_histogram",
            "Steps: all pairs by their signals",
            lambda: histogram_figure(
                bins, _stored_floors(site), f"All pairs of {domain}, shard {shard}"
            ),
        ),
    }


def curve_picture(context: dg.AssetExecutionContext, site: Site, curve: pl.DataFrame) -> Pictures:
    """How many queries are eligible, the more pairs count as high."""
    settings = site.settings
    return picture(
        site,
        context,
        "plot_curve",
        "Lines: eligible queries by domain, the more pairs count as high",
        lambda: curve_figure(curve, settings.domains, settings.thresholds.queries_required),
    )


def _stored_floors(site: Site) -> dict[str, float]:
    """Signal → the value from which on all pairs are stored."""
    signals = site.settings.signals
    return {"topic": signals.topic_floor, "summary": signals.summary_floor}
