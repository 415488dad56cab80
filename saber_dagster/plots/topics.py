"""How the problems lie over domains and topics."""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import polars as pl

from saber_dagster.plots.style import (
    MUTED,
    TITLE_LINE,
    domain_colours,
    domain_names,
    finish,
    nothing,
    panels,
    percent,
    shortened,
    styled,
    titled,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_TOPICS, _MANY_DOMAINS = 8, 6
"""Bars of a domain; half of them where there are many domains."""
GENERAL = "(no finer topic)"
"""The topic of an annotation with a domain itself."""
NO_TOPIC, NO_DOMAIN = "no topic", "no domain"

_WEIGHTS = {"domain": pl.String, "topic": pl.String, "weight": pl.Float64}


def topic_weights(tags: pl.DataFrame, tree: pl.DataFrame) -> pl.DataFrame:
    """Share every problem equally among its topics, and sum by first-level topic.

    Args:
        tags: columns doc_id and node_id, the latter empty where a problem has no topic; table
            ``topic_tags``, or :func:`tags_of` the index.
        tree: table ``ontology_tree``.

    Returns:
        Columns domain, topic, weight; weights sum to the number of problems, and no order of the
        rows changes a digit. The domain is empty for a topic whose root maps to none, and the
        topic, too, where a problem has none.

    Source: SABER-Math, appendix "Mathematical Data Distribution".
    """
    places = _first_level(tree)
    unknown = (None, None)
    counts = tags.select("node_id", topics=pl.len().over("doc_id")).group_by(pl.all()).len("n")
    sums: dict[tuple[str | None, str | None], Fraction] = {}
    for node, topics, n in counts.iter_rows():
        place = places.get(node, unknown)
        sums[place] = sums.get(place, Fraction()) + Fraction(n, topics)
    rows = [(*place, float(weight)) for place, weight in sums.items()]
    return pl.DataFrame(rows, schema=_WEIGHTS, orient="row").sort("domain", "topic")


def tags_of(index: pl.DataFrame) -> pl.DataFrame:
    """Each document of ``problem_index`` with each of its topics, as ``topic_tags`` has them."""
    return (
        index.filter("is_document")
        .select("doc_id", pl.col("topics").alias("node_id"))
        .explode("node_id", empty_as_null=True)
    )


def _first_level(tree: pl.DataFrame) -> dict[str, tuple[str | None, str | None]]:
    """Node → (domain, label of the first-level topic that it lies in)."""
    found: dict[str, tuple[str | None, str | None]] = {}
    columns = ("node_id", "parent_id", "depth", "label", "domain")
    for node, parent, depth, label, domain in tree.select(columns).sort("depth").iter_rows():
        found[node] = (domain, GENERAL if depth == 0 else label) if depth < 2 else found[parent]
    return found


def domain_weights(weights: pl.DataFrame, domains: Sequence[str]) -> list[tuple[str, float]]:
    """The weight of each domain, then of topics outside all domains, then of problems without one.

    The last two are left out where they are 0.
    """
    outside = weights.filter(pl.col("domain").is_null())
    rest = [
        (NO_DOMAIN, _sum(outside.drop_nulls("topic")["weight"])),
        (NO_TOPIC, _sum(outside.filter(pl.col("topic").is_null())["weight"])),
    ]
    return [
        *((name, _sum(weights.filter(pl.col("domain") == name)["weight"])) for name in domains),
        *((name, weight) for name, weight in rest if weight > 0),
    ]


def _sum(weights: Iterable[float]) -> float:
    """A sum that no order changes, without the last bits, which could turn a digit of a label."""
    return round(math.fsum(weights), 9)


@styled
def domains_figure(
    weights: pl.DataFrame, domains: Sequence[str], title: str, narrow: bool = False
) -> "Figure":
    """Bars: how many problems lie in each domain.

    Args:
        weights: :func:`topic_weights`.
        domains: the configured domains.
        title: what is counted.
        narrow: for a phone.
    """
    rows = domain_weights(weights, domains)
    figure, (axes,) = panels([0.3 * len(rows) + 0.5], narrow)
    total = _sum(weight for _, weight in rows)
    names = domain_names(domains, 24 if narrow else 40)
    colours = domain_colours(domains)
    _bars(
        axes,
        [names.get(name, name) for name, _ in rows],
        [weight for _, weight in rows],
        [colours.get(name, MUTED) for name, _ in rows],
        [f"{weight:,.1f} · {percent(weight / max(total, 1))}" for _, weight in rows],
    )
    axes.set_xlabel("problems")
    finish(figure, title, "A problem with several topics is shared equally among them.")
    return figure


@styled
def topics_figure(
    weights: pl.DataFrame, domains: Sequence[str], title: str, narrow: bool = False
) -> "Figure":
    """Bars in a panel per domain: how many problems lie in each first-level topic.

    Args:
        weights: :func:`topic_weights`.
        domains: the configured domains; those without a problem have no panel.
        title: what is counted.
        narrow: for a phone.
    """
    named = (
        weights.drop_nulls("domain")
        .with_columns(pl.col("weight").round(9))
        .sort(["weight", "topic"], descending=[True, False])
    )
    shown = [domain for domain in domains if (named["domain"] == domain).any()]
    most = _MOST_TOPICS if len(shown) <= _MANY_DOMAINS else _MOST_TOPICS // 2
    lists = {domain: _largest(named.filter(pl.col("domain") == domain), most) for domain in shown}
    total = _sum(weights["weight"])
    names = domain_names(domains, 40)
    titles = {
        domain: titled(f"{names[domain]}:", percent(_sum(w for _, w in topics) / max(total, 1)))
        for domain, topics in lists.items()
    }
    heights = [
        0.21 * len(topics) + 0.25 + TITLE_LINE * len(titles[domain].splitlines())
        for domain, topics in lists.items()
    ]
    figure, every = panels(heights, narrow, columns=2, sharex=True)
    if not shown:
        nothing(every[0], "no problem has a topic")
    for domain, axes in zip(shown, every, strict=False):
        topics = lists[domain]
        row = shown.index(domain) // (1 if narrow else 2) * (1 if narrow else 2)
        _bars(
            axes,
            [shortened(topic, 24 if narrow else 32) for topic, _ in topics],
            [value for _, value in topics],
            [domain_colours(domains)[domain]] * len(topics),
            [f"{value:,.1f}" for _, value in topics],
            rows=max(len(lists[other]) for other in shown[row : row + (1 if narrow else 2)]),
        )
        axes.set_title(titles[domain])
        axes.xaxis.set_visible(False)
        axes.spines["bottom"].set_visible(False)
    finish(figure, title, "Problems; one with several topics is shared equally among them.")
    return figure


def _largest(topics: pl.DataFrame, most: int) -> list[tuple[str, float]]:
    """The topics with the largest weights, and the rest as one."""
    rows = [
        (str(topic), float(weight)) for topic, weight in topics.select("topic", "weight").rows()
    ]
    if len(rows) <= most:
        return rows
    kept, rest = rows[: most - 1], rows[most - 1 :]
    return [*kept, (f"{len(rest)} others", _sum(weight for _, weight in rest))]


def _bars(
    axes: "Axes",
    names: Sequence[str],
    values: Sequence[float],
    colours: Sequence[str],
    labels: Sequence[str],
    rows: int | None = None,
) -> None:
    """Horizontal bars, the first on top, each with its label at the end; ``rows`` leaves room."""
    bars = axes.barh(range(len(names)), values, color=list(colours), height=0.72)
    axes.bar_label(bars, list(labels), padding=3, fontsize=8, color=MUTED)
    axes.set_yticks(range(len(names)), list(names))
    axes.set_ylim((rows or len(names)) - 0.5, -0.5)
    axes.margins(x=0.22)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")
