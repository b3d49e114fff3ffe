"""A step's inputs and outputs as the page shows them, with their files, only from the work folder and its buckets."""

import codecs
import os
import re
from collections.abc import Iterator
from pathlib import Path

from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.regular_files import open_regular
from localvertex.show.view.inside import is_inside
from localvertex.store.task import Artifact
from localvertex.values.buckets import Buckets, OutsideBucket

PAGE = "system.HTML"
"""The title of the schema of pages that steps write."""

_MAX_FILES = 200
"""Limit of the list of an artifact's files."""

MAX_SHOWN_BYTES = 64 << 20
"""Limit of a shown page or image; a larger file is downloaded."""

_MAX_TEXT_BYTES = 64 << 10
"""Shown beginning of a text file."""

_MAX_MARKDOWN_BYTES = 200_000

_INVISIBLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, characters that reverse the text after them, and halves of characters."""

_SVG = re.compile(rb"\s*(<(\?|!--|!DOCTYPE svg)[^>]*>\s*)*<svg[\s>]")

_IMAGES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"RIFF": "image/webp",
}
"""Kinds of images by their first bytes."""

_PRIVATE = "api"
"""The folder of the work folder with the token and the records of the server."""


class ShownArtifact:
    """One artifact of a step.

    Args:
        run_dir: The folder of the run.
        buckets: The folders of the buckets.
        name: Its name among the inputs or outputs of the step.
        artifact: Its entry in the record.
    """

    def __init__(self, run_dir: Path, buckets: Buckets, name: str, artifact: Artifact) -> None:
        self._run_dir, self._buckets, self._name = run_dir, buckets, name
        self.kind, self._uri = str(artifact["type"].get("schemaTitle", "")), str(artifact["uri"])
        self._metadata = artifact.get("metadata") or {}

    def view(self) -> JsonObject:
        """Return the content of the page: the metadata, and its content, Markdown as HTML without scripts."""
        path = self.path()
        text = _markdown(path) if path and self.kind == "system.Markdown" else None
        is_page = self.kind == PAGE and path is not None and path.is_file() and is_shown(path)
        return {
            "name": self._name,
            "kind": self.kind,
            "uri": self._uri,
            "link": self._uri if self._uri.startswith("https://") else "",
            "metadata": self._metadata,
            "markdown": text,
            "is_page": is_page,
            "text": _text(path) if path and text is None and not is_page else None,
            "note": "" if path else self._note(),
            **files_of(path),
        }

    def embedded(self, most_bytes: int) -> JsonObject:
        """Return the view for a file on its own: with the text of a page, and where its files are in the run's folder.

        Args:
            most_bytes: Limit of a page's text; a larger page is only linked.
        """
        view, path = self.view(), self.path()
        has_room = view["is_page"] and path is not None and path.stat().st_size <= most_bytes
        page = path.read_text(errors="replace") if path is not None and has_room else None
        place = None
        if path is not None and is_inside(path, self._run_dir):
            place = path.relative_to(self._run_dir.resolve()).as_posix()
        return view | {"page": page, "place": place}

    def _note(self) -> str:
        """Return why it has no files here."""
        if not self._uri:
            return ""
        if "://" in self._uri and not (self._uri.startswith("gs://") and self._buckets.root):
            return "It is not on this machine. The console contacts no other host."
        return "It does not exist, or it is outside the work folder and the folders of buckets."

    def file(self, name: str) -> Path | None:
        """Return one of its files, or its only file if the name is empty; None if there is no such file."""
        return file_in(self.path(), name)

    def path(self) -> Path | None:
        """Return where it is; None when it is missing, or not in the work folder or a bucket of the run."""
        try:
            path = Path(self._buckets.path_of(self._uri))
            is_there = path.is_absolute() and path.exists()
        except (OSError, ValueError, OutsideBucket):
            return None
        work_dir = self._run_dir.parent
        roots = [work_dir, *([self._buckets.root] if self._buckets.root else [])]
        is_known = any(is_inside(path, each) for each in roots) and not is_inside(path, work_dir / _PRIVATE)
        return path.resolve() if is_there and is_known and path.resolve() != (work_dir / _PRIVATE).resolve() else None


def file_in(root: Path | None, name: str) -> Path | None:
    """Return a file of a folder, or its only file if the name is empty; None for another file or behind a link."""
    path = root / name if root and name else root
    try:
        is_file = path is not None and path.is_file()
    except (OSError, ValueError):  # a null byte, a long name
        return None
    return path.resolve() if root and path and is_file and (not name or is_inside(path, root)) else None


def files_of(path: Path | None) -> JsonObject:
    """Return the files of an artifact or a model, which may be a single one, with their sizes in bytes."""
    every = names_of(path)
    files = [_describe(each, name) for each, name in [*every.items()][:_MAX_FILES]]
    num_bytes = sum(each.stat().st_size for each in every)
    return {"files": files, "num_more": len(every) - len(files), "num_bytes": num_bytes}


def names_of(path: Path | None) -> dict[Path, str]:
    """Return the files of an artifact or a model with their names in it; of a single file, it is empty."""
    if path is None:
        return {}
    return {path: ""} if path.is_file() else {each: each.relative_to(path).as_posix() for each in sorted(_below(path))}


def _below(folder: Path) -> Iterator[Path]:
    """Return the files of a folder; links are files of another place."""
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        for name in sorted(names):
            path = Path(parent, name)
            if not name.startswith(".") and not path.is_symlink() and path.is_file():
                yield path


def _describe(path: Path, name: str) -> JsonObject:
    return {"name": name, "size": path.stat().st_size, "is_image": is_shown(path) and bool(image_kind(path))}


def is_shown(path: Path) -> bool:
    """Return whether a browser may load a file to show it."""
    return path.stat().st_size <= MAX_SHOWN_BYTES


def _text(path: Path) -> JsonObject | None:
    """Return the beginning of a text file, such as CSV or JSON; None for a folder, an image and any other file."""
    if not path.is_file() or image_kind(path):
        return None
    try:
        with open_regular(path) as file:
            data = file.read(_MAX_TEXT_BYTES + 1)
        # A character at the end may be cut.
        text = codecs.getincrementaldecoder("utf-8")().decode(data[:_MAX_TEXT_BYTES], len(data) <= _MAX_TEXT_BYTES)
    except (OSError, UnicodeDecodeError):
        return None
    return {"text": text, "is_cut": len(data) > _MAX_TEXT_BYTES} if text.strip() and "\0" not in text else None


def image_kind(path: Path) -> str:
    """Return the media type of an image, empty for any other file."""
    try:
        with open_regular(path) as file:
            begin = file.read(2048)
    except OSError:
        return ""
    if begin.startswith(b"RIFF") and begin[8:12] != b"WEBP":
        return ""  # a sound or a film
    if begin[:16].lstrip()[:1] == b"<":
        return "image/svg+xml" if _SVG.match(begin) else ""
    return next((kind for magic, kind in _IMAGES.items() if begin.startswith(magic)), "")


def _markdown(path: Path) -> str | None:
    """Return a Markdown file as HTML; None when it is missing or large.

    Tags become text, only https links work, and images are not loaded.
    """
    # Imported late: most runs have no Markdown.
    from markdown_it import MarkdownIt

    try:
        with open_regular(path) as file:
            data = file.read(_MAX_MARKDOWN_BYTES + 1)
    except OSError:
        return None
    if len(data) > _MAX_MARKDOWN_BYTES:
        return None
    # "js-default" escapes HTML, because its rules are for untrusted text.
    parser = MarkdownIt("js-default")
    parser.disable("image")
    parser.validateLink = lambda url: url.startswith("https://")  # type: ignore[method-assign]
    text = _INVISIBLE.sub(lambda match: f"\\u{ord(match[0]):04x}", data.decode(errors="replace"))
    tokens = parser.parse(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            # The headings of the page itself end at h3.
            token.tag = f"h{min(int(token.tag[1]) + 3, 6)}"
    return str(parser.renderer.render(tokens, parser.options, {}))
