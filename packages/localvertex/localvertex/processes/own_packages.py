"""A step's own packages, in front of the user's, so that its pip changes only its own environment."""

import os
import shlex
import sys
from pathlib import Path

from localvertex.processes import own_pip

_LOAD = f"""\
import importlib.util as _util
_spec = _util.spec_from_file_location("_own_pip", {own_pip.__file__!r})
_own_pip = _util.module_from_spec(_spec)
_spec.loader.exec_module(_own_pip)
"""

_PROGRAM = f"""\
#!/bin/sh
exec "${own_pip.PYTHON}" -P {shlex.quote(own_pip.__file__)} "$@"
"""


def variables(env: dict[str, str], *, python: Path, folder: Path, temporary: Path) -> dict[str, str]:
    """Prepare a step's own packages; return the variables that put them first.

    Nothing is built: the environment is made when pip is first called, and removed with the temporary folder.

    Args:
        env: The variables of the step.
        python: The interpreter of the step.
        folder: The folder of the step.
        temporary: A folder that is the step's own, and ends with it.
    """
    own, shims = temporary / "packages", temporary / "pip"
    packages = own / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    # It is empty, but Python forgets folders of its import path that do not exist.
    packages.mkdir(parents=True)
    _write_shims(shims)
    path = [str(own / "bin"), str(shims / "bin"), env.get("PATH", os.defpath)]
    return {
        own_pip.FOLDER: str(own),
        own_pip.PYTHON: str(python),
        own_pip.STEP: str(folder),
        "PATH": os.pathsep.join(path),
        "PYTHONPATH": os.pathsep.join([str(shims / "lib"), str(packages), *filter(None, [env.get("PYTHONPATH")])]),
    }


def _write_shims(shims: Path) -> None:
    """Write the modules and programs that are found in place of pip and ensurepip."""
    package, programs = shims / "lib" / "pip", shims / "bin"
    package.mkdir(parents=True)
    programs.mkdir()
    (package / "__init__.py").write_text(f"{_LOAD}_own_pip.load(globals(), {str(package.parent)!r})\n")
    (package / "__main__.py").write_text("from pip import _own_pip\n_own_pip.run()\n")
    (package.parent / "ensurepip.py").write_text(f"{_LOAD}_own_pip.load_ensurepip(__name__)\n")
    (programs / "pip").write_text(_PROGRAM)
    (programs / "pip").chmod(0o755)
    for name in ("pip3", f"pip3.{sys.version_info.minor}"):
        (programs / name).symlink_to("pip")
