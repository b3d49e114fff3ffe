"""A step's inputs and outputs as the page shows them: Markdown, metrics, pages, and links to files of the run."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from markupsafe import Markup, escape

from localvertex.show.jinja.templates import visible
from localvertex.show.page import classification
from localvertex.store.task import Artifact
from localvertex.values.buckets import Buckets, OutsideBucket

_MAX_TEXT_BYTES = 4 << 20
"""Of all files whose content is in the page; the others are only linked."""

_MAX_MARKDOWN_BYTES = 200_000

_MAX_ARTIFACTS = 50
"""Of one list of artifacts."""


@dataclass(frozen=True, kw_only=True)
class View:
    """One artifact."""

    name: str
    kind: str
    """The title of its schema, such as system.Model."""
    uri: str
    link: str
    """A relative link to a file of the run, or an https address; otherwise empty."""
    metadata: dict[str, Any]
    markdown: Markup | None = None
    matrix: classification.Matrix | None = None
    roc: classification.Roc | None = None
    frame: str = ""
    """Id of the part of the page that contains it; empty if it is not such a page."""


@dataclass(frozen=True, kw_only=True)
class Frame:
    """A page that a step wrote."""

    id: str
    step: str
    name: str
    text: Markup | None
    """Its HTML, escaped for an attribute; None when it is missing or too large."""
    link: str


@dataclass(kw_only=True)
class Artifacts:
    """The artifacts of a run; the pages among them are collected in `frames`."""

    run_dir: Path
    buckets: Buckets = field(default_factory=Buckets)
    """The folders of the buckets."""
    most_classes: int = classification.MAX_CLASSES
    """In a confusion matrix; a larger one is not drawn."""
    frames: list[Frame] = field(default_factory=list)
    _bytes_left: int = _MAX_TEXT_BYTES

    def inputs(self, artifacts: dict[str, list[Artifact]]) -> list[View]:
        """Return a step's input artifacts; the page shows their content where they were written."""
        views = [self._view(name, each) for name, found in artifacts.items() for each in found[:_MAX_ARTIFACTS]]
        return [replace(each, metadata={}) for each in views]

    def outputs(self, artifacts: dict[str, list[Artifact]], step: str) -> list[View]:
        """Return a step's output artifacts, with their content."""
        views = [self._view(name, each) for name, found in artifacts.items() for each in found[:_MAX_ARTIFACTS]]
        return [self._with_content(each, step) for each in views]

    def _view(self, name: str, artifact: Artifact) -> View:
        kind, uri = str(artifact["type"].get("schemaTitle", "")), str(artifact["uri"])
        metadata = artifact.get("metadata") or {}
        return View(name=name, kind=kind, uri=uri, link=link(self.run_dir, uri), metadata=metadata)

    def _with_content(self, view: View, step: str) -> View:
        if view.kind == "system.HTML":
            return replace(view, frame=self._add_frame(view, step))
        if view.kind == "system.Markdown":
            text = self._text(view.uri, _MAX_MARKDOWN_BYTES)
            return replace(view, markdown=None if text is None else markdown(text))
        return _classification_view(view, self.most_classes) if view.kind == "system.ClassificationMetrics" else view

    def _add_frame(self, view: View, step: str) -> str:
        text = self._text(view.uri, _MAX_TEXT_BYTES)
        identifier = f"page-{len(self.frames) + 1}"
        escaped = None if text is None else escape(text)
        self.frames.append(Frame(id=identifier, step=step, name=view.name, text=escaped, link=view.link))
        return identifier

    def _text(self, uri: str, most_bytes: int) -> str | None:
        """Return the content of a file; None if it is missing, too large, or more than the page may contain."""
        try:
            file = Path(self.buckets.path_of(uri))
            size = file.stat().st_size if file.is_file() else None
            if size is None or size > min(most_bytes, self._bytes_left):
                return None
            self._bytes_left -= size
            return file.read_text(errors="replace")
        except (OSError, ValueError, OutsideBucket):
            return None


def _classification_view(view: View, most_classes: int) -> View:
    """Return a view of ClassificationMetrics with its drawings instead of their numbers."""
    matrix = classification.matrix(view.metadata.get("confusionMatrix"), most_classes)
    roc = classification.roc(view.metadata.get("confidenceMetrics"))
    drawn = {"confusionMatrix": matrix, "confidenceMetrics": roc}
    rest = {name: value for name, value in view.metadata.items() if drawn.get(name) is None}
    return replace(view, matrix=matrix, roc=roc, metadata=rest)


def link(run_dir: Path, uri: str) -> str:
    """Return a link to a file of the run, relative to its folder, or to an https address; empty for all others."""
    if uri.startswith("https://"):
        return uri
    try:
        path = Path(uri).resolve()
        inner = path.relative_to(run_dir.resolve())
        return quote(f"./{inner}", errors="surrogateescape") if path.exists() else ""
    except (OSError, ValueError):
        return ""


def markdown(text: str) -> Markup:
    """Return the HTML of a Markdown text. Tags become text, only https links work, and images are not loaded."""
    # Imported late: most runs have no Markdown.
    from markdown_it import MarkdownIt

    # "js-default" escapes HTML, because its rules are for untrusted text.
    parser = MarkdownIt("js-default")
    parser.disable("image")
    parser.validateLink = lambda url: url.startswith("https://")  # type: ignore[method-assign]
    tokens = parser.parse(visible(text))
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            # The headings of the page itself end at h3.
            token.tag = f"h{min(int(token.tag[1]) + 3, 6)}"
    return Markup(parser.renderer.render(tokens, parser.options, {}))  # noqa: S704 - made by markdown-it without HTML
