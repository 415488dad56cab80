"""One lane per judge: tournament rounds → rating prior → ratings → benchmark."""

from dataclasses import dataclass

import dagster as dg
import polars as pl

from assets.annotation import call_metadata, coverage
from assets.candidates import CandidateAssets
from assets.stage import Check, CheckRule, Made, Site, stage
from resources.engines import engine_identity, load_engine
from saber_dagster.contracts import TABLES
from saber_dagster.engines import PAIRWISE_JUDGMENT
from saber_dagster.judging import pairwise_judge
from saber_dagster.leaderboard import BASELINE_WARNING
from saber_dagster.rating_prior import RatingPrior, estimate_prior
from saber_dagster.ratings import connectivity, rate
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
    ratings: dg.AssetsDefinition
    benchmark: dg.AssetsDefinition


def judge_resource(judge: Judge) -> str:
    """The key of a judge's engine among the resources."""
    return f"judge_{judge.slug.replace('-', '_')}"


def judge_lane(site: Site, judge: Judge, candidates: CandidateAssets) -> JudgeLane:
    """The assets of one judge."""
    settings = site.settings
    engine = load_engine(judge.engine, judge.options)
    warning = BASELINE_WARNING if judge.engine == "embedded" else ""
    group = f"judge_{judge.slug}".replace("-", "_")
    tags = {"saber/judge": judge.slug, "saber/model": engine.model}

    @stage(
        site,
        ["judge", judge.slug, "tournament_rounds"],
        table="judgments",
        version="1",
        description=f"{TABLES['judgments'].description} {warning}".rstrip(),
        group=group,
        inputs={"candidate_sets": candidates.candidate_sets, "release": candidates.release},
        partitions=site.by_query,
        reads=["seed", "tournament"],
        identity=engine_identity(engine, PAIRWISE_JUDGMENT),
        kinds=["llm"],
        resources=[judge_resource(judge), "ledger"],
        pool=f"judge_{judge.slug}",
        checks=[
            CheckRule("coverage", "At least 99 % of the games have a verdict."),
            CheckRule("connected", "The games of each query connect all its candidates."),
            CheckRule("prefers", "The judge prefers some documents to others."),
        ],
        tags=tags,
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
                pairwise_judge(session.ask, texts_by_id(release)),
                settings.tournament.both_orders,
            )
        graph = connectivity(judgments, query_candidates)
        judged = judgments.filter(pl.col("outcome").is_not_null())
        first = judged.with_columns(
            pl.when(pl.col("shown_first") == pl.col("doc_a"))
            .then(pl.col("outcome"))
            .otherwise(1.0 - pl.col("outcome"))
            .alias("first")
        )["first"].mean()
        return Made(
            judgments,
            {
                "engine": engine.model,
                "queries": len(query_candidates),
                "games": judgments.height,
                "share_first_shown_preferred": 0.5 if first is None else float(str(first)),
                "not_strongly_connected": graph.filter(~pl.col("strongly_connected")).height,
                **call_metadata(session.counts),
            },
            game_checks(judgments, graph),
        )

    @stage(
        site,
        ["judge", judge.slug, "rating_prior"],
        table="rating_prior",
        version="1",
        group=group,
        inputs={"tournament_rounds": tournament_rounds},
        reads=["ratings"],
        tags=tags,
    )
    def rating_prior(context: dg.AssetExecutionContext, tournament_rounds: pl.DataFrame) -> Made:
        fixed = settings.ratings.prior_precision
        prior = estimate_prior(tournament_rounds, fixed)
        return Made(
            prior.frame(judge.slug),
            {
                "prior_precision": prior.prior_precision,
                "position_log_odds": prior.position,
                "at_bound": ", ".join(prior.at_bound) or "no",
                "iterations": prior.iterations,
            },
        )

    @stage(
        site,
        ["judge", judge.slug, "ratings"],
        table="ratings",
        version="1",
        description=f"{TABLES['ratings'].description} {warning}".rstrip(),
        group=group,
        inputs={
            "tournament_rounds": tournament_rounds,
            "rating_prior": rating_prior,
            "candidate_sets": candidates.candidate_sets,
        },
        partitions=site.by_query,
        tags=tags,
    )
    def ratings(
        context: dg.AssetExecutionContext,
        tournament_rounds: pl.DataFrame,
        rating_prior: pl.DataFrame,
        candidate_sets: pl.DataFrame,
    ) -> Made:
        prior = RatingPrior.from_frame(rating_prior)
        return Made(rate(tournament_rounds, candidates_by_query(candidate_sets), prior))

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
        return Made(
            ratings.select("query_id", "doc_id", "rating", "rank")
            .join(candidate_sets.select("query_id", "doc_id", "group"), on=("query_id", "doc_id"))
            .join(query_set.select("query_id", "domains"), on="query_id")
            .join(names.rename({"source_id": "doc_source_id"}), on="doc_id")
            .join(
                names.rename({"doc_id": "query_id", "source_id": "query_source_id"}), on="query_id"
            ),
            {"queries": ratings["query_id"].n_unique()},
        )

    return JudgeLane(
        judge.slug, engine.revision, warning, tournament_rounds, rating_prior, ratings, benchmark
    )


def game_checks(judgments: pl.DataFrame, graph: pl.DataFrame) -> list[Check]:
    """The checks of a partition's games; ``graph`` is their :func:`connectivity`."""
    judged = judgments.filter(pl.col("outcome").is_not_null())
    failures = judgments.filter(pl.col("outcome").is_null()).group_by("status").len()
    split = graph.filter(pl.col("components") > 1)
    failed = int(split["failed"].sum())
    return [
        coverage(judged.height, judgments.height, "games", dict(failures.iter_rows())),
        Check(
            "connected",
            split.height == 0,
            f"{split.height} of {graph.height} queries fall apart into groups that never met"
            + (
                f", as {failed} of their games failed; see the check coverage for the reasons"
                if failed
                else "; play more rounds (tournament.rounds)"
                if split.height
                else ""
            ),
        ),
        Check(
            "prefers",
            judged.height == 0 or not (judged["outcome"] == 0.5).all(),
            f"{judged.filter(pl.col('outcome') != 0.5).height} of {judged.height} judged games have a"
            " preferred document; with ties alone every retriever would have an nDCG of 1. Look at"
            " the judge's prompt and replies (with both_orders, a judge that always prefers the first"
            " document ties every game)",
        ),
    ]


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
