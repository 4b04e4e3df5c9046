"""SVG elements as safe markup: every attribute and text is escaped, whoever wrote it."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from markupsafe import Markup, escape

from quantgate.report.untrusted import visible

Attribute = str | int | float
_DOT = 4.0


def element(tag: str, /, *children: str | Markup, **attributes: Attribute) -> Markup:
    """One element. `class_` becomes `class`, `stroke_width` becomes `stroke-width`; text children are escaped."""
    written = "".join(f' {_attribute_name(name)}="{escape(_written(value))}"' for name, value in attributes.items())
    inside = "".join(str(escape(child if isinstance(child, Markup) else visible(child))) for child in children)
    return Markup(f"<{tag}{written}>{inside}</{tag}>" if inside else f"<{tag}{written}/>")  # noqa: S704 - escaped above


def joined(parts: Iterable[Markup]) -> Markup:
    return Markup("").join(parts)


def path_through(x: np.ndarray, y: np.ndarray) -> str:
    """Path data of straight lines through the points (pixels).

    A point that is not finite breaks the line. A point between two breaks becomes a short dash, since a line of no
    length would not be seen.
    """
    finite = np.isfinite(x) & np.isfinite(y)
    breaks = np.flatnonzero(np.diff(finite.astype(int))) + 1
    stretches = [part for part in np.split(np.arange(len(x)), breaks) if len(part) and finite[part[0]]]
    return "".join(_stretch(x[part], y[part]) for part in stretches)


def _stretch(x: np.ndarray, y: np.ndarray) -> str:
    points = [f"{_written(float(px))} {_written(float(py))}" for px, py in zip(x, y, strict=True)]
    if len(points) == 1:
        return f"M{points[0]}m-{_DOT / 2:g} 0h{_DOT:g}"
    return "M" + "L".join(points)


def drawing(width: float, height: float, title: str, description: str, *children: Markup, class_: str = "") -> Markup:
    """A whole `<svg>` that scales with its column; title and description are what a screen reader says."""
    return element(
        "svg",
        element("title", title),
        element("desc", description),
        *children,
        viewBox=f"0 0 {_written(width)} {_written(height)}",
        role="img",
        class_=f"chart {class_}".strip(),
    )


def _attribute_name(name: str) -> str:
    return name.rstrip("_").replace("_", "-")


def _written(value: Attribute) -> str:
    if isinstance(value, float):
        return f"{value:.1f}".removesuffix(".0")
    return visible(str(value))
