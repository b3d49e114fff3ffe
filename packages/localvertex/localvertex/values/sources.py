"""Files of a source folder, and which of them is a script of an image."""

import os
from collections.abc import Iterable, Iterator
from itertools import takewhile
from pathlib import Path

_NOT_SOURCES = frozenset(("__pycache__", "node_modules", "site-packages"))

_NOT_BELOW = frozenset(("pyvenv.cfg", "run.json"))
"""Files of environments and of runs, whose folders are not sources."""


def source_files(path: Path | None, without: Path | None = None) -> Iterator[Path]:
    """Yield the files below a source folder, except in environments, runs, hidden folders and one more folder."""
    for folder, folders, names in os.walk(path) if path else ():
        if _NOT_BELOW & {*names} or Path(folder) == without:
            folders.clear()
            continue
        folders[:] = sorted(each for each in folders if each not in _NOT_SOURCES and not each.startswith("."))
        yield from (Path(folder, name) for name in sorted(names))


def scripts(files: Iterable[Path], folder: Path | None, name: str) -> list[tuple[Path, Path]]:
    """Return the files of a folder for a script of an image, and for each the folder in which the image has it.

    Of several with its name, those whose path is most like the script's.
    """
    found = [file for file in files if file.name == os.path.basename(name)]
    pairs = [zip(file.parts[::-1], Path(name).parts[::-1], strict=False) for file in found]
    equal = [len([*takewhile(lambda pair: pair[0] == pair[1], each)]) for each in pairs]
    depth = len(folder.parts) if folder else 0
    return [
        (file, file.parents[min(number, len(file.parts) - depth) - 1])
        for file, number in zip(found, equal, strict=True)
        if number == max(equal)
    ]
