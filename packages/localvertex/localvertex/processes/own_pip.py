"""pip as a step finds it: it installs into an environment of the step's own, made when pip is first called.

own_packages.py puts a package `pip` and a program `pip` in front of all others, which load this file. In the step's own
environment, and in those that the step has made, they are the real pip. In any other, above all the user's, they run
`python -P own_pip.py ARGUMENTS...`, which makes the environment and runs the real pip there.

Standard library only, no import of this package: this also runs in interpreters that do not have it.
"""

import fcntl
import importlib.machinery
import importlib.util
import os
import runpy
import site
import subprocess
import sys
import types
import venv

FOLDER = "LOCALVERTEX_PACKAGES"
"""Variable with the folder of the step's own environment, which is in a temporary folder of the step."""

PYTHON = "LOCALVERTEX_PYTHON"
"""Variable with the interpreter of the step, whose packages the environment sees."""

STEP = "LOCALVERTEX_STEP"
"""Variable with the folder of the step."""

_REDIRECTIONS = ("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_PYTHON")
"""Variables that would send what pip installs elsewhere."""

_CHANGES = ("set", "unset", "edit")


def _is_own() -> bool:
    """Return whether this interpreter belongs to an environment that the step has made."""
    if sys.prefix == sys.base_prefix:
        return False
    prefix = os.path.realpath(sys.prefix)
    roots = [os.path.realpath(each) for each in (os.path.dirname(os.environ[FOLDER]), os.environ[STEP])]
    return any(os.path.commonpath([prefix, root]) == root for root in roots)


def load(namespace: dict[str, object], shims: str) -> None:
    """Become the module `pip`: the real one in an own environment, otherwise one that redirects what it runs."""
    others = [path for path in sys.path if os.path.abspath(path) != shims]
    real = importlib.machinery.PathFinder.find_spec("pip", others)
    if not _is_own():
        main = types.ModuleType("pip._internal.cli.main")
        main.main = _call  # type: ignore[attr-defined]
        sys.modules[main.__name__] = main
        if real is not None and real.loader is not None:
            namespace["__path__"] = [*namespace["__path__"], *(real.submodule_search_locations or [])]  # type: ignore[misc]
            exec(real.loader.get_code("pip"), namespace)  # type: ignore[attr-defined] # noqa: S102 - the user's own pip
    elif real is None or real.loader is None:
        raise ModuleNotFoundError("No module named 'pip'", name="pip")
    else:
        # The import system returns what is here when the module's code has run.
        sys.modules["pip"] = importlib.util.module_from_spec(real)
        real.loader.exec_module(sys.modules["pip"])


def load_ensurepip(name: str) -> None:
    """Become the module `ensurepip`: the real one, except where it would install pip into another environment."""
    real = importlib.machinery.PathFinder.find_spec("ensurepip", [os.path.dirname(os.__file__)])
    if real is None or real.loader is None or real.origin is None:
        raise ModuleNotFoundError("No module named 'ensurepip'", name="ensurepip")
    if name != "__main__":
        sys.modules["ensurepip"] = importlib.util.module_from_spec(real)
        real.loader.exec_module(sys.modules["ensurepip"])
    elif _is_own():
        runpy.run_path(os.path.join(os.path.dirname(real.origin), "__main__.py"), run_name="__main__")
    else:
        # The environment has pip as soon as it is made.
        sys.exit(_call(["--version"]))


def _redirected(arguments: list[str]) -> list[str]:
    """Return the command that runs pip in the step's own environment."""
    return [os.environ[PYTHON], "-P", os.path.abspath(__file__), *arguments]


def _call(arguments: list[str] | None = None) -> int:
    """Run pip for a program that calls its function `main`."""
    return subprocess.call(_redirected(sys.argv[1:] if arguments is None else arguments))


def run() -> None:
    """Replace this process, `python -m pip`, by pip in the step's own environment."""
    command = _redirected(sys.argv[1:])
    os.execv(command[0], command)  # noqa: S606 - a list, without a shell


def create(folder: str) -> str:
    """Create the environment, if there is none, and return its Python."""
    python = os.path.join(folder, "bin", "python3")
    complete = os.path.join(folder, "complete")
    with open(f"{folder}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.exists(complete):
            return python
        venv.EnvBuilder(symlinks=True).create(folder)
        parents = [*site.getsitepackages(), *([site.getusersitepackages()] if site.ENABLE_USER_SITE else [])]
        packages = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
        with open(os.path.join(folder, packages, "localvertex-parent.pth"), "w") as file:
            file.writelines(f"import site; site.addsitedir({path!r})\n" for path in parents)
        env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        probe = "import importlib.util, sys; sys.exit(importlib.util.find_spec('pip') is None)"
        if subprocess.call([python, "-c", probe], env=env) != 0:
            subprocess.check_call([python, "-m", "ensurepip"], env=env)
        with open(complete, "w"):
            pass
    return python


def _own_arguments(arguments: list[str]) -> list[str]:
    """Return pip's arguments without those that name another place."""
    if "--python" in arguments or any(each.startswith("--python=") for each in arguments):
        sys.exit("error: pip --python installs into another environment, which a step cannot change here; leave it out")
    words = [each for each in arguments if each != "--user"]
    if words[:1] == ["config"] and set(words) & set(_CHANGES):
        return ["config", "--site", *(each for each in words[1:] if each not in ("--global", "--site"))]
    return words


def main() -> None:
    """Run pip in the step's own environment."""
    arguments = _own_arguments(sys.argv[1:])
    python = create(os.environ[FOLDER])
    env = {name: value for name, value in os.environ.items() if name not in _REDIRECTIONS}
    # A configured `user = true` would be an error in a virtual environment.
    os.execve(python, [python, "-m", "pip", *arguments], env | {"PIP_USER": "0"})  # noqa: S606 - a list, without a shell


if __name__ == "__main__":
    main()
