"""What all figures share: fonts, colours, layout, and how names are written."""

import math
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec

from saber_dagster.contracts import GROUPS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

P = ParamSpec("P")

INK = "#1f2328"
MUTED = "#59636e"
GRID = "#d8dee4"
PAPER = "#ffffff"
"""The background: light in itself, so that a picture also reads on a dark page."""

DOMAIN_COLOURS = (
    "#3b55c8",
    "#7f9e1b",
    "#8c5a2b",
    "#1b93a5",
    "#9a6fd0",
    "#5d6b75",
    "#c05a7a",
    "#3f8f5f",
    "#a98a3c",
    "#2e6f95",
    "#7a4058",
    "#6b7f2e",
)
"""By position in the settings' ``domains``. The first five stay apart for colour-blind readers;
lines of more differ in their dashes, too."""
_DASHES = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1.5, 1, 1.5)), (0, (3, 1)))

GROUP_COLOURS = dict(zip(GROUPS, ("#0077bb", "#ee7733", "#aa3377"), strict=True))
GROUP_MARKERS = dict(zip(GROUPS, ("o", "s", "D"), strict=True))
GROUP_NAMES = {"topic_only": "topic only", "summary_only": "summary only", "both": "both"}

WIDE = 8.2
NARROW = 3.7
"""Widths in inches: of a page or a dialogue, and of a phone."""
TITLE, TITLE_LINE = 26, 0.15
"""Characters that fit above a panel, and the height of such a line in inches."""
_NO_BREAK = "\xa0"

_ENTRY, _CHARACTER = 0.65, 0.068
"""Widths in inches of a legend's entry without its label, and of a character of the label."""

_RC: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 9,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.facecolor": PAPER,
    "figure.facecolor": PAPER,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.8,
    "text.color": INK,
    "text.parse_math": False,  # names may contain dollar signs
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
}


@contextmanager
def our_style(**more: Any) -> Iterator[None]:
    """Our settings alone, whatever ``matplotlibrc`` there is; what is set before comes back.

    Args:
        **more: further settings, with ``__`` for the dot.
    """
    import matplotlib as mpl

    settings: dict[Any, Any] = {name.replace("__", "."): value for name, value in more.items()}
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_RC | settings)
        yield


def styled(draw: "Callable[P, Figure]") -> "Callable[P, Figure]":
    """A figure's function, run in our style."""

    @wraps(draw)
    def with_style(*args: P.args, **kwargs: P.kwargs) -> "Figure":
        with our_style():
            return draw(*args, **kwargs)

    return with_style


def panels(
    heights: Sequence[float],
    narrow: bool,
    columns: int = 3,
    sharex: bool = False,
    sharey: bool = False,
) -> "tuple[Figure, list[Axes]]":
    """A figure of panels, side by side, or below each other where it is narrow.

    Args:
        heights: height of each panel in inches; a figure without any gets one, to say why.
        narrow: whether it is for a phone.
        columns: most panels in a row of a wide figure.
        sharex: whether all have one x axis.
        sharey: the same of the y axis.
    """
    from matplotlib.figure import Figure

    heights = list(heights) or [1.0]
    columns = 1 if narrow else min(columns, len(heights))
    rows = [max(heights[first : first + columns]) for first in range(0, len(heights), columns)]
    figure = Figure(figsize=(NARROW if narrow else WIDE, sum(rows)), layout="constrained")
    axes = figure.subplots(
        len(rows), columns, squeeze=False, height_ratios=rows, sharex=sharex, sharey=sharey
    )
    every = list(axes.flat)
    for spare in every[len(heights) :]:
        spare.remove()
    return figure, every[: len(heights)]


def finish(
    figure: "Figure", title: str, *notes: str, legend: "Sequence[Axes]" = (), columns: int = 3
) -> None:
    """Put a title above the panels, and notes and a legend below; the figure grows by their height.

    Args:
        figure: a figure of :func:`panels`, with everything drawn.
        title: what it shows.
        *notes: how to read it; empty ones are left out.
        legend: the panels whose artists have labels; each label is in the legend once.
        columns: most entries in a row of the legend, 2 where the figure is narrow; fewer where
            labels are long.
    """
    narrow = figure.get_figwidth() < (NARROW + WIDE) / 2
    heading = textwrap.wrap(title, 40 if narrow else 92)
    lines = [
        line
        for note in notes
        for line in textwrap.wrap(note, 55 if narrow else 136, break_on_hyphens=False)
    ]
    entries: dict[str, Any] = {}
    for axes in legend:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    widest = _ENTRY + _CHARACTER * max(map(len, entries), default=0)
    fitting = max(1, int(figure.get_figwidth() / widest))
    columns = min(2 if narrow else columns, columns, fitting)
    top = 0.12 + 0.2 * len(heading)
    noted = 0.08 + 0.16 * len(lines)
    keys = 0.22 * math.ceil(len(entries) / columns)
    panels_height = figure.get_figheight()
    height = top + panels_height + keys + noted
    figure.set_figheight(height)
    rest = (0, (keys + noted) / height, 1, panels_height / height)
    figure.set_layout_engine("constrained", rect=rest)
    left = 0.1 / figure.get_figwidth()
    figure.text(
        left,
        1 - 0.08 / height,
        "\n".join(heading),
        va="top",
        fontsize=11,
        fontweight="bold",
        gid="title",
    )
    figure.text(
        left,
        noted / height,
        "\n".join(lines),
        va="top",
        fontsize=8,
        color=MUTED,
        linespacing=1.25,
        gid="notes",
    )
    if entries:
        figure.legend(
            list(entries.values()),
            list(entries),
            loc="lower left",
            bbox_to_anchor=(0, noted / height),
            ncols=columns,
            handlelength=2.4,
            borderaxespad=0.2,
        ).set_in_layout(False)


def nothing(axes: "Axes", why: str) -> None:
    """Say in a panel why it is empty."""
    axes.set_axis_off()
    axes.text(0.5, 0.5, why, ha="center", va="center", color=MUTED, transform=axes.transAxes)


def domain_colours(domains: Sequence[str]) -> dict[str, str]:
    """The colour of each domain, by its position in the settings."""
    return {
        domain: DOMAIN_COLOURS[place % len(DOMAIN_COLOURS)] for place, domain in enumerate(domains)
    }


def domain_dashes(domains: Sequence[str]) -> "dict[str, str | tuple[int, tuple[float, ...]]]":
    """The dashes of each domain's line, by its position in the settings."""
    return {domain: _DASHES[place % len(_DASHES)] for place, domain in enumerate(domains)}


def domain_names(domains: Sequence[str], most: int) -> dict[str, str]:
    """A name of each domain for a figure, of at most so many characters, and no two alike.

    Args:
        domains: the configured domains; where shortening makes two names equal, all are numbered
            by their position here.
        most: characters of a name.
    """
    names = {domain: shortened(spoken(domain), most) for domain in domains}
    if len(set(names.values())) == len(names):
        return names
    return {
        domain: f"{place} {shortened(spoken(domain), most - len(str(place)) - 1)}"
        for place, domain in enumerate(names, 1)
    }


def titled(name: str, figure: str) -> str:
    """The title of a panel, in lines that fit above it: a name, and a figure in one piece."""
    lines = textwrap.wrap(f"{name} {figure.replace(' ', _NO_BREAK)}", TITLE)
    return "\n".join(lines).replace(_NO_BREAK, " ")


def spoken(slug: str) -> str:
    """A slug as a person writes it: ``number_theory`` → ``number theory``."""
    return slug.replace("_", " ")


def shortened(text: str, most: int = 30) -> str:
    """A text of at most so many characters; the middle is left out."""
    text = " ".join(text.split())
    if len(text) <= most:
        return text
    head = most * 2 // 3
    return f"{text[:head]}…{text[head + 1 - most :]}"


def percent(share: float) -> str:
    """A share as a person writes it; what is little but not nothing does not become 0."""
    if 0 < share < 0.001:
        return "<0.1 %"
    return f"{100 * share:.1f} %"
