"""Whether a path stays in its folder, however a record or a link spells it."""

from pathlib import Path


def is_inside(path: Path, folder: Path) -> bool:
    """Return whether a path is below a folder when all links are resolved, and not hidden there."""
    try:
        path.exists()  # `resolve` accepts a name that is too long
        inner = path.resolve().relative_to(folder.resolve())
    except (OSError, ValueError):  # a null byte, a long name, a loop of links, another folder
        return False
    return bool(inner.parts) and not any(part.startswith(".") for part in inner.parts)
