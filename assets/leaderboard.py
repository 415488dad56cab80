"""Runs and benchmarks → metrics of every query → leaderboard."""

from collections.abc import Sequence

import dagster as dg
import polars as pl

from assets.judges import JudgeLane
from assets.pictures import picture
from assets.retrievers import RetrieverLane
from assets.rules import BOARD, INTERVALS, MEASURED, RANDOM, TIED_GROUPS
from assets.stage import Check, CheckRule, Made, Site, stage
from saber_dagster.contracts import TABLES
from saber_dagster.leaderboard import Meta, build
from saber_dagster.metrics import expected_random_ndcg
from saber_dagster.metrics import query_metrics as metrics_of
from saber_dagster.plots.leaderboard import (
    board_domains_figure,
    reference_slugs,
    settings_figure,
)
from saber_dagster.retrieval.reference import oracle_run
from saber_dagster.rules import boards as rules
from saber_dagster.settings import ORACLE

GROUP = "leaderboard"
_MOST_RIVALS = 12
"""Retrievers in a picture of the metadata; `saber report` shows all."""


def leaderboard_assets(
    site: Site, judges: Sequence[JudgeLane], retrievers: Sequence[RetrieverLane]
) -> list[dg.AssetsDefinition]:
    """The assets of this stage: one board per judge, in one table."""
    settings = site.settings
    cutoff = settings.evaluation.cutoff
    benchmarks = {f"benchmark_{number}": lane for number, lane in enumerate(judges)}
    runs = {f"run_{number}": lane for number, lane in enumerate(retrievers)}

    @stage(
        site,
        "query_metrics",
        table="query_metrics",
        version="1",
        group=GROUP,
        inputs={
            **{name: lane.benchmark for name, lane in benchmarks.items()},
            **{name: lane.run for name, lane in runs.items()},
        },
        reads=["evaluation.cutoff", "evaluation.settings"],
        identity=[[lane.slug for lane in judges], [lane.slug for lane in retrievers]],
        checks=[
            CheckRule("no_missing_queries", "Every run ranks every query.", blocking=False),
            MEASURED,
            RANDOM,
        ],
    )
    def query_metrics(context: dg.AssetExecutionContext, **frames: pl.DataFrame) -> Made:
        parts = [TABLES["query_metrics"].empty()]
        expected = {}
        shown = settings.evaluation.settings
        for benchmark_name, judge in benchmarks.items():
            benchmark = frames[benchmark_name]
            expected[f"expected_of_a_random_ranking_{judge.slug}"] = _mean_random(benchmark, cutoff)
            ranked = {lane.slug: frames[name] for name, lane in runs.items()}
            ranked[ORACLE] = pl.concat(oracle_run(benchmark, setting) for setting in shown)
            parts += [
                metrics_of(run, benchmark, judge.slug, slug, cutoff, shown)
                for slug, run in ranked.items()
            ]
        frame = pl.concat(parts)
        missing = int(frame["missing"].sum())
        judged = {judge.slug: frames[name] for name, judge in benchmarks.items()}
        ranked_by = [*(lane.slug for lane in retrievers), ORACLE]
        random = reference_slugs(site.home.retrievers) - {ORACLE}
        return Made(
            frame,
            {"judges": len(judges), "retrievers": len(retrievers), **expected},
            [
                Check(
                    "no_missing_queries",
                    missing == 0,
                    f"{missing} times a run lacks a query, which scores 0",
                ),
                MEASURED.verdict(rules.every_query_is_measured(frame, judged, ranked_by, shown)),
                RANDOM.verdict(rules.random_is_random(frame, judged, random, cutoff)),
            ],
        )

    meta = Meta(
        release=settings.release,
        judge_revisions={lane.slug: lane.revision for lane in judges},
        retriever_revisions={
            **{lane.slug: lane.revision for lane in retrievers},
            ORACLE: "1",
        },
    )

    @stage(
        site,
        "leaderboard",
        table="leaderboard",
        version="1",
        group=GROUP,
        inputs={"query_metrics": query_metrics},
        reads=["domains", "seed", "release", "evaluation.bootstrap_samples"],
        identity=[meta.judge_revisions, meta.retriever_revisions],
        published=True,
        checks=[
            CheckRule("oracle_is_one", "The judge's own ratings, as a run, score 1."),
            BOARD,
            INTERVALS,
            TIED_GROUPS,
        ],
    )
    def leaderboard(context: dg.AssetExecutionContext, query_metrics: pl.DataFrame) -> Made:
        board = build(
            query_metrics,
            meta,
            settings.domains,
            settings.evaluation.bootstrap_samples,
            settings.seed,
        )
        oracle = board.filter(pl.col("retriever") == ORACLE)["value"]
        return Made(
            board,
            {
                "release": settings.release,
                "made_from": dg.MetadataValue.md(_made_from(site, judges, retrievers)),
                **{
                    f"trace_{lane.slug}": f"saber trace --retriever {_best(board, lane.slug)}"
                    f" --domain overall --judge {lane.slug}"
                    for lane in judges
                },
                **{
                    f"board_{lane.slug}": dg.MetadataValue.md(
                        f"{_board(board, lane.slug)}\n\n{lane.warning}".strip()
                    )
                    for lane in judges
                },
                **{
                    key: value
                    for lane in judges
                    for key, value in _pictures(context, site, board, lane).items()
                },
            },
            [
                Check(
                    "oracle_is_one",
                    bool((oracle == 1.0).all()) and len(oracle) > 0,
                    f"lowest {oracle.min()!r}, over {len(oracle)} cells",
                ),
                BOARD.verdict(
                    rules.board_agrees_with_metrics(board, query_metrics, settings.domains)
                ),
                INTERVALS.verdict(rules.intervals_hold_their_values(board)),
                TIED_GROUPS.verdict(rules.tied_groups_start_at_one(board)),
            ],
        )

    return [query_metrics, leaderboard]


def _made_from(site: Site, judges: Sequence[JudgeLane], retrievers: Sequence[RetrieverLane]) -> str:
    """Where the tables lie that a figure is traced through."""
    keys = [
        ["query_metrics"],
        *(["judge", lane.slug, "benchmark"] for lane in judges),
        *(["judge", lane.slug, "tournament_rounds"] for lane in judges),
        *(["retriever", lane.slug, "run"] for lane in retrievers),
    ]
    return "\n".join(f"* {'/'.join(key)}: `{site.home.tables.joinpath(*key)}`" for key in keys)


def _best(board: pl.DataFrame, judge: str) -> str:
    """The best retriever overall; the oracle if there is no other."""
    rows = board.filter((pl.col("judge") == judge) & (pl.col("domain") == "overall"))
    others = rows.filter(pl.col("retriever") != ORACLE).sort(
        "value", "retriever", descending=[True, False]
    )
    return str(next(iter(others["retriever"]), ORACLE))


def _pictures(
    context: dg.AssetExecutionContext, site: Site, board: pl.DataFrame, lane: JudgeLane
) -> dict[str, dg.MetadataValue]:
    """One judge's board by setting, and by domain in the main setting."""
    settings = site.settings
    mine = board.filter(pl.col("judge") == lane.slug)
    shown = settings.evaluation.settings
    references = reference_slugs(site.home.retrievers)
    title = f"Judge {lane.slug}, release {settings.release}"
    return {
        **picture(
            site,
            context,
            f"plot_{lane.slug}",
            "Points with whiskers: every retriever by setting",
            lambda: settings_figure(
                mine, shown, references, title, lane.warning, most=_MOST_RIVALS
            ),
        ),
        **picture(
            site,
            context,
            f"plot_{lane.slug}_domains",
            f"Points with whiskers: every retriever by domain, in {shown[0]}",
            lambda: board_domains_figure(
                mine,
                shown[0],
                settings.domains,
                references,
                f"{title}, {shown[0]}",
                lane.warning,
                most=_MOST_RIVALS,
            ),
        ),
    }


def _mean_random(benchmark: pl.DataFrame, cutoff: int) -> float:
    """The mean metric that theory gives a random ranking of each query's candidates."""
    values = [
        expected_random_ndcg(ratings, cutoff)
        for ratings in benchmark.group_by("query_id").agg("rating").sort("query_id")["rating"]
    ]
    return sum(values) / max(len(values), 1)


def _board(board: pl.DataFrame, judge: str) -> str:
    """One judge's board as a Markdown table: the overall figures of each setting."""
    rows = board.filter((pl.col("judge") == judge) & (pl.col("domain") == "overall"))
    settings = rows["setting"].unique(maintain_order=True).to_list()
    lines = [
        "| retriever | " + " | ".join(settings) + " |",
        "| --- |" + " --- |" * len(settings),
    ]
    order = rows.group_by("retriever").agg(pl.col("value").mean()).sort("value", "retriever")
    for retriever in reversed(order["retriever"].to_list()):
        cells = []
        for setting in settings:
            row = rows.filter(
                (pl.col("retriever") == retriever) & (pl.col("setting") == setting)
            ).row(0, named=True)
            cells.append(f"{row['value']:.3f} [{row['low']:.3f}, {row['high']:.3f}]")
        lines.append(f"| {retriever} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
