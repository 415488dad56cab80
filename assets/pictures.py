"""Figures in the metadata of a materialization: what a table shows, at a glance."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import dagster as dg

from assets.stage import Site

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_CHARACTERS = 60_000
"""A picture is stored with the event of every materialization; a larger one is drawn coarser."""
_SIZES = ((110, 128), (75, 32))
"""Dots per inch, and colours, tried in turn."""


def picture(
    site: Site, context: dg.AssetExecutionContext, key: str, alt: str, draw: "Callable[[], Figure]"
) -> dict[str, dg.MetadataValue]:
    """A figure as metadata: Markdown with the picture inside, which the UI shows.

    A figure is no part of a table. If it cannot be drawn, or is too large even when drawn coarsely,
    the log of the run has a warning, the metadata has no picture, and the table is stored as ever.

    Args:
        site: its settings may want no pictures.
        context: of the asset.
        key: ``plot``, or ``plot_NAME`` where an asset has several.
        alt: what the picture shows, for those who do not see it.
        draw: makes the figure; only errors in here are caught.
    """
    if not site.settings.pictures:
        return {}
    from saber_dagster.plots.render import data_uri

    try:
        for dpi, colours in _SIZES:
            uri = data_uri(draw(), dpi, colours)
            if len(uri) <= MOST_CHARACTERS:
                return {key: dg.MetadataValue.md(f"![{_plain(alt)}]({uri})")}
        context.log.warning(f"no {key}: the picture has {len(uri):,} characters")
    except Exception as error:
        context.log.warning(f"no {key}: {type(error).__name__}: {error}")
    return {}


def _plain(alt: str) -> str:
    """Text that cannot end the alternative text of a Markdown picture."""
    return " ".join(alt.translate(str.maketrans("[]\\", "() ")).split())
