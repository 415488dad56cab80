"""The judge card of a lane: what its games say of the judge, and what they cost."""

import dagster as dg
import polars as pl

from assets.rules import FIRST_PLACE, ORDERS_AGREE
from assets.stage import Made, Site, stage
from saber_dagster.game_costs import COST_COLUMNS, game_costs
from saber_dagster.judge_card import card_lines, judge_card
from saber_dagster.leaderboard import caution
from saber_dagster.ledger import Ledger
from saber_dagster.rating_prior import RatingPrior
from saber_dagster.rules import judging as rules
from saber_dagster.settings import Judge


def judge_card_asset(
    site: Site,
    judge: Judge,
    tournament_rounds: dg.AssetsDefinition,
    rating_prior: dg.AssetsDefinition,
    release: dg.AssetsDefinition,
) -> dg.AssetsDefinition:
    """The asset of one judge's card."""
    generates = judge.ask == "generate"
    both_orders = site.settings.tournament.both_orders or not generates

    @stage(
        site,
        ["judge", judge.slug, "judge_card"],
        table="judge_card",
        version="1",
        group=f"judge_{judge.slug}".replace("-", "_"),
        inputs={
            "tournament_rounds": tournament_rounds,
            "rating_prior": rating_prior,
            "release": release,
        },
        reads=["tournament.both_orders"] if generates else [],
        identity=judge.ask,
        checks=[FIRST_PLACE, ORDERS_AGREE],
        tags={"saber/judge": judge.slug},
    )
    def card(
        context: dg.AssetExecutionContext,
        tournament_rounds: pl.DataFrame,
        rating_prior: pl.DataFrame,
        release: pl.DataFrame,
    ) -> Made:
        made = judge_card(
            tournament_rounds,
            RatingPrior.from_frame(rating_prior),
            release,
            2 if both_orders else 1,
        )
        lines = [*card_lines(made), "", caution(judge.engine)]
        ledger = Ledger(site.home.ledger, site.home.journals)
        replies = ledger.frame("tournament_rounds", COST_COLUMNS).filter("canonical")
        return Made(
            made,
            {
                "card": dg.MetadataValue.md("\n".join(lines).rstrip()),
                **game_costs(tournament_rounds, replies, judge.engine == "openai_batch"),
            },
            [
                FIRST_PLACE.verdict(rules.first_place_is_fair(made)),
                ORDERS_AGREE.verdict(rules.orders_agree(made)),
            ],
        )

    return card
