import polars as pl
import pytest

from saber_dagster import tables
from saber_dagster.contracts import TABLES
from saber_dagster.freshness import DAMAGED, Node, inputs_of, report, states
from saber_dagster.tables import WHOLE, Provenance, TableStore, input_name

TABLE = TABLES["topic_statistics"]


def graph_of(**assets):
    """``name=(partitions, parents)`` in topological order; every code version is 1."""
    nodes = {}
    for name, (partitions, parents) in assets.items():
        above = tuple((parent,) for parent in parents)
        level = 1 + max((nodes[parent].level for parent in above), default=-1)
        nodes[(name,)] = Node((name,), TABLE.name, "g", "1", tuple(partitions), above, level)
    return nodes


@pytest.fixture
def store(tmp_path):
    return TableStore(tmp_path)


@pytest.fixture
def make(store):
    """Materialize a partition from whatever its inputs are now."""

    def of(graph, name, partition=None, data="v1", code="1", failed=()):
        node = graph[(name,)]
        read = {
            input_name(key, upstream): found.data_version
            for key, upstream in inputs_of(graph, node, partition)
            if (found := store.provenance(key, upstream))
        }
        frame = pl.DataFrame([("n", 1, 0.0)], schema=TABLE.schema, orient="row")
        made = Provenance(TABLE.name, name, partition or WHOLE, code, data, 1, read, "", failed)
        store.write(TABLE, frame, made, (name,))

    return of


@pytest.fixture
def conditions(store):
    def of(graph):
        return {
            f"{state.node.name}:{state.partition}" if state.partition else state.node.name: (
                state.condition,
                state.reason,
            )
            for state in states(store, graph, graph.values())
        }

    return of


FRESH = ("fresh", "")
MISSING = ("missing", "never materialized")
WHOLES = graph_of(corpus=([None], []), index=([None], ["corpus"]), board=([None], ["index"]))


def test_a_chain_from_missing_to_fresh_to_stale(make, conditions):
    assert conditions(WHOLES) == dict.fromkeys(("corpus", "index", "board"), MISSING)
    for name in ("corpus", "index", "board"):
        make(WHOLES, name)
    assert conditions(WHOLES) == dict.fromkeys(("corpus", "index", "board"), FRESH)
    make(WHOLES, "corpus", data="v2")
    assert conditions(WHOLES) == {
        "corpus": FRESH,
        "index": ("stale", "corpus:all has other data"),
        "board": FRESH,
    }
    make(WHOLES, "index")
    assert conditions(WHOLES) == dict.fromkeys(("corpus", "index", "board"), FRESH), "equal data"


def test_the_same_data_made_anew_makes_nothing_stale(make, conditions):
    for name in ("corpus", "index", "board", "corpus"):
        make(WHOLES, name)
    assert set(conditions(WHOLES).values()) == {FRESH}


def test_another_code_version_is_stale_whatever_else(make, conditions):
    make(WHOLES, "corpus", code="0", failed=("coverage",))
    assert conditions(WHOLES)["corpus"] == (
        "stale",
        "its code, settings, engine or input files changed",
    )


def test_a_failed_check_is_told_from_staleness(make, conditions):
    make(WHOLES, "corpus", failed=("coverage: 3 of 9 have an answer", "size: too small"))
    reason = "check failed: coverage: 3 of 9 have an answer; size: too small"
    assert conditions(WHOLES)["corpus"] == ("failed", reason)


def test_a_missing_input_and_one_that_was_not_read(make, conditions, store):
    for name in ("corpus", "index"):
        make(WHOLES, name)
    store.path(("corpus",), None).unlink()
    assert conditions(WHOLES)["index"] == ("stale", "corpus:all is missing")
    make(WHOLES, "index")  # reads nothing
    make(WHOLES, "corpus")
    assert conditions(WHOLES)["index"] == ("stale", "corpus:all has other data")


def test_a_damaged_table_is_missing(make, conditions, store):
    make(WHOLES, "corpus")
    store.path(("corpus",), None).write_bytes(b"PAR1")
    assert conditions(WHOLES)["corpus"] == ("missing", DAMAGED)
    assert "damaged" in DAMAGED
    (absent,) = states(store, WHOLES, [WHOLES[("corpus",)]], absent={("corpus",)})
    assert absent.reason == "never materialized"


def test_a_damaged_input_is_told_from_a_missing_one(make, conditions, store):
    for name in ("corpus", "index"):
        make(WHOLES, name)
    store.path(("corpus",), None).write_bytes(b"PAR1")
    assert conditions(WHOLES)["index"] == ("stale", "corpus:all is damaged")


SHARDS = {
    1: graph_of(
        tags=(["c00"], []), words=(["c00"], ["tags"]), index=([None], ["words"]),
        signals=(["algebra|s00"], ["index", "tags"]),
    ),
    2: graph_of(
        tags=(["c00", "c01"], []), words=(["c00", "c01"], ["tags"]), index=([None], ["words"]),
        signals=(["algebra|s00", "geometry|s00"], ["index", "tags"]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("n", [1, 2])
def test_a_partition_reads_its_own_where_cut_alike_and_all_elsewhere(n):
    graph = SHARDS[n]
    shards = graph[("tags",)].partitions
    every = [(("tags",), shard) for shard in shards]

    def inputs(name, partition):
        return list(inputs_of(graph, graph[(name,)], partition))

    assert inputs("words", "c00") == [(("tags",), "c00")]
    assert inputs("index", None) == [(("words",), shard) for shard in shards]
    assert inputs("signals", "algebra|s00") == [(("index",), None), *every]
    assert list(inputs_of(WHOLES, WHOLES[("board",)], None)) == [(("index",), None)]


def test_only_what_depends_on_a_changed_partition_is_stale(make, conditions):
    graph = SHARDS[2]
    for name, node in graph.items():
        for partition in node.partitions:
            make(graph, name[0], partition)
    assert set(conditions(graph).values()) == {FRESH}
    make(graph, "tags", "c01", data="v2")
    stale = ("stale", "tags:c01 has other data")
    assert conditions(graph) == {
        "tags:c00": FRESH,
        "tags:c01": FRESH,
        "words:c00": FRESH,
        "words:c01": stale,
        "index": FRESH,
        "signals:algebra|s00": stale,
        "signals:geometry|s00": stale,
    }


def test_each_provenance_is_read_once(make, store, monkeypatch):
    graph = SHARDS[2]
    for name, node in graph.items():
        for partition in node.partitions:
            make(graph, name[0], partition)
    read = []
    plain = tables.read_many
    monkeypatch.setattr(
        tables, "read_many", lambda paths, last: read.extend(paths) or plain(paths, last)
    )
    assert len(list(states(store, graph, graph.values()))) == 7
    assert len(read) == len(set(read)) == 7


def test_a_report_says_what_waits_for_something_upstream(tmp_path):
    store = TableStore(tmp_path)
    graph = {
        ("a",): Node(("a",), "topic_statistics", "g", "2", (None,), (), 0),
        ("b",): Node(("b",), "topic_statistics", "g", "1", (None,), (("a",),), 1),
        ("c",): Node(("c",), "topic_statistics", "g", "1", (None,), (("b",),), 2),
    }
    inputs = {"a": {}, "b": {"a:all": "va"}, "c": {"b:all": "vb"}}
    for name, read in inputs.items():
        provenance = Provenance("topic_statistics", name, "all", "1", f"v{name}", 0, read)
        store.write(
            TABLES["topic_statistics"], TABLES["topic_statistics"].empty(), provenance, [name]
        )
    conditions = {state.node.name: state.condition for state in report(store, graph)}
    assert conditions == {"a": "stale", "b": "behind", "c": "behind"}
