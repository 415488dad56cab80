"""Which partitions of judges' lanes are due, and under which run keys."""

import pytest

from saber_dagster.contracts import TABLES
from saber_dagster.engines import PromptRef
from saber_dagster.freshness import Node, inputs_of
from saber_dagster.rejudging import Campaign, Lane, survey
from saber_dagster.releases import Release
from saber_dagster.tables import WHOLE, Provenance, TableStore, input_name

TABLE = TABLES["topic_statistics"]
SHARDS = ("algebra|s00", "geometry|s00")


def lane(slug, revision="1", entry="e"):
    return Lane(slug, revision, PromptRef("p", "a" * 64), entry)


def graph_of(*slugs, code="1"):
    """The release and the lanes of some judges, whose games have a code version of their own."""
    nodes = {}

    def add(key, partitions, parents, table="other", version="1"):
        level = 1 + max((nodes[parent].level for parent in parents), default=-1)
        nodes[key] = Node(key, table, "g", version, partitions, tuple(parents), level)

    add(("candidate_sets",), SHARDS, [])
    add(("release",), (None,), [("candidate_sets",)])
    for slug in slugs:
        rounds, prior, ratings, board = (
            ("judge", slug, name) for name in ("rounds", "prior", "ratings", "benchmark")
        )
        add(rounds, SHARDS, [("candidate_sets",), ("release",)], "judgments", code)
        add(prior, (None,), [rounds])
        add(ratings, SHARDS, [prior, rounds])
        add(board, (None,), [ratings, ("release",)])
    return nodes


class Bench:
    """A store and a release, and what is due in them."""

    def __init__(self, root):
        self.store = TableStore(root / "tables")
        self.release = Release(root / "releases" / "r1")
        self.runs = 0

    def pin(self):
        self.release.folder.mkdir(parents=True)
        (self.release.folder / "manifest.json").write_text("{}")

    def make(self, graph, *key, partition=None, data="v1", failed=()):
        """Materialize a partition from whatever its inputs are now; each by a run of its own."""
        node = graph[key]
        read = {
            input_name(*source): found.data_version
            for source in inputs_of(graph, node, partition)
            if (found := self.store.provenance(*source))
        }
        self.runs += 1
        where, run = partition or WHOLE, f"run{self.runs}"
        code = node.code_version
        made = Provenance(TABLE.name, node.name, where, code, data, 0, read, run, failed)
        self.store.write(TABLE, TABLE.empty(), made, key)

    def make_all(self, graph, top=""):
        for key, node in graph.items():
            if node.name.startswith(top):
                for partition in node.partitions:
                    self.make(graph, *key, partition=partition)

    def survey(self, graph, *lanes):
        return survey(self.store, graph, lanes, self.release)

    def due(self, graph, *lanes):
        return [(f"{d.slug}/{d.node.key[2]}", d.partition) for d in self.survey(graph, *lanes).due]


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


@pytest.fixture
def pinned(bench):
    """With everything upstream of the lanes in place."""
    graph = graph_of()
    bench.make_all(graph)
    bench.pin()
    return bench


def test_nothing_is_due_before_the_release_is_made(bench):
    graph = graph_of("a")
    assert bench.due(graph, lane("a")) == []
    bench.make_all(graph_of())
    assert bench.due(graph, lane("a")) == [], "the table is there, its folder is not"
    waiting = bench.survey(graph, lane("a")).waiting
    assert {source for _, source in waiting[:2]} == {"release:all"}
    bench.pin()
    assert len(bench.due(graph, lane("a"))) == 2


def test_a_lane_is_made_from_the_games_down_each_table_as_soon_as_it_can_be(pinned):
    graph = graph_of("a")
    rounds = [("a/rounds", shard) for shard in SHARDS]
    assert pinned.due(graph, lane("a")) == rounds
    assert {d.paid for d in pinned.survey(graph, lane("a")).due} == {True}
    pinned.make(graph, "judge", "a", "rounds", partition=SHARDS[0])
    assert pinned.due(graph, lane("a")) == rounds[1:]
    pinned.make(graph, "judge", "a", "rounds", partition=SHARDS[1])
    assert pinned.due(graph, lane("a")) == [("a/prior", None)]
    assert {d.paid for d in pinned.survey(graph, lane("a")).due} == {False}
    pinned.make(graph, "judge", "a", "prior")
    assert pinned.due(graph, lane("a")) == [("a/ratings", shard) for shard in SHARDS]
    pinned.make_all(graph, "judge/a")
    found = pinned.survey(graph, lane("a"))
    assert (found.due, found.waiting, found.failed) == ((), (), ())


def test_what_lies_below_stale_games_waits_for_them(pinned):
    pinned.make_all(graph_of("a"), "judge/a")
    after = graph_of("a", code="2")
    found = pinned.survey(after, lane("a", "2"))
    assert [d.place for d in found.due] == [(("judge", "a", "rounds"), s) for s in SHARDS]
    assert len(found.waiting) == 4
    pinned.make(after, "judge", "a", "rounds", partition=SHARDS[0], data="v2")
    assert pinned.due(after, lane("a", "2")) == [("a/rounds", SHARDS[1])]


def test_judges_take_turns(pinned):
    graph = graph_of("a", "b", "c")
    pinned.make(graph, "judge", "b", "rounds", partition=SHARDS[0])
    lanes = [lane(slug) for slug in "abc"]
    first, second = SHARDS
    assert pinned.due(graph, *lanes) == [
        ("a/rounds", first), ("b/rounds", second), ("c/rounds", first),
        ("a/rounds", second), ("c/rounds", second),
    ]  # fmt: skip
    assert pinned.due(graph, lane("c")) == [("c/rounds", first), ("c/rounds", second)]


def test_a_failed_check_is_not_asked_again(pinned):
    graph = graph_of("a")
    pinned.make_all(graph, "judge/a/rounds")
    failed = ("coverage: 3 of 9",)
    pinned.make(graph, "judge", "a", "rounds", partition=SHARDS[0], failed=failed)
    found = pinned.survey(graph, lane("a"))
    assert found.due == ()
    assert [state.partition for state in found.failed] == [SHARDS[0]]
    pinned.make(graph, "candidate_sets", partition=SHARDS[0], data="v2")
    assert pinned.due(graph, lane("a")) == [("a/rounds", SHARDS[0])], "about other candidates it is"


def test_a_pinned_release_is_read_whatever_has_moved_above_it(pinned):
    graph = {("corpus",): Node(("corpus",), "other", "g", "1", (None,), (), 0), **graph_of("a")}
    sets = graph[("candidate_sets",)]
    for code, due in (("1", 2), ("2", 0)):
        graph[("candidate_sets",)] = Node(
            sets.key, sets.table, "g", code, sets.partitions, (("corpus",),), 1
        )
        pinned.make({k: n for k, n in graph.items() if k == ("corpus",)}, "corpus")
        assert len(pinned.due(graph, lane("a"))) == due, "another release has another code version"


def keys(bench, graph, *lanes):
    return [due.key for due in bench.survey(graph, *lanes).due]


def test_run_keys_name_judge_revision_prompt_and_partition(pinned):
    found = keys(pinned, graph_of("a", "b"), lane("a", "2026-11-30"), lane("b"))
    assert len(set(found)) == 4
    head, prompt, state, table, place = found[0].split(":")
    assert (head, prompt) == ("a@2026-11-30", "a" * 12)
    assert (table, place) == ("rounds", "algebra|s00")
    assert len(state) == 12
    assert keys(pinned, graph_of("a", "b"), lane("a", "2026-11-30"), lane("b")) == found


def test_a_later_version_is_never_swallowed_also_if_it_is_an_earlier_one(pinned):
    one, two = graph_of("a", code="1"), graph_of("a", code="2")
    used = set()
    for graph in (one, two, one, two):
        found = keys(pinned, graph, lane("a"))
        assert found
        assert not used & set(found)
        assert keys(pinned, graph, lane("a")) == found, "a failed run changes nothing"
        used |= set(found)
        pinned.make_all(graph, "judge/a/rounds")


def test_another_code_version_is_another_key_also_before_a_table_is_made(pinned):
    """A try that failed leaves no table, and so nothing else that would tell the versions apart."""
    one, two = (keys(pinned, graph_of("a", code=code), lane("a")) for code in ("1", "2"))
    assert len(one) == len(two) == 2
    assert not set(one) & set(two)


def test_the_games_of_a_free_judge_are_due_and_not_paid(pinned):
    free = Lane("a", "1", PromptRef("p", "a" * 64), "e", free=True)
    due = pinned.survey(graph_of("a", "b"), free, lane("b")).due
    assert [(d.slug, d.asks, d.paid) for d in due] == [("a", True, False), ("b", True, True)] * 2


def test_other_inputs_are_another_key(pinned):
    graph = graph_of("a")
    before = keys(pinned, graph, lane("a"))
    pinned.make(graph, "candidate_sets", partition=SHARDS[0], data="v2")
    after = keys(pinned, graph, lane("a"))
    assert before[0] != after[0]
    assert before[1] == after[1]


def test_a_campaign_takes_up_what_changed_and_remembers_it():
    begun = Campaign.begin([lane("a"), lane("b")])
    assert Campaign.parse(begun.cursor()) == begun
    assert begun.follow([lane("a"), lane("b")], 5.0) == begun
    assert begun.follow([lane("a")], 5.0).open == ()
    changed = begun.follow([lane("a", "2"), lane("b"), lane("c")], 5.0)
    assert (changed.open, changed.left) == (("a", "c"), 5.0)
    same = [lane("a", "2"), lane("b"), lane("c")]
    assert changed.follow(same, 5.0) == changed, "open until it is closed"
    assert changed.follow(same[:2], 5.0).open == ("a",), "a judge that left is not waited for"
    assert changed.close().follow(same, 5.0).open == ()
    assert changed.close().follow([*same[:2], lane("c", entry="other")], 5.0).open == ("c",)
    for cursor in (None, "", "{", "[]", '{"known": 1}'):
        assert Campaign.parse(cursor) is None


def test_the_runs_of_a_campaign_never_get_more_than_its_budget():
    campaign = Campaign({}, ("a",), 6.0)
    given = []
    for due, started in ((60, 20), (40, 20), (25, 20), (5, 5)):
        share, campaign = campaign.share(due, started)
        given += [share] * started
    assert given[:40] == pytest.approx([0.1] * 40)
    assert sum(given) == pytest.approx(6.0)
    assert campaign.spent
    assert campaign.share(0, 0) == (None, campaign)
    assert Campaign({}, ("a",), None).share(3, 3) == (None, Campaign({}, ("a",), None))
