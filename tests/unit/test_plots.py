"""Figures: what is drawn is what is in the tables, whatever the tables are."""

import math
import re
import subprocess
import sys
from itertools import combinations
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest
from pairs import PAIRS, numbered

from assets.pictures import MOST_CHARACTERS, picture
from saber_dagster.contracts import GROUPS, TABLES
from saber_dagster.leaderboard import BASELINE_WARNING
from saber_dagster.plots import candidates, judging, leaderboard, signals, style, topics
from saber_dagster.plots.render import data_uri, png, svg
from saber_dagster.settings import RetrieverEntry
from saber_dagster.signals.tails import signal_tails

DOMAINS = ("algebra", "geometry")
SITE = SimpleNamespace(settings=SimpleNamespace(pictures=True))
NASTY = "a $x <b> & \"c\" \\frac id='x'"


def table(name, *rows):
    """A frame of a contract; columns that a row does not name get a value that fits."""
    contract = TABLES[name]
    default = {pl.String: "", pl.Boolean: False, pl.Float64: 0.0, pl.Int32: 1, pl.Int64: 0}
    filled = [
        {
            column: row.get(column, [] if dtype == pl.List(pl.String) else default[dtype])
            for column, dtype in contract.schema.items()
        }
        for row in rows
    ]
    return pl.DataFrame(filled, schema=contract.schema)


def tree():
    rows = [
        ("al", None, 0, "Algebra", "algebra"),
        ("al/eq", "al", 1, "Equations", "algebra"),
        ("al/eq/q", "al/eq", 2, "Quadratics", "algebra"),
        ("ge", None, 0, "Geometry", "geometry"),
        ("xx", None, 0, "Elsewhere", None),
        ("xx/y", "xx", 1, "Far", None),
    ]
    columns = ("node_id", "parent_id", "depth", "label", "domain")
    return table("ontology_tree", *(dict(zip(columns, row, strict=True)) for row in rows))


def index(*rows):
    return table(
        "problem_index",
        *(
            {
                "doc_id": doc,
                "cluster_id": doc,
                "domains": domains,
                "topics": ["t"],
                "words": ["w"],
                "is_document": True,
                "is_query": bool(domains),
            }
            for doc, domains in rows
        ),
    )


def thresholds(*domains, **values):
    row = {"rule": "top_m", "m": 4, "n_queries": 10, "eligible_queries": 7, "density_topic": 0.1}
    return table("thresholds", *({**row, "domain": domain, **values} for domain in domains))


def candidate_rows(n, query="q", per_group=None):
    return table(
        "candidate_sets",
        *(
            {
                "query_id": query,
                "doc_id": f"d{i:03d}",
                "group": GROUPS[i % 3],
                "topic": i / n,
                "summary": 1 - i / n,
            }
            for i in range(n)
        ),
    )


def ratings(n, query="q"):
    return table(
        "ratings",
        *(
            {
                "query_id": query,
                "doc_id": f"d{i:03d}",
                "rating": 5 * i / max(n - 1, 1),
                "log_strength": 2.0 * i,
                "standard_error": 0.5,
                "rank": n - i,
            }
            for i in range(n)
        ),
    )


def benchmark(*rows):
    return table(
        "benchmark",
        *(
            {"query_id": "q", "doc_id": str(i), "group": g, "rank": r}
            for i, (g, r) in enumerate(rows)
        ),
    )


def judgments(*rows):
    columns = ("round", "doc_a", "doc_b", "shown_first", "outcome", "status")
    return table(
        "judgments", *({"query_id": "q"} | dict(zip(columns, row, strict=True)) for row in rows)
    )


def board(retrievers, domains=DOMAINS, settings=("statement-full", "full-full"), n_queries=4):
    rows = []
    for place, name in enumerate(retrievers):
        value = 1.0 if name == "oracle" else 0.9 - 0.02 * place
        rows += [
            {
                "release": "r1",
                "judge": "j",
                "retriever": name,
                "setting": setting,
                "domain": domain,
                "metric": "nDCG@10",
                "value": value,
                "low": value - 0.05,
                "high": min(value + 0.05, 1.0),
                "n_queries": n_queries,
                "tied_group": None if name == "oracle" else 1 if place < 2 else 2,
            }
            for setting in settings
            for domain in ("overall", *domains)
        ]
    return table("leaderboard", *rows)


def words(figure):
    """Every text of a figure that is drawn."""
    from matplotlib.text import Text

    png(figure)  # places tick labels
    return [t.get_text() for t in figure.findobj(Text) if t.get_visible() and t.get_text()]


def points(axes):
    """Each line with markers: (x, y, filled)."""
    return [
        (line.get_xdata().tolist(), line.get_ydata().tolist(), line.get_markerfacecolor())
        for line in axes.lines
        if line.get_marker() not in ("None", None, "", "_", "|")
    ]


# what is drawn


def test_a_problem_is_shared_equally_among_its_topics():
    tags = pl.DataFrame(
        {
            "doc_id": ["1", "2", "2", "3", "4", "4"],
            "node_id": ["al/eq/q", "al", "ge", None, "xx/y", "al/eq"],
        }
    )
    weights = topics.topic_weights(tags, tree())
    assert dict(zip(weights.select("domain", "topic").rows(), weights["weight"], strict=True)) == {
        ("algebra", "Equations"): 1.5,
        ("algebra", topics.GENERAL): 0.5,
        ("geometry", topics.GENERAL): 0.5,
        (None, "Far"): 0.5,
        (None, None): 1.0,
    }
    assert topics.domain_weights(weights, DOMAINS) == [
        ("algebra", 2.0),
        ("geometry", 0.5),
        (topics.NO_DOMAIN, 0.5),
        (topics.NO_TOPIC, 1.0),
    ]
    figure = topics.domains_figure(weights, DOMAINS, "Domains")
    assert [bar.get_width() for bar in figure.axes[0].patches] == [2.0, 0.5, 0.5, 1.0]
    assert "2.0 · 50.0 %" in words(figure)
    figure = topics.topics_figure(weights, DOMAINS, "Topics")
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        "algebra: 50.0 %",
        "geometry: 12.5 %",
    ]
    assert [bar.get_width() for bar in figure.axes[0].patches] == [1.5, 0.5]


def shuffled(frame, seed):
    return frame.sample(fraction=1, shuffle=True, seed=seed)


def test_no_order_of_the_rows_changes_a_weight_or_a_label():
    rng = np.random.default_rng(5)
    tags = pl.DataFrame(
        [
            (f"d{doc}", node)
            for doc in range(900)
            for node in rng.choice(
                ["al", "al/eq", "ge", "xx/y", "zz", "ze", "zf"], doc % 7 + 1, False
            )
        ],
        schema=["doc_id", "node_id"],
        orient="row",
    )
    found = [topics.topic_weights(shuffled(tags, seed), tree()) for seed in range(8)]
    assert all(each.equals(found[0]) for each in found)
    assert math.fsum(found[0]["weight"]) == pytest.approx(900, abs=1e-9)
    sums = {tuple(topics.domain_weights(shuffled(found[0], seed), DOMAINS)) for seed in range(8)}
    assert len(sums) == 1


def test_a_label_is_the_same_however_its_sum_was_reached():
    first, last = 22.75, math.nextafter(22.75, 0)
    texts = []
    for weight in (first, last):
        weights = pl.DataFrame(
            [("algebra", "A", 22.75), ("algebra", "B", weight)],
            schema={"domain": pl.String, "topic": pl.String, "weight": pl.Float64},
            orient="row",
        )
        texts.append(words(topics.topics_figure(weights.reverse(), DOMAINS, "t")))
    assert texts[0] == texts[1]
    assert texts[0].index("A") < texts[0].index("B")
    single = pl.DataFrame({"domain": ["algebra"], "topic": ["A"], "weight": [last]})
    assert "22.8 · 100.0 %" in words(topics.domains_figure(single, DOMAINS, "t"))


def test_games_of_a_round_are_summed_in_one_order():
    outcomes = np.random.default_rng(3).random(3000).tolist()
    games = judgments(*((1, "a", "b", "a", outcome, "ok") for outcome in outcomes))
    found = {judging.games_by_round(shuffled(games, seed)).row(0) for seed in range(8)}
    assert len(found) == 1


def test_topics_of_an_index_are_those_of_its_documents():
    frame = index(("1", ["algebra"]), ("2", [])).with_columns(
        topics=pl.Series([["al", "ge"], []], dtype=pl.List(pl.String))
    )
    frame = frame.with_columns(is_document=pl.Series([True, True]))
    assert topics.tags_of(frame).rows() == [("1", "al"), ("1", "ge"), ("2", None)]
    assert topics.tags_of(frame.with_columns(is_document=pl.lit(False))).height == 0


def test_more_topics_than_fit_become_one_bar_of_the_same_weight():
    weights = pl.DataFrame(
        {
            "domain": ["algebra"] * 12,
            "topic": [f"t{i:02d}" for i in range(12)],
            "weight": [1.0] * 12,
        }
    )
    bars = topics.topics_figure(weights, DOMAINS, "Topics").axes[0].patches
    assert [bar.get_width() for bar in bars] == [1.0] * 7 + [5.0]


def test_tails_are_shares_of_the_domain_s_pairs():
    frame = index(("q1", ["algebra"]), ("q2", ["algebra", "geometry"]), ("d1", []), ("d2", []))
    rows = [("q1", "d1", 0.5, 0.2), ("q1", "d2", 0.9, 0.0), ("q2", "d1", 0.2, 1.0)]
    pairs = numbered(pl.DataFrame(rows, schema=PAIRS, orient="row"), frame)
    tails = signals.tail_lines(
        signal_tails([pairs], frame, DOMAINS, {"topic": 0.3, "summary": 0.05})
    )
    # each query has 3 pairs: 6 of algebra, 3 of geometry
    algebra = tails.filter((pl.col("domain") == "algebra") & (pl.col("signal") == "topic"))
    assert (algebra["value"][0], algebra["share"][0]) == (0.3, pytest.approx(2 / 6))
    assert (algebra["value"][-1], algebra["share"][-1]) == (0.9, pytest.approx(1 / 6))
    for value, share in algebra.select("value", "share").rows():
        assert share == pytest.approx(sum(v >= value for v in (0.5, 0.9)) / 6)
    geometry = tails.filter(pl.col("domain") == "geometry")
    assert set(geometry["signal"]) == {"summary"}  # its only topic signal is below the floor
    assert geometry["share"].to_list() == [pytest.approx(1 / 3)] * geometry.height


def test_histograms_are_the_counts_and_mark_the_floor():
    counts = {"topic": [7, 0, 2, 1], "summary": [0, 0, 0, 0]}
    figure = signals.histogram_figure(counts, {"topic": 0.3, "summary": 0.1}, "t")
    topic, summary = figure.axes
    assert topic.patches[0].get_data().values.tolist() == [7, 0, 2, 1]
    assert topic.patches[0].get_data().edges.tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert topic.lines[0].get_xdata() == [0.3, 0.3]
    assert not summary.patches


@pytest.mark.parametrize("level", ["share", "c"])
def test_curves_are_the_eligible_queries_of_each_domain(level):
    rows = [("algebra", 0.1, 3), ("geometry", 0.1, 0), ("algebra", 0.05, 2)]
    schema = {"domain": pl.String, level: pl.Float64, "eligible": pl.Int64}
    axes = signals.curve_figure(pl.DataFrame(rows, schema=schema, orient="row"), DOMAINS, 4).axes[0]
    algebra, geometry, required = axes.lines
    assert algebra.get_xydata().tolist() == [[0.05, 2], [0.1, 3]]
    assert geometry.get_xydata().tolist() == [[0.1, 0]]
    assert list(required.get_ydata()) == [4, 4]
    assert (axes.get_xscale() == "log") == (level == "share")


def test_tails_have_a_dot_at_the_share_that_counts_as_high():
    frame = pl.DataFrame(
        {
            "domain": ["algebra"] * 3,
            "signal": ["topic"] * 3,
            "value": [0.3, 0.5, 0.9],
            "share": [0.2, 0.1, 0.01],
        }
    )
    figure = signals.tails_figure(frame, DOMAINS, "Tails", thresholds("algebra"))
    left, right = figure.axes[:2]
    assert left.lines[0].get_xydata().tolist() == [[0.3, 0.2], [0.5, 0.1], [0.9, 0.01]]
    assert left.get_yscale() == "log"
    assert {"1 %", "10 %"} <= set(words(figure))
    assert [dot[:2] for dot in points(left)] == [([0.5], [0.1])]
    assert "4 largest" in " ".join(words(figure))
    assert "no pair reaches the floor of the summary signal" in [t.get_text() for t in right.texts]
    limit = thresholds("algebra", rule="percentile", m=None, topic=0.7)
    figure = signals.tails_figure(frame, DOMAINS, "Tails", limit)
    assert [0.7, 0.7] in [list(line.get_xdata()) for line in figure.axes[0].lines]


def test_eligible_queries_and_what_is_missing():
    rows = pl.concat(
        [
            thresholds("algebra", short_both=3),
            thresholds("geometry", eligible_queries=2, short_topic_only=8),
        ]
    )
    figure = signals.eligible_figure(rows, DOMAINS, 5, 8)
    left, right = figure.axes[:2]
    assert [bar.get_width() for bar in left.patches] == [10, 10, 7, 2]
    assert {"7 of 10", "2 of 10, 5 needed"} <= {text.get_text() for text in left.texts}
    assert [5, 5] in [list(line.get_xdata()) for line in left.lines]
    assert [bar.get_width() for bar in right.patches] == [0, 8, 0, 0, 3, 0]


def test_candidates_are_points_by_group():
    frame = candidate_rows(9)
    axes = candidates.candidates_figure(frame, "Candidates").axes[0]
    for line, group in zip(axes.lines, GROUPS, strict=True):
        mine = frame.filter(pl.col("group") == group)
        assert line.get_xdata().tolist() == mine["topic"].to_list()
        assert line.get_ydata().tolist() == mine["summary"].to_list()
        assert line.get_color() == style.GROUP_COLOURS[group]


def test_of_many_candidates_every_nth_is_drawn_and_said():
    figure = candidates.candidates_figure(candidate_rows(3000), "Candidates")
    assert sum(len(line.get_xdata()) for line in figure.axes[0].lines) == 1000
    assert "one in 3 is drawn" in " ".join(words(figure))
    assert "topic only (1,000)" in words(figure)


def test_the_first_shown_wins_by_round():
    frame = judgments(
        (1, "a", "b", "a", 1.0, "ok"),
        (1, "c", "d", "d", 1.0, "ok"),
        (2, "a", "c", "c", 0.25, "ok"),
        (2, "b", "d", "b", None, "refused"),
        (3, "a", "d", "a", None, "truncated"),
    )
    rounds = judging.games_by_round(frame)
    assert rounds.select("round", "games", "judged", "first").rows() == [
        (1, 2, 2, 0.5),
        (2, 2, 1, 0.75),
        (3, 1, 0, None),
    ]
    assert rounds["error"].to_list() == [pytest.approx(0.5 / math.sqrt(2)), 0.0, None]
    figure = judging.rounds_figure(frame, "Games", BASELINE_WARNING)
    left, right = figure.axes[:2]
    assert [(x, y) for x, y, _ in points(left)] == [([1, 2], [0.5, 0.75])]
    bars = {(round(bar.get_x() + bar.get_width() / 2), bar.get_height()) for bar in right.patches}
    assert {(2, 0.5), (3, 1.0)} <= bars
    assert "embedded baseline" in " ".join(words(figure))
    assert len(judging.rounds_figure(frame.head(2), "Games").axes) == 1  # nothing failed


def test_rank_curves_count_a_group_s_candidates():
    curves = judging.rank_curves(
        benchmark(("both", 1), ("both", 2), ("topic_only", 3), ("topic_only", 1), ("both", 3))
    )
    assert curves.filter(pl.col("group") == "topic_only")["share"].to_list() == [0.5, 0.5, 1.0]
    assert curves.filter(pl.col("group") == "both")["share"].to_list() == pytest.approx(
        [1 / 3, 2 / 3, 1]
    )
    assert "summary_only" not in set(curves["group"])
    figure = judging.rank_curves_figure(benchmark(("both", 1), ("topic_only", 2)), "Curves")
    drawn = {line.get_label(): line.get_xydata().tolist() for line in figure.axes[0].lines}
    assert drawn["both"] == [[0, 0], [1, 1], [2, 1]]
    assert drawn["topic only"] == [[0, 0], [1, 0], [2, 1]]


def test_intervals_are_on_the_scale_of_the_ratings():
    frame = judging.rating_intervals(pl.concat([ratings(3, "q"), ratings(1, "alone")]))
    # log-strengths 0, 2, 4 became ratings 0, 2.5, 5
    assert frame["margin"].to_list() == pytest.approx([1.96 * 0.5 * 5 / 4] * 3 + [0.0])
    figure = judging.ratings_figure(
        ratings(6), candidate_rows(6).select("doc_id", "group"), "Ratings"
    )
    drawn = points(figure.axes[0])
    assert sorted(x for xs, _, _ in drawn for x in xs) == [1, 2, 3, 4, 5, 6]
    assert ([6, 3], [0.0, 3.0]) in [(xs[::-1], ys[::-1]) for xs, ys, _ in drawn]


def test_the_board_has_rivals_from_the_best_down_and_references_apart():
    names = ("bm25", "tfidf", "random", "jaccard", "oracle")
    frame, references = board(names), {"oracle", "random"}
    assert leaderboard.order(frame, "full-full", references) == [
        "bm25",
        "tfidf",
        "jaccard",
        "oracle",
        "random",
    ]
    figure = leaderboard.settings_figure(
        frame, ("statement-full", "full-full"), references, "Board", BASELINE_WARNING
    )
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["statement-full", "full-full"]
    drawn = points(figure.axes[0])
    best, beaten, apart = drawn
    assert (best[0], best[1], best[2]) == (pytest.approx([0.9, 0.88]), [0, 1], style.INK)
    assert (beaten[0], beaten[1], beaten[2]) == (pytest.approx([0.84]), [2], style.PAPER)
    assert (apart[0], apart[1], apart[2]) == (pytest.approx([1.0, 0.86]), [3.6, 4.6], style.PAPER)
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == ["bm25", "tfidf", "jaccard", "oracle", "random"]
    assert "embedded baseline" in " ".join(words(figure))
    assert "embedded" not in " ".join(
        words(leaderboard.settings_figure(frame, ("full-full",), references, "Board"))
    )


def test_the_board_has_a_panel_for_each_domain_with_queries():
    frame = board(("a", "b", "oracle"), domains=("geometry",), n_queries=1)
    figure = leaderboard.board_domains_figure(frame, "full-full", DOMAINS, {"oracle"}, "Board")
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["geometry (1 query)"]
    segments = [s for c in figure.axes[0].collections for s in c.get_segments()]
    whiskers = segments[0][:, 0].tolist()
    assert whiskers == pytest.approx([0.85, 0.95])


def test_names_of_usual_length_stand_whole_above_a_board():
    domains = ("combinatorics", "number_theory")
    frame = board(("a", "oracle"), domains, n_queries=150)
    figure = leaderboard.board_domains_figure(frame, "full-full", domains, {"oracle"}, "Board")
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == ["combinatorics (150 queries)", "number theory (150 queries)"]


def test_a_board_of_the_first_few_says_how_many_there_are():
    frame = board(("a", "b", "c", "d", "oracle"))
    assert leaderboard.order(frame, "full-full", {"oracle"}, 2) == ["a", "b", "oracle"]
    figure = leaderboard.settings_figure(frame, ("full-full",), {"oracle"}, "Board", most=2)
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["a", "b", "oracle"]
    assert "2 more retrievers are in the table." in " ".join(words(figure))


def test_what_ranks_at_random_is_no_rival():
    entries = [
        RetrieverEntry(slug="chance", retriever="random"),
        RetrieverEntry(slug="bm25", retriever="bm25"),
    ]
    assert leaderboard.reference_slugs(entries) == {"oracle", "chance"}


# whatever the tables are


FLOORS = {"topic": 0.6, "summary": 0.15}


def curve_of(domains, level):
    shares = [2e-5, 3e-4, 0.007, 0.06]
    rows = [(domain, share, 100 * i) for domain in domains for i, share in enumerate(shares)]
    schema = {"domain": pl.String, level: pl.Float64, "eligible": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def no_rows():
    empty = {name: contract.empty() for name, contract in TABLES.items()}
    nothing = index()
    tails = signals.tail_lines(signal_tails([], nothing, DOMAINS, {"topic": 0.3, "summary": 0.05}))
    weights = topics.topic_weights(empty["topic_tags"], empty["ontology_tree"])
    groups = empty["candidate_sets"].select("doc_id", "group")
    return {
        "domains": lambda n: topics.domains_figure(weights, DOMAINS, "t", n),
        "topics": lambda n: topics.topics_figure(weights, DOMAINS, "t", n),
        "tails": lambda n: signals.tails_figure(tails, DOMAINS, "t", empty["thresholds"], n),
        "eligible": lambda n: signals.eligible_figure(empty["thresholds"], DOMAINS, 5, 8, n),
        "histogram": lambda n: signals.histogram_figure(
            {"topic": [0, 0], "summary": [0, 0]}, {"topic": 0.3, "summary": 0.1}, "t", n
        ),
        "curve": lambda n: signals.curve_figure(
            pl.DataFrame(schema={"domain": pl.String, "c": pl.Float64, "eligible": pl.Int64}),
            DOMAINS,
            5,
            n,
        ),
        "candidates": lambda n: candidates.candidates_figure(empty["candidate_sets"], "t", n),
        "rounds": lambda n: judging.rounds_figure(empty["judgments"], "t", "", n),
        "curves": lambda n: judging.rank_curves_figure(empty["benchmark"], "t", "", n),
        "ratings": lambda n: judging.ratings_figure(empty["ratings"], groups, "t", "", n),
        "settings": lambda n: leaderboard.settings_figure(
            empty["leaderboard"], ("full-full",), (), "t", "", n
        ),
        "board": lambda n: leaderboard.board_domains_figure(
            empty["leaderboard"], "full-full", DOMAINS, (), "t", "", n
        ),
    }


def much():
    """12 domains, 30 retrievers with long names, names that look like markup or mathematics."""
    domains = tuple(f"domain_{i:02d}_with_a_rather_long_name" for i in range(12))
    names = [f"a-very-long-name-of-a-retriever-with-many-options-{i:02d}" for i in range(29)]
    frame = board(
        [*names, "oracle"], domains, ("statement-full", "full-full", "statement-statement")
    )
    weights = pl.DataFrame(
        [(domain, f"{NASTY} {i}", 1.0 + i) for domain in domains for i in range(9)],
        schema={"domain": pl.String, "topic": pl.String, "weight": pl.Float64},
        orient="row",
    )
    tails = pl.DataFrame(
        [(d, s, v / 10, 0.5**v) for d in domains for s in signals.SIGNALS for v in range(1, 10)],
        schema={"domain": pl.String, "signal": pl.String, "value": pl.Float64, "share": pl.Float64},
        orient="row",
    )
    limits = thresholds(*domains, eligible_queries=0, n_queries=100_000)
    groups = candidate_rows(150).select("doc_id", "group")
    settings = ("statement-full", "full-full", "statement-statement")
    games = judgments(
        *((r, "a", "b", "a", None, s) for r in range(1, 21) for s in ("refused", "odd_status"))
    )
    return {
        "domains": lambda n: topics.domains_figure(weights, domains, NASTY, n),
        "topics": lambda n: topics.topics_figure(weights, domains, NASTY, n),
        "tails": lambda n: signals.tails_figure(tails, domains, NASTY, limits, n),
        "curve": lambda n: signals.curve_figure(curve_of(domains, "share"), domains, 150, n),
        "curve of c": lambda n: signals.curve_figure(curve_of(domains, "c"), domains, 150, n),
        "histogram": lambda n: signals.histogram_figure(
            {"topic": [10**k for k in range(8)], "summary": [7] * 256}, FLOORS, NASTY, n
        ),
        "eligible": lambda n: signals.eligible_figure(limits, domains, 150, 50, n),
        "candidates": lambda n: candidates.candidates_figure(candidate_rows(6000), NASTY, n),
        "rounds": lambda n: judging.rounds_figure(games, NASTY, BASELINE_WARNING, n),
        "ratings": lambda n: judging.ratings_figure(ratings(150), groups, NASTY, "", n),
        "settings": lambda n: leaderboard.settings_figure(
            frame, settings, {"oracle"}, NASTY, "", n
        ),
        "board": lambda n: leaderboard.board_domains_figure(
            frame, "full-full", domains, {"oracle"}, NASTY, "", n
        ),
        "short board": lambda n: leaderboard.board_domains_figure(
            frame, "full-full", domains, {"oracle"}, NASTY, BASELINE_WARNING, n, 12
        ),
    }


def one_query():
    groups = candidate_rows(1).select("doc_id", "group")
    return {
        "candidates": lambda n: candidates.candidates_figure(candidate_rows(1), "t", n),
        "rounds": lambda n: judging.rounds_figure(
            judgments((1, "a", "b", "a", 1.0, "ok")), "t", "", n
        ),
        "curves": lambda n: judging.rank_curves_figure(benchmark(("both", 1)), "t", "", n),
        "ratings": lambda n: judging.ratings_figure(ratings(1), groups, "t", "", n),
        "settings": lambda n: leaderboard.settings_figure(
            board(["a"], n_queries=1), ("full-full",), {"oracle"}, "t", "", n
        ),
    }


LONG = tuple(
    f"domain_{i:02d}_{'of_a_taxonomy_of_many_words' * 2}"[:50] + "_tail" for i in range(20)
)
"""Slugs of 55 characters that differ only where a name is cut, or at the start."""


def long_names():
    weights = pl.DataFrame(
        [(domain, f"topic {i} of a name", 1.0 + i) for domain in LONG for i in range(9)],
        schema={"domain": pl.String, "topic": pl.String, "weight": pl.Float64},
        orient="row",
    )
    tails = pl.DataFrame(
        [
            (domain, signal, value / 10, 0.5**value)
            for place, domain in enumerate(LONG)
            for signal in signals.SIGNALS
            for value in range(1, 10)
            if (place, signal) != (3, "topic")
        ],
        schema={"domain": pl.String, "signal": pl.String, "value": pl.Float64, "share": pl.Float64},
        orient="row",
    )
    limits = thresholds(*LONG, eligible_queries=0, n_queries=100_000)
    frame = board(("bm25", "dense", "oracle"), LONG, n_queries=1234)
    return {
        "domains": lambda n: topics.domains_figure(weights, LONG, "t", n),
        "topics": lambda n: topics.topics_figure(weights, LONG, "t", n),
        "tails": lambda n: signals.tails_figure(tails, LONG, "t", limits, n),
        "eligible": lambda n: signals.eligible_figure(limits, LONG, 150, 50, n),
        "board": lambda n: leaderboard.board_domains_figure(
            frame, "full-full", LONG, {"oracle"}, "t", "", n
        ),
    }


CASES = {
    f"{case} {name}": draw
    for case, figures in (("no rows", no_rows()), ("much", much()), ("one query", one_query()))
    for name, draw in figures.items()
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("narrow", [False, True], ids=["wide", "narrow"])
def test_every_figure_can_be_drawn(case, narrow):
    element = svg(CASES[case](narrow), "f1", NASTY)
    root = ElementTree.fromstring(element)
    width, height = map(float, root.get("viewBox").split()[2:])
    assert width == pytest.approx(72 * (style.NARROW if narrow else style.WIDE))
    assert height > 72
    assert root[0].text == NASTY
    assert not re.search(r"(?i)\bnan\b|\binf\b|mathdefault", element)


@pytest.mark.parametrize("case", [case for case in CASES if "histogram" in case or "curve" in case])
def test_logarithmic_scales_have_plain_labels(case):
    assert not any("$" in word for word in words(CASES[case](False)) if word != NASTY)


def test_counts_and_shares_of_a_logarithmic_scale():
    drawn = words(CASES["much histogram"](False))
    assert {"1", "10", "100,000", "1e6"} <= set(drawn)
    assert {"0.01 %", "0.1 %", "1 %"} <= set(words(CASES["much curve"](False)))


@pytest.mark.parametrize(
    "case", ["much short board", "much topics", "much candidates", "much tails"]
)
def test_even_a_full_picture_fits_into_metadata(case):
    log = []
    context = SimpleNamespace(log=SimpleNamespace(warning=log.append))
    made = picture(SITE, context, "plot", "much", lambda: CASES[case](False))
    assert log == []
    assert len(made["plot"].value) < MOST_CHARACTERS + 100


def boxes(figure):
    """The texts of a figure with their places in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    png(figure)
    renderer = FigureCanvasAgg(figure).get_renderer()
    with style.our_style():
        return [
            (
                text.get_text(),
                text.get_window_extent(renderer).transformed(figure.dpi_scale_trans.inverted()),
            )
            for text in figure.findobj(Text)
            if text.get_visible() and text.get_text().strip()
        ]


@pytest.mark.parametrize("name", long_names())
@pytest.mark.parametrize("narrow", [False, True], ids=["wide", "narrow"])
def test_twenty_long_names_are_apart_and_inside(name, narrow):
    figure = long_names()[name](narrow)
    found = boxes(figure)
    width, height = figure.get_size_inches()
    named = [(text, box) for text, box in found if "…" in text]
    for text, box in named:
        assert box.x0 > -0.03, text
        assert box.x1 < width + 0.03, text
        assert box.y0 > -0.03, text
        assert box.y1 < height + 0.03, text
    assert len(named) >= 20
    assert len({text for text, _ in named}) == 20
    if name == "topics":
        assert all(text.endswith(": 5.0 %") for text, _ in named)
    if name == "board":
        assert all(text.endswith(" (1,234 queries)") for text, _ in named)
    for (one, box), (other, place) in combinations(named, 2):
        overlap = (
            min(box.x1, place.x1) - max(box.x0, place.x0),
            (min(box.y1, place.y1) - max(box.y0, place.y0)),
        )
        assert min(overlap) < 0.02, (one, other)


def test_names_that_shortening_makes_equal_are_numbered():
    slugs = [f"{'a' * 30}{i}{'z' * 30}" for i in range(3)]
    names = style.domain_names(slugs, 20)
    assert list(names) == slugs
    assert [name[:3] for name in names.values()] == ["1 a", "2 a", "3 a"]
    assert {len(name) for name in names.values()} == {20}
    assert style.domain_names(["number_theory"], 20) == {"number_theory": "number theory"}


def test_a_layout_that_does_not_fit_is_a_failed_picture(recwarn):
    def draw():
        figure, (axes,) = style.panels([1.0], True)
        axes.set_yticks([0], ["a name as long as a page is wide " * 5])
        style.finish(figure, "t")
        return figure

    log = []
    context = SimpleNamespace(log=SimpleNamespace(warning=log.append))
    assert picture(SITE, context, "plot", "t", draw) == {}
    assert len(log) == 1
    assert "constrained_layout not applied" in log[0]
    assert not recwarn.list


# files


def figure():
    return judging.rank_curves_figure(
        benchmark(("both", 1), ("topic_only", 2), ("summary_only", 3)), f"Curves of {NASTY}"
    )


def test_the_same_figure_gives_the_same_bytes():
    assert png(figure()) == png(figure())
    assert svg(figure(), "f1", "t") == svg(figure(), "f1", "t")


def test_a_reader_s_own_settings_change_nothing():
    import matplotlib as mpl

    before = svg(figure(), "f1", "t")
    with mpl.rc_context({"font.size": 30, "lines.linewidth": 9, "text.usetex": True}):
        assert svg(figure(), "f1", "t") == before
    assert "svg.hashsalt" in mpl.rcParams
    assert mpl.rcParams["svg.hashsalt"] is None


def test_our_style_ends_with_the_drawing_even_if_it_fails():
    import matplotlib as mpl

    with mpl.rc_context({"font.size": 30, "text.usetex": True}):
        before = dict(mpl.rcParams)
        draw = style.styled(lambda: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            draw()
        png(figure())
        assert dict(mpl.rcParams) == before


def test_two_svgs_of_a_page_do_not_clash():
    elements = [ElementTree.fromstring(svg(figure(), name, "t")) for name in ("f1", "f2")]
    ids = [{e.get("id") for e in root.iter() if e.get("id")} for root in elements]
    assert ids[0]
    assert not ids[0] & ids[1]
    for root, mine in zip(elements, ids, strict=True):
        text = ElementTree.tostring(root, encoding="unicode")
        used = set(re.findall(r"url\(#([^)]*)\)", text)) | set(re.findall(r'href="#([^"]*)"', text))
        assert used
        assert used <= mine
        tags = {e.tag.rpartition("}")[2] for e in root.iter()}
        assert not tags & {"style", "script", "metadata", "image"}
        assert "title" in tags


def test_text_of_an_svg_stays_text():
    root = ElementTree.fromstring(svg(figure(), "f1", "t"))
    text = " ".join("".join(e.itertext()) for e in root.iter() if e.tag.endswith("}text"))
    assert "rank in the judge's order" in text
    assert NASTY in " ".join(text.split())


def test_a_png_is_as_wide_as_a_dialogue():
    data = png(figure())
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert int.from_bytes(data[16:20], "big") == pytest.approx(902, abs=1)
    assert data_uri(figure()).startswith("data:image/png;base64,iVBOR")


# colours


def luminance(colour):
    channels = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_colours_stand_out_from_the_background_and_from_each_other():
    colours = [*style.DOMAIN_COLOURS, *style.GROUP_COLOURS.values()]
    assert len(set(colours)) == len(colours)
    for colour in style.DOMAIN_COLOURS:
        assert 1.05 / (luminance(colour) + 0.05) >= 3, colour
    assert 1.05 / (luminance(style.MUTED) + 0.05) >= 4.5


def test_a_domain_has_one_colour_and_dash_whatever_else_there_is():
    domains = tuple(f"d{i}" for i in range(15))
    assert style.domain_colours(domains)["d3"] == style.domain_colours(domains[:4])["d3"]
    looks = [(style.domain_colours(domains)[d], style.domain_dashes(domains)[d]) for d in domains]
    assert all(one != other for one, other in combinations(looks, 2))


def test_long_names_keep_their_ends():
    short = style.shortened("retriever-with-a-long-name-v2", 20)
    assert len(short) == 20
    assert short.startswith("retriever")
    assert short.endswith("-v2")
    assert style.shortened("bm25") == "bm25"


@pytest.mark.parametrize(("share", "text"), [(0, "0.0 %"), (0.0004, "<0.1 %"), (0.123, "12.3 %")])
def test_a_little_is_not_nothing(share, text):
    assert style.percent(share) == text


# assets


def test_a_picture_that_fails_leaves_a_warning_and_no_metadata():
    log = []
    context = SimpleNamespace(log=SimpleNamespace(warning=log.append))
    assert picture(SITE, context, "plot", "a", lambda: 1 / 0) == {}
    assert log == ["no plot: ZeroDivisionError: division by zero"]
    made = picture(SITE, context, "plot", "a ] [ b\\", figure)
    assert made["plot"].value.startswith("![a ) ( b](data:image/png;base64,")
    assert len(log) == 1


def test_a_picture_too_large_is_left_out(monkeypatch):
    monkeypatch.setattr("assets.pictures.MOST_CHARACTERS", 100)
    log = []
    context = SimpleNamespace(log=SimpleNamespace(warning=log.append))
    assert picture(SITE, context, "plot", "a", figure) == {}
    assert "characters" in log[0]


def test_definitions_load_without_matplotlib(tmp_path):
    code = (
        "import sys; from pathlib import Path; from saber_dagster.definitions import load;"
        "from saber_dagster.home import Home; load(Home(Path(sys.argv[1])));"
        "from saber_dagster.cli import app;"
        "print(sorted({'matplotlib', 'math_core', 'PIL'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"
