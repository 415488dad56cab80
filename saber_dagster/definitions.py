"""The Dagster definitions of a home: assembly only."""

import dagster as dg

from assets.annotation import annotation_assets
from assets.candidates import candidate_assets
from assets.corpus import corpus_assets
from assets.judges import judge_lane, judge_resource
from assets.leaderboard import leaderboard_assets
from assets.ontology import ontology_asset
from assets.retrievers import retriever_lane
from assets.signals import signal_assets
from assets.stage import Site
from resources.engines import EngineResource
from resources.ledger import LedgerResource
from resources.parquet_io import ParquetIOManager
from saber_dagster.home import Home, home_path
from saber_dagster.jobs import jobs


def load(home: Home) -> dg.Definitions:
    """All assets, resources and jobs of a home."""
    site = Site(home)
    corpus = corpus_assets(site)
    ontology = ontology_asset(site)
    annotation = annotation_assets(site, corpus, ontology)
    signals = signal_assets(site, corpus, ontology, annotation)
    candidates = candidate_assets(site, corpus, signals)
    judges = [judge_lane(site, judge, candidates) for judge in home.judges]
    retrievers = [retriever_lane(site, entry, candidates) for entry in home.retrievers]
    annotator = home.settings.annotator
    return dg.Definitions(
        assets=[
            corpus.raw_sources,
            corpus.corpus,
            ontology,
            annotation.topic_tags,
            annotation.summaries,
            signals.problem_index,
            signals.topic_statistics,
            signals.signal_shards,
            signals.thresholds,
            candidates.query_set,
            candidates.candidate_sets,
            candidates.release,
            *(
                asset
                for lane in judges
                for asset in (
                    lane.tournament_rounds,
                    lane.rating_prior,
                    lane.ratings,
                    lane.benchmark,
                )
            ),
            *(lane.run for lane in retrievers),
            *leaderboard_assets(site, judges, retrievers),
        ],
        resources={
            "io_manager": ParquetIOManager(root=str(home.tables)),
            "ledger": LedgerResource(root=str(home.ledger), mode=home.settings.ledger.mode),
            "annotator": EngineResource(engine=annotator.engine, options=annotator.options),
            **{
                judge_resource(judge): EngineResource(engine=judge.engine, options=judge.options)
                for judge in home.judges
            },
        },
        jobs=jobs(home, load),
    )


@dg.definitions
def defs() -> dg.Definitions:
    """The definitions of ``SABER_HOME``, for Dagster's own tools."""
    return load(Home(home_path()))
