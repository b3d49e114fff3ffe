"""Find compiled pipelines and Python files that define pipelines, in a folder that may contain anything.

Only regular files below the folder are opened; links are not followed. The search ends after `MAX_SECONDS`.
"""

import os
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from localvertex.commands.init import sources
from localvertex.commands.init.sources import Source
from localvertex.store import record
from localvertex_base.userinput import regular_files
from localvertex_base.userinput.reading import MAX_BYTES

MAX_SECONDS = 20.0
_MAX_FILES = 200_000
_MAX_SOURCE_BYTES = 500_000
_SKIPPED = {"node_modules", "site-packages", "__pycache__", "venv", "env", "virtualenv"}
"""Folders with what others wrote, besides hidden ones, virtual environments and localvertex's work folders."""
_MARKS_OF_VENV = ("pyvenv.cfg", "conda-meta", record.PRIVATE)
_COMPILED = (b"pipelineSpec", b"pipeline_spec", b"deploymentSpec", b"deployment_spec")
"""Every compiled pipeline or PipelineJob contains one of these keys."""


@dataclass(kw_only=True)
class Found:
    """The pipelines of a folder; all paths are relative to it."""

    compiled: list[Path] = field(default_factory=list)
    """Files that may be compiled pipelines."""
    sources: list[Source] = field(default_factory=list)
    test_folders: list[Path] = field(default_factory=list)
    """Folders with tests for pytest."""
    num_files: int = 0
    notes: list[str] = field(default_factory=list)
    """What was not searched, and why."""


def search(root: Path) -> Found:
    """Search a folder; what cannot be read is noted or left out."""
    found, deadline = Found(), time.monotonic() + MAX_SECONDS
    num_unreadable = 0
    for entry in _files(root, found):
        found.num_files += 1
        if found.num_files > _MAX_FILES or time.monotonic() > deadline:
            found.notes.append(f"stopped after {found.num_files - 1:,} files; run init in a folder further down")
            break
        path = Path(entry.path).relative_to(root)
        name = entry.name
        if name.endswith(".py"):
            if name.startswith("test_") or name.endswith("_test.py"):
                found.test_folders.append(path.parent)
            data = _content(entry, _MAX_SOURCE_BYTES)
            if data is None:
                num_unreadable += 1
            elif b"pipeline" in data and b"kfp" in data:
                found.sources += sources.read(path, data)
        elif name.endswith((".json", ".yaml", ".yml")):
            data = _content(entry, MAX_BYTES)
            if data is None:
                num_unreadable += 1
            elif any(mark in data for mark in _COMPILED):
                found.compiled.append(path)
    if num_unreadable:
        found.notes.append(f"files that cannot be read or are too large: {num_unreadable}")
    found.compiled.sort()
    found.sources.sort(key=lambda each: (each.path, each.line))
    return found


def _files(root: Path, found: Found) -> Iterator["os.DirEntry[str]"]:
    """Yield the regular files below a folder, those of each folder before those of the folders in it."""
    waiting = [str(root)]
    num_unreadable = 0
    while waiting:
        folder = waiting.pop(0)
        try:
            with os.scandir(folder) as listed:
                entries = sorted(listed, key=lambda each: each.name)
        except OSError:
            num_unreadable += 1
            continue
        if folder != str(root) and any(each.name in _MARKS_OF_VENV for each in entries):
            continue
        for entry in entries:
            with suppress(OSError):
                if entry.is_file(follow_symlinks=False):
                    yield entry
                elif entry.is_dir(follow_symlinks=False) and entry.name not in _SKIPPED and entry.name[:1] != ".":
                    waiting.append(entry.path)
    if num_unreadable:
        found.notes.append(f"folders that cannot be read: {num_unreadable}")


def _content(entry: "os.DirEntry[str]", max_bytes: int) -> bytes | None:
    """Return the content of a file; None if it cannot be read or is larger."""
    try:
        found = entry.stat(follow_symlinks=False)
        if not stat.S_ISREG(found.st_mode) or found.st_size > max_bytes:
            return None
        with regular_files.open_regular(entry.path) as file:
            return file.read(max_bytes)
    except OSError:
        return None
