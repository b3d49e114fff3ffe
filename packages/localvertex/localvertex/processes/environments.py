"""Environments of steps and jobs, so that the user's own environment never changes.

An environment is a virtual environment that sees other packages and keeps what pip adds. The environment of a step's
packages is built once, by the install script and the Python version, and used only when a last write has marked it
complete: its scripts contain their own path, so a finished environment cannot be renamed. In front of it, or of the
user's, each attempt has an environment of its own, into which the pip of every Python installs (`PIP_PYTHON`).
"""

import fcntl
import hashlib
import json
import os
import shlex
import shutil
import site
import tempfile
import time
import venv
from collections.abc import Iterable
from functools import lru_cache
from glob import escape, glob
from importlib.metadata import PathDistribution
from pathlib import Path
from typing import IO

from localvertex._base.lines import WriteLine
from localvertex._base.step_endpoint import MARKER
from localvertex.errors import TaskFailed
from localvertex.processes import bucket_program, index_report, logs
from localvertex.processes.answers import ask
from localvertex.processes.interpreters import OWN, Interpreter
from localvertex.processes.processes import Processes

_COMPLETE = "complete.json"

_PARENT = "localvertex-parent.pth"
"""The last file that `create` writes."""

_LOCK_POLL_SECONDS = 0.1

_MAX_REASON = 300
"""Characters of the error of `venv` in a message."""

_REDIRECTIONS = ("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT")
"""Variables that would send what pip installs to another place, as the user's own."""

_PIP = """\
#!/bin/sh
# pip of this environment, without the variables that lead to another environment.
unset PIP_TARGET PIP_PREFIX PIP_ROOT
if [ "$1" = config ]; then shift; set -- config --site "$@"; fi
for word; do
    shift
    case "$word" in
    --user | --global) ;;
    --python | --python=*)
        echo "error: pip --python installs into another environment, which a step cannot change here; leave it out" >&2
        exit 2 ;;
    *) set -- "$@" "$word" ;;
    esac
done
PIP_USER=0 exec "$PIP_PYTHON" -m pip "$@"
"""


_OF_BUCKETS = """\
#!/bin/sh
# cp, ls and rsync of buckets that are folders; all else is that of the program behind it on PATH.
LOCALVERTEX_PROGRAMS="$(dirname "$0")" exec "$PIP_PYTHON" -I {program} {name} "$@"
"""


_PROGRAMS: tuple[tuple[str, str | bytes | None], ...] = (
    ("", None),
    ("pip", _PIP.encode()),
    ("pip3", "pip"),
    *(
        (name, _OF_BUCKETS.format(program=shlex.quote(bucket_program.__file__), name=name).encode())
        for name in ("gsutil", "gcloud")
    ),
)
"""Programs before all others on the path of an attempt, as `_layout` returns them."""


def build(
    identity: list[str],
    install: list[str],
    *,
    private_dir: Path,
    processes: Processes,
    cwd: Path,
    env: dict[str, str],
    log: Path,
    report: WriteLine,
    python: Interpreter = OWN,
) -> Path:
    """Return the complete environment of this identity; build it if it does not exist.

    Args:
        identity: Key of the content, besides the interpreter.
        install: The command that installs it, with `python3` as the environment's. Empty when there is nothing to do.
        private_dir: The folder of the environments.
        processes: Runs the command.
        cwd: The working directory of the command.
        env: The variables of the command.
        log: The file for the output of pip.
        report: Receives a line with what pip installs from an index.
        python: The interpreter of the environment.

    Raises:
        TaskFailed: The installation failed.
        Cancelled: The run is being stopped.
    """
    folder = _folder_of(identity, private_dir, python)
    folder.parent.mkdir(parents=True, exist_ok=True)
    # One builder at a time; the lock is released with its process, however that ends.
    with folder.with_suffix(".lock").open("w") as lock:
        _wait_for(lock, processes)
        if (folder / _COMPLETE).is_file():
            return folder
        if not _can_continue(folder):
            shutil.rmtree(folder, ignore_errors=True)
            create(folder, python=python, with_pip=bool(install) and not python.has("pip"))
        if install:
            # Byte code of all modules is most of what an installation costs; the first import writes what it needs.
            lazy = {} if "PYTHONDONTWRITEBYTECODE" in env else {"PIP_COMPILE": "0"}
            # kfp's scripts are quiet, for minutes.
            lazy |= {"PIP_VERBOSE": "1", "PIP_PROGRESS_BAR": "off"} if " --quiet " in " ".join(install) else {}
            with index_report.listed(report) as listing:
                code = processes.run(
                    install, cwd=cwd, env=_activated(env, folder) | lazy | listing, log=log, writable=[folder]
                )
                if code != 0:
                    shutil.rmtree(folder, ignore_errors=True)
                    reason = logs.conflict(log) or logs.failure_of_pip(code, log)
                    raise TaskFailed(f"installing the packages failed with {reason}", exit_code=code)
        (folder / _COMPLETE).write_text(json.dumps({"identity": identity, "python": python.version}, indent=1))
    return folder


def _can_continue(folder: Path) -> bool:
    """Return whether a stopped installation can continue in its environment; forget its half-installed packages."""
    try:
        packages = _packages(folder)
    except StopIteration:
        return False
    for info in packages.glob("*.dist-info"):
        files = PathDistribution(info).files
        # pip writes this file when it has copied all others.
        if not (info / "INSTALLER").is_file() or not all(os.path.exists(each.locate()) for each in files or ()):
            shutil.rmtree(info)
    return (packages / _PARENT).is_file()


def is_complete(identity: list[str], private_dir: Path, python: Interpreter = OWN) -> bool:
    """Return whether an environment exists, so that nothing has to be installed."""
    return (_folder_of(identity, private_dir, python) / _COMPLETE).is_file()


def _folder_of(identity: list[str], private_dir: Path, python: Interpreter) -> Path:
    known_by = hashlib.sha256(json.dumps([*identity, python.version, python.prefix]).encode()).hexdigest()[:16]
    return private_dir / "environments" / known_by


def _activated(env: dict[str, str], folder: Path) -> dict[str, str]:
    """Return the variables with an environment's programs first in PATH, and with pip installing into it."""
    env = {name: value for name, value in env.items() if name not in _REDIRECTIONS}
    path = f"{folder / 'bin'}{os.pathsep}{env.get('PATH', os.defpath)}"
    pip = {"PIP_PYTHON": str(folder / "bin" / "python3"), "PIP_USER": "0", "PIP_REQUIRE_VIRTUALENV": "1"}
    return env | pip | {"PATH": path, "VIRTUAL_ENV": str(folder)}


def add_own(
    env: dict[str, str], temporary: Path, base: Path | None = None, python: Interpreter = OWN
) -> dict[str, str]:
    """Make an environment for one attempt, and return its variables, with this environment first.

    Args:
        env: The variables of the attempt.
        temporary: Its temporary folder, with which the environment ends.
        base: The environment that `build` made for it; None: the interpreter's.
        python: The interpreter of the environment.

    Raises:
        TaskFailed: The interpreter cannot make an environment.
    """
    folder, programs = temporary / "environment", temporary / "pip"
    _lay_out(str(folder), _layout(base, python))
    _lay_out(str(programs), [*_PROGRAMS, (f"pip{python.minor}", "pip")])
    env = _activated(_activated(env, base) if base else env, folder)
    # Programs of the user's environment, and environments that the step makes, also find its packages.
    packages = filter(None, [str(_packages(folder)), env.get("PYTHONPATH")])
    path = f"{programs}{os.pathsep}{env['PATH']}"
    return {MARKER: "1"} | env | {"PATH": path, "PYTHONPATH": os.pathsep.join(packages)}


def _wait_for(lock: IO[str], processes: Processes) -> None:
    """Take the lock; wait while another run builds the same environment, but stop waiting when this run stops."""
    while True:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            processes.check_stopped()
            time.sleep(_LOCK_POLL_SECONDS)


def _packages(folder: Path) -> Path:
    return next(folder.glob("lib/python*/site-packages"))


@lru_cache(maxsize=16)
def _layout(base: Path | None, python: Interpreter) -> tuple[tuple[str, str | bytes | None], ...]:
    """Return the contents of an attempt's environment, which are the same for each: an entry is a folder, link or file.

    Scripts that activate an environment contain its path; an attempt's environment is active.

    Raises:
        TaskFailed: The interpreter cannot make an environment.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "environment")
        create(folder, base, python=python)
        found: list[tuple[str, str | bytes | None]] = [("", None)]
        for path in sorted(folder.rglob("*")):
            relative = str(path.relative_to(folder))
            if path.is_symlink():
                found.append((relative, os.readlink(path)))
            elif path.is_dir():
                found.append((relative, None))
            elif path.parent.name != "bin":
                found.append((relative, path.read_bytes()))
    return tuple(found)


def _lay_out(folder: str, layout: Iterable[tuple[str, str | bytes | None]]) -> None:
    for name, content in layout:
        path = os.path.join(folder, name)
        if content is None:
            os.mkdir(path)
        elif isinstance(content, str):
            os.symlink(content, path)
        else:
            mode = 0o777 if content.startswith(b"#!") else 0o666
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
                file.write(content)


def create(folder: Path, base: Path | None = None, *, python: Interpreter = OWN, with_pip: bool = False) -> None:
    """Create a virtual environment that also sees the packages of another environment, by default the interpreter's.

    pip is mostly among those packages and installs into the environment it is run from, so it is not installed again.

    Raises:
        TaskFailed: Another interpreter cannot do that.
    """
    if python is OWN:
        venv.create(folder, with_pip=with_pip, symlinks=True)
        users = [*site.getsitepackages(), *([site.getusersitepackages()] if site.ENABLE_USER_SITE else [])]
    else:
        options = ["--symlinks"] if with_pip else ["--symlinks", "--without-pip"]
        words = [str(python.path), "-I", "-m", "venv", *options, str(folder)]
        done = ask(words, seconds=None)
        if done.returncode:
            reason = " ".join((done.stderr or done.stdout).split())[:_MAX_REASON]
            raise TaskFailed(f"{python.path} -m venv failed: {reason}", is_retryable=False)
        users = python.packages
    # `pip config set` writes to the file of the environment if there is one, else to the user's.
    (folder / "pip.conf").touch()
    parents = [str(_packages(base))] if base else users
    lines = [f"import site; site.addsitedir({path!r})" for path in parents]
    # Images of Python up to 3.11 have setuptools, with pkg_resources; its archive comes with such a Python.
    lines += [
        each for path in python.search_path for each in glob(f"{escape(path)}/ensurepip/_bundled/setuptools-*.whl")
    ]
    (_packages(folder) / _PARENT).write_text("\n".join(lines) + "\n")
