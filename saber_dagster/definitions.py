"""The Dagster definitions of a home: assembly only."""

import dagster as dg

import prompts as prompts  # for the commands, which import no top-level package but this
from assets.annotation import annotation_assets
from assets.candidates import candidate_assets
from assets.corpus import corpus_assets
from assets.judges import judge_lane, judge_resource
from assets.leaderboard import leaderboard_assets
from assets.ontology import ontology_asset
from assets.retrievers import retriever_lane
from assets.signals import signal_assets
from assets.stage import Site
from assets.thresholds import threshold_asset
from resources.engines import EngineResource, judge_options
from resources.engines import judge_engine as judge_engine  # for the commands, too
from resources.engines.prompted import render_archived as render_archived  # for the commands, too
from resources.ledger import LedgerResource
from resources.parquet_io import ParquetIOManager
from saber_dagster.hashing import digest
from saber_dagster.home import Home, home_path
from saber_dagster.jobs import jobs
from saber_dagster.judging import TASK_OF_ASK
from saber_dagster.rejudging import Lane
from saber_dagster.schedules import judges_changed, rejudge_nightly
from saber_dagster.settings import Judge


def load(home: Home) -> dg.Definitions:
    """All assets, resources, jobs, schedules and sensors of a home."""
    site = Site(home)
    corpus = corpus_assets(site)
    ontology = ontology_asset(site)
    annotation = annotation_assets(site, corpus, ontology)
    signals = signal_assets(site, corpus, ontology, annotation)
    thresholds = threshold_asset(site, signals)
    candidates = candidate_assets(site, corpus, signals, thresholds)
    judges = [judge_lane(site, judge, candidates) for judge in home.judges]
    retrievers = [retriever_lane(site, entry, candidates) for entry in home.retrievers]
    annotator = home.settings.annotator
    rejudged = [lane_of(judge) for judge in home.judges]
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
            thresholds,
            candidates.query_set,
            candidates.candidate_sets,
            candidates.release,
            *(
                asset
                for lane in judges
                for asset in (
                    lane.tournament_rounds,
                    lane.rating_prior,
                    lane.judge_card,
                    lane.ratings,
                    lane.benchmark,
                )
            ),
            *(lane.run for lane in retrievers),
            *leaderboard_assets(site, judges, retrievers),
        ],
        resources={
            "io_manager": ParquetIOManager(root=str(home.tables)),
            "ledger": LedgerResource(
                root=str(home.ledger),
                journals=str(home.journals),
                **home.settings.ledger.model_dump(),
            ),
            "annotator": EngineResource(engine=annotator.engine, options=annotator.options),
            **{
                judge_resource(judge): EngineResource(
                    engine=judge.engine, options=judge_options(judge)
                )
                for judge in home.judges
            },
        },
        jobs=jobs(home, load),
        schedules=[rejudge_nightly(home, site.graph, rejudged)],
        sensors=[judges_changed(home, site.graph, rejudged)],
    )


def lane_of(judge: Judge) -> Lane:
    """A judge as run keys name it.

    Raises:
        SaberError: if its engine cannot be made, or cannot be asked as the entry says.
    """
    engine = judge_engine(judge)
    prompt = engine.prompt(TASK_OF_ASK[judge.ask])
    entry = digest(judge.model_dump(mode="json"))
    free = bool(getattr(engine, "free", False))
    return Lane(judge.slug, engine.revision, prompt, entry, free)


@dg.definitions
def defs() -> dg.Definitions:
    """The definitions of ``SABER_HOME``, for Dagster's own tools."""
    return load(Home(home_path()))
