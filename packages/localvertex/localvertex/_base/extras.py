"""Advise how to install an extra of this package: a command to paste.

It never asks an index for the package by name: in an index, another project could have that name.
"""

import re
import shlex
import sys
from importlib import metadata
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]


def install(extra: str) -> str:
    """Return the command: for the folder in the repository, or else for what the extra requires."""
    words = ["-e", f"{_ROOT}[{extra}]"]
    if _ROOT.name in ("site-packages", "dist-packages") or not (_ROOT / "pyproject.toml").is_file():
        lines = metadata.requires("localvertex") or []
        words = [found[1].strip() for line in lines if (found := re.fullmatch(rf"(.*); extra == .{extra}.", line))]
    return f"run {shlex.join([sys.executable or 'python', '-m', 'pip', 'install', *words])}"
