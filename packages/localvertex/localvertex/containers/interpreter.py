"""Files that Python needs to run in the sandbox: its prefix, its packages and localvertex's files."""

import os
import site
import sys
from pathlib import Path

from localvertex.containers.call import inside
from localvertex.processes import in_sandbox


def folders() -> list[Path]:
    """Return the folders of this Python, except the current one and any that contains the home directory."""
    wanted = {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix, os.path.dirname(in_sandbox.__file__)}
    # Include the resolved path: `base_prefix` may be a link to another link.
    wanted.add(os.path.dirname(os.path.dirname(os.path.realpath(sys.executable))))
    wanted |= {path for path in search_path() if os.path.exists(path)} | _editable()
    projects = {path for path in wanted if os.path.exists(os.path.join(path, "pyproject.toml"))}
    wanted = (wanted - projects).union(*map(_packages, projects))
    return sorted(Path(os.path.abspath(each)) for each in wanted if not inside(Path.home(), [each]))


def search_path() -> list[str]:
    """Return the folders in which Python finds modules when it is started in an empty folder."""
    given = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if os.path.isabs(each)]
    packages = [*site.getsitepackages(), site.getusersitepackages()]
    known = {os.path.realpath(each) for each in (*given, *packages, *_linked(packages))}
    # Python adds the current folder, or the script's, in front.
    script = getattr(sys.modules.get("__main__"), "__file__", None) or ""
    added = {os.path.realpath(os.getcwd()), os.path.realpath(os.path.dirname(script))} - known
    return [*given, *(each for each in sys.path if each and os.path.realpath(each) not in added)]


def _linked(packages: list[str]) -> list[str]:
    """Return the folders that `.pth` files name, for example of a project that is installed in place."""
    files = [file for each in packages for file in sorted(Path(each).glob("*.pth"))]
    lines = [line.strip() for file in files for line in file.read_text("utf-8", "replace").splitlines()]
    return [line for line in lines if os.path.isabs(line)]


def _packages(project: str) -> set[str]:
    """Return the packages and modules of a project that is installed in place; its other files are the user's."""
    with os.scandir(project) as entries:
        return {
            entry.path
            for entry in entries
            if entry.name.endswith(".py") or os.path.exists(os.path.join(entry.path, "__init__.py"))
        }


def _editable() -> set[str]:
    """Return the packages that an editable installation finds by name (setuptools)."""
    finders = [module for name, module in list(sys.modules.items()) if name.startswith("__editable__")]
    found = [mapping for each in finders if isinstance(mapping := getattr(each, "MAPPING", None), dict)]
    return {path for mapping in found for path in mapping.values() if os.path.exists(path)}
