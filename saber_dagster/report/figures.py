"""Figures inside the page: one for wide screens and paper, one for phones."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

from saber_dagster.plots.render import svg
from saber_dagster.plots.style import GRID, INK, MUTED, PAPER

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_THEME = {INK: "ink", MUTED: "muted", GRID: "grid", PAPER: "card"}
"""Colours of a figure that follow the page's theme: CSS variables of ``style.css``."""
_COLOUR = re.compile("|".join(_THEME))

_NONE = Markup()


@dataclass(frozen=True)
class Picture:
    """A figure, or why there is none."""

    reading: str
    """How to read it."""
    wide: Markup = _NONE
    narrow: Markup = _NONE
    error: str = ""


class Album:
    """Makes the figures of a page, so that no id is there twice."""

    def __init__(self) -> None:
        self._made = 0

    def picture(self, alt: str, reading: str, draw: "Callable[[bool], Figure]") -> Picture:
        """A figure.

        Args:
            alt: what a reader hears who does not see it.
            reading: how to read it.
            draw: makes the figure; its argument says whether it is narrow. If it fails, the page
                says so and goes on.
        """
        self._made += 1
        try:
            wide = svg(draw(False), f"f{self._made}w", alt)
            narrow = svg(draw(True), f"f{self._made}n", alt)
        except Exception as error:
            return Picture(reading, error=f"{type(error).__name__}: {error}")
        return Picture(reading, _themed(wide), _themed(narrow))


def _themed(element: str) -> Markup:
    """An SVG element of ours whose ink and paper are the page's."""
    return Markup(_COLOUR.sub(lambda found: f"var(--{_THEME[found[0]]}, {found[0]})", element))
