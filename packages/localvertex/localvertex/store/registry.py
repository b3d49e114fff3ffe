"""The local model registry: `<work-dir>/models/<model id>/<version>/`, with model.json and the files of the model.

The display name or the parent model identifies a model; each upload is its next version. As on Vertex AI, a version
has its own copy of the files, so that it outlives the run that made them.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

from localvertex._base.json_object import JsonObject
from localvertex._base.userinput import atomic_write
from localvertex.containers.call import inside
from localvertex.containers.mounts import JOB_FOLDERS
from localvertex.processes.masks.mask import Mask
from localvertex.store import copies, record, run_folder
from localvertex.store.model_versions import ModelVersions
from localvertex.store.models.reading import DEFAULT, FILES, SOURCE, UPLOADED_BY, check_alias

_RESOURCE = re.compile(r"(?:.*/)?models/(?P<id>[A-Za-z0-9_-]+)(?:@(?P<version>[A-Za-z0-9_-]+))?")


@dataclass(frozen=True, kw_only=True)
class Version:
    """One version of a model and the folder with its model.json."""

    model_id: str
    number: int
    folder: Path
    uncopied: Path | None = None
    """The model's files, if they are used where they are: they contain the registry, and cannot be copied into it."""


def add(
    work_dir: Path,
    model: JsonObject,
    parent: str = "",
    aliases: Sequence[str] = (),
    check_stopped: Callable[[], None] = lambda: None,
) -> Version:
    """Add a model, or the next version of `parent` (a resource name) or of the model with the same display name.

    Raises:
        ValueError: The display name is missing, the parent is not in the registry, or see `add_version`.
        OSError: See `add_version`.
    """
    name = model.get("display_name")
    if not isinstance(name, str) or not name:
        raise ValueError("display_name is empty")
    match = _RESOURCE.fullmatch(parent)
    model_id = match["id"] if match else _id_of_name(name)

    def check(versions: ModelVersions) -> None:
        if parent and not (match and versions.numbers):
            raise ValueError(f"the parent model {parent!r} is not in {work_dir / 'models'}")

    return add_version(ModelVersions.of(work_dir.absolute(), model_id, check_stopped), model, aliases, check)


def add_version(
    versions: ModelVersions,
    model: JsonObject,
    aliases: Sequence[str] = (),
    check: Callable[[ModelVersions], None] = lambda _: None,
) -> Version:
    """Add the next version of a model, or the first one, with a copy of its files.

    Args:
        versions: The model.
        model: The content of model.json. A step that already uploaded a version gets this one, see `UPLOADED_BY`.
        aliases: Aliases that move to this version in the same moment. The first version also takes `default`.
        check: Called before the files are copied and once more before the version is added; what it raises refuses it.

    Raises:
        OSError: The files cannot be copied; no version was added.
        ValueError: An alias is wrong, the model's aliases are damaged, or its files are the server's; no version was
            added.
    """
    for alias in aliases:
        check_alias(alias)
    check(versions)
    if (step := model.get(UPLOADED_BY)) and (number := versions.find_upload(step)):
        return Version(model_id=versions.folder.name, number=int(number), folder=versions.folder / number)
    folder, work_dir = versions.folder, versions.folder.parent.parent
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Where a link leads, so that the version can be moved there by one rename.
    target = folder.resolve()
    atomic_write.remove_left(target)
    with atomic_write.folder(target) as staged:
        source = _local_files(str(model.get("artifact_uri", "")))
        # A command that got the endpoint's token could leave the sandbox.
        api = work_dir.resolve() / "api"
        if source and inside(source, [api]) and not inside(source, [api / each for each in JOB_FOLDERS]):
            raise ValueError(f"{source} has the token and records of the server, which are no files of a model")
        if source and Mask().hides(source):
            raise ValueError(f"{source} has credentials, which are no files of a model; give their own folder")
        is_copied = source is not None and _copy_files(source, staged / FILES, work_dir)
        with versions.changing():
            check(versions)
            folder.mkdir(exist_ok=True)
            content = {"model_id": folder.name, **model}
            if is_copied:
                uri = str(folder / versions.next_number / FILES)
                content |= {"artifact_uri": uri, SOURCE: model["artifact_uri"]}
            number = versions.add(staged, content, aliases)
    uncopied = None if is_copied else source
    return Version(model_id=folder.name, number=int(number), folder=folder / number, uncopied=uncopied)


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

    Files that steps wrote into their run are hard-linked, which takes no space. All other files may be the user's,
    and are copied: a program that changes a link changes the original.
    """
    try:
        own = _own_folder(source.resolve(), work_dir.resolve())
        seen = [own / each for each in (JOB_FOLDERS if own.name == "api" else ("",))] if own else []
        mask = Mask(work_dir=work_dir)
        copies.copy(source, target, link_below=own, hides=lambda path: mask.hides(path, seen))
    except ValueError:
        return False
    return True


def _own_folder(path: Path, work_dir: Path) -> Path | None:
    """Return the folder of the work folder that contains a path and that localvertex made, None for any other."""
    if not path.is_relative_to(work_dir) or path == work_dir:
        return None
    folder = work_dir / path.relative_to(work_dir).parts[0]
    is_own = folder.name in run_folder.RESERVED or (folder / record.FILE).is_file()
    return folder if is_own else None


def _id_of_name(display_name: str) -> str:
    """Return a readable id, different for different display names."""
    readable = re.sub(r"[^a-z0-9]+", "-", display_name.lower()).strip("-")[:40] or "model"
    return readable if readable == display_name else f"{readable}-{crc32(display_name.encode()):08x}"


def folder_of(work_dir: Path, resource_name: str) -> Path | None:
    """Return the folder of the version with this resource name; None when there is no such version."""
    match = _RESOURCE.fullmatch(resource_name)
    if not match:
        return None
    versions = ModelVersions.of(work_dir, match["id"])
    try:
        return versions.folder / versions.number(match["version"] or DEFAULT)
    except (LookupError, ValueError):
        return None
