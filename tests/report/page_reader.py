"""Reads a page with the standard library's parser: an independent witness of what a browser would see."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser


@dataclass
class Page(HTMLParser):
    """Elements in order, and all text outside script and style."""

    elements: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    text: str = ""
    _silent: str | None = None
    raw: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self._silent = tag

    def handle_endtag(self, tag: str) -> None:
        if tag == self._silent:
            self._silent = None

    def handle_data(self, data: str) -> None:
        if self._silent:
            self.raw[self._silent] = self.raw.get(self._silent, "") + data
        else:
            self.text += data

    def attributes(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def read_page(html: str) -> Page:
    page = Page()
    page.feed(html)
    page.close()
    return page
