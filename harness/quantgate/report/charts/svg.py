"""SVG elements as safe markup: every attribute and text is escaped, whoever wrote it."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from markupsafe import Markup, escape

from quantgate.report.untrusted import visible

Attribute = str | int | float


def element(tag: str, /, *children: str | Markup, **attributes: Attribute) -> Markup:
    """One element. `class_` becomes `class`, `stroke_width` becomes `stroke-width`; text children are escaped."""
    written = "".join(f' {_attribute_name(name)}="{escape(_written(value))}"' for name, value in attributes.items())
    inside = "".join(str(escape(child if isinstance(child, Markup) else visible(child))) for child in children)
    return Markup(f"<{tag}{written}>{inside}</{tag}>" if inside else f"<{tag}{written}/>")  # noqa: S704 - escaped above


def joined(parts: Iterable[Markup]) -> Markup:
    return Markup("").join(parts)


def path_through(x: np.ndarray, y: np.ndarray) -> str:
    """Path data of straight lines through the points (pixels); a point that is not finite breaks the line."""
    commands: list[str] = []
    drawing = False
    for px, py in zip(x, y, strict=True):
        if not (np.isfinite(px) and np.isfinite(py)):
            drawing = False
            continue
        commands.append(f"{'L' if drawing else 'M'}{_written(float(px))} {_written(float(py))}")
        drawing = True
    return "".join(commands)


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
