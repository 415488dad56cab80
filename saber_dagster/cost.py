"""Sums over the call ledger: what was paid, for what, and when.

Only the columns that are summed are read, segment by segment.
"""

import re
from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import Literal, get_args

import polars as pl

from saber_dagster.engines import FINAL, Status
from saber_dagster.errors import SaberError
from saber_dagster.ledger import Ledger

By = Literal["stage", "judge", "model", "run", "day"]
GROUPS: Mapping[By, tuple[str, ...]] = {
    "stage": ("stage",),
    "judge": ("judge", "model", "revision"),
    "model": ("model", "revision"),
    "run": ("run_id", "stage", "model"),
    "day": ("day",),
}
"""The columns that name a row of each grouping."""
STATUSES: tuple[str, ...] = get_args(Status)
TOKENS = ("prompt_tokens", "completion_tokens", "reasoning_tokens", "cached_tokens")
_READ = ("created", "status", "price", "latency", *TOKENS)
_MADE = {"judge": "run_id", "day": "created"}
"""Columns of a grouping that the ledger does not have, and those that they are made from."""
_AGO = re.compile(r"([0-9]{1,6})([hd])")
_UNITS = {"h": "hours", "d": "days"}


def sums(
    ledger: Ledger, by: By, since: float | None = None, judge_of: Mapping[str, str] | None = None
) -> pl.DataFrame:
    """Sum the stored replies.

    Args:
        ledger: the ledger; journals of running steps are not part of it.
        by: what a row stands for.
        since: seconds since the epoch; replies before are left out.
        judge_of: run id → judge, for ``by="judge"``; replies of other runs have the judge ``""``.

    Returns:
        The columns of :data:`GROUPS` for ``by``; ``calls``; a column per status; ``duplicates``:
        replies to a call of the same stage that an earlier segment answers for good; ``counted``:
        calls that took tokens, and ``unpriced``: those of them with a price of 0; tokens by kind;
        ``price_usd``; ``mean_latency_s``. Sorted by the group.
    """
    named = [_MADE.get(name, name) for name in GROUPS[by]]
    rows = ledger.frame(columns=list(dict.fromkeys([*named, *_READ]))).lazy()
    counted = pl.sum_horizontal("prompt_tokens", "completion_tokens") > 0
    again = pl.col("status").is_in(list(FINAL)) & ~pl.col("canonical")
    if since is not None:
        rows = rows.filter(pl.col("created") >= since)
    if by == "day":
        day = pl.from_epoch((pl.col("created") * 1000).cast(pl.Int64), time_unit="ms")
        rows = rows.with_columns(day.dt.strftime("%Y-%m-%d").alias("day"))
    if by == "judge":
        runs = pl.LazyFrame(
            {"run_id": list(judge_of or {}), "judge": list((judge_of or {}).values())},
            schema={"run_id": pl.String, "judge": pl.String},
        )
        rows = rows.join(runs, on="run_id", how="left").with_columns(pl.col("judge").fill_null(""))
    return (
        rows.group_by(GROUPS[by])
        .agg(
            pl.len().cast(pl.Int64).alias("calls"),
            *((pl.col("status") == s).sum().cast(pl.Int64).alias(s) for s in STATUSES),
            again.sum().cast(pl.Int64).alias("duplicates"),
            counted.sum().cast(pl.Int64).alias("counted"),
            (counted & (pl.col("price") == 0)).sum().cast(pl.Int64).alias("unpriced"),
            pl.col(*TOKENS).sum(),
            pl.col("price").sum().alias("price_usd"),
            pl.col("latency").mean().alias("mean_latency_s"),
            pl.col("created").min().alias("first"),
            pl.col("created").max().alias("last"),
        )
        .sort(GROUPS[by])
        .collect()
    )


def since_time(text: str, now: datetime | None = None) -> float:
    """A moment as seconds since the epoch.

    Args:
        text: ``12h`` or ``7d`` ago, or an ISO date or time; without a zone it is UTC.
        now: for tests.

    Raises:
        SaberError: if it is neither.
    """
    if match := _AGO.fullmatch(text):
        ago = timedelta(**{_UNITS[match[2]]: int(match[1])})
        return ((now or datetime.now(UTC)) - ago).timestamp()
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise SaberError(
            f"--since {text!r}: write 12h, 7d, 2026-05-01 or 2026-05-01T18:00"
        ) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def speed(ledger: Ledger, stage: str, model: str, tasks: Collection[str] = ()) -> float | None:
    """Calls per second that the earlier replies of a model in a stage came at; None without any.

    From first to last reply of each run, the mean latency of one call added; so it has the
    concurrency of those runs in it. Of ``tasks`` only, where any are named: one token and a solution
    do not take the same time.
    """
    rows = ledger.frame(stage, ["model", "task", "run_id", "created", "latency"])
    runs = (
        rows.filter((pl.col("model") == model) & (pl.col("task").is_in(list(tasks)) | (not tasks)))
        .group_by("run_id")
        .agg(
            pl.len().alias("calls"),
            (pl.col("created").max() - pl.col("created").min() + pl.col("latency").mean()).alias(
                "span"
            ),
        )
    )
    calls, span = runs.select(pl.col("calls").sum(), pl.col("span").sum()).row(0)
    return float(calls / span) if span else None


def run_ids(ledger: Ledger) -> list[str]:
    """The runs that stored replies."""
    return ledger.frame(columns=["run_id"])["run_id"].unique().sort().to_list()
