"""Figures as files: PNG for metadata, SVG for a page. The same figure gives the same bytes."""

import base64
import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

import numpy as np

from saber_dagster.plots.style import our_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DPI = 110
COLOURS = 128
_SALT = "saber"
_FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
_ID = re.compile(r' id="([^"]*)"')
_REFERENCE = re.compile(r'(?:(?<=url\()|(?<=href="))#([^")]*)')
_GLOBAL_STYLE = re.compile(r"\s*<defs>\s*<style type=\"text/css\">.*?</style>\s*</defs>", re.DOTALL)
_METADATA = re.compile(r"\s*<metadata>.*?</metadata>", re.DOTALL)


def png(figure: "Figure", dpi: int = DPI, colours: int = COLOURS) -> bytes:
    """The figure as PNG of a few colours; about 900 pixels wide, unless ``dpi`` is another."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image

    figure.set_dpi(dpi)
    canvas: Any = FigureCanvasAgg(figure)
    with _drawing():
        _settle(figure)
        canvas.draw()
    picture = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    small = picture.quantize(colours, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    buffer = io.BytesIO()
    small.save(buffer, "png", optimize=True)
    return buffer.getvalue()


def data_uri(figure: "Figure", dpi: int = DPI, colours: int = COLOURS) -> str:
    """The figure as a PNG inside an address."""
    return f"data:image/png;base64,{base64.b64encode(png(figure, dpi, colours)).decode()}"


def svg(figure: "Figure", name: str, title: str) -> str:
    """The figure as an SVG element that can stand in a page beside others.

    Text stays text, in the reader's font. Nothing in it reaches beyond the element: every id begins
    with the name, and there is no style sheet.

    Args:
        figure: the figure.
        name: letters, digits and hyphens; two figures of a page have different ones.
        title: what a reader hears who does not see it.

    Returns:
        The element, well-formed XML.
    """
    buffer = io.StringIO()
    with _drawing():
        _settle(figure)
        figure.savefig(buffer, format="svg")
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = _METADATA.sub("", _GLOBAL_STYLE.sub("", text)).replace("xlink:href=", "href=")
    text = _named(text, name)
    text = text.replace("'DejaVu Sans'", _FONTS)
    box = re.search(r'viewBox="([^"]*)"', text)
    if box is None:
        raise ValueError("matplotlib wrote an SVG without a viewBox")
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box[1]}" role="img"'
        f' aria-labelledby="{name}-title" class="plot"'
        f' style="stroke-linejoin: round; stroke-linecap: butt">'
        f'<title id="{name}-title">{escape(title)}</title>'
    )
    return (opening + text[text.index(">") + 1 :]).strip()


def _named(text: str, name: str) -> str:
    """Number the ids that something refers to, after the name, and leave out the others."""
    numbers = {old: f"{name}-{n}" for n, old in enumerate(dict.fromkeys(_REFERENCE.findall(text)))}
    text = _REFERENCE.sub(lambda found: f"#{numbers[found[1]]}", text)
    return _ID.sub(lambda found: f' id="{numbers[found[1]]}"' if found[1] in numbers else "", text)


def _settle(figure: "Figure") -> None:
    """Lay the panels out, once, where the last bits of the solver do not reach the file."""
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
        figure.set_layout_engine("none")
        for axes in figure.axes:
            left, bottom, width, height = np.round(axes.get_position().bounds, 5).tolist()
            axes.set_position((left, bottom, width, height))


@contextmanager
def _drawing() -> Iterator[None]:
    """Our style, as it counts when a figure is drawn, too, and ids that do not change.

    The font for measuring may lack a glyph, which is no reason for a warning. A layout that does
    not fit is a figure that cannot be drawn.
    """
    fixed = {"svg__fonttype": "none", "svg__hashsalt": _SALT, "svg__id": None}
    with our_style(**fixed), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        warnings.filterwarnings("error", message="constrained_layout not applied")
        yield
