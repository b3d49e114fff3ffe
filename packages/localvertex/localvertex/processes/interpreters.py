"""Python interpreters: this one, and others that the user names for packages or a version that this one lacks."""

import os
import re
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path

from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.spelling import quote
from localvertex.processes.answers import ask

_OLDEST, _NEWEST = 8, 13
"""Minor versions of Python 3 in which steps can run."""

_QUESTION = "import sys; print('%d.%d.%d' % sys.version_info[:3], sys.prefix, *sys.path, sep='\\n')"
"""Program that asks an interpreter; it imports nothing, because a check must not run code of a foreign repository."""

_MAX_SECONDS = 20


@dataclass(frozen=True, kw_only=True)
class Interpreter:
    """A Python that runs steps."""

    path: Path
    """The path as named, not resolved: the python of a virtual environment is a link."""
    version: str
    """The version, such as "3.10.13"."""
    prefix: str
    search_path: tuple[str, ...]
    """Folders in which it finds modules, without the current folder."""

    @property
    def minor(self) -> str:
        """Return the version without its last part, such as "3.10"."""
        return self.version.rpartition(".")[0]

    @property
    def packages(self) -> list[str]:
        """Return the folders of its packages."""
        return [each for each in self.search_path if each.endswith("-packages")]

    def has(self, module: str) -> bool:
        """Return whether it finds a module, as far as that is known without importing anything."""
        path, parts = [*self.search_path], module.split(".")
        for part in parts:
            spec = PathFinder.find_spec(part, path)
            if spec is None:
                break
            if spec.origin:
                return True
            # Several packages share the folder, as those of google.cloud do.
            path = [*(spec.submodule_search_locations or [])]
        else:
            return True
        if module in sys.builtin_module_names:
            return True
        # pip leaves a program that finds what is installed as editable.
        finders = (file for folder in self.packages for file in Path(folder).glob("__editable__*_finder.py"))
        return any(f"'{parts[0]}'" in each.read_text(encoding="utf-8") for each in finders)


OWN = Interpreter(
    path=Path(sys.executable),
    version="{}.{}.{}".format(*sys.version_info),
    prefix=sys.prefix,
    search_path=tuple(each for each in sys.path if each),
)
"""The interpreter that runs localvertex."""


@cache
def read(path: Path) -> Interpreter:
    """Return the interpreter at a path.

    Raises:
        UserError: It is not one, does not answer, or has another version.
    """
    done = ask([path, "-I", "-c", _QUESTION], seconds=_MAX_SECONDS)
    try:
        version, prefix, *search_path = done.stdout.splitlines()
        major, minor, _ = map(int, version.split("."))
    except ValueError:
        problem = done.stderr if done.returncode == -1 else "it does not answer as Python does"
        raise UserError(
            f"python = {str(path)!r}: {problem}; expected an interpreter such as .venv/bin/python"
        ) from None
    if major != 3 or not _OLDEST <= minor <= _NEWEST:
        raise UserError(f"python = {str(path)!r} is Python {version}; expected 3.{_OLDEST} to 3.{_NEWEST}")
    return Interpreter(path=path, version=version, prefix=prefix, search_path=tuple(filter(None, search_path)))


def named(text: str) -> Interpreter:
    """Return the interpreter at a path, or of a version such as "3.9".

    Raises:
        UserError: There is no such interpreter, see `read`.
    """
    found = read(Path(text)) if "/" in text else find(text)
    if found is None:
        ways = f"install it, for example by `pyenv install {text}`, or give the path of an interpreter"
        raise UserError(f"python = {quote(text)}: Python {text} is not installed here, by pyenv, uv or on PATH; {ways}")
    return found


def others() -> list[Interpreter]:
    """Return the interpreters of other versions on this machine, the newest first."""
    found = [find(f"3.{minor}") for minor in range(_NEWEST, _OLDEST - 1, -1)]
    return [each for each in found if each and each.minor != OWN.minor]


def find(minor: str) -> Interpreter | None:
    """Return the newest interpreter of a version, such as "3.9", that pyenv, uv or PATH has; nothing is downloaded."""
    name, env = f"python{minor}", os.environ
    uv = env.get("UV_PYTHON_INSTALL_DIR") or f"{env.get('XDG_DATA_HOME') or '~/.local/share'}/uv/python"
    managed = {env.get("PYENV_ROOT") or "~/.pyenv": f"versions/{minor}.*", uv: f"cpython-{minor}.*"}
    found = [path for folder, each in managed.items() for path in Path(folder).expanduser().glob(f"{each}/bin/{name}")]
    found.sort(key=lambda path: [*map(int, re.findall(r"\d+", path.parts[-3]))], reverse=True)
    for path in (*found, *(Path(folder, name) for folder in os.get_exec_path())):
        # A shim may be of a version that its manager does not have.
        with suppress(UserError):
            # Not `is_file`, which fails in folders of another user.
            if os.path.isfile(path) and (python := read(path)).minor == minor:
                return python
    return None
