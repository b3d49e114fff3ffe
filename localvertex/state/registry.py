"""The local model registry: `<work-dir>/models/<model id>/<version>/`, with model.json and the files of the model.

The display name or the parent model identifies a model; each upload is its next version. As on Vertex AI, a version
has its own copy of the files, so that it outlives the run that made them.
"""

import errno
import json
import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zlib import crc32

from localvertex.state import copies, record, run_folder

FILES = "model"
"""The copy of the model's file or folder, beside model.json."""

SOURCE = "source_uri"
"""The field of model.json with the URI that the files were copied from."""

_RESOURCE = re.compile(r"(?:.*/)?models/(?P<id>[A-Za-z0-9_-]+)(?:@(?P<version>[A-Za-z0-9_-]+))?")


@dataclass(frozen=True, kw_only=True)
class Version:
    """One version of a model and the folder with its model.json."""

    model_id: str
    number: int
    folder: Path
    uncopied: Path | None = None
    """The model's files, if they are used where they are: they contain the registry, and cannot be copied into it."""


def add(work_dir: Path, model: dict[str, Any], parent: str = "") -> Version:
    """Add a model, or the next version of `parent` (a resource name) or of the model with the same display name.

    Raises:
        ValueError: The display name is missing, or the parent is not in the registry.
    """
    name = model.get("display_name")
    if not isinstance(name, str) or not name:
        raise ValueError("display_name is empty")
    models = work_dir / "models"
    return add_version(work_dir, _id_of_parent(models, parent) if parent else _id_of_name(name), model)


def add_version(work_dir: Path, model_id: str, model: dict[str, Any]) -> Version:
    """Add the next version of a model, the first when there is none, with a copy of its files.

    Raises:
        OSError: The files cannot be copied; no version was added.
    """
    folder = work_dir.absolute() / "models" / model_id
    folder.mkdir(parents=True, exist_ok=True)
    staged = Path(tempfile.mkdtemp(prefix=".staged-", dir=folder))
    try:
        source = _local_files(str(model.get("artifact_uri", "")))
        is_copied = source is not None and _copy_files(source, staged / FILES, work_dir)
        staged.chmod(0o755)
        while True:
            number = max((int(each.name) for each in folder.iterdir() if each.name.isdecimal()), default=0) + 1
            content = {"model_id": model_id, "version": number, **model}
            if is_copied:
                content |= {"artifact_uri": str(folder / str(number) / FILES), SOURCE: model["artifact_uri"]}
            if _commit(staged, folder / str(number), content):
                uncopied = None if is_copied else source
                return Version(model_id=model_id, number=number, folder=folder / str(number), uncopied=uncopied)
    except BaseException:
        shutil.rmtree(staged, ignore_errors=True)
        raise


def _local_files(uri: str) -> Path | None:
    """Return the model's file or folder, None when it is not on this machine."""
    if not uri or "://" in uri:
        return None
    try:
        return Path(uri) if Path(uri).exists() else None
    except (OSError, ValueError):
        return None


def _copy_files(source: Path, target: Path, work_dir: Path) -> bool:
    """Copy the files of a model; return false when they contain the registry.

    What steps wrote into their run is hard-linked, which takes no space. All other files may be the user's, and are
    copied: a program that changes a link changes the original.
    """
    try:
        copies.copy(source, target, link_below=_own_folder(source.resolve(), work_dir.resolve()))
    except ValueError:
        return False
    return True


def _own_folder(path: Path, work_dir: Path) -> Path | None:
    """Return the folder of the work directory that contains a path and that localvertex made, None for any other."""
    if not path.is_relative_to(work_dir) or path == work_dir:
        return None
    folder = work_dir / path.relative_to(work_dir).parts[0]
    is_own = folder.name in run_folder.RESERVED or (folder / record.FILE).is_file()
    return folder if is_own else None


def _commit(staged: Path, folder: Path, content: dict[str, Any]) -> bool:
    """Make a version visible by one rename; return false when another process took the number."""
    stamped = content | {"create_time": datetime.now(UTC).isoformat(timespec="microseconds")}
    (staged / "model.json").write_text(json.dumps(stamped, indent=1))
    try:
        os.rename(staged, folder)
    except OSError as error:
        if error.errno in (errno.EEXIST, errno.ENOTEMPTY):
            return False
        raise
    return True


def _id_of_name(display_name: str) -> str:
    """Return a readable id, different for different display names."""
    readable = re.sub(r"[^a-z0-9]+", "-", display_name.lower()).strip("-")[:40] or "model"
    return readable if readable == display_name else f"{readable}-{crc32(display_name.encode()):08x}"


def _id_of_parent(models: Path, parent: str) -> str:
    """Return the id in a resource name `projects/.../models/ID[@VERSION]`."""
    match = _RESOURCE.fullmatch(parent)
    if not match or not (models / match["id"]).is_dir():
        raise ValueError(f"the parent model {parent!r} is not in {models}")
    return match["id"]


def folder_of(work_dir: Path, resource_name: str) -> Path | None:
    """Return the folder of the version with this resource name; None when there is no such version."""
    match = _RESOURCE.fullmatch(resource_name)
    folder = work_dir / "models" / match["id"] / (match["version"] or "1") if match else None
    return folder if folder and (folder / "model.json").is_file() else None
