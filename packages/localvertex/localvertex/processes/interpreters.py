"""Python interpreters: this one, and others that the user names for packages or a version that this one lacks."""

import os
import shutil
import sys
from dataclasses import dataclass
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path

from localvertex._base.userinput.errors import UserError
from localvertex.processes.answers import ask

_OLDEST, _NEWEST = 8, 13
"""Minor versions of Python 3 in which steps can run."""

_QUESTION = "import sys; print('%d.%d.%d' % sys.version_info[:3], sys.prefix, *sys.path, sep='\\n')"
"""Nothing is imported: a check must not run code of a foreign repository."""

_MAX_SECONDS = 20


@dataclass(frozen=True, kw_only=True)
class Interpreter:
    """A Python that runs steps."""

    path: Path
    """As named: the python of a virtual environment is a link."""
    version: str
    """Such as "3.10.13"."""
    prefix: str
    search_path: tuple[str, ...]
    """Where it finds modules, without the current folder."""

    @property
    def minor(self) -> str:
        """Return the version without its last part, such as "3.10"."""
        return self.version.rpartition(".")[0]

    @property
    def packages(self) -> list[str]:
        """Return the folders of its packages."""
        return [each for each in self.search_path if each.endswith("-packages")]

    def has(self, module: str) -> bool:
        """Return whether it finds a top-level module, without importing anything."""
        return module in sys.builtin_module_names or PathFinder.find_spec(module, [*self.search_path]) is not None


OWN = Interpreter(
    path=Path(sys.executable),
    version="{}.{}.{}".format(*sys.version_info),
    prefix=sys.prefix,
    search_path=tuple(each for each in sys.path if each),
)
"""The one that runs localvertex."""


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


def others() -> list[Interpreter]:
    """Return the interpreters of other versions on PATH, and those that uv finds, the newest first."""
    found = []
    for minor in range(_NEWEST, _OLDEST - 1, -1):
        name = f"3.{minor}"
        for path in filter(None, (shutil.which(f"python{name}"), _found_by_uv(name))):
            try:
                found.append(read(Path(path)))
                break
            except UserError:
                continue  # For example the shim of a version that its manager does not have.
    return [each for each in found if each.minor != OWN.minor]


def _found_by_uv(version: str) -> str:
    words = ["uv", "python", "find", "--no-project", "--system", version]
    env = os.environ | {"UV_PYTHON_DOWNLOADS": "never", "UV_OFFLINE": "1"}
    return ask(words, seconds=_MAX_SECONDS, env=env).stdout.strip()
