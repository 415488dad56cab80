"""The call ledger as a Dagster resource."""

import logging
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast, get_args

import dagster as dg
from dagster._core.storage.tags import RETRY_NUMBER_TAG

from saber_dagster import progress
from saber_dagster.engines import Engine
from saber_dagster.errors import SaberError
from saber_dagster.instance import BUILD_TAGS
from saber_dagster.ledger import Budget, BudgetSpent, DryRun, Forecast, Ledger, Mode, Session
from saber_dagster.run_metadata import (
    BUDGET_CALLS,
    BUDGET_USD,
    DRY_RUN,
    FORECAST,
    STOPPED_BY,
    call_metadata,
)
from saber_dagster.storage import storage_path

ENGINES_LOG = "saber_dagster.engines"
"""The logger that engines write to; its lines become part of the run's log."""
RETRIES = 2
RETRY_DELAY_S = 30.0
"""Before the first retry; twice that before the second; up to half of it more or less."""


class LedgerResource(dg.ConfigurableResource[Ledger]):
    """Opens the ledger for one step.

    Attributes:
        root: folder or ``s3://bucket/prefix`` of the ledger.
        journals: local folder of open journals; default: ``root``, which then is local.
        mode: ``live``, ``replay`` (a missing reply is an error) or ``dry_run`` (the step makes nothing
            and ends with a forecast). The run tag ``saber/dry_run`` stands above it.
        budget_usd: what a step may spend, its retries included; the run tag ``saber/budget_usd``
            stands above it.
        budget_calls: how many calls a step may make; likewise ``saber/budget_calls``.
        reasks: how often to ask again after a reply that does not parse.
    """

    root: str
    journals: str = ""
    mode: str = "live"
    budget_usd: float | None = None
    budget_calls: int | None = None
    reasks: int = 0

    @contextmanager
    def session(
        self, engine: Engine, stage: str, context: dg.AssetExecutionContext
    ) -> Iterator[Session]:
        """A session for the partition and run of a step.

        Whatever ends it early becomes a failure of the step, in whose metadata is what was paid. A
        step is tried again only if calls did not get through, which by the ledger pays no call twice;
        and not in ``saber build``, where a person waits for it and can start another.

        Raises:
            dagster.Failure: if anything goes wrong, the budget is spent, or it is a dry run.
            dagster.RetryRequested: if calls did not get through, at most :data:`RETRIES` times.
        """
        tags = context.run.tags
        mode = "dry_run" if DRY_RUN in tags else _mode(self.mode)
        partition = context.partition_key if context.has_partition_key else "all"
        ledger = Ledger(
            storage_path(self.root),
            cast(Path, storage_path(self.journals)) if self.journals else None,
        )
        budget = Budget() if getattr(engine, "free", False) else self._budget(tags)
        if budget.limited and mode == "live":
            budget = budget.after(*ledger.paid(stage, _tries(context)))
        session = ledger.session(
            engine,
            stage,
            partition,
            context.run.run_id,
            mode,
            budget,
            self.reasks,
            lambda line: _say(context.log, logging.INFO, line),
        )
        counts = session.counts
        try:
            work = progress.Work(stage, partition, counts)
            with progress.at_work(work), _engines_log(context.log), session:
                yield session
            if mode == "dry_run":
                nothing = Forecast(0, counts.replayed, 0, 0, 0.0, "every reply is in the ledger")
                raise DryRun(f"{stage} {partition}", nothing)
        except DryRun as end:
            metadata = {STOPPED_BY: "dry_run", FORECAST: asdict(end.forecast)}
            raise _failure(end, metadata, session) from end
        except BudgetSpent as end:
            raise _failure(end, {STOPPED_BY: "budget"}, session) from end
        except SaberError as error:
            if (
                counts.by_status["transport_error"]
                and context.retry_number < RETRIES
                and not BUILD_TAGS.items() <= tags.items()
            ):
                delay = RETRY_DELAY_S * 2**context.retry_number * random.uniform(0.5, 1.5)
                context.log.warning(
                    f"{error}. Once more in {delay:.0f} s; paid so far: {call_metadata(counts)}"
                )
                raise dg.RetryRequested(RETRIES, delay) from error
            raise _failure(error, {}, session) from error
        except Exception as error:
            raise _failure(error, {}, session) from error

    def _budget(self, tags: Mapping[str, str]) -> Budget:
        """What the tags of a run say, else the settings."""
        try:
            usd = float(tags[BUDGET_USD]) if BUDGET_USD in tags else self.budget_usd
            calls = int(tags[BUDGET_CALLS]) if BUDGET_CALLS in tags else self.budget_calls
        except ValueError:
            raise SaberError(
                f"the run's tags {BUDGET_USD} and {BUDGET_CALLS} must be numbers, not"
                f" {tags.get(BUDGET_USD)!r} and {tags.get(BUDGET_CALLS)!r}"
            ) from None
        return Budget(usd, calls)


def _tries(context: dg.AssetExecutionContext) -> list[str]:
    """The run, and if Dagster started it to try a failed one again, that one, and so on."""
    run: dg.DagsterRun | None = context.run
    tries = [context.run.run_id]
    while run and RETRY_NUMBER_TAG in run.tags and run.parent_run_id:
        tries.append(run.parent_run_id)
        run = context.instance.get_run_by_id(run.parent_run_id)
    return tries


def _mode(name: str) -> Mode:
    if name not in get_args(Mode):
        raise SaberError(f"ledger.mode is {name!r}; there are {', '.join(get_args(Mode))}")
    return cast(Mode, name)


def _failure(error: Exception, metadata: Mapping[str, Any], session: Session) -> dg.Failure:
    """The failure of a step; its metadata have what was paid before it."""
    paid = call_metadata(session.counts)
    return dg.Failure(str(error), {**metadata, **paid}, allow_retries=False)


def _say(log: logging.Logger, level: int, line: str) -> None:
    """To the run's log and to whoever shows progress."""
    log.log(level, line)
    progress.say(line, urgent=level >= logging.WARNING)


@contextmanager
def _engines_log(log: logging.Logger) -> Iterator[None]:
    """Within this context the engines' lines go where the session's go."""

    class Forward(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            _say(log, record.levelno, record.getMessage())

    logger, handler = logging.getLogger(ENGINES_LOG), Forward(logging.INFO)
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
