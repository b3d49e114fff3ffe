"""Advise how to install an extra of this package from the source that the package itself came from.

The advice never asks an index for the package by name: in an index, another project could have that name.
"""

import shlex
import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]


def install(extra: str) -> str:
    """Return how to install an extra: in the repository a command to paste."""
    if _ROOT.name in ("site-packages", "dist-packages") or not (_ROOT / "pyproject.toml").is_file():
        return f"install the extra {extra!r} of this package from the source of that installation"
    words = [sys.executable or "python", "-m", "pip", "install", "-e", f"{_ROOT}[{extra}]"]
    return f"run {shlex.join(words)}"
