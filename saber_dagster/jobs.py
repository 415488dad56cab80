"""Named jobs: each brings a part of the graph up to date, as ``saber build`` does.

The parts are cut in different ways, and Dagster's asset jobs cannot mix partitions; so a job is one op
that starts a run for every partition that is not fresh.
"""

from collections.abc import Callable

import dagster as dg

from saber_dagster.freshness import Node
from saber_dagster.home import Home

JOBS: dict[str, tuple[str, Callable[[Node], bool]]] = {
    "build": ("Everything that is not fresh, from sources to leaderboard.", lambda node: True),
    "rejudge": (
        "The lanes of all judges over the current release: only missing or stale partitions run.",
        lambda node: node.key[0] == "judge",
    ),
    "evaluate": (
        "The runs of all retrievers, and the leaderboard.",
        lambda node: node.key[0] == "retriever" or node.group == "leaderboard",
    ),
}
"""Name → description and the assets that the job brings up to date."""


def jobs(home: Home, load: Callable[[Home], dg.Definitions]) -> list[dg.JobDefinition]:
    """The named jobs of a home; ``load`` makes its definitions anew when a job runs."""
    return [_job(home, load, name) for name in JOBS]


def _job(home: Home, load: Callable[[Home], dg.Definitions], name: str) -> dg.JobDefinition:
    description, selects = JOBS[name]

    @dg.op(name=f"{name}_stale_partitions", description=description)
    def bring_up_to_date(context: dg.OpExecutionContext) -> None:
        from saber_dagster.materialize import Event, build

        def watch(event: Event) -> None:
            if event.kind == "run":
                context.log.info(f"{', '.join(event.assets)} {event.partition or ''}")

        fresh = Home(home.root)
        report = build(fresh, load(fresh), watch, selects)
        context.log.info(f"{len(report.runs)} runs; {report.fresh} partitions were fresh")

    @dg.job(name=name, description=description, executor_def=dg.in_process_executor)
    def job() -> None:
        bring_up_to_date()

    return job
