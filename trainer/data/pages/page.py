"""A self-contained HTML page made of a few kinds of blocks. Imports neither TensorFlow nor matplotlib."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import jinja2
from markupsafe import Markup

from localvertex._base.userinput.cli import one_line
from trainer.data.stored.records import data_uri

Cell = str | int | float
"""A value in a table: floats are shown with four digits, all others unchanged."""


@dataclass(frozen=True, kw_only=True)
class KeyFigures:
    """Headline figures side by side."""

    figures: Sequence[tuple[str, str]]
    """Caption and value of each figure."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table; it scrolls horizontally where it is wider than the page."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""
    """A sentence above the table."""
    states: Sequence[str] = ()
    """`good`, `warn`, `bad` or empty per row: the colour of the mark in its first cell."""


@dataclass(frozen=True, kw_only=True)
class Chart:
    """One drawing, or several next to each other."""

    title: str
    svgs: Sequence[str]
    """Inline SVG from `trainer.data.pages.charts`, which is trusted and not escaped."""
    note: str = ""
    """A sentence above the drawings."""

    @property
    def drawings(self) -> list[Markup]:
        """The SVGs marked as safe."""
        return [Markup(svg) for svg in self.svgs]  # noqa: S704 - charts escapes its texts, as matplotlib does


@dataclass(frozen=True, kw_only=True)
class Thumbnail:
    """One small image with a caption."""

    image_bytes: bytes
    """PNG or JPEG."""
    caption: str
    detail: str = ""
    """A second, paler line."""

    @property
    def data_uri(self) -> str:
        """The image embedded in the page."""
        return data_uri(self.image_bytes)


@dataclass(frozen=True, kw_only=True)
class Gallery:
    """A grid of images."""

    title: str
    images: Sequence[Thumbnail]
    note: str = ""
    """A sentence above the images."""


@dataclass(frozen=True, kw_only=True)
class ImagePairs:
    """Pairs of images, side by side."""

    title: str
    pairs: Sequence[tuple[Thumbnail, Thumbnail]]
    note: str = ""
    """A sentence above the images."""


@dataclass(frozen=True, kw_only=True)
class Text:
    """A paragraph."""

    title: str
    text: str


Block = KeyFigures | Table | Chart | Gallery | ImagePairs | Text


def render(*, title: str, subtitle: str = "", blocks: Sequence[Block] = ()) -> str:
    """Render one self-contained HTML page.

    Args:
        title: Heading and title of the page.
        subtitle: One sentence below the heading.
        blocks: The content, from top to bottom.

    Returns:
        HTML in which every text is escaped.
    """
    return _template().render(title=title, subtitle=subtitle, blocks=blocks)


@functools.cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("trainer.data.pages", ""),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # Names may contain line breaks, and marks that change the direction of the text.
    environment.filters["line"] = one_line
    environment.filters["cell"] = lambda value: f"{value:.4f}" if isinstance(value, float) else one_line(str(value))
    return environment.get_template("page.html.j2")
