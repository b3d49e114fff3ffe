"""The artifacts of a step: what the page shows of each, and its files, only within the work folder."""

import codecs
import os
import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from starlette.responses import Response

from localvertex.api.rest.errors import ApiError, Status, invalid, not_found
from localvertex.console import file_responses
from localvertex.console.runs.folders import is_inside
from localvertex.show.page.artifacts import Artifacts
from localvertex.store.task import Artifact
from localvertex.values.buckets import Buckets, OutsideBucket
from localvertex_base.userinput.regular_files import open_regular

_MAX_FILES = 200
"""Of the list of an artifact's files."""

_MAX_SHOWN_BYTES = 64 << 20
"""Of a page or an image; a larger file is downloaded."""

_MAX_TEXT_BYTES = 64 << 10
"""Of a text file, whose beginning is shown."""

_MAX_CLASSES = 100
"""Of a confusion matrix; `run.html` has smaller ones."""

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


class ArtifactOf:
    """One artifact of a step.

    Args:
        run_dir: The folder of the run.
        content: The record of the run.
        query: Its place: `task`, `side` (inputs or outputs), `name` and `index`.

    Raises:
        ApiError: There is no such artifact.
    """

    def __init__(self, run_dir: Path, content: dict[str, Any], query: Any) -> None:
        self._run_dir, self._buckets = run_dir, Buckets.of_record(content)
        self._name, side, index = query.get("name", ""), query.get("side", "outputs"), query.get("index", "0")
        if side not in ("inputs", "outputs") or not index.isdecimal():
            raise invalid("expected side=inputs or side=outputs, and a number as index")
        task = next((each for each in content["tasks"] if each["path"] == query.get("task")), None)
        found: list[Artifact] = task[side]["artifacts"].get(self._name, []) if task else []
        if len(found) <= int(index[:6]):
            raise not_found(f"the artifact {self._name[:200]!r} of {query.get('task', '')[:200]!r}")
        self._artifact = found[int(index[:6])]

    def view(self) -> dict[str, Any]:
        """Return what the page shows: Markdown as HTML without scripts, matrix and ROC as run.html has them."""
        path = self.path()
        shown = Artifacts(run_dir=self._run_dir, buckets=self._buckets, most_classes=_MAX_CLASSES)
        values = {self._name: [self._artifact]}
        # The content of a file elsewhere is not read; what is in the metadata needs no file.
        (view,) = shown.outputs(values, "") if path or not self._has_text else shown.inputs(values)
        is_page = bool(view.frame) and path is not None and path.is_file() and _is_shown(path)
        known = {name: value for name, value in asdict(view).items() if name not in ("frame", "link")}
        return {
            **known,
            "link": view.link if view.link.startswith("https://") else "",
            "is_page": is_page,
            "text": _text(path) if path and view.markdown is None and not is_page else None,
            "note": "" if path else self._note(),
            **_files(path),
        }

    def _note(self) -> str:
        """Return why it has no files here."""
        uri = str(self._artifact["uri"])
        if not uri:
            return ""
        if "://" in uri and not (uri.startswith("gs://") and self._buckets.root):
            return "It is not on this machine. The console contacts no other host."
        return "It does not exist, or it is outside the work folder and the folders of buckets."

    @property
    def _has_text(self) -> bool:
        """Return whether the content of its file is shown."""
        return self._artifact["type"].get("schemaTitle") in ("system.HTML", "system.Markdown")

    def file(self, name: str, *, is_download: bool) -> Response:
        """Return a file of the artifact: as a download, or a page or an image for a frame without scripts.

        Raises:
            ApiError: There is no such file, or it is neither a page nor an image.
        """
        path = self._file(name)
        if path is None:
            raise not_found(f"the file {name[:200]!r} of the artifact {self._name[:200]!r}")
        if is_download:
            return file_responses.download(path)
        is_page = self._artifact["type"].get("schemaTitle") == "system.HTML"
        kind = "text/html" if is_page and not name else _image_kind(path)
        if not _is_shown(path):
            raise ApiError(Status.INVALID_ARGUMENT, f"{path.name} is larger than {_MAX_SHOWN_BYTES} bytes; download it")
        if not kind:
            raise ApiError(Status.INVALID_ARGUMENT, f"{path.name} is neither a page nor an image; download it")
        return file_responses.viewable_file(path, kind)

    def _file(self, name: str) -> Path | None:
        """Return one of its files, or with an empty name its only one; None when there is none."""
        root = self.path()
        path = root / name if root and name else root
        try:
            is_file = path is not None and path.is_file()
        except (OSError, ValueError):  # a null byte, a long name
            return None
        return path.resolve() if root and path and is_file and (not name or is_inside(path, root)) else None

    def path(self) -> Path | None:
        """Return where it is; None when it is missing, or not in the work folder or a bucket of the run."""
        try:
            path = Path(self._buckets.path_of(str(self._artifact["uri"])))
            is_there = path.is_absolute() and path.exists()
        except (OSError, ValueError, OutsideBucket):
            return None
        work_dir = self._run_dir.parent
        roots = [work_dir, *([self._buckets.root] if self._buckets.root else [])]
        is_known = any(is_inside(path, each) for each in roots) and not is_inside(path, work_dir / _PRIVATE)
        return path.resolve() if is_there and is_known and path.resolve() != (work_dir / _PRIVATE).resolve() else None


def _files(path: Path | None) -> dict[str, Any]:
    """Return the files of an artifact with their sizes."""
    if path is None:
        return {"files": [], "num_more": 0}
    if path.is_file():
        return {"files": [_describe(path, "")], "num_more": 0}
    every = sorted(_below(path))
    files = [_describe(each, each.relative_to(path).as_posix()) for each in every[:_MAX_FILES]]
    return {"files": files, "num_more": len(every) - len(files)}


def _below(folder: Path) -> Iterator[Path]:
    """Return the files of a folder; links are files of another place."""
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        for name in sorted(names):
            path = Path(parent, name)
            if not name.startswith(".") and not path.is_symlink() and path.is_file():
                yield path


def _describe(path: Path, name: str) -> dict[str, Any]:
    return {"name": name, "size": path.stat().st_size, "is_image": _is_shown(path) and bool(_image_kind(path))}


def _is_shown(path: Path) -> bool:
    """Return whether a browser may load a file to show it."""
    return path.stat().st_size <= _MAX_SHOWN_BYTES


def _text(path: Path) -> dict[str, Any] | None:
    """Return the beginning of a text file, such as CSV or JSON; None for a folder, an image and any other file."""
    if not path.is_file() or _image_kind(path):
        return None
    try:
        with open_regular(path) as file:
            data = file.read(_MAX_TEXT_BYTES + 1)
        # A character at the end may be cut.
        text = codecs.getincrementaldecoder("utf-8")().decode(data[:_MAX_TEXT_BYTES], len(data) <= _MAX_TEXT_BYTES)
    except (OSError, UnicodeDecodeError):
        return None
    return {"text": text, "is_cut": len(data) > _MAX_TEXT_BYTES} if text.strip() and "\0" not in text else None


def _image_kind(path: Path) -> str:
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
