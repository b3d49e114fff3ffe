"""HTML reports: self-contained pages made of a few kinds of blocks. Imports neither TensorFlow nor matplotlib.

page(title="Machine plan", subtitle="...", blocks=[Figures(...), Table(...)])
"""

from __future__ import annotations

import base64
import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import jinja2
from markupsafe import Markup

Cell = str | int | float
"""What a table holds: floats are shown with four digits; anything else as it is."""


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Headline figures side by side."""

    kind: ClassVar[str] = "figures"
    figures: Sequence[tuple[str, str]]
    """Caption and value of each."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table; it scrolls inside itself where it is wider than the page."""

    kind: ClassVar[str] = "table"
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""
    """A sentence above the table."""
    states: Sequence[str] = field(default=())
    """For each row good, warn, bad or empty: the colour of its first cell's mark."""


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A drawing, or several beside each other."""

    kind: ClassVar[str] = "chart"
    title: str
    svgs: Sequence[str]
    """Inline SVG, made by `trainer.results.report.charts` (trusted: it is put into the page as it is)."""
    note: str = ""

    @property
    def drawings(self) -> list[Markup]:
        """The SVGs marked as safe."""
        return [Markup(svg) for svg in self.svgs]  # noqa: S704 - drawn by matplotlib, which escapes its texts


@dataclass(frozen=True, kw_only=True)
class Picture:
    """One small image with a caption."""

    image_bytes: bytes
    """PNG or JPEG."""
    caption: str
    detail: str = ""
    """A second, paler line."""

    @property
    def data_uri(self) -> str:
        """The image inside the page."""
        media = "image/png" if self.image_bytes.startswith(b"\x89PNG") else "image/jpeg"
        return f"data:{media};base64,{base64.b64encode(self.image_bytes).decode()}"


@dataclass(frozen=True, kw_only=True)
class Pictures:
    """A grid of images."""

    kind: ClassVar[str] = "pictures"
    title: str
    pictures: Sequence[Picture]
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Text:
    """A paragraph."""

    kind: ClassVar[str] = "text"
    title: str
    text: str


Block = Figures | Table | Chart | Pictures | Text


def page(*, title: str, subtitle: str = "", blocks: Sequence[Block] = ()) -> str:
    """One self-contained HTML page.

    Args:
        title: heading and title of the page.
        subtitle: one sentence under it.
        blocks: the content, from top to bottom.

    Returns:
        HTML; every text in it is escaped.
    """
    return _template().render(title=title, subtitle=subtitle, blocks=blocks)


@functools.cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("trainer.results.report", ""),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["cell"] = lambda value: f"{value:.4f}" if isinstance(value, float) else str(value)
    return environment.get_template("page.html.j2")
