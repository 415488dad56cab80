"""Query set → candidate sets → release."""

from dataclasses import dataclass

import dagster as dg
import polars as pl

from assets.corpus import CorpusAssets
from assets.pictures import picture
from assets.pinned import pinned_table
from assets.rules import (
    CANDIDATES,
    ELIGIBLE,
    GROUPS_FOLLOW,
    QUERY_DOMAINS,
    RELEASE_IDS,
    RELEASE_TEXTS,
    SAMPLE_SIZES,
)
from assets.signals import SignalAssets
from assets.stage import Check, CheckRule, Made, Site, stage
from saber_dagster import candidates, releases
from saber_dagster.contracts import GROUPS
from saber_dagster.partitions import domain_and_shard
from saber_dagster.plots.candidates import candidates_figure
from saber_dagster.problem_index import shard_of
from saber_dagster.rules import candidates as rules
from saber_dagster.rules.corpus import ids_are_content_hashes
from saber_dagster.rules.signals import NumberedPairs, numbered
from saber_dagster.signals.join import query_positions
from saber_dagster.signals.pairs import SignalShards
from saber_dagster.tables import TableParts

GROUP = "candidates"


@dataclass(frozen=True)
class CandidateAssets:
    """What judges and retrievers read."""

    query_set: dg.AssetsDefinition
    candidate_sets: dg.AssetsDefinition
    release: dg.AssetsDefinition


def candidate_assets(
    site: Site, corpus: CorpusAssets, signals: SignalAssets, thresholds: dg.AssetsDefinition
) -> CandidateAssets:
    """The assets of this stage."""
    settings = site.settings
    per_group = settings.candidates.per_group
    own = settings.corpus.queries is not None
    frames = {
        "corpus": corpus.corpus,
        "signal_shards": signals.signal_shards,
        "problem_index": signals.problem_index,
        "thresholds": thresholds,
    }

    @stage(
        site,
        "query_set",
        table="query_set",
        version="2",
        group=GROUP,
        inputs=frames,
        reads=["seed", "candidates", "queries", "corpus.queries", "release"],
        checks=[CheckRule("not_empty", "There is a query."), ELIGIBLE, QUERY_DOMAINS, SAMPLE_SIZES],
    )
    def query_set(
        context: dg.AssetExecutionContext,
        corpus: pl.DataFrame,
        signal_shards: TableParts,
        problem_index: pl.DataFrame,
        thresholds: pl.DataFrame,
    ) -> Made:
        made = pinned_table(site, "query_set")
        if made is not None:
            shards = settings.partitions.query_shards
            cut = [shard_of(query, shards) for query in made.frame["query_id"]]
            frame = made.frame.with_columns(pl.Series("shard", cut, dtype=pl.Int32))
            release = made.metadata["release"]
            checks = [rule.pinned(release) for rule in (ELIGIBLE, QUERY_DOMAINS, SAMPLE_SIZES)]
            made = Made(frame, made.metadata, checks)
        else:
            pairs = SignalShards(signal_shards, problem_index)
            choice = candidates.choose_queries(
                pairs,
                problem_index,
                thresholds,
                settings.queries.per_domain,
                per_group,
                settings.seed,
                corpus,
                own_queries=own,
            )
            frame = choice.frame
            checks = [
                ELIGIBLE.verdict(
                    rules.queries_are_eligible(frame, pairs, problem_index, thresholds, per_group)
                ),
                QUERY_DOMAINS.verdict(rules.query_domains_are_right(frame, problem_index)),
                SAMPLE_SIZES.verdict(
                    [] if own else rules.samples_have_their_size(frame, settings.queries.per_domain)
                ),
            ]
            lost = len(choice.left_out)
            made = Made(frame, {"pinned": False, "left_out_for_near_duplicates": lost}, checks)
        by_domain = made.frame.explode("selected_for").group_by("selected_for").len()
        return Made(
            made.frame,
            {
                **made.metadata,
                "queries_by_domain": dg.MetadataValue.json(
                    dict(by_domain.sort("selected_for").rows())
                ),
            },
            [
                Check(
                    "not_empty",
                    made.frame.height > 0,
                    f"{made.frame.height} queries with {per_group} documents in each group",
                ),
                *made.checks,
            ],
        )

    @stage(
        site,
        "candidate_sets",
        table="candidate_sets",
        version="2",
        group=GROUP,
        inputs={**frames, "query_set": query_set},
        partitions=site.by_query,
        reads=["seed", "candidates", "release"],
        checks=[
            CheckRule("groups_are_full", "Each query has K documents of each group."),
            GROUPS_FOLLOW,
            CANDIDATES,
        ],
    )
    def candidate_sets(
        context: dg.AssetExecutionContext,
        corpus: pl.DataFrame,
        signal_shards: TableParts,
        problem_index: pl.DataFrame,
        thresholds: pl.DataFrame,
        query_set: pl.DataFrame,
    ) -> Made:
        domain, shard = domain_and_shard(context.partition_key)
        mine = query_set.filter((pl.col("primary_domain") == domain) & (pl.col("shard") == shard))
        made = pinned_table(site, "candidate_sets")
        if made is not None:
            release = made.metadata["release"]
            checks = [GROUPS_FOLLOW.pinned(release), CANDIDATES.pinned(release)]
            made = Made(made.frame.join(mine, on="query_id", how="semi"), made.metadata, checks)
        else:
            shards = SignalShards(signal_shards, problem_index)
            sampled = candidates.sample_candidates(
                shards,
                problem_index,
                thresholds,
                mine["query_id"],
                per_group,
                settings.seed,
                corpus,
            )
            frame = sampled.frame
            pairs = NumberedPairs(
                numbered(frame, problem_index),
                query_positions(problem_index, mine["query_id"]),
                problem_index,
            )
            checks = [
                GROUPS_FOLLOW.verdict(
                    rules.groups_follow_the_thresholds(frame, shards, problem_index, thresholds)
                ),
                CANDIDATES.verdict(pairs.are_of_others()),
            ]
            passed = sampled.near_duplicates
            made = Made(frame, {"pinned": False, "near_duplicates_passed_over": passed}, checks)
        expected = mine.height * per_group * len(GROUPS)
        return Made(
            made.frame,
            {
                **made.metadata,
                "queries": mine.height,
                **picture(
                    site,
                    context,
                    "plot",
                    "Points: both signals of each candidate, by group",
                    lambda: candidates_figure(made.frame, f"Candidates of {domain}, shard {shard}"),
                ),
            },
            [
                Check(
                    "groups_are_full",
                    made.frame.height == expected,
                    f"{made.frame.height} candidates, {expected} expected for {mine.height} queries",
                ),
                *made.checks,
            ],
        )

    @stage(
        site,
        "release",
        table="release_texts",
        version="1",
        group=GROUP,
        inputs={
            "corpus": corpus.corpus,
            "topic_statistics": signals.topic_statistics,
            "thresholds": thresholds,
            "query_set": query_set,
            "candidate_sets": candidate_sets,
        },
        reads=["release"],
        checks=[RELEASE_IDS, RELEASE_TEXTS],
        published=True,
        description="The texts that the release refers to. Its materialization pins the release.",
    )
    def release(
        context: dg.AssetExecutionContext,
        corpus: pl.DataFrame,
        topic_statistics: pl.DataFrame,
        thresholds: pl.DataFrame,
        query_set: pl.DataFrame,
        candidate_sets: pl.DataFrame,
    ) -> Made:
        def text_checks(texts: pl.DataFrame) -> list[Check]:
            return [
                RELEASE_IDS.verdict(ids_are_content_hashes(texts)),
                RELEASE_TEXTS.verdict(rules.every_text_is_there(texts, query_set, candidate_sets)),
            ]

        target = releases.release_of(site.home.releases, settings)
        if not target.complete:
            texts = corpus.filter(
                pl.col("is_document") | pl.col("doc_id").is_in(query_set["query_id"].to_list())
            ).select("doc_id", "source", "source_id", "problem", "solution", "is_document")
            checks = text_checks(texts)
            if not all(check.passed for check in checks):
                return Made(texts, {"release": target.name, "pinned": False}, checks)
            target.pin(
                {
                    "topic_statistics": topic_statistics,
                    "thresholds": thresholds,
                    "query_set": query_set,
                    "candidate_sets": candidate_sets,
                    "release_texts": texts,
                },
                settings,
            )
        texts = target.read("release_texts")
        tables = dg.MetadataValue.json(target.manifest()["tables"])
        return Made(texts, {"release": target.name, "tables": tables}, text_checks(texts))

    return CandidateAssets(query_set, candidate_sets, release)
