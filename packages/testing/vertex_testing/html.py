"""A page as a browser's parser sees it: its elements, its text, and whether its tags are balanced."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

VOID = {"meta", "br", "wbr", "input", "link", "img", "hr"}


class Page(HTMLParser):
    """The elements of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        """Tag and attributes of each element."""
        self.texts: list[str] = []
        self.raw: dict[str, str] = {}
        """The content of the style and the script."""
        self.comments: list[str] = []
        self.unbalanced: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        self.unbalanced += self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.unbalanced.append(f"/{tag}")

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] in ("style", "script"):
            self.raw[self._open[-1]] = self.raw.get(self._open[-1], "") + data
        else:
            self.texts.append(data)

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    @property
    def text(self) -> str:
        """All text, as if no word could be broken."""
        return "".join(self.texts)

    def attributes(self, tag: str) -> list[dict[str, str]]:
        """Return the attributes of all elements with a tag."""
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def ids(self) -> list[str]:
        """The ids of all elements."""
        return [attributes["id"] for _, attributes in self.elements if "id" in attributes]


def report_data(page: Path) -> Any:
    """Return the data of the report of a run, a `run.html`."""
    (text,) = re.findall(r'<script type="application/json" id="report">(.*?)</script>', page.read_text(), re.S)
    return json.loads(text)
