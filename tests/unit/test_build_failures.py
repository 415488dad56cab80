"""What a failure holds up, by the graph alone."""

import pytest

from saber_dagster.build_failures import BudgetError, BuildError, Failures
from saber_dagster.build_report import BuildReport
from saber_dagster.freshness import Node

REPORT = BuildReport(fresh=7)
SHARDS = ("s00", "s01")


def graph_of(**assets):
    """``name=(partitions, parents)`` in topological order."""
    nodes = {}
    for name, (partitions, parents) in assets.items():
        above = tuple((parent,) for parent in parents)
        level = 1 + max((nodes[parent].level for parent in above), default=-1)
        nodes[(name,)] = Node((name,), "t", "g", "1", tuple(partitions), above, level)
    return nodes


GRAPH = graph_of(
    tags=(SHARDS, []),
    index=([None], ["tags"]),
    thresholds=([None], ["index"]),
    candidates=(SHARDS, ["thresholds"]),
    games=(SHARDS, ["candidates"]),
    ratings=(SHARDS, ["games"]),
    board=([None], ["ratings"]),
)


def held(failures, fresh=()):
    """The partitions that wait, asked in topological order."""
    return [
        (node.name, partition)
        for node in GRAPH.values()
        for partition in node.partitions
        if failures.hold_up(node, partition, due=node.name not in fresh)
    ]


def test_only_the_same_partition_waits_where_assets_are_cut_alike_and_the_whole_downstream():
    failures = Failures(GRAPH, ())
    failures.add(GRAPH["games",], "s01", "broken")
    assert held(failures) == [("ratings", "s01"), ("board", None)]
    with pytest.raises(BuildError) as caught:
        failures.raise_any(REPORT, "")
    assert str(caught.value) == (
        "games s01: broken\nwaiting for the above, left as they are: ratings, board"
    )


def test_everything_waits_below_a_failure_at_the_top_though_it_looks_fresh():
    failures = Failures(GRAPH, ())
    failures.add(GRAPH["tags",], "s00", "broken")
    fresh = ("candidates", "games", "ratings", "board")
    assert {name for name, _ in held(failures, fresh)} == {"index", "thresholds", *fresh}


def test_a_pinned_release_that_is_fresh_lets_what_reads_it_go_on():
    pinned = {("thresholds",), ("candidates",)}
    failures = Failures(GRAPH, pinned)
    failures.add(GRAPH["tags",], "s00", "broken")
    assert held(failures, ("thresholds", "candidates")) == [("index", None)]
    failures = Failures(GRAPH, pinned)
    failures.add(GRAPH["tags",], "s00", "broken")
    assert ("board", None) in held(failures), "one that must be made first does not"


def test_a_spent_budget_alone_is_told_from_a_failure():
    failures = Failures(GRAPH, ())
    failures.raise_any(REPORT, "")  # nothing happened
    for shard in SHARDS:
        failures.add_unpaid(GRAPH["games",], shard)
    held(failures)
    with pytest.raises(
        BudgetError, match=r"spent \(\$3\); calls are missing in games \(2×\)"
    ) as end:
        failures.raise_any(REPORT, "$3")
    assert (end.value.exit_code, end.value.report) == (3, REPORT)
    failures.add(GRAPH["tags",], "s00", "broken")
    with pytest.raises(BuildError, match="tags s00: broken\nthe budget is spent") as end:
        failures.raise_any(REPORT, "$3")
    assert not isinstance(end.value, BudgetError)
    assert end.value.exit_code == 1
