"""The schedule and the sensor that keep judges' lanes complete; both are off until switched on.

What is due, and under which run keys, is decided in :mod:`saber_dagster.rejudging`. Every run makes
one partition of one table. docs/rejudging.md is about them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import dagster as dg
from dagster._core.storage.dagster_run import IN_PROGRESS_RUN_STATUSES
from dagster._utils.schedules import is_valid_cron_schedule

from saber_dagster.errors import SaberError
from saber_dagster.freshness import Graph, Key, Partition
from saber_dagster.home import Home
from saber_dagster.instance import BUILD_TAGS, end_runs_of_killed_builds
from saber_dagster.rejudging import Campaign, Due, Lane, Survey, survey
from saber_dagster.releases import release_of
from saber_dagster.run_metadata import BUDGET_USD
from saber_dagster.tables import TableStore, input_name

NIGHTLY = "rejudge_nightly"
ON_CHANGE = "judges_changed"
JUDGE = "saber/judge"
"""Tag of a run: the judge whose lane it is in."""
RUN_KEY = "saber/run_key"
"""Tag of a run: its run key without the number of the try."""
CODE_VERSION = "saber/code_version"
"""Tag of a run: the version that it was started to make."""
SENSOR_SECONDS = 30
FREE_TRIES = 3
"""Runs that the sensor starts for a table that asks nobody, until one of them makes it."""

_RELOAD = "reload them with `saber judges reload`, or on Dagster's page Deployment"

_PARTITION = "dagster/partition"
_OPEN = [dg.DagsterRunStatus.NOT_STARTED, *IN_PROGRESS_RUN_STATUSES]
_SHOWN = 3


def rejudge_nightly(home: Home, graph: Graph, lanes: Sequence[Lane]) -> dg.ScheduleDefinition:
    """The schedule that requests the games that are due, in every lane of the current release.

    A night has the budget of the settings, and its paid runs share it alike. What failed on earlier
    nights comes last, so that it does not hold up the rest.

    Args:
        home: as the definitions were loaded from it.
        graph: their assets.
        lanes: its judges.

    Raises:
        SaberError: if ``rejudging.cron`` is none.
    """
    cron = home.settings.rejudging.cron
    if not is_valid_cron_schedule(cron):
        raise SaberError(
            f"{home.settings_file}: rejudging.cron {cron!r} is no cron schedule; write one like"
            " '0 2 * * *', which is every night at two"
        )

    @dg.schedule(
        name=NIGHTLY,
        cron_schedule=cron,
        target=_lanes_of(graph),
        default_status=dg.DefaultScheduleStatus.STOPPED,
        description="Games that are missing or stale, of every judge, within the night's budget.",
    )
    def nightly(context: dg.ScheduleEvaluationContext) -> list[dg.RunRequest] | dg.SkipReason:
        try:
            outlook = _look(home, graph, lanes, context.instance)
        except SaberError as error:
            return dg.SkipReason(f"nothing is requested: {error}")
        games = sorted(
            ((due, tries) for due, tries in outlook.startable if due.asks),
            key=lambda tried: tried[1],
        )
        if not games:
            return dg.SkipReason(outlook.why_nothing())
        chosen = games[: home.settings.rejudging.partitions_per_tick]
        budget, paid = home.settings.ledger.budget_usd, sum(due.paid for due, _ in chosen)
        share = None if budget is None or not paid else budget / paid
        return [_request(due, tries, share) for due, tries in chosen]

    return nightly


def judges_changed(home: Home, graph: Graph, lanes: Sequence[Lane]) -> dg.SensorDefinition:
    """The sensor that completes the lanes of judges that are new or have changed.

    It requests what is due in these lanes, the free tables among it, at most so many runs a tick, and
    the games of a partition once for one state of affairs: what failed is left to people and to the
    schedule. A table that asks nobody is tried :data:`FREE_TRIES` times, as the schedule does not. All
    runs that follow one change of ``judges.yaml`` share the budget of the settings.

    Args:
        home: as the definitions were loaded from it.
        graph: their assets.
        lanes: its judges.
    """

    @dg.sensor(
        name=ON_CHANGE,
        target=_lanes_of(graph),
        minimum_interval_seconds=SENSOR_SECONDS,
        default_status=dg.DefaultSensorStatus.STOPPED,
        description="Completes the lane of a judge that was added to judges.yaml or changed there.",
    )
    def changed(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        before = Campaign.parse(context.cursor)
        if before is None:
            return _skip(
                Campaign.begin(lanes),
                f"watching {len(lanes)} judge(s) from now on; what is due already is made by"
                f" {NIGHTLY} or `saber build`",
            )
        try:
            _refuse_outdated(home)
            campaign = before.follow(lanes, home.settings.ledger.budget_usd)
            if not campaign.open:
                return _skip(campaign, "no judge has changed")
            open_lanes = [lane for lane in lanes if lane.slug in campaign.open]
            outlook = _look(home, graph, open_lanes, context.instance)
        except SaberError as error:
            return dg.SkipReason(f"nothing is requested: {error}")
        new = [
            (due, tries)
            for due, tries in outlook.startable
            if tries < (1 if due.asks else FREE_TRIES) and not (due.paid and campaign.spent)
        ]
        names = ", ".join(campaign.open)
        if chosen := new[: home.settings.rejudging.partitions_per_tick]:
            started = sum(due.paid for due, _ in chosen)
            share, campaign = campaign.share(sum(due.paid for due, _ in new), started)
            requests = [_request(due, tries, share) for due, tries in chosen]
            return dg.SensorResult(requests, cursor=campaign.cursor())
        if outlook.running:
            return _skip(
                campaign, f"{names}: {len(outlook.running)} partition(s) are queued or running"
            )
        return _skip(campaign.close(), f"{names}: {outlook.why_nothing(len(outlook.startable))}")

    return changed


@dataclass(frozen=True)
class _Outlook:
    """The lanes of some judges, and what is going on in them."""

    found: Survey
    running: frozenset[tuple[Key, Partition]]
    """Partitions of these lanes that are queued or running."""
    startable: tuple[tuple[Due, int], ...]
    """What is due and not running, and how many runs were started for it in vain."""

    def why_nothing(self, held_back: int = 0) -> str:
        """A sentence on what there is to do, for a tick that starts nothing."""
        said = []
        if held_back:
            said.append(
                f"{held_back} partition(s) are due; they were tried before, or the budget is given out:"
                f" look at the failed runs. {NIGHTLY} tries games again, `saber build` everything"
            )
        if self.running:
            said.append(f"{len(self.running)} partition(s) are queued or running")
        if self.found.failed:
            failed = (input_name(state.node.key, state.partition) for state in self.found.failed)
            said.append(f"{_listed(failed)} failed a check")
        outside = [source for _, source in self.found.waiting if not source.startswith("judge/")]
        if outside:
            said.append(f"{len(outside)} partition(s) wait for {_listed(outside)}")
        if not said and self.startable:
            return (
                f"no game is due, but {len(self.startable)} free partition(s) are; {ON_CHANGE}, Dagster's"
                " automation or `saber build` makes them"
            )
        return "; ".join(said) or "nothing is due, every partition is fresh"


def _lanes_of(graph: Graph) -> dg.AssetSelection:
    return dg.AssetSelection.assets(*(dg.AssetKey(list(key)) for key in graph if key[0] == "judge"))


def _look(
    home: Home, graph: Graph, lanes: Sequence[Lane], instance: dg.DagsterInstance
) -> _Outlook:
    """Look at the lanes of some judges.

    Raises:
        SaberError: if these definitions are not those of the home as it is now, or the settings not
            those of its release.
    """
    _refuse_outdated(home)
    release = release_of(home.releases, home.settings)
    if release.complete:
        release.check_settings(home.settings)
    found = survey(TableStore(home.tables), graph, lanes, release)
    running = _running(home, instance)
    startable = [due for due in found.due if due.place not in running]
    for due in startable:
        _refuse_other_version(instance, due)
    slugs = {lane.slug for lane in lanes}
    return _Outlook(
        found,
        frozenset(place for place in running if place[0][0] == "judge" and place[0][1] in slugs),
        tuple((due, _tries(instance, due)) for due in startable),
    )


def _refuse_outdated(home: Home) -> None:
    """Refuse to go by definitions that were loaded before the files changed."""
    now = Home(home.root)
    changed = [
        name
        for name, differs in (
            ("judges.yaml", now.judges != home.judges),
            ("saber.yaml", now.settings != home.settings),
        )
        if differs
    ]
    if changed:
        raise SaberError(
            f"{' and '.join(changed)} changed since the definitions were loaded; {_RELOAD}"
        )


def _refuse_other_version(instance: dg.DagsterInstance, due: Due) -> None:
    """Refuse to start again what a run has just made by other definitions, in its own process.

    A prompt file or a class that was changed without a reload would have it made for ever.
    """
    present = due.present
    run = instance.get_run_by_id(present.run_id) if present and present.run_id else None
    if (
        run
        and present
        and run.tags.get(CODE_VERSION) == due.node.code_version != present.code_version
    ):
        raise SaberError(
            f"{input_name(due.node.key, due.partition)} was made by another version than the loaded"
            f" definitions have: a prompt, a class or the environment changed; {_RELOAD}"
        )


def _running(home: Home, instance: dg.DagsterInstance) -> set[tuple[Key, Partition]]:
    """Assets and partitions that are queued or running; a killed build's runs are ended first."""
    runs = instance.get_runs(filters=dg.RunsFilter(statuses=_OPEN))
    if any(BUILD_TAGS.items() <= run.tags.items() for run in runs):
        try:
            with home.locked():
                end_runs_of_killed_builds(instance)
        except SaberError:
            pass  # the build is alive
        else:
            runs = instance.get_runs(filters=dg.RunsFilter(statuses=_OPEN))
    return {
        (tuple(asset.path), run.tags.get(_PARTITION))
        for run in runs
        for asset in run.asset_selection or ()
    }


def _tries(instance: dg.DagsterInstance, due: Due) -> int:
    """How many runs were started for this partition in the state in which everything is now."""
    return instance.get_runs_count(dg.RunsFilter(tags={RUN_KEY: due.key}))


def _request(due: Due, tries: int, share: float | None) -> dg.RunRequest:
    budget = {} if share is None or not due.paid else {BUDGET_USD: f"{share:.6g}"}
    return dg.RunRequest(
        run_key=f"{due.key}:{tries}",
        asset_selection=[dg.AssetKey(list(due.node.key))],
        partition_key=due.partition,
        tags={JUDGE: due.slug, RUN_KEY: due.key, CODE_VERSION: due.node.code_version, **budget},
    )


def _skip(campaign: Campaign, reason: str) -> dg.SensorResult:
    return dg.SensorResult(skip_reason=reason, cursor=campaign.cursor())


def _listed(names: Iterable[str]) -> str:
    every = list(dict.fromkeys(names))
    more = len(every) - _SHOWN
    return ", ".join(every[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
