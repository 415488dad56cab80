"""Raw sources → corpus."""

from dataclasses import dataclass

import dagster as dg
import polars as pl

from assets.rules import CLUSTERS, CONTENT_IDS, LICENCES, PARTITION
from assets.stage import Check, CheckRule, Made, Site, stage
from saber_dagster.partitions import corpus_shard_of
from saber_dagster.rules import corpus as rules
from saber_dagster.sources import read_sources, sources_identity

GROUP = "corpus"


@dataclass(frozen=True)
class CorpusAssets:
    """The corpus and what it is cut from."""

    raw_sources: dg.AssetsDefinition
    corpus: dg.AssetsDefinition


def corpus_assets(site: Site) -> CorpusAssets:
    """The assets of this stage."""

    @stage(
        site,
        "raw_sources",
        table="corpus",
        version="1",
        group=GROUP,
        reads=["corpus"],
        identity=sources_identity(site.settings.corpus),
        kinds=["file"],
        checks=[
            CheckRule("no_exact_duplicates", "No problem with solution is given twice.", False),
            CONTENT_IDS,
            CLUSTERS,
            LICENCES,
        ],
        description="Every problem of the sources, checked row by row, exact duplicates removed.",
    )
    def raw_sources(context: dg.AssetExecutionContext) -> Made:
        build = read_sources(site.settings.corpus)
        for warning in build.warnings[:20]:
            context.log.warning(str(warning))
        removed = build.duplicates.height
        return Made(
            build.frame,
            {
                "exact_duplicates_removed": removed,
                "warnings": len(build.warnings),
                "sources": dg.MetadataValue.md(_by_source(build.frame)),
            },
            [
                Check(
                    "no_exact_duplicates",
                    removed == 0,
                    f"{removed} exact duplicates were left out",
                    {"left_out": dg.MetadataValue.json(build.duplicates.head(50).to_dicts())},
                ),
                CONTENT_IDS.verdict(rules.ids_are_content_hashes(build.frame)),
                CLUSTERS.verdict(rules.equal_problems_share_a_cluster(build.frame)),
                LICENCES.verdict(rules.licences_are_known(build.frame)),
            ],
        )

    @stage(
        site,
        "corpus",
        table="corpus",
        version="1",
        group=GROUP,
        inputs={"raw_sources": raw_sources},
        partitions=site.by_corpus_shard,
        checks=[PARTITION],
    )
    def corpus(context: dg.AssetExecutionContext, raw_sources: pl.DataFrame) -> Made:
        shard = context.partition_key
        cut = [corpus_shard_of(doc, site.settings) for doc in raw_sources["doc_id"]]
        assigned = pl.Series(cut, dtype=pl.String)
        mine = raw_sources.filter(assigned == shard)
        shards = site.by_corpus_shard.get_partition_keys()
        found = rules.shards_are_a_partition(raw_sources, assigned, shards, shard, mine)
        return Made(mine, checks=[PARTITION.verdict(found)])

    return CorpusAssets(raw_sources, corpus)


def _by_source(frame: pl.DataFrame) -> str:
    counts = frame.group_by("source", "licence").len().sort("source", "licence")
    rows = [f"| {source} | {licence} | {n:,} |" for source, licence, n in counts.iter_rows()]
    return "\n".join(["| source | licence | problems |", "| --- | --- | ---: |", *rows])
