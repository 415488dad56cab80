"""One lane per retriever: its run over the candidates of the release."""

from dataclasses import dataclass

import dagster as dg
import polars as pl

from assets.candidates import CandidateAssets
from assets.judges import candidates_by_query, texts_by_id
from assets.rules import SCORE_RANKS, SCORED, TELLS_APART
from assets.stage import Made, Site, stage
from saber_dagster.report.roles import MODEL_KEY, REVISION_KEY
from saber_dagster.retrieval.base import load_retriever
from saber_dagster.retrieval.runs import make_run
from saber_dagster.rules import boards as rules
from saber_dagster.rules.judging import ranks_follow
from saber_dagster.settings import RetrieverEntry


@dataclass(frozen=True)
class RetrieverLane:
    """The asset of one retriever."""

    slug: str
    revision: str
    run: dg.AssetsDefinition


def retriever_lane(site: Site, entry: RetrieverEntry, candidates: CandidateAssets) -> RetrieverLane:
    """The asset of one retriever."""
    settings = site.settings
    # One instance per process: it keeps its embeddings from one partition to the next.
    retriever = load_retriever(entry.retriever, **entry.options)

    @stage(
        site,
        ["retriever", entry.slug, "run"],
        table="run",
        version="1",
        group="retrievers",
        inputs={"candidate_sets": candidates.candidate_sets, "release": candidates.release},
        partitions=site.by_query,
        reads=["evaluation.settings", "evaluation.statistics"],
        identity=[entry.retriever, retriever.revision, entry.options],
        checks=[SCORED, SCORE_RANKS, TELLS_APART],
        tags={"saber/retriever": entry.slug},
        facts={MODEL_KEY: retriever.name, REVISION_KEY: retriever.revision},
    )
    def run(
        context: dg.AssetExecutionContext, candidate_sets: pl.DataFrame, release: pl.DataFrame
    ) -> Made:
        from_corpus = settings.evaluation.statistics == "corpus"
        frame = make_run(
            retriever,
            settings.evaluation.settings,
            candidates_by_query(candidate_sets),
            texts_by_id(release),
            texts_by_id(release.filter("is_document")) if from_corpus else None,
        )
        shown = settings.evaluation.settings
        return Made(
            frame,
            {"retriever": retriever.name, "revision": retriever.revision},
            [
                SCORED.verdict(rules.every_pair_is_scored(frame, candidate_sets, shown, release)),
                SCORE_RANKS.verdict(ranks_follow(frame, ("setting", "query_id"), "score")),
                TELLS_APART.verdict(rules.scores_tell_documents_apart(frame)),
            ],
        )

    return RetrieverLane(entry.slug, retriever.revision, run)
