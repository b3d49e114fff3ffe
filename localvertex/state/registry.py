"""The local model registry: `<work-dir>/models/<model id>/<version>/model.json`.

The display name or the parent model identifies a model; each upload is its next version.
"""

import json
import os
import re
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zlib import crc32

_RESOURCE = re.compile(r"(?:.*/)?models/(?P<id>[A-Za-z0-9_-]+)(?:@(?P<version>[A-Za-z0-9_-]+))?")


@dataclass(frozen=True, kw_only=True)
class Version:
    """One version of a model and the folder with its model.json."""

    model_id: str
    number: int
    folder: Path


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
    """Add the next version of a model, the first when there is none."""
    folder = work_dir / "models" / model_id
    folder.mkdir(parents=True, exist_ok=True)
    while True:
        number = max((int(each.name) for each in folder.iterdir() if each.name.isdigit()), default=0) + 1
        if _commit(folder, number, {"model_id": model_id, "version": number, **model}):
            return Version(model_id=model_id, number=number, folder=folder / str(number))


def _commit(folder: Path, number: int, content: dict[str, Any]) -> bool:
    """Make a version visible by one rename; return false when another process took the number."""
    staged = Path(tempfile.mkdtemp(prefix=".staged-", dir=folder))
    stamped = content | {"create_time": datetime.now(UTC).isoformat(timespec="seconds")}
    (staged / "model.json").write_text(json.dumps(stamped, indent=1))
    staged.chmod(0o755)
    try:
        os.rename(staged, folder / str(number))
    except OSError:
        (staged / "model.json").unlink()
        staged.rmdir()
        return False
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


def exists(work_dir: Path, resource_name: str) -> bool:
    """Return whether the version with this resource name exists."""
    match = _RESOURCE.fullmatch(resource_name)
    return (
        match is not None and (work_dir / "models" / match["id"] / (match["version"] or "1") / "model.json").is_file()
    )
