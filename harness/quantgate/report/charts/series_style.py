"""How arms are told apart: colour, dash pattern and marker shape together, so that no reader depends on colour.

The colours are those of Okabe and Ito (Color Universal Design, 2008), set in style.css with a variant for dark pages.
"""

from __future__ import annotations

from markupsafe import Markup

from quantgate.report.charts.svg import element

STYLES = 6
_SHAPES = (
    "M-4 0A4 4 0 1 0 4 0A4 4 0 1 0 -4 0Z",  # circle
    "M-3.6 -3.6H3.6V3.6H-3.6Z",  # square
    "M0 -4.6L4.4 3.4H-4.4Z",  # triangle
    "M0 -5L5 0L0 5L-5 0Z",  # diamond
    "M-4.4 -3.4H4.4L0 4.6Z",  # triangle that points down
    "M-1.5 -4.5H1.5V-1.5H4.5V1.5H1.5V4.5H-1.5V1.5H-4.5V-1.5H-1.5Z",  # plus
)


def style_class(index: int) -> str:
    return f"s{index % STYLES}"


def marker(x: float, y: float, index: int) -> Markup:
    """The marker of style `index`, centred on the pixel (x, y)."""
    return element(
        "path", d=_SHAPES[index % STYLES], transform=f"translate({x:.1f} {y:.1f})", class_=f"mark {style_class(index)}"
    )


def line_swatch(index: int) -> Markup:
    """A short sample of line and marker for the legend."""
    line = element("line", x1=1, x2=33, y1=7, y2=7, class_=f"line {style_class(index)}")
    return element("svg", line, marker(17, 7, index), viewBox="0 0 34 14", class_="swatch", aria_hidden="true")


def area_swatch(class_: str) -> Markup:
    """A filled sample for the legend of a bar chart."""
    box = element("rect", x=1, y=1, width=32, height=12, class_=class_)
    return element("svg", box, viewBox="0 0 34 14", class_="swatch", aria_hidden="true")
