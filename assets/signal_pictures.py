"""The figures of the signals: domains and topics, tails, and eligible queries."""

import dagster as dg
import polars as pl

from assets.pictures import picture
from assets.stage import Site
from saber_dagster.plots.signals import eligible_figure, signal_tails, tails_figure
from saber_dagster.plots.topics import domains_figure, tags_of, topic_weights, topics_figure

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
    pairs: pl.DataFrame,
    queries: pl.DataFrame,
    index: pl.DataFrame,
) -> Pictures:
    """The tails of one partition's pairs."""
    domain, shard = context.partition_key.split("|")

    def tails() -> pl.DataFrame:
        own = queries.with_columns(domains=pl.concat_list(pl.lit(domain)))
        return signal_tails(pairs, own, index.filter("is_document"), _stored_floors(site))

    title = f"Pairs of {queries.height:,} possible queries of {domain}, shard {shard}"
    return picture(
        site,
        context,
        "plot",
        "Lines: the tail of both signals",
        lambda: tails_figure(tails(), site.settings.domains, title),
    )


def threshold_pictures(
    context: dg.AssetExecutionContext,
    site: Site,
    thresholds: pl.DataFrame,
    pairs: pl.DataFrame,
    index: pl.DataFrame,
) -> Pictures:
    """Who is eligible, and the tails of all pairs with what counts as high."""
    settings = site.settings

    def tails() -> pl.DataFrame:
        queries, documents = index.filter("is_query"), index.filter("is_document")
        return signal_tails(pairs, queries, documents, _stored_floors(site))

    return {
        **picture(
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
        ),
        **picture(
            site,
            context,
            "plot_tails",
            "Lines: the tail of both signals by domain, with what counts as high",
            lambda: tails_figure(
                tails(), settings.domains, "How rare high signals are", thresholds
            ),
        ),
    }


def _stored_floors(site: Site) -> dict[str, float]:
    """Signal → the value from which on all pairs are stored."""
    signals = site.settings.signals
    return {"topic": signals.topic_floor, "summary": signals.summary_floor}
