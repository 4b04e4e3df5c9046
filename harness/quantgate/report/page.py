"""The page around the sections: Jinja with escaping always on, and a content policy that allows nothing else.

Styles and the one script are inlined from files and allowed by their hash, so nothing that a model wrote could run
even if it got past the escaping, and no address can be reached from the page.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from quantgate.report.untrusted import visible
from quantgate_engine.counted import counted, plural


def render_page(template: str, context: dict[str, object]) -> str:
    """`template` with `context`, the page's style, script and content policy."""
    style, script = _asset("style.css"), _asset("script.js")
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    page = {"style": Markup(style), "script": Markup(script), "content_policy": policy}  # noqa: S704 - our own files
    return _environment().get_template(template).render(context | page)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("quantgate.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    environment.filters |= {"counted": counted, "plural": plural}
    return environment


def _finalize(value: object) -> object:
    """Every string that is printed and is not our own markup has its hidden characters spelled out first."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _asset(name: str) -> str:
    return files("quantgate.report").joinpath("templates", name).read_text(encoding="utf-8")


def _hash(content: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}"
