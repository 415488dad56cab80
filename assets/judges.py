"""One lane per judge: tournament rounds → rating prior → judge card; ratings → benchmark."""

from dataclasses import dataclass

import dagster as dg
import polars as pl

from assets.annotation import engine_facts
from assets.calls import audit_metadata, audit_tags, game_metadata
from assets.candidates import CandidateAssets
from assets.game_checks import game_checks
from assets.judge_card import judge_card_asset
from assets.pictures import picture
from assets.rules import (
    BALANCE,
    BENCHMARK,
    GAMES,
    OUTCOMES,
    OWN_IDS,
    PRIOR_SETTLED,
    RATED,
    RATING_RANKS,
    ROUNDS,
    SCALE,
)
from assets.stage import CheckRule, Made, Site, stage
from resources.engines import engine_identity, judge_engine
from saber_dagster.contracts import TABLES
from saber_dagster.judge_card import first_shown_preferred
from saber_dagster.judging import TASK_OF_ASK, make_judge
from saber_dagster.leaderboard import caution
from saber_dagster.plots.judging import rank_curves_figure, ratings_figure, rounds_figure
from saber_dagster.rating_prior import RatingPrior, estimate_prior
from saber_dagster.ratings import connectivity, rate
from saber_dagster.rules import judging as rules
from saber_dagster.rules.base import Violation
from saber_dagster.run_metadata import call_metadata
from saber_dagster.settings import Judge
from saber_dagster.tournament import run_tournament


@dataclass(frozen=True)
class JudgeLane:
    """The assets of one judge."""

    slug: str
    revision: str
    warning: str
    """What stands beside its figures; empty for a judge that is a language model."""
    tournament_rounds: dg.AssetsDefinition
    rating_prior: dg.AssetsDefinition
    judge_card: dg.AssetsDefinition
    ratings: dg.AssetsDefinition
    benchmark: dg.AssetsDefinition


def judge_resource(judge: Judge) -> str:
    """The key of a judge's engine among the resources."""
    return f"judge_{judge.slug.replace('-', '_')}"


def judge_lane(site: Site, judge: Judge, candidates: CandidateAssets) -> JudgeLane:
    """The assets of one judge."""
    settings = site.settings
    engine = judge_engine(judge)
    generates = judge.ask == "generate"
    warning = caution(judge.engine)
    group = f"judge_{judge.slug}".replace("-", "_")
    tags = {"saber/judge": judge.slug, "saber/model": engine.model}

    @stage(
        site,
        ["judge", judge.slug, "tournament_rounds"],
        table="judgments",
        version="2",
        description=f"{TABLES['judgments'].description} {warning}".rstrip(),
        group=group,
        inputs={"candidate_sets": candidates.candidate_sets, "release": candidates.release},
        partitions=site.by_query,
        reads=["seed", "tournament" if generates else "tournament.rounds", "ledger.reasks"],
        identity=[judge.ask, engine_identity(engine, TASK_OF_ASK[judge.ask])],
        kinds=["llm"],
        resources=[judge_resource(judge), "ledger"],
        pool=f"judge_{judge.slug}",
        checks=[
            CheckRule("coverage", "At least 99 % of the games have a verdict."),
            CheckRule("connected", "The games of each query connect all its candidates."),
            CheckRule("prefers", "The judge prefers some documents to others."),
            ROUNDS,
            GAMES,
            OUTCOMES,
            BALANCE,
        ],
        tags=tags,
        facts=engine_facts(engine),
    )
    def tournament_rounds(
        context: dg.AssetExecutionContext, candidate_sets: pl.DataFrame, release: pl.DataFrame
    ) -> Made:
        engine = getattr(context.resources, judge_resource(judge)).load()
        query_candidates = candidates_by_query(candidate_sets)
        with context.resources.ledger.session(engine, "tournament_rounds", context) as session:
            judgments = run_tournament(
                query_candidates,
                settings.tournament.rounds,
                settings.seed,
                make_judge(judge.ask, session.ask, texts_by_id(release)),
                settings.tournament.both_orders and generates,
            )
        graph = connectivity(judgments, query_candidates)
        first = first_shown_preferred(judgments).value
        return Made(
            judgments,
            {
                "engine": engine.model,
                "queries": len(query_candidates),
                "games": judgments.height,
                **({} if first is None else {"first_shown_preferred": first}),
                "not_strongly_connected": graph.filter(~pl.col("strongly_connected")).height,
                **call_metadata(session.counts),
                **audit_metadata(site, context, engine, TASK_OF_ASK[judge.ask]),
                **game_metadata(judgments, release, judge.slug),
                **picture(
                    site,
                    context,
                    "plot",
                    "Points: how often the document shown first wins, by round",
                    lambda: rounds_figure(
                        judgments,
                        f"Games of judge {judge.slug}, {context.partition_key}",
                        warning,
                    ),
                ),
            },
            [
                *game_checks(judgments, graph),
                ROUNDS.verdict(
                    rules.rounds_are_complete(
                        judgments, candidate_sets, settings.tournament.rounds, release
                    )
                ),
                GAMES.verdict(rules.games_are_sound(judgments, candidate_sets, release)),
                OUTCOMES.verdict(rules.failures_have_no_outcome(judgments, release)),
                BALANCE.verdict(rules.order_shown_is_balanced(judgments)),
            ],
            audit_tags(engine, TASK_OF_ASK[judge.ask]),
        )

    @stage(
        site,
        ["judge", judge.slug, "rating_prior"],
        table="rating_prior",
        version="3",
        group=group,
        inputs={"tournament_rounds": tournament_rounds},
        reads=["ratings"],
        checks=[PRIOR_SETTLED],
        tags=tags,
    )
    def rating_prior(context: dg.AssetExecutionContext, tournament_rounds: pl.DataFrame) -> Made:
        fixed = settings.ratings.prior_precision
        prior = estimate_prior(tournament_rounds, fixed)
        unsettled = (
            [Violation("estimates are at a bound", len(prior.at_bound), prior.at_bound)]
            if prior.at_bound
            else []
        )
        return Made(
            prior.frame(judge.slug),
            {
                "prior_precision": prior.prior_precision,
                "position_log_odds": prior.position,
                "dispersion": prior.dispersion,
                "at_bound": ", ".join(prior.at_bound) or "no",
                "iterations": prior.iterations,
            },
            [PRIOR_SETTLED.verdict(unsettled)],
        )

    judge_card = judge_card_asset(site, judge, tournament_rounds, rating_prior, candidates.release)

    @stage(
        site,
        ["judge", judge.slug, "ratings"],
        table="ratings",
        version="2",
        description=f"{TABLES['ratings'].description} {warning}".rstrip(),
        group=group,
        inputs={
            "tournament_rounds": tournament_rounds,
            "rating_prior": rating_prior,
            "candidate_sets": candidates.candidate_sets,
        },
        partitions=site.by_query,
        checks=[RATED, SCALE, RATING_RANKS],
        tags=tags,
    )
    def ratings(
        context: dg.AssetExecutionContext,
        tournament_rounds: pl.DataFrame,
        rating_prior: pl.DataFrame,
        candidate_sets: pl.DataFrame,
    ) -> Made:
        prior = RatingPrior.from_frame(rating_prior)
        frame = rate(tournament_rounds, candidates_by_query(candidate_sets), prior)
        first = next(iter(frame["query_id"].sort()), "")
        mine = pl.col("query_id") == first
        return Made(
            frame,
            picture(
                site,
                context,
                "plot",
                "Points with whiskers: the ratings of one query's candidates",
                lambda: ratings_figure(
                    frame.filter(mine),
                    candidate_sets.filter(mine).select("doc_id", "group"),
                    f"Candidates of query {first}, judge {judge.slug}",
                    warning,
                ),
            ),
            [
                RATED.verdict(rules.every_candidate_is_rated(frame, candidate_sets)),
                SCALE.verdict(rules.ratings_span_the_scale(frame)),
                RATING_RANKS.verdict(rules.ranks_follow(frame, ("query_id",), "rating")),
            ],
        )

    @stage(
        site,
        ["judge", judge.slug, "benchmark"],
        table="benchmark",
        version="1",
        description=f"{TABLES['benchmark'].description} {warning}".rstrip(),
        group=group,
        inputs={
            "ratings": ratings,
            "candidate_sets": candidates.candidate_sets,
            "query_set": candidates.query_set,
            "release": candidates.release,
        },
        checks=[BENCHMARK, OWN_IDS],
        tags=tags,
    )
    def benchmark(
        context: dg.AssetExecutionContext,
        ratings: pl.DataFrame,
        candidate_sets: pl.DataFrame,
        query_set: pl.DataFrame,
        release: pl.DataFrame,
    ) -> Made:
        names = release.select("doc_id", "source_id")
        frame = (
            ratings.select("query_id", "doc_id", "rating", "rank")
            .join(candidate_sets.select("query_id", "doc_id", "group"), on=("query_id", "doc_id"))
            .join(query_set.select("query_id", "domains"), on="query_id")
            .join(names.rename({"source_id": "doc_source_id"}), on="doc_id")
            .join(
                names.rename({"doc_id": "query_id", "source_id": "query_source_id"}), on="query_id"
            )
        )
        return Made(
            frame,
            {
                "queries": ratings["query_id"].n_unique(),
                **picture(
                    site,
                    context,
                    "plot",
                    "Lines: how early the candidates of each group come in the judge's order",
                    lambda: rank_curves_figure(
                        frame, f"Which candidates judge {judge.slug} ranks high", warning
                    ),
                ),
            },
            [
                BENCHMARK.verdict(rules.benchmark_is_complete(frame, ratings, query_set)),
                OWN_IDS.verdict(rules.own_ids_are_there(frame)),
            ],
        )

    return JudgeLane(
        judge.slug,
        engine.revision,
        warning,
        tournament_rounds,
        rating_prior,
        judge_card,
        ratings,
        benchmark,
    )


def candidates_by_query(candidate_sets: pl.DataFrame) -> dict[str, list[str]]:
    """Candidate ids of each query, sorted."""
    grouped = candidate_sets.sort("query_id", "doc_id").group_by("query_id", maintain_order=True)
    return dict(grouped.agg("doc_id").iter_rows())


def texts_by_id(release: pl.DataFrame) -> dict[str, tuple[str, str]]:
    """Problem and solution of each document of a release."""
    return {
        doc: (problem, solution)
        for doc, problem, solution in release.select("doc_id", "problem", "solution").iter_rows()
    }
