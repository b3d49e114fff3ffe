"""What Python needs from this machine to run in the sandbox: its prefix, its packages and localvertex's files."""

import os
import site
import sys
from pathlib import Path

from localvertex.containers.call import inside
from localvertex.processes import own_pip


def folders() -> list[Path]:
    """Return the folders of this Python, except the current one and any that contains the home directory."""
    wanted = {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix, os.path.dirname(own_pip.__file__)}
    # The real one, too: `base_prefix` may be a link that another one follows.
    wanted.add(os.path.dirname(os.path.dirname(os.path.realpath(sys.executable))))
    wanted |= {path for path in search_path() if os.path.exists(path)} | _editable()
    return sorted(Path(os.path.abspath(each)) for each in wanted if not inside(Path.home(), [each]))


def search_path() -> list[str]:
    """Return the folders in which Python finds modules when it is started in an empty folder."""
    given = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if os.path.isabs(each)]
    known = {os.path.realpath(each) for each in (*given, *site.getsitepackages(), site.getusersitepackages())}
    # Python adds the current folder, or that of the script, in front.
    script = getattr(sys.modules.get("__main__"), "__file__", None) or ""
    added = {os.path.realpath(os.getcwd()), os.path.realpath(os.path.dirname(script))} - known
    return [*given, *(each for each in sys.path if each and os.path.realpath(each) not in added)]


def _editable() -> set[str]:
    """Return the packages that an editable installation finds by name (setuptools)."""
    finders = [module for name, module in list(sys.modules.items()) if name.startswith("__editable__")]
    found = [mapping for each in finders if isinstance(mapping := getattr(each, "MAPPING", None), dict)]
    return {path for mapping in found for path in mapping.values() if os.path.exists(path)}
