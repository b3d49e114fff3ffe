"""Advise how to install an extra of this package from the source that the package itself came from.

The advice never asks an index for the package by name: in an index, another project could have that name.
"""

import json
import shlex
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[1]


def install(extra: str) -> str:
    """Return how to install an extra: a command to paste, or a hint if the package's source is not recorded."""
    if _is_checkout(_ROOT):
        return f"run {_pip('-e', f'{_ROOT}[{extra}]')}"
    found = _distribution()
    if found is None:
        return f"install the extra {extra!r} of this package from the source of its files"
    name, address = found.metadata["Name"], _address(found)
    if not address:
        return f"install the extra {extra!r} of {name} {found.version} from the source of that installation"
    return f"run {_pip(f'{name}[{extra}] @ {address}')}"


def _pip(*words: str) -> str:
    return shlex.join([sys.executable or "python", "-m", "pip", "install", *words])


def _is_checkout(folder: Path) -> bool:
    """Return whether the folder is this repository; another package's pyproject.toml does not count."""
    try:
        content = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return any(__package__ in str(each) for each in _included(content))


def _included(content: Any) -> list[Any]:
    """Return the packages that the content of a pyproject.toml lists for setuptools."""
    for name in ("tool", "setuptools", "packages", "find", "include"):
        content = content.get(name) if isinstance(content, dict) else None
    return content if isinstance(content, list) else []


def _distribution() -> metadata.Distribution | None:
    """Return the installed distribution that this file belongs to."""
    for name in metadata.packages_distributions().get(__package__, []):
        found = metadata.distribution(name)
        if Path(str(found.locate_file(__package__))).resolve() == Path(__file__).resolve().parent:
            return found
    return None


def _address(found: metadata.Distribution) -> str:
    """Return the address that pip recorded (PEP 610), as in a requirement; empty for a package from an index."""
    try:
        noted = json.loads(found.read_text("direct_url.json") or "{}")
        url, vcs = str(noted.get("url", "")), noted.get("vcs_info")
        return f"{vcs['vcs']}+{url}@{vcs['commit_id']}" if vcs else url
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ""
