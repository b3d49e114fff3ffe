"""Remove links out of its folder and special files that a confined command left for programs outside.

`localvertex` reads and writes in the folder of a step after its command has ended: logs, outputs, further attempts.
It would follow a link that the command itself could not follow, and would block on a pipe.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.reading import parse_json
from localvertex.containers.call import ContainerCommand, inside
from localvertex.containers.sandbox import is_of_system
from localvertex.errors import TaskFailed
from localvertex.processes.masks.mask import Mask
from localvertex.values.buckets import Buckets

_MAX_OUTPUT_BYTES = 2**26


def check(call: ContainerCommand, output_file: Path | None = None) -> None:
    """Remove links that lead out of what a command may see, and files that are neither files nor folders.

    Args:
        call: The command, which has ended.
        output_file: The executor output that it may have written.

    Raises:
        TaskFailed: The command left one, or the output names a path that the command may not see.
    """
    buckets = [call.gcs_root] if call.gcs_root else []
    visible = (call.folder, call.temporary, *call.readable, *call.writable, *buckets)
    found = [path for folder in (call.folder, *call.writable) for path in _ways_out(folder, visible)]
    new = (path for folder in buckets for path in _ways_out(folder, visible) if _link(path) not in call.known_links)
    found += list(new)
    for path in found:
        path.unlink(missing_ok=True)
    if found:
        raise TaskFailed(
            f"the command left {found[0]}, which is a special file or a link out of its folder; it was removed",
            is_retryable=False,
        )
    artifacts = _artifacts(output_file) if output_file else []
    if any(_has_command(each) for each in artifacts):
        raise TaskFailed(
            "the command wrote a containerSpec with a command into an artifact, which could run outside the sandbox; "
            "write it in the pipeline, or add --allow-host-commands",
            is_retryable=False,
        )
    for name in _paths(artifacts):
        path = call.folder / Buckets(root=call.gcs_root).path_of(name)
        is_made_here = inside(path, [call.temporary])
        if not _is_visible(path, visible) or (is_made_here and next(_ways_out(path, visible), None)):
            raise TaskFailed(
                f"the command named {name} as an artifact, but it may not see this path", is_retryable=False
            )


def check_links(folder: Path, mask: Mask, seen: Iterable[Path], output_file: Path | None = None) -> None:
    """Remove links that lead to what the mask hides: localvertex would follow them for a later step.

    Args:
        folder: The working directory of a process that has ended.
        mask: The mask behind which it ran.
        seen: What it has seen of the work folder.
        output_file: The executor output that it may have written.

    Raises:
        TaskFailed: It left one, or its output names such a path.
    """
    found = [each for each in _links(folder) if mask.hides(each, seen)] if mask.is_there else []
    for path in found:
        path.unlink()
    if found:
        raise TaskFailed(
            f"the step left {found[0]}, a link to what steps must not read; it was removed", is_retryable=False
        )
    for name in _paths(_artifacts(output_file)) if output_file and mask.is_there else ():
        if mask.hides(folder / name, seen):
            raise TaskFailed(f"the step named {name} as an artifact, which steps must not read", is_retryable=False)


def _links(folder: Path) -> Iterator[Path]:
    # A step may have written very many files.
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_symlink():
                yield Path(entry.path)
            elif entry.is_dir():
                yield from _links(Path(entry.path))


def links_out(gcs_root: Path | None) -> frozenset[tuple[str, str]]:
    """Return the links that lead out of the buckets, with their targets."""
    return frozenset(map(_link, _ways_out(gcs_root, [gcs_root]))) if gcs_root else frozenset()


def _link(path: Path) -> tuple[str, str]:
    return str(path), os.readlink(path) if path.is_symlink() else ""


def _ways_out(folder: Path, visible: Sequence[Path]) -> Iterator[Path]:
    waiting = [folder]
    while waiting:
        parent = waiting.pop()
        # A file is checked without a call of the system: buckets may have many.
        for entry in os.scandir(parent) if parent.is_dir() else ():
            if entry.is_dir(follow_symlinks=False):
                waiting.append(Path(entry.path))
            elif entry.is_symlink():
                if not _is_visible(Path(entry.path), visible):
                    yield Path(entry.path)
            elif not entry.is_file(follow_symlinks=False):
                yield Path(entry.path)


def _is_visible(path: Path, visible: Iterable[Path]) -> bool:
    return inside(path, visible) or is_of_system(path)


def _artifacts(output_file: Path) -> list[JsonObject]:
    """Return the artifacts in an executor output; what is invalid, beside valid ones too, is reported by its reader."""
    try:
        if output_file.stat().st_size > _MAX_OUTPUT_BYTES:
            raise TaskFailed(f"{output_file.name} is larger than {_MAX_OUTPUT_BYTES} bytes", is_retryable=False)
        content = parse_json(output_file.read_text(), output_file.name)
        # The reader also takes a list of pairs.
        groups = dict(content.get("artifacts") or {}).values()
    except (OSError, UserError, ValueError, AttributeError, TypeError, RecursionError):
        return []
    lists = [group.get("artifacts") for group in groups if isinstance(group, dict)]
    return [each for found in lists if isinstance(found, list) for each in found if isinstance(each, dict)]


def _paths(artifacts: list[JsonObject]) -> list[str]:
    """Return the paths of artifacts on this machine."""
    custom = [str(each["custom_path"]) for each in artifacts if each.get("custom_path")]
    return custom + [str(each["uri"]) for each in artifacts if os.path.isabs(str(each.get("uri", "")))]


def _has_command(artifact: JsonObject) -> bool:
    """Return whether an artifact is a model with a serving container and its command."""
    metadata = artifact.get("metadata")
    spec = metadata.get("containerSpec") if isinstance(metadata, dict) else None
    return isinstance(spec, dict) and bool(spec.get("command") or spec.get("args"))
