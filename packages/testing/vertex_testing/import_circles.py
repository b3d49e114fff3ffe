"""Finds circles of imports: the files and folders of a folder are its rooms, and no rooms may import each other."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Arrow:
    """One import: both files by their parts below the root, and the line of the import."""

    source: tuple[str, ...]
    line: int
    target: tuple[str, ...]

    def __str__(self) -> str:
        """Return the arrow as a line of an error."""
        return f"{'/'.join(self.source)}:{self.line} imports {'/'.join(self.target)}"


def circles(root: Path, *packages: str) -> list[str]:
    """Return the circles at every depth of the packages, and between them, each with the imports that make it.

    Args:
        root: The folder that contains the packages.
        *packages: Names of folders, or of single files without the suffix.

    Returns:
        One text per circle; none if there is no circle.
    """
    return circles_of(arrows(root, *packages))


def circles_of(found: list[Arrow]) -> list[str]:
    """Return the circles at every depth that imports make, each as `circles` does."""
    files = [parts for arrow in found for parts in (arrow.source, arrow.target)]
    folders = sorted({parts[:depth] for parts in files for depth in range(len(parts))})
    return [text for folder in folders for text in _circles_in(folder, found)]


def arrows(root: Path, *packages: str) -> list[Arrow]:
    """Return the imports of the packages' modules from each other.

    An import counts wherever it is written: in a function, for types only, relative or absolute. Of `from package
    import name`, it is the module of that name, or else the package's `__init__`.

    Args:
        root: The folder that contains the packages.
        *packages: Names of folders, or of single files without the suffix.
    """
    modules = {_module(parts): parts for package in packages for parts in _files(root, package)}
    return [arrow for parts in modules.values() for arrow in _arrows(root, parts, modules)]


def _files(root: Path, package: str) -> list[tuple[str, ...]]:
    file = root / f"{package}.py"
    found = [file] if file.exists() else sorted((root / package).rglob("*.py"))
    if not found:
        raise ValueError(f"{root} contains no {package}")
    return [path.relative_to(root).parts for path in found]


def _module(parts: tuple[str, ...]) -> str:
    return ".".join(parts).removesuffix(".py").removesuffix(".__init__")


def _arrows(root: Path, parts: tuple[str, ...], modules: dict[str, tuple[str, ...]]) -> Iterator[Arrow]:
    path = root.joinpath(*parts)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for name in _names(node, parts, modules):
                target = modules.get(name, parts)
                if target != parts:
                    yield Arrow(source=parts, line=node.lineno, target=target)


def _names(node: ast.Import | ast.ImportFrom, parts: tuple[str, ...], modules: dict[str, tuple[str, ...]]) -> set[str]:
    """Return the modules that a statement imports."""
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names}
    package = [*parts[: len(parts) - node.level]] if node.level else []
    module = ".".join([*package, *([node.module] if node.module else [])])
    names = {f"{module}.{alias.name}" for alias in node.names}
    return {name if name in modules else module for name in names}


def _circles_in(folder: tuple[str, ...], arrows: list[Arrow]) -> Iterator[str]:
    """Yield the circles of the rooms of one folder."""
    depth = len(folder)
    between: dict[tuple[str, str], Arrow] = {}
    for arrow in arrows:
        if arrow.source[:depth] == folder == arrow.target[:depth] and arrow.source[depth] != arrow.target[depth]:
            between.setdefault((arrow.source[depth], arrow.target[depth]), arrow)
    reached = {room: _reached(room, set(between)) for room in sorted({room for pair in between for room in pair})}
    rings = {frozenset(other for other in reached[room] if room in reached[other]) for room in reached}
    for ring in sorted(sorted(ring) for ring in rings if ring):
        lines = [
            f"  {arrow}" for (source, target), arrow in sorted(between.items()) if source in ring and target in ring
        ]
        yield "\n".join([f"in {'/'.join(folder) or 'the root'}: {', '.join(ring)}", *lines])


def _reached(room: str, pairs: set[tuple[str, str]]) -> set[str]:
    """Return the rooms that imports lead to from one, which is itself one of them if it is in a circle."""
    found: set[str] = set()
    waiting = [room]
    while waiting:
        last = waiting.pop()
        new = {target for source, target in pairs if source == last} - found
        found |= new
        waiting += new
    return found
