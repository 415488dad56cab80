"""Problem index → topic statistics → signal shards."""

from collections.abc import Mapping
from dataclasses import dataclass

import dagster as dg
import numpy as np
import numpy.typing as npt
import polars as pl

from assets.annotation import AnnotationAssets
from assets.corpus import CorpusAssets
from assets.grown_signals import asked_of, keep_index, signals_before
from assets.pinned import pinned_table
from assets.rules import (
    DOMAINS_HAVE_DOCUMENTS,
    FLOORS,
    INDEX_DOMAINS,
    INDEX_QUERIES,
    INDEX_WORDS,
    OTHERS,
    POPULATION,
    STATISTICS,
    SYMMETRIC,
)
from assets.signal_pictures import (
    histogram_of,
    index_pictures,
    shard_pictures,
)
from assets.stage import Check, CheckRule, Made, Site, stage
from saber_dagster.ontology import OntologyTree
from saber_dagster.problem_index import build_index
from saber_dagster.rules import signals as pair_rules
from saber_dagster.rules import topics as topic_rules
from saber_dagster.signals.growth import compute_signals
from saber_dagster.signals.join import SignalJoin
from saber_dagster.signals.pairs import SignalShards
from saber_dagster.signals.statistics import topic_statistics as count_topics
from saber_dagster.signals.storage import encode
from saber_dagster.signals.top import Top
from saber_dagster.tables import input_name
from saber_dagster.text import stop_words_version
from saber_dagster.thresholds.rule import ThresholdRule

GROUP = "signals"


@dataclass(frozen=True)
class SignalAssets:
    """What candidates are chosen from."""

    problem_index: dg.AssetsDefinition
    topic_statistics: dg.AssetsDefinition
    signal_shards: dg.AssetsDefinition


def signal_assets(
    site: Site,
    corpus: CorpusAssets,
    ontology_tree: dg.AssetsDefinition,
    annotation: AnnotationAssets,
) -> SignalAssets:
    """The assets of this stage."""
    settings = site.settings
    stored = settings.signals
    rule = ThresholdRule.of(settings)
    most = rule.largest_m() if stored.keep == "top_m" else None
    top = None if most is None else Top(most, stored.topic_floor, stored.summary_floor)

    @stage(
        site,
        "problem_index",
        table="problem_index",
        version="1",
        group=GROUP,
        inputs={
            "corpus": corpus.corpus,
            "topic_tags": annotation.topic_tags,
            "summaries": annotation.summaries,
            "ontology_tree": ontology_tree,
        },
        reads=["domains", "summaries.min_words"],
        identity=stop_words_version(),
        checks=[
            CheckRule("has_queries", "Some document may be a query."),
            INDEX_DOMAINS,
            INDEX_QUERIES,
            INDEX_WORDS,
            DOMAINS_HAVE_DOCUMENTS,
        ],
    )
    def problem_index(
        context: dg.AssetExecutionContext,
        corpus: pl.DataFrame,
        topic_tags: pl.DataFrame,
        summaries: pl.DataFrame,
        ontology_tree: pl.DataFrame,
    ) -> Made:
        index = build_index(
            corpus,
            topic_tags,
            summaries,
            OntologyTree.from_frame(ontology_tree),
            settings.domains,
            settings.partitions.query_shards,
            settings.summaries.min_words,
        )
        queries = index.filter("is_query")
        members = queries.explode("domains").group_by("domains").len().sort("domains").rows()
        return Made(
            index,
            {
                "documents": int(index["is_document"].sum()),
                "may_be_queries": queries.height,
                "without_topic": index.filter(pl.col("topic_set_id").is_null()).height,
                "without_words": index.filter(pl.col("word_set_id").is_null()).height,
                "queries_by_domain": dg.MetadataValue.json(dict(members)),
                **index_pictures(context, site, index, ontology_tree),
            },
            [
                Check(
                    "has_queries",
                    queries.height > 0,
                    f"{queries.height} of {index.height} documents have a domain and a summary of at"
                    f" least {settings.summaries.min_words} content words. If there is none, look at"
                    " topic_tags: do the ontology's names occur in the problems, and do its top-level"
                    " topics belong to domains (ontology.root_domains in saber.yaml)?",
                ),
                INDEX_DOMAINS.verdict(
                    topic_rules.domains_follow_from_topics(
                        index, ontology_tree, settings.domains, corpus
                    )
                ),
                INDEX_QUERIES.verdict(topic_rules.queries_may_be_asked(index, corpus)),
                INDEX_WORDS.verdict(
                    topic_rules.words_are_of_core_ideas(
                        index, summaries, settings.summaries.min_words, corpus
                    )
                ),
                DOMAINS_HAVE_DOCUMENTS.verdict(
                    topic_rules.domains_have(
                        index.filter("is_document")["domains"].explode(),
                        settings.domains,
                        "document",
                    )
                ),
            ],
        )

    @stage(
        site,
        "topic_statistics",
        table="topic_statistics",
        version="1",
        group=GROUP,
        inputs={"problem_index": problem_index, "ontology_tree": ontology_tree},
        reads=["release"],
        checks=[STATISTICS],
    )
    def topic_statistics(
        context: dg.AssetExecutionContext, problem_index: pl.DataFrame, ontology_tree: pl.DataFrame
    ) -> Made:
        if pinned := pinned_table(site, "topic_statistics"):
            release = pinned.metadata["release"]
            return Made(pinned.frame, pinned.metadata, [STATISTICS.pinned(release)])
        frame = count_topics(problem_index, OntologyTree.from_frame(ontology_tree))
        found = topic_rules.statistics_add_up(frame, ontology_tree, problem_index)
        return Made(frame, {"pinned": False}, [STATISTICS.verdict(found)])

    @stage(
        site,
        "signal_shards",
        table="signal_shards",
        version="3",
        group=GROUP,
        inputs={
            "problem_index": problem_index,
            "topic_statistics": topic_statistics,
            "ontology_tree": ontology_tree,
        },
        partitions=site.by_query,
        reads=["signals"],
        identity=most,
        checks=[FLOORS, OTHERS, SYMMETRIC, POPULATION],
        with_versions=True,
    )
    def signal_shards(
        context: dg.AssetExecutionContext,
        problem_index: pl.DataFrame,
        topic_statistics: pl.DataFrame,
        ontology_tree: pl.DataFrame,
        versions: Mapping[str, str],
    ) -> Made:
        asked = asked_of(problem_index, context.partition_key)
        floors = stored.topic_floor, stored.summary_floor
        tree = OntologyTree.from_frame(ontology_tree)

        def join(documents: npt.NDArray[np.bool_] | None = None) -> SignalJoin:
            return SignalJoin(
                problem_index, tree, topic_statistics, *floors, stored.epsilon, documents, most
            )

        before = signals_before(site, context.partition_key, versions)
        made = compute_signals(join, problem_index, asked, before, top)
        version = versions[input_name(["problem_index"], None)]
        keep_index(site, context.partition_key, problem_index, version)
        frame = encode(made.rows)
        shards = SignalShards([frame], problem_index)
        pairs = pair_rules.NumberedPairs(shards, asked, problem_index)
        word_counts = problem_index["words"].list.len().to_numpy()
        return Made(
            frame,
            {
                "queries": asked.size,
                "taken_over": made.taken_over,
                "population": dg.MetadataValue.json(made.population.to_dicts()),
                **shard_pictures(context, site, shards, asked, problem_index),
                **(
                    histogram_of(context, site, join().histograms(asked, settings.histogram_bins))
                    if settings.histogram_bins
                    else {}
                ),
            },
            [
                FLOORS.verdict(pair_rules.pairs_reach_a_floor(shards, *floors, problem_index)),
                OTHERS.verdict(pairs.are_of_others()),
                SYMMETRIC.verdict(pairs.are_symmetric(both_ways=top is None)),
                POPULATION.verdict(pairs.fit_the_population(made.population)),
            ],
            data_version=made.rows.version(problem_index["doc_id"], word_counts),
        )

    return SignalAssets(problem_index, topic_statistics, signal_shards)
