"""Which files of this machine a container command may read or write, besides its own folder."""

import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from localvertex.containers.call import inside
from localvertex.values.buckets import texts_in

_RECORD = "run.json"

_NOT_RUNS = ("models", "endpoints", "api")
"""Folders of the work folder that only localvertex writes: the registry, endpoints and the records of the API."""

JOB_FOLDERS = ("customJobs", "hyperparameterTuningJobs")
"""Folders of the API's records in which replicas run; they belong to the replicas."""

_OF_THE_SANDBOX = ("/dev", "/proc")
"""A device or a process of this machine is not a file of the user, although it has a path."""

_WITH_FILES_OF_ALL = ("/", "/home", "/root", "/run", "/tmp", "/var", "/var/tmp")  # noqa: S108


def given_paths(
    values: Mapping[str, Any], known: Mapping[str, Any], artifacts: Mapping[str, Any], *, work_dir: Path
) -> tuple[Path, ...]:
    """Return the files and folders that the user has named as inputs of the pipeline.

    A folder that contains the home directory, all runs or all temporary files is not among them: a text such as `/` is
    not a wish to show them.

    Args:
        values: The parameters of the run.
        known: Their values in the file: a path that only the file names was not chosen by the user.
        artifacts: Input artifacts that the user has given.
        work_dir: The folder of the runs.
    """
    texts = [text for name, value in values.items() if value != known.get(name) for text in texts_in(value)]
    texts += [text for value in artifacts.values() for text in texts_in(value)]
    found = dict.fromkeys(Path(each) for each in texts if os.path.isabs(each) and exists(each))
    # The unresolved name of a path counts as well: /dev/stdout is a link to the standard output of this process.
    return tuple(
        each
        for each in found
        if not inside(each, _OF_THE_SANDBOX)
        and not any(Path(os.path.normpath(each)).is_relative_to(folder) for folder in _OF_THE_SANDBOX)
        and not contains_private(each, work_dir)
    )


def contains_private(folder: Path, work_dir: Path) -> str:
    """Return what a folder contains that belongs to the user or to other programs as a whole; empty for none."""
    if inside(Path.home(), [folder]):
        return "your home directory"
    if inside(work_dir, [folder]):
        return "the work folder"
    if _is_of_endpoint(folder, work_dir):
        return "the endpoint's records and its token"
    is_shared = os.path.realpath(folder) in map(os.path.realpath, _WITH_FILES_OF_ALL)
    return "files of all users" if is_shared or inside(tempfile.gettempdir(), [folder]) else ""


def artifact_paths(executor_input: Mapping[str, Any], *, work_dir: Path) -> list[Path]:
    """Return the local input artifacts in the work folder, where steps of this and earlier runs leave them."""
    groups = executor_input.get("inputs", {}).get("artifacts", {}).values()
    uris = [artifact.get("uri", "") for group in groups for artifact in group.get("artifacts", [])]
    return [Path(uri) for uri in uris if os.path.isabs(uri) and exists(uri) and _is_part_of_run(Path(uri), work_dir)]


def mentioned_paths(words: Iterable[str], *, work_dir: Path) -> list[Path]:
    """Return the step outputs in the work folder that a command names, as a word or as an option's value."""
    texts = [text for word in words for text in (word, word.partition("=")[2])]
    return [
        Path(text) for text in texts if os.path.isabs(text) and exists(text) and _is_part_of_run(Path(text), work_dir)
    ]


def output_folders(
    base: str, names: tuple[str, ...], *, folder: Path, work_dir: Path, gcs_root: Path | None
) -> list[Path] | None:
    """Return the folders that a custom job may write for its base output directory; None if it may not.

    A job may write in the work folder, but not over other runs, their records, or the folder itself.
    """
    if not base or "://" in base:
        return []
    place = Path(os.path.realpath(base))
    # All buckets are writable.
    if gcs_root is not None and inside(place, [gcs_root]):
        return []
    if not inside(place, [work_dir]):
        return None
    parts = place.relative_to(os.path.realpath(work_dir)).parts
    if parts and (parts[0].startswith(".") or parts[0] in _NOT_RUNS):
        return None
    first = Path(os.path.realpath(work_dir), *parts[:1])
    if parts and (first / _RECORD).exists() and not inside(folder, [first]):
        return None
    if len(parts) > 1 or (parts and not (first / _RECORD).exists()):
        return [place]
    found = [place / name for name in names]
    for each in found:
        each.mkdir(parents=True, exist_ok=True)
    return found


def _is_part_of_run(path: Path, work_dir: Path) -> bool:
    """Return whether a path is below a run, and is not a run, the work folder or its caches."""
    if not inside(path, [work_dir]):
        return False
    parts = Path(os.path.realpath(path)).relative_to(os.path.realpath(work_dir)).parts
    return len(parts) > 1 and not parts[0].startswith(".") and not _is_of_endpoint(path, work_dir)


def _is_of_endpoint(path: Path, work_dir: Path) -> bool:
    """Return whether a path belongs to the endpoint; a command with its token could run others without a sandbox."""
    api = work_dir / "api"
    return inside(path, [api]) and not inside(path, [api / each for each in JOB_FOLDERS])


def exists(path: str) -> bool:
    """Return whether a path exists; a text that cannot be one does not."""
    try:
        return os.path.exists(path)
    except ValueError:
        return False
