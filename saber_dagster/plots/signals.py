"""How rare high signals are, and how many queries the thresholds leave."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from saber_dagster.contracts import GROUPS
from saber_dagster.plots.style import (
    GRID,
    GROUP_COLOURS,
    GROUP_NAMES,
    INK,
    domain_colours,
    domain_dashes,
    domain_names,
    finish,
    nothing,
    panels,
    styled,
)
from saber_dagster.signals.pairs import SIGNALS
from saber_dagster.signals.tails import SignalTail

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

_STEPS = 160
_TAILS = {"domain": pl.String, "signal": pl.String, "value": pl.Float64, "share": pl.Float64}


def tail_lines(tails: Mapping[str, Mapping[str, SignalTail]]) -> pl.DataFrame:
    """The share of a domain's pairs whose signal is at least a value.

    Args:
        tails: domain → signal → its tail.

    Returns:
        Columns domain, signal, value, share: up to 161 values from the floor to the largest signal;
        a share of 0 is left out. The share is of the pairs of which both sides have the feature.
    """
    rows: list[tuple[str, str, float, float]] = []
    for domain, signals in sorted(tails.items()):
        for signal, tail in signals.items():
            if not tail.values.size:
                continue
            most = tail.values[-1]
            grid = np.unique(np.append(np.linspace(tail.floor, most, _STEPS), most))
            shares = tail.shares[np.searchsorted(tail.values, grid, side="left")]
            rows += [
                (domain, signal, float(value), float(share))
                for value, share in zip(grid, shares, strict=True)
            ]
    return pl.DataFrame(rows, schema=_TAILS, orient="row")


@styled
def tails_figure(
    tails: pl.DataFrame,
    domains: Sequence[str],
    title: str,
    thresholds: pl.DataFrame | None = None,
    narrow: bool = False,
) -> "Figure":
    """Lines: the tail of each signal by domain, on a logarithmic scale.

    Args:
        tails: :func:`tail_lines`.
        domains: the configured domains.
        title: whose pairs are counted.
        thresholds: table ``thresholds``, if a dot is to mark the share that counts as high, and,
            but under the rule top_m, a line the threshold.
        narrow: for a phone.
    """
    figure, every = panels([3.0] * len(SIGNALS), narrow)
    names = domain_names(domains, 36)
    for signal, axes in zip(SIGNALS, every, strict=True):
        mine = tails.filter((pl.col("signal") == signal) & (pl.col("share") > 0))
        if not mine.height:
            nothing(axes, f"no pair reaches the floor of the {signal} signal")
            continue
        for domain in domains:
            line = mine.filter(pl.col("domain") == domain)
            if line.height:
                axes.plot(
                    line["value"].to_numpy(),
                    line["share"].to_numpy(),
                    color=domain_colours(domains)[domain],
                    linestyle=domain_dashes(domains)[domain],
                    label=names[domain],
                )
                if thresholds is not None:
                    _mark(axes, line, thresholds.filter(pl.col("domain") == domain), signal)
        lowest = float(mine.select(pl.min("share")).item())
        _log_scale(axes.yaxis, _percent, few_decades=lowest > 1e-3)
        axes.set_title(f"{signal} signal")
        axes.set_xlabel("value")
        axes.set_ylabel("share of pairs at or above")
        axes.grid(axis="both")
    finish(figure, title, _tail_note(thresholds), legend=every, columns=5)
    return figure


def _percent(share: float, _: int) -> str:
    return f"{100 * share:g} %"


def _count(pairs: float, _: int) -> str:
    return f"{pairs:,.0f}" if pairs < 1e6 else f"{pairs:.0e}".replace("e+0", "e").replace("e+", "e")


def _log_scale(axis: "Axis", shown: Callable[[float, int], str], few_decades: bool = False) -> None:
    """A logarithmic scale with labels that need no typesetting of formulas."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    (axis.axes.set_xscale if axis.axis_name == "x" else axis.axes.set_yscale)("log")  # type: ignore[attr-defined]
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if few_decades else (1.0,)))
    axis.set_major_formatter(FuncFormatter(shown))
    axis.set_minor_formatter(NullFormatter())


def _mark(axes: "Axes", line: pl.DataFrame, row: pl.DataFrame, signal: str) -> None:
    """A dot where a domain's tail is as large as the share that counts as high."""
    if not row.height:
        return
    limit = row.row(0, named=True)
    if limit["rule"] != "top_m":
        axes.axvline(limit[signal], color=INK, linewidth=0.8, linestyle=(0, (2, 2)))
    share = limit[f"density_{signal}"]
    reached = line.filter(pl.col("share") >= share)
    if share > 0 and reached.height:
        axes.plot([reached["value"][-1]], [share], "o", color=axes.lines[-1].get_color(), ms=6)


def _tail_note(thresholds: pl.DataFrame | None) -> str:
    if thresholds is None or not thresholds.height:
        return ""
    if thresholds["rule"][0] != "top_m":
        return "Dashed: the threshold. Dots: the share of pairs that counts as high."
    m = sorted(set(thresholds["m"].drop_nulls()))
    sizes = " or ".join(str(value) for value in m)
    return (
        "Dots: the share of pairs that counts as high. That is each query's"
        f" {sizes} largest signals, so a dot is no cut-off value."
    )


@styled
def eligible_figure(
    thresholds: pl.DataFrame,
    domains: Sequence[str],
    required: int,
    per_group: int,
    narrow: bool = False,
) -> "Figure":
    """Bars: how many queries of each domain are eligible, and which group the others lack.

    Args:
        thresholds: table ``thresholds``.
        domains: the configured domains.
        required: eligible queries that each domain needs.
        per_group: K, the documents that an eligible query has in each group.
        narrow: for a phone.
    """
    rows = {row["domain"]: row for row in thresholds.iter_rows(named=True)}
    shown = [domain for domain in domains if domain in rows]
    figure, (left, right) = panels([0.42 * len(shown) + 0.8] * 2, narrow, sharey=not narrow)
    names = domain_names(domains, 20 if narrow else 28)
    places = np.arange(len(shown))
    possible = [rows[domain]["n_queries"] for domain in shown]
    eligible = [rows[domain]["eligible_queries"] for domain in shown]
    colours = [domain_colours(domains)[domain] for domain in shown]
    left.barh(places, possible, color=GRID, height=0.7, label="may be a query")
    bars = left.barh(places, eligible, color=colours, height=0.7, label="eligible")
    labels = [
        f"{found} of {most}" + ("" if found >= required else f", {required} needed")
        for found, most in zip(eligible, possible, strict=True)
    ]
    largest = max([*possible, required, 1])
    for place, label, most in zip(places, labels, possible, strict=True):
        left.text(most + 0.02 * largest, float(place), label, va="center", fontsize=8)
    left.axvline(required, color=INK, linewidth=0.9, linestyle=(0, (2, 2)))
    room = 0.06 * max(map(len, labels), default=0) if narrow else 0.5
    left.set_xlim(0, largest * (1 + room))
    left.set_title("eligible of possible queries")
    for axes in (left, right):
        axes.set_yticks(places, [names[domain] for domain in shown])
        axes.set_ylim(max(len(shown), 1) - 0.5, -0.5)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.grid(axis="x")
        axes.set_xlabel("queries")
    for step, group in enumerate(GROUPS):
        short = [rows[domain][f"short_{group}"] for domain in shown]
        bars = right.barh(
            places + (step - 1) * 0.24,
            short,
            color=GROUP_COLOURS[group],
            height=0.22,
            label=GROUP_NAMES[group],
        )
        right.bar_label(bars, padding=2, fontsize=7.5)
    right.set_title(f"short of {per_group} documents")
    right.margins(x=0.12)
    finish(
        figure,
        "Which queries have enough related documents",
        f"A query is eligible if it has {per_group} documents in each group. Dashed: the"
        f" {required} eligible queries that a domain needs. Bars by group: queries that"
        f" have fewer than {per_group} documents in it.",
        legend=[right],
    )
    return figure


@styled
def curve_figure(
    curve: pl.DataFrame, domains: Sequence[str], required: int, narrow: bool = False
) -> "Figure":
    """Lines: how many queries of each domain are eligible, the more pairs count as high.

    Args:
        curve: :attr:`saber_dagster.thresholds.fit.ThresholdResult.curve`.
        domains: the configured domains.
        required: eligible queries that each domain needs.
        narrow: for a phone.
    """
    figure, (axes,) = panels([3.0], narrow)
    by_share = "share" in curve.columns
    level = "share" if by_share else "c"
    names = domain_names(domains, 36)
    for domain in domains:
        line = curve.filter(pl.col("domain") == domain).sort(level)
        if line.height:
            axes.plot(
                line[level].to_numpy(),
                line["eligible"].to_numpy(),
                color=domain_colours(domains)[domain],
                linestyle=domain_dashes(domains)[domain],
                marker="" if by_share else "o",
                label=names[domain],
            )
    if not curve.height:
        nothing(axes, "no pair reaches a floor")
    elif by_share:
        _log_scale(axes.xaxis, _percent)
    axes.axhline(required, color=INK, linewidth=0.9, linestyle=(0, (2, 2)))
    axes.set_xlabel("share of pairs that count as high" if by_share else "c, of M = c K")
    axes.set_ylabel("eligible queries")
    axes.grid(axis="both")
    note = f"Dashed: the {required} eligible queries that a domain needs."
    if by_share:
        note += " Each line is by the domain's own pairs; the thresholds are the lowest of all."
    finish(figure, "How many queries are eligible", note, legend=[axes], columns=5)
    return figure


@styled
def histogram_figure(
    counts: Mapping[str, Sequence[int]],
    floors: Mapping[str, float],
    title: str,
    narrow: bool = False,
) -> "Figure":
    """Steps: how many pairs have a signal of so much, on a logarithmic scale.

    Args:
        counts: signal → pairs by bin; the bins cut [0, 1] into equal parts.
        floors: signal → the value from which on pairs are stored.
        title: whose pairs are counted.
        narrow: for a phone.
    """
    figure, every = panels([3.0] * len(SIGNALS), narrow)
    for signal, axes in zip(SIGNALS, every, strict=True):
        values = np.asarray(counts[signal])
        if not values.any():
            nothing(axes, "no pair")
            continue
        axes.stairs(values, np.linspace(0, 1, values.size + 1), fill=True, color=GRID, baseline=0.5)
        axes.stairs(values, np.linspace(0, 1, values.size + 1), color=INK, baseline=0.5)
        axes.axvline(floors[signal], color=INK, linewidth=0.9, linestyle=(0, (2, 2)))
        _log_scale(axes.yaxis, _count)
        axes.set_ylim(0.5, None)
        axes.set_title(f"{signal} signal")
        axes.set_xlabel("value")
        axes.set_ylabel("pairs")
    finish(figure, title, "All pairs, also those that are not stored. Dashed: the floor.")
    return figure
