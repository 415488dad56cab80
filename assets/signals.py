"""Problem index → topic statistics → signal shards → thresholds."""

from collections.abc import Mapping
from dataclasses import dataclass

import dagster as dg
import numpy as np
import numpy.typing as npt
import polars as pl

from assets.annotation import AnnotationAssets
from assets.corpus import CorpusAssets
from assets.grown_signals import asked_of, keep_index, signals_before
from assets.rules import (
    DOMAINS_HAVE_DOCUMENTS,
    FLOORS,
    INDEX_DOMAINS,
    INDEX_QUERIES,
    INDEX_WORDS,
    OTHERS,
    POPULATION,
    RECOUNT,
    STATISTICS,
    SYMMETRIC,
)
from assets.signal_pictures import (
    curve_picture,
    histogram_of,
    index_pictures,
    shard_pictures,
    threshold_pictures,
)
from assets.stage import Check, CheckRule, Made, Site, stage
from saber_dagster import releases
from saber_dagster.ontology import OntologyTree
from saber_dagster.problem_index import build_index
from saber_dagster.rules import signals as pair_rules
from saber_dagster.rules import topics as topic_rules
from saber_dagster.signal_growth import compute_signals
from saber_dagster.signal_join import SignalJoin
from saber_dagster.signal_pairs import SignalShards
from saber_dagster.signal_storage import encode
from saber_dagster.signal_top import Top
from saber_dagster.signals import topic_statistics as count_topics
from saber_dagster.tables import TableParts, input_name
from saber_dagster.text import stop_words_version
from saber_dagster.thresholds import ThresholdRule, fit_thresholds

GROUP = "signals"


@dataclass(frozen=True)
class SignalAssets:
    """What candidates are chosen from."""

    problem_index: dg.AssetsDefinition
    topic_statistics: dg.AssetsDefinition
    signal_shards: dg.AssetsDefinition
    thresholds: dg.AssetsDefinition


def signal_assets(
    site: Site,
    corpus: CorpusAssets,
    ontology_tree: dg.AssetsDefinition,
    annotation: AnnotationAssets,
) -> SignalAssets:
    """The assets of this stage."""
    settings = site.settings
    rule = ThresholdRule(
        rule=settings.thresholds.rule,
        per_group=settings.candidates.per_group,
        queries_required=settings.thresholds.queries_required,
        topic_floor=_floor(site, "topic_floor"),
        summary_floor=_floor(site, "summary_floor"),
        c_steps=(settings.thresholds.c, *settings.thresholds.c_steps),
    )

    stored = settings.signals
    most = None
    if stored.keep == "top_m":
        most = rule.m(max(rule.c_steps), rule.per_group)
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
        version="2",
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
                "taken_over": before is not None,
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

    @stage(
        site,
        "thresholds",
        table="thresholds",
        version="2",
        group=GROUP,
        inputs={"signal_shards": signal_shards, "problem_index": problem_index},
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
                **threshold_pictures(
                    context, site, result.frame, shards, problem_index, result.tails
                ),
                **curve_picture(context, site, result.curve),
            },
            [*_checks(result.frame, rule, ".\n".join(short)), RECOUNT.verdict(recount)],
        )

    return SignalAssets(problem_index, topic_statistics, signal_shards, thresholds)


def pinned_table(site: Site, table: str) -> Made | None:
    """A table of the release that the settings name, if that release is complete."""
    release = releases.release_of(site.home.releases, site.settings)
    if not release.complete:
        return None
    release.check_settings(site.settings)
    return Made(release.read(table), {"pinned": True, "release": release.name})


def _floor(site: Site, name: str) -> float:
    """The lowest high signal of top_m; of percentile, the floor of what is stored."""
    section = "thresholds" if site.settings.thresholds.rule == "top_m" else "signals"
    return float(site.settings.value_of(f"{section}.{name}"))


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
