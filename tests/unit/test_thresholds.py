import polars as pl
import pytest
from pairs import cut, numbered

from saber_dagster.contracts import TABLES
from saber_dagster.errors import SaberError
from saber_dagster.pair_groups import eligible_queries, group_counts
from saber_dagster.thresholds.fit import ThresholdResult, fit_thresholds
from saber_dagster.thresholds.rule import ThresholdRule


def make_index(queries: dict[str, list[str]], n_documents: int = 20) -> pl.DataFrame:
    """Queries that are no documents, with their domains (the primary one first), and documents."""
    rows = [
        {
            "doc_id": name,
            "cluster_id": name,
            "domains": sorted(domains),
            "primary_domain": domains[0] if domains else None,
            "shard": 0,
            "topics": ["t"],
            "words": ["w"],
            "topic_set_id": "t",
            "word_set_id": "w",
            "is_document": not domains,
            "is_query": bool(domains),
        }
        for name, domains in (queries | {f"d{i:02}": [] for i in range(n_documents)}).items()
    ]
    return pl.DataFrame(rows, schema=TABLES["problem_index"].schema).sort("doc_id")


SIGNALS = {"query_id": pl.String, "doc_id": pl.String, "topic": pl.Float64, "summary": pl.Float64}


def make_parts(
    signals: dict[str, list[tuple[float, float]]], index: pl.DataFrame, queries: int = 1
) -> list[pl.DataFrame]:
    """The numbered pairs of so many queries in each part."""
    rows = [
        (query, f"d{i:02}", float(topic), float(summary))
        for query, values in signals.items()
        for i, (topic, summary) in enumerate(values)
        if topic > 0 or summary > 0
    ]
    pairs = pl.DataFrame(rows, schema=SIGNALS, orient="row")
    return cut(numbered(pairs, index), queries)


def make_rule(rule: str, k: int = 1, n: int = 1, **values: object) -> ThresholdRule:
    floors = {"topic_floor": 0.3, "summary_floor": 0.05}
    return ThresholdRule(rule, per_group=k, queries_required=n, **(floors | values))


def fit(
    signals: dict[str, list[tuple[float, float]]],
    domains: dict[str, list[str]],
    rule: ThresholdRule,
    n_documents: int = 20,
) -> ThresholdResult:
    index = make_index(domains, n_documents)
    names = sorted({domain for members in domains.values() for domain in members} | {"algebra"})
    shards = make_parts(signals, index)
    result = fit_thresholds(shards, index, names, rule)
    assert TABLES["thresholds"].check(result.frame).equals(result.frame)
    # what is recorded is what the next stage finds
    counts = group_counts(shards, index, result.frame)
    eligible = set(eligible_queries(counts, index, rule.per_group))
    for row in result.frame.to_dicts():
        members = {query for query, own in domains.items() if row["domain"] in own}
        assert row["eligible_queries"] == len(members & eligible)
    failed = result.frame.filter(pl.col("eligible_queries") < rule.queries_required)["domain"]
    assert [failure.domain for failure in result.failures] == failed.to_list()
    return result


# of 20 documents one is both, one topic-only and one summary-only, each with ever lower signals
STAIRS = [(0.9, 0.5), (0.8, 0), (0, 0.4), (0.7, 0.3), (0.6, 0), (0, 0.2)]


def test_percentile_finds_the_most_selective_share() -> None:
    result = fit({"q": STAIRS}, {"q": ["algebra"]}, make_rule("percentile"))
    row = result.frame.row(0, named=True)
    # Two of 20 pairs must exceed each threshold, which is then the third largest value.
    assert row["percentile"] == 1 - 2 / 20
    assert (row["topic"], row["summary"]) == (0.7, 0.3)
    assert (row["density_topic"], row["density_summary"]) == (0.1, 0.1)
    assert (row["n_queries"], row["n_pairs"], row["eligible_queries"]) == (1, 20, 1)
    assert result.failures == ()


def test_percentile_of_a_signal_with_ties_skips_the_tie() -> None:
    signals = [(0.9, 0.5), (0.9, 0), (0.9, 0), (0, 0.4), (0.7, 0), (0.6, 0.2), (0, 0.1)]
    row = fit({"q": signals}, {"q": ["algebra"]}, make_rule("percentile")).frame.row(0, named=True)
    assert row["percentile"] == 1 - 3 / 20
    assert (row["topic"], row["summary"]) == (0.7, 0.1)


def test_the_share_is_of_the_pairs_in_which_both_have_the_feature() -> None:
    index = make_index({"q": ["algebra"]}).with_columns(
        pl.when(pl.col("doc_id") >= "d10", pl.col("doc_id") < "q")
        .then(pl.lit([], dtype=pl.List(pl.String)))
        .otherwise(pl.col("words"))
        .alias("words")
    )
    # 20 topic pairs, 10 summary pairs: at the share 0.2 there are 4 and 2
    signals = [(0.9, 0.5), (0.8, 0), (0.7, 0), (0.6, 0), (0.5, 0), (0, 0.4), (0, 0.3)]
    shards = make_parts({"q": signals}, index)
    result = fit_thresholds(shards, index, ["algebra"], make_rule("percentile"))
    row = result.frame.row(0, named=True)
    assert row["percentile"] == pytest.approx(0.8)
    assert (row["topic"], row["summary"]) == (0.5, 0.3)
    assert (row["density_topic"], row["density_summary"]) == (0.2, 0.2)


def test_the_thresholds_are_the_minima_over_the_domains() -> None:
    lower = [(topic / 2 + 0.1, 2 * summary) for topic, summary in STAIRS]
    result = fit(
        {"p": STAIRS, "q": lower}, {"p": ["algebra"], "q": ["geometry"]}, make_rule("percentile")
    )
    assert result.frame["topic"].to_list() == [0.7 / 2 + 0.1] * 2
    assert result.frame["summary"].to_list() == [0.3] * 2
    # Algebra now has four topic-high documents, two of them topic-only.
    assert result.frame["density_topic"].to_list() == [0.2, 0.1]


def test_a_domain_that_the_minima_break_is_reported() -> None:
    # Geometry's low summary threshold turns algebra's only topic-only document into one of both.
    algebra = [(0.9, 0.5), (0.8, 0.25), (0, 0.4), (0.5, 0.3), (0.4, 0.2)]
    geometry = [(0.9, 0.23), (0.8, 0), (0, 0.22), (0.7, 0.21), (0.6, 0.1)]
    rule = make_rule("percentile")
    assert fit({"p": algebra}, {"p": ["algebra"]}, rule).failures == ()
    both = fit({"p": algebra, "q": geometry}, {"p": ["algebra"], "q": ["geometry"]}, rule)
    (failure,) = both.failures
    assert (failure.domain, failure.group, failure.largest_k) == ("algebra", "topic_only", 0)


def test_a_threshold_below_the_stored_floor_is_not_available() -> None:
    rule = make_rule("percentile", topic_floor=0.7)
    assert fit({"q": STAIRS}, {"q": ["algebra"]}, rule).failures == ()
    rule = make_rule("percentile", topic_floor=0.71)
    result = fit({"q": STAIRS}, {"q": ["algebra"]}, rule)
    assert "lower signals.topic_floor" in str(result.failures[0])
    assert result.frame["topic"][0] >= 0.71


def test_a_domain_that_falls_short_does_not_stop_or_move_the_others() -> None:
    poor = [(0.4, 0.1), (0.35, 0.08), (0.3, 0.05)]
    alone = fit({"p": STAIRS}, {"p": ["algebra"]}, make_rule("percentile"))
    result = fit(
        {"p": STAIRS, "q": poor}, {"p": ["algebra"], "q": ["geometry"]}, make_rule("percentile")
    )
    assert result.frame.filter(domain="algebra").equals(alone.frame)
    (failure,) = result.failures
    assert (failure.domain, failure.found, failure.n_queries) == ("geometry", 0, 1)


@pytest.mark.parametrize("rule", ["percentile", "top_m"])
def test_a_domain_without_queries_and_pairs_without_a_hit(rule: str) -> None:
    result = fit({}, {"q": ["geometry"]}, make_rule(rule))
    assert result.frame["n_queries"].to_list() == [0, 1]
    assert result.frame["eligible_queries"].to_list() == [0, 0]
    assert [failure.largest_k for failure in result.failures] == [0, 0]
    assert result.frame["short_both"].to_list() == [0, 1]
    assert result.failures[1].group == "both"


def test_top_m_starts_with_the_first_c() -> None:
    row = fit({"q": STAIRS}, {"q": ["algebra"]}, make_rule("top_m")).frame.row(0, named=True)
    assert (row["c"], row["m"], row["topic"], row["summary"]) == (4, 4, 0.3, 0.05)
    assert row["percentile"] is None
    assert row["density_topic"] == 4 / 20


# the six best by one signal are among the six best by the other; d06 and d07 are not
SPARSE = [(0.9 - i / 20, 0.5 - i / 20) for i in range(5)] + [(0.5, 0), (0, 0.2)]


def test_top_m_raises_c_in_sparse_domains_only() -> None:
    domains = {"p": ["algebra"], "q": ["geometry"]}
    signals = {"p": STAIRS, "q": SPARSE}
    result = fit(signals, domains, make_rule("top_m"), n_documents=60)
    assert result.frame["c"].to_list() == [4, 6]
    assert result.failures == ()


def test_top_m_is_not_raised_above_a_tenth_of_the_documents() -> None:
    result = fit({"q": SPARSE}, {"q": ["algebra"]}, make_rule("top_m"), n_documents=59)
    assert result.frame["c"].to_list() == [5]
    assert [failure.domain for failure in result.failures] == ["algebra"]


def test_a_query_follows_its_primary_domain_while_domains_raise_c() -> None:
    # m belongs to both: what geometry counts of it is decided by algebra's c.
    domains = {"p": ["algebra"], "m": ["algebra", "geometry"], "q": ["geometry"]}
    signals = {"p": STAIRS, "m": SPARSE, "q": STAIRS}
    result = fit(signals, domains, make_rule("top_m"), n_documents=60)
    assert result.frame["c"].to_list() == [4, 4]
    result = fit(signals, domains, make_rule("top_m", n=2), n_documents=60)
    assert result.frame["c"].to_list() == [6, 6]
    assert result.frame["eligible_queries"].to_list() == [2, 2]


@pytest.mark.parametrize("rule", ["percentile", "top_m"])
def test_a_shortfall_suggests_what_would_do(rule: str) -> None:
    def ladder(n: int) -> list[tuple[float, float]]:
        both = [(0.9 - i / 100, 0.5 - i / 100) for i in range(n)]
        topic = [(0.7 - i / 100, 0.0) for i in range(n + 2)]
        summary = [(0.0, 0.3 - i / 100) for i in range(n + 2)]
        return [*both, *topic, *summary, (0.31, 0), (0, 0.06)]

    signals = {"p": ladder(5), "q": ladder(4), "r": ladder(2)}
    domains = {query: ["algebra"] for query in signals}
    result = fit(signals, domains, make_rule(rule, k=5, n=2), n_documents=40)
    (failure,) = result.failures
    assert (failure.wanted_queries, failure.found, failure.n_queries) == (2, 1, 3)
    assert (failure.group, failure.largest_k) == ("both", 4)
    assert "candidates.per_group to 4," in str(failure)
    assert "queries_required to 1" in str(failure)
    assert fit(signals, domains, make_rule(rule, k=4, n=2), n_documents=40).failures == ()
    assert fit(signals, domains, make_rule(rule, k=5, n=1), n_documents=40).failures == ()


def test_m_is_rounded_up_but_not_by_floating_point() -> None:
    rule = make_rule("top_m")
    assert rule.m(1.1, 10) == 11
    assert rule.m(4.5, 5) == 23


def test_fixed_thresholds_are_exceeded_strictly() -> None:
    rule = make_rule("fixed", topic_floor=0.7, summary_floor=0.3)
    result = fit({"q": STAIRS}, {"q": ["algebra"]}, rule)
    row = result.frame.row(0, named=True)
    assert [row[name] for name in ("rule", "topic", "summary")] == ["fixed", 0.7, 0.3]
    assert [row[name] for name in ("percentile", "c", "m")] == [None, None, None]
    # as at the share 2 / 20, at which the percentile rule finds these numbers
    same = fit({"q": STAIRS}, {"q": ["algebra"]}, make_rule("percentile")).frame.row(0, named=True)
    counted = [name for name in row if name not in ("rule", "percentile")]
    assert [row[name] for name in counted] == [same[name] for name in counted]
    assert (result.failures, result.binding) == ((), {})
    (failure,) = fit(
        {"q": STAIRS}, {"q": ["algebra"]}, make_rule("fixed", 2, topic_floor=0.7, summary_floor=0.3)
    ).failures
    assert (failure.found, failure.largest_k) == (0, 1)
    said = str(failure)
    assert "set candidates.per_group to 1" in said
    assert "lower thresholds.topic and thresholds.summary" in said
    assert "try again" not in said
    (failure,) = fit({"q": STAIRS}, {"q": ["algebra"]}, make_rule("fixed", 1, 2)).failures
    assert (failure.found, failure.largest_k) == (1, 0)


def test_what_binds_is_named() -> None:
    domains = {"p": ["algebra"], "q": ["geometry"]}
    lower = [(topic / 2 + 0.2, summary / 2) for topic, summary in STAIRS]
    result = fit({"p": STAIRS, "q": lower}, domains, make_rule("percentile"))
    assert {what: binding["domain"] for what, binding in result.binding.items()} == {
        "topic": "geometry",
        "summary": "geometry",
    }
    result = fit({"p": STAIRS, "q": SPARSE}, domains, make_rule("top_m"), n_documents=60)
    assert result.binding == {"c": {"domain": "geometry"}}
    rule = make_rule("top_m", 3)
    result = fit({"p": STAIRS, "q": STAIRS[:5]}, domains, rule)
    assert result.binding == {"c": {"domain": "algebra", "group": "both"}}


def test_floors_that_hide_nothing_are_no_remedy() -> None:
    for rule, names in (
        (make_rule("percentile", 2), "lower signals.topic_floor and signals.summary_floor"),
        (make_rule("percentile", 2, topic_floor=0.0), "lower signals.summary_floor"),
        (make_rule("top_m", 3), "lower thresholds.topic_floor and thresholds.summary_floor"),
    ):
        (failure,) = fit({"q": STAIRS}, {"q": ["algebra"]}, rule).failures
        assert names in str(failure)
    rule = make_rule("percentile", 3, topic_floor=0.0, summary_floor=0.0)
    (failure,) = fit({"q": STAIRS}, {"q": ["algebra"]}, rule).failures
    assert "lower" not in str(failure)


def test_an_index_of_other_domains_is_an_error() -> None:
    for name in ("percentile", "top_m", "fixed"):
        with pytest.raises(SaberError, match="topology"):
            fit_thresholds([], make_index({"q": ["topology"]}), ["algebra"], make_rule(name))


def test_neither_parts_nor_the_order_of_domains_matter() -> None:
    domains = {"p": ["algebra"], "q": ["geometry"], "r": ["algebra", "geometry"]}
    signals = {"p": STAIRS, "q": SPARSE, "r": STAIRS[::-1]}
    index = make_index(domains, 60)
    for name in ("percentile", "top_m"):
        whole, single = (make_parts(signals, index, queries) for queries in (3, 1))
        assert [len(whole), len(single)] == [1, 3]
        empty = whole[0].clear()
        results = [
            fit_thresholds(shards, index, order, make_rule(name))
            for shards in (whole, single, [*single[::-1], empty])
            for order in (["algebra", "geometry"], ["geometry", "algebra"])
        ]
        for result in results[1:]:
            assert result.frame.sort("domain").equals(results[0].frame.sort("domain"))
            assert set(result.failures) == set(results[0].failures)
            curves = [r.curve.sort("domain", maintain_order=True) for r in (result, results[0])]
            assert curves[0].equals(curves[1])


def test_pairs_out_of_order_are_an_error() -> None:
    index = make_index({"p": ["algebra"], "q": ["algebra"]})
    (part,) = make_parts({"p": STAIRS, "q": STAIRS}, index, 2)
    with pytest.raises(ValueError, match="order"):
        fit_thresholds([part.reverse()], index, ["algebra"], make_rule("top_m"))


def test_what_may_not_be_a_query_does_not_count() -> None:
    index = make_index({"p": ["algebra"], "q": ["algebra"]}).with_columns(
        is_query=pl.col("doc_id") == "p"
    )
    for name in ("percentile", "top_m"):
        both, one = (
            fit_thresholds(make_parts(signals, index), index, ["algebra"], make_rule(name)).frame
            for signals in ({"p": STAIRS, "q": SPARSE}, {"p": STAIRS})
        )
        assert both.equals(one)


def test_the_curve_says_how_many_queries_are_eligible() -> None:
    result = fit({"q": STAIRS}, {"q": ["algebra"]}, make_rule("percentile"))
    # 1 of 20 pairs cannot do; at 4 of 20 the summary threshold would be below the floor
    curve = dict(result.curve.select("share", "eligible").iter_rows())
    assert curve == {2 / 20: 1, 3 / 20: 1}
    domains = {"p": ["algebra"], "q": ["geometry"]}
    result = fit({"p": STAIRS, "q": SPARSE}, domains, make_rule("top_m"), n_documents=60)
    rows = result.curve.filter(domain="geometry").select("c", "eligible").rows()
    assert rows == [(4.0, 0), (5.0, 0), (6.0, 1)]


def test_the_largest_k_beside_the_minima_is_that_of_the_best_queries() -> None:
    # Geometry's low summary threshold turns one of algebra's two topic-only documents into both.
    algebra = [(0.91, 0.51), (0.9, 0.5), (0.81, 0), (0.8, 0.25), (0, 0.41), (0, 0.4)]
    geometry = [(0.91, 0.24), (0.9, 0.23), (0.81, 0), (0.8, 0), (0, 0.221), (0, 0.22)]
    signals = {
        "p": [*algebra, (0.5, 0.3), (0.4, 0.2)],
        "r": [],
        "q": [*geometry, (0.7, 0.21), (0.6, 0.1)],
    }
    domains = {"p": ["algebra"], "r": ["algebra"], "q": ["geometry"]}
    (failure,) = fit(signals, domains, make_rule("percentile", k=2)).failures
    assert (failure.domain, failure.found, failure.largest_k) == ("algebra", 0, 1)


def test_a_domain_that_falls_short_has_the_share_with_the_most_eligible_queries() -> None:
    # At 4 of 20 pairs no document is topic-only any more.
    signals = [(0.9, 0.5), (0.8, 0.3), (0.7, 0.3), (0, 0.4), *[(0.6, 0)] * 3, (0, 0.1)]
    result = fit({"q": signals}, {"q": ["algebra"]}, make_rule("percentile", n=2))
    assert dict(result.curve.select("share", "eligible").iter_rows())[4 / 20] == 0
    assert result.frame["percentile"].to_list() == [1 - 2 / 20]
    assert result.frame["eligible_queries"].to_list() == [1]


def test_a_smaller_k_leaves_room_for_a_larger_c() -> None:
    # A tenth of the documents is 6: with K = 2 c stays 4, with K = 1 it may be 6
    rule = make_rule("top_m", k=2)
    (failure,) = fit({"q": SPARSE}, {"q": ["algebra"]}, rule, n_documents=60).failures
    assert (failure.found, failure.largest_k) == (0, 1)
