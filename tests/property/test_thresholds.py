"""Both threshold rules agree with their plain twins, with many ties and few values."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pairs import cut, numbered

from saber_dagster.contracts import TABLES
from saber_dagster.similarity import twins
from saber_dagster.thresholds import percentile
from saber_dagster.thresholds.fit import fit_thresholds
from saber_dagster.thresholds.rule import ThresholdRule

DOMAIN = "algebra"
SIGNALS = {"query_id": pl.String, "doc_id": pl.String, "topic": pl.Float64, "summary": pl.Float64}


@st.composite
def signals(draw: st.DrawFn) -> dict[str, dict[str, twins.Signals]]:
    """The signals of up to four queries with up to twelve documents, some without a feature."""
    documents = {
        f"d{i:02}": draw(st.sampled_from(["both", "both", "both", "topics", "words"]))
        for i in range(draw(st.integers(1, 12)))
    }
    topic = st.sampled_from([0.0, 0.25, 0.3, 0.5, 0.75, 1.0])
    summary = st.sampled_from([0.0, 0.05, 1 / 7, 1 / 3, 0.5])
    return {
        f"q{i}": {
            doc: (
                None if features == "words" else draw(topic),
                None if features == "topics" else draw(summary),
            )
            for doc, features in documents.items()
        }
        for i in range(draw(st.integers(1, 4)))
    }


def frames(
    values: dict[str, dict[str, twins.Signals]], floors: tuple[float, float]
) -> tuple[list[pl.DataFrame], pl.DataFrame]:
    """The stored pairs, two queries in each part, and the index."""
    pairs, rows = [], {}
    for query, documents in values.items():
        rows[query] = {"topics": ["t"], "words": ["w"], "is_document": False, "is_query": True}
        for doc, (topic, summary) in documents.items():
            rows[doc] = {
                "topics": [] if topic is None else ["t"],
                "words": [] if summary is None else ["w"],
                "is_document": True,
                "is_query": False,
            }
            t, s = topic or 0.0, summary or 0.0
            if 0 < t >= floors[0] or 0 < s >= floors[1]:
                pairs.append((query, doc, t, s))
    shared = {
        "domains": [DOMAIN],
        "primary_domain": DOMAIN,
        "shard": 0,
        "topic_set_id": None,
        "word_set_id": None,
    }
    index = pl.DataFrame(
        [{"doc_id": name, "cluster_id": name, **shared, **row} for name, row in rows.items()],
        schema=TABLES["problem_index"].schema,
    ).sort("doc_id")
    rows = pl.DataFrame(pairs, schema=SIGNALS, orient="row")
    return cut(numbered(rows, index), 2), index


@pytest.mark.property
@settings(max_examples=200, deadline=None)
@given(
    values=signals(),
    floors=st.sampled_from([(0.3, 0.05), (0.0, 0.0), (0.5, 0.2), (0.3, 0.0)]),
    n=st.integers(1, 3),
    k=st.integers(1, 2),
    grid=st.sampled_from([1, 3, 32]),
)
def test_the_percentile_is_the_one_found_by_trying_every_share(
    values: dict[str, dict[str, twins.Signals]], floors: tuple[float, float], n: int, k: int,
    grid: int,
) -> None:  # fmt: skip
    expected = twins.percentile(list(values.values()), floors, n, k)
    pairs, index = frames(values, floors)
    rule = ThresholdRule("percentile", k, n, *floors)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(percentile, "GRID", grid)
        patch.setattr(percentile, "QUERIES_PER_BLOCK", 1)
        result = fit_thresholds(pairs, index, [DOMAIN], rule)
    row = result.frame.row(0, named=True)
    if expected is None:
        (failure,) = result.failures
        suggested = [
            twins.percentile(list(values.values()), floors, n, smaller) is not None
            for smaller in range(1, k + 1)
        ]
        assert failure.largest_k == sum(suggested)
        assert row["topic"] >= floors[0]
        assert row["summary"] >= floors[1]
    else:
        assert result.failures == ()
        assert (1 - expected[0], *expected[1:]) == (row["percentile"], row["topic"], row["summary"])


@pytest.mark.property
@settings(max_examples=200, deadline=None)
@given(values=signals(), n=st.integers(1, 3), k=st.integers(1, 2))
def test_top_m_takes_the_first_c_that_leaves_enough_queries(
    values: dict[str, dict[str, twins.Signals]], n: int, k: int
) -> None:
    steps, floors = (1.0, 1.5, 2.0, 4.0), (0.3, 0.05)

    def eligible(c: float) -> int:
        count = 0
        for documents in values.values():
            high = [
                twins.top_m({d: s[i] or 0.0 for d, s in documents.items()}, rule.m(c, k), floors[i])
                for i in (0, 1)
            ]
            count += twins.smallest_group(*high) >= k
        return count

    pairs, index = frames(values, floors)
    rule = ThresholdRule("top_m", k, n, *floors, c_steps=steps, max_share=0.3)
    row = fit_thresholds(pairs, index, [DOMAIN], rule).frame.row(0, named=True)
    allowed = rule.steps(index["is_document"].sum(), k)
    expected = next((c for c in allowed if eligible(c) >= n), allowed[-1])
    assert (row["c"], row["eligible_queries"]) == (expected, eligible(expected))
