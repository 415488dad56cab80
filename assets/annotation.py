"""What the annotator says of each document: topics and a summary."""

from collections.abc import Mapping
from dataclasses import dataclass

import dagster as dg
import polars as pl

from assets.calls import audit_metadata, audit_tags
from assets.corpus import CorpusAssets
from assets.pictures import picture
from assets.rules import (
    CORE_IDEAS,
    LEAST_WITH_CORE_IDEA,
    LEAST_WITH_TOPIC,
    MOST_SPECIFIC,
    TAG_SCORES,
    WITH_CORE_IDEA,
    WITH_TOPIC,
)
from assets.stage import Check, CheckRule, Made, Site, stage
from resources.engines import engine_identity, load_engine
from saber_dagster.engines import SOLUTION_SUMMARY, TOPIC_SCORES, Engine
from saber_dagster.ontology import OntologyTree
from saber_dagster.plots.topics import topic_weights, topics_figure
from saber_dagster.report.roles import FREE_KEY, MODEL_KEY, REVISION_KEY
from saber_dagster.rules import topics as rules
from saber_dagster.rules.base import low_share
from saber_dagster.run_metadata import call_metadata
from saber_dagster.summarizing import summarize_documents
from saber_dagster.tagging import tag_documents

GROUP = "annotation"
COVERAGE = 0.99
"""Share of calls that must have an answer; below it, what is built downstream would mislead."""


@dataclass(frozen=True)
class AnnotationAssets:
    """Topics and summaries."""

    topic_tags: dg.AssetsDefinition
    summaries: dg.AssetsDefinition


def annotation_assets(
    site: Site, corpus: CorpusAssets, ontology_tree: dg.AssetsDefinition
) -> AnnotationAssets:
    """The assets of this stage."""
    settings = site.settings
    engine = load_engine(settings.annotator.engine, settings.annotator.options)
    engine_tags = {"saber/model": engine.model, "saber/role": "annotator"}

    @stage(
        site,
        "topic_tags",
        table="topic_tags",
        version="1",
        group=GROUP,
        inputs={"corpus": corpus.corpus, "ontology_tree": ontology_tree},
        partitions=site.by_corpus_shard,
        reads=["topics", "ledger.reasks"],
        identity=engine_identity(engine, TOPIC_SCORES),
        kinds=["llm"],
        resources=["annotator", "ledger"],
        pool="llm",
        checks=[
            CheckRule("coverage", "At least 99 % of the documents have an answer."),
            MOST_SPECIFIC,
            TAG_SCORES,
            WITH_TOPIC,
        ],
        tags=engine_tags,
        facts=engine_facts(engine),
    )
    def topic_tags(
        context: dg.AssetExecutionContext, corpus: pl.DataFrame, ontology_tree: pl.DataFrame
    ) -> Made:
        tree = OntologyTree.from_frame(ontology_tree)
        annotator = context.resources.annotator.load()
        with context.resources.ledger.session(annotator, "topic_tags", context) as session:
            frame, counts = tag_documents(corpus, tree, session.ask, settings.topics.threshold)
        return Made(
            frame,
            {
                "engine": annotator.model,
                "documents": counts.documents,
                "with_topic": counts.tagged,
                "without_topic": counts.no_topic,
                "levels": counts.levels,
                **call_metadata(session.counts),
                **audit_metadata(site, context, annotator, TOPIC_SCORES),
                **picture(
                    site,
                    context,
                    "plot",
                    "Bars: the problems of this shard by first-level topic",
                    lambda: topics_figure(
                        topic_weights(frame, ontology_tree),
                        settings.domains,
                        f"Topics of {counts.documents:,} problems, shard {context.partition_key}",
                    ),
                ),
            },
            [
                coverage(counts.documents - counts.failed, counts.documents, "documents"),
                MOST_SPECIFIC.verdict(rules.topics_are_most_specific(frame, ontology_tree, corpus)),
                TAG_SCORES.verdict(
                    rules.tag_scores_exceed_the_threshold(frame, settings.topics.threshold, corpus)
                ),
                WITH_TOPIC.verdict(
                    low_share(
                        counts.tagged, counts.documents, LEAST_WITH_TOPIC, "documents have no topic"
                    )
                ),
            ],
            audit_tags(annotator, TOPIC_SCORES),
        )

    @stage(
        site,
        "summaries",
        table="summaries",
        version="1",
        group=GROUP,
        inputs={"corpus": corpus.corpus},
        partitions=site.by_corpus_shard,
        reads=["summaries.max_words", "ledger.reasks"],
        identity=engine_identity(engine, SOLUTION_SUMMARY),
        kinds=["llm"],
        resources=["annotator", "ledger"],
        pool="llm",
        checks=[
            CheckRule("coverage", "At least 99 % of the documents have an answer."),
            CORE_IDEAS,
            WITH_CORE_IDEA,
        ],
        tags=engine_tags,
        facts=engine_facts(engine),
    )
    def summaries(context: dg.AssetExecutionContext, corpus: pl.DataFrame) -> Made:
        annotator = context.resources.annotator.load()
        with context.resources.ledger.session(annotator, "summaries", context) as session:
            frame = summarize_documents(corpus, session.ask, settings.summaries.max_words)
        answered = frame.filter(pl.col("status").is_in(["ok", "no_solution"])).height
        return Made(
            frame,
            {
                "engine": annotator.model,
                "without_core_idea": int(frame["no_core_idea"].sum()),
                "without_solution": frame.filter(pl.col("status") == "no_solution").height,
                **call_metadata(session.counts),
                **audit_metadata(site, context, annotator, SOLUTION_SUMMARY),
            },
            [
                coverage(answered, frame.height, "documents"),
                CORE_IDEAS.verdict(
                    rules.core_ideas_are_short(frame, settings.summaries.max_words, corpus)
                ),
                WITH_CORE_IDEA.verdict(
                    low_share(
                        int(frame["core_idea"].is_not_null().sum()),
                        frame.height,
                        LEAST_WITH_CORE_IDEA,
                        "documents have no core idea",
                    )
                ),
            ],
            audit_tags(annotator, SOLUTION_SUMMARY),
        )

    return AnnotationAssets(topic_tags, summaries)


def engine_facts(engine: Engine) -> dict[str, str]:
    """What answers the calls of an asset, as metadata of its definition."""
    free = {FREE_KEY: "yes"} if getattr(engine, "free", False) else {}
    return {MODEL_KEY: engine.model, REVISION_KEY: engine.revision, **free}


def coverage(
    answered: int, expected: int, what: str, failures: Mapping[str, int] | None = None
) -> Check:
    """The check that enough calls have an answer; ``failures`` counts the others by status."""
    share = answered / expected if expected else 1.0
    failures = failures or {}
    by_status = ", ".join(f"{count} {status}" for status, count in sorted(failures.items()))
    return Check(
        "coverage",
        share >= COVERAGE,
        f"{answered} of {expected} {what} have an answer ({share:.1%}, at least {COVERAGE:.0%} needed)"
        + (f"; without one: {by_status}" if by_status else ""),
        {"answered": answered, "expected": expected, **failures},
    )
