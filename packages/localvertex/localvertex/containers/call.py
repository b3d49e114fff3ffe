"""One container command that is about to run, and the process that an engine or the sandbox makes of it."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from localvertex.processes.forking import PythonProgram


@dataclass(frozen=True, kw_only=True)
class ContainerCommand:
    """One container command, with everything that it may see."""

    image: str
    command: list[str]
    """Replaces the entry point of the image; empty: the entry point runs."""
    arguments: list[str]
    env: Mapping[str, str]
    """All variables of the process, including the user's."""
    declared: frozenset[str]
    """Names of the pipeline's and the service's variables, which the container must get."""
    folder: Path
    """The working directory of a command on this machine; writable."""
    temporary: Path
    """Writable, and removed afterwards."""
    work_dir: Path
    """Hidden, except for what is named here."""
    credentials: list[Path] | None = None
    """The user's credential files, if the command gets them and all variables; None if it gets neither."""
    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    gcs_root: Path | None = None
    """The folder of the buckets, mounted at /gcs."""
    gpus: str = ""
    """Indices of the GPUs, separated by commas."""
    host_name: str = ""
    known_links: frozenset[tuple[str, str]] = frozenset()
    """Links in the buckets, with their targets, that were there before: the user's own."""


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A call as a process on this machine."""

    command: list[str]
    env: dict[str, str]
    clean_up: list[str] = field(default_factory=list)
    """Command that ends what the process leaves running; empty if nothing."""
    has_mask: bool = False
    """Whether it runs behind the mask of steps: without a sandbox or an image, and not as the user has allowed."""
    program: PythonProgram | None = None
    """The program of the command, if it can be forked."""


def inside(path: str | Path, folders: Iterable[str | Path]) -> bool:
    """Return whether a path is one of these folders or below one."""
    place = os.path.realpath(path)
    return any(os.path.commonpath([place, os.path.realpath(each)]) == os.path.realpath(each) for each in folders)
