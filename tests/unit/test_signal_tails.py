import numpy as np
import polars as pl
import pytest
from pairs import cut, numbered

from saber_dagster.contracts import TABLES
from saber_dagster.query_parts import Members, query_parts
from saber_dagster.signals import tails as module
from saber_dagster.signals.tails import signal_tails

DOMAINS = {"p": ["algebra"], "q": ["algebra", "geometry"], "r": ["geometry"], "s": []}
FLOORS = {"topic": 0.3, "summary": 0.0}
PAIRS = pl.DataFrame(
    [
        ("p", "d0", 0.9, 0.2),
        ("p", "d1", 0.3, 0.0),
        ("q", "d0", 0.9, 0.1),
        ("q", "d1", 0.2, 0.2),
        ("r", "d2", 0.4, 0.2),
        ("s", "d2", 0.5, 0.5),
    ],
    schema=["query_id", "doc_id", "topic", "summary"],
    orient="row",
)


@pytest.fixture
def index() -> pl.DataFrame:
    rows = [
        {
            "doc_id": name,
            "cluster_id": name,
            "domains": domains,
            "primary_domain": domains[0] if domains else None,
            "topics": ["t"],
            "words": ["w"] if name != "r" else [],
            "is_document": name.startswith("d"),
            "is_query": bool(domains),
        }
        for name, domains in (DOMAINS | {"d0": [], "d1": [], "d2": []}).items()
    ]
    return pl.DataFrame(rows, schema=TABLES["problem_index"].schema).sort("doc_id")


@pytest.mark.parametrize("queries", [1, 2, 4])
@pytest.mark.parametrize("merge", [0, 1000])
def test_a_tail_counts_each_value_of_the_domains_queries(
    index: pl.DataFrame, queries: int, merge: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MERGE", merge)
    monkeypatch.setattr(module, "QUERIES_PER_BLOCK", 1)
    shards = cut(numbered(PAIRS, index), queries)
    tails = signal_tails(shards, index, ["geometry", "algebra", "topology"], FLOORS)
    rows = {
        (domain, signal): (dict(zip(tail.values, tail.counts, strict=True)), tail.n_pairs)
        for domain, signals in tails.items()
        for signal, tail in signals.items()
    }
    assert rows == {
        ("algebra", "topic"): ({0.3: 1, 0.9: 2}, 6),
        ("algebra", "summary"): ({0.1: 1, 0.2: 2}, 6),
        ("geometry", "topic"): ({0.4: 1, 0.9: 1}, 6),
        ("geometry", "summary"): ({0.1: 1, 0.2: 2}, 3),
        ("topology", "topic"): ({}, 0),
        ("topology", "summary"): ({}, 0),
    }
    for signals in tails.values():
        for tail in signals.values():
            assert (np.diff(tail.values) > 0).all()


def test_a_value_is_high_while_the_share_has_room_for_all_that_are_as_large(
    index: pl.DataFrame,
) -> None:
    tail = signal_tails([numbered(PAIRS, index)], index, ["algebra"], FLOORS)["algebra"]["topic"]
    assert tail.shares.tolist() == [3 / 6, 2 / 6]
    assert [tail.n_high(share) for share in (0.3, 2 / 6, 0.4, 0.5, 1.0)] == [0, 1, 1, 2, 2]
    assert [tail.threshold(share) for share in (0.3, 2 / 6, 0.4, 0.5)] == [0.9, 0.3, 0.3, 0.0]


def test_members_are_the_queries_of_each_domain(index: pl.DataFrame) -> None:
    members = Members.of(index, ["geometry", "algebra"])
    names = {d: index["doc_id"].gather(members.positions(d)).to_list() for d in members.domains}
    assert names == {"geometry": ["q", "r"], "algebra": ["p", "q"]}
    assert members.indptr.size == index.height + 1
    other = Members.of(index, ["topology"])
    assert (other.numbers.size, other.positions("topology").size) == (0, 0)


def test_a_part_may_be_empty_and_positions_may_have_gaps(index: pl.DataFrame) -> None:
    whole = numbered(PAIRS, index)
    empty, part = query_parts([whole.clear(), whole])
    assert (empty.queries.size, empty.indptr.tolist()) == (0, [0])
    assert part.queries.tolist() == [3, 4, 5, 6]
    assert part.indptr.tolist() == [0, 2, 4, 5, 6]
