"""Environments for steps and jobs that install packages, so that the user's own environment never changes.

An environment is a virtual environment that sees this interpreter's packages and keeps what the step's own
`pip install` adds. Its key is the install script and the Python version. It is built once, and used only when a last
write has marked it complete: its scripts contain their own path, so a finished environment cannot be renamed.
"""

import fcntl
import hashlib
import json
import os
import shutil
import site
import sys
import time
import venv
from pathlib import Path
from typing import IO

from localvertex.errors import TaskFailed
from localvertex.processes import logs, read_only
from localvertex.processes.processes import Processes

_COMPLETE = "complete.json"

_LOCK_POLL_SECONDS = 0.1


def build(
    identity: list[str],
    install: list[str],
    *,
    private_dir: Path,
    processes: Processes,
    cwd: Path,
    env: dict[str, str],
    log: Path,
) -> Path:
    """Return the complete environment of this identity; build it if it does not exist.

    Args:
        identity: Key of the content, besides this Python.
        install: The command that installs it, with `python3` as the environment's. Empty when there is nothing to do.
        private_dir: The folder of the environments.
        processes: Runs the command.
        cwd: The working directory of the command.
        env: The variables of the command.
        log: The file for the output of pip.

    Raises:
        TaskFailed: The installation failed.
        Cancelled: The run is being stopped.
    """
    folder = _folder_of(identity, private_dir)
    folder.parent.mkdir(parents=True, exist_ok=True)
    # One builder at a time; the lock is released with its process, however that ends.
    with folder.with_suffix(".lock").open("w") as lock:
        _wait_for(lock, processes)
        if (folder / _COMPLETE).is_file():
            return folder
        shutil.rmtree(folder, ignore_errors=True)
        create(folder)
        code = 0
        if install:
            # It cannot change the user's packages where bubblewrap is installed.
            command, env = read_only.prepared(install, activated(env, folder))
            code = processes.run(command, cwd=cwd, env=env, log=log)
        if code != 0:
            shutil.rmtree(folder, ignore_errors=True)
            raise TaskFailed(f"installing the packages failed with {logs.failure_text(code, log)}", exit_code=code)
        (folder / _COMPLETE).write_text(json.dumps({"identity": identity, "python": _version()}, indent=1))
    return folder


def is_complete(identity: list[str], private_dir: Path) -> bool:
    """Return whether an environment exists, so that nothing has to be installed."""
    return (_folder_of(identity, private_dir) / _COMPLETE).is_file()


def _folder_of(identity: list[str], private_dir: Path) -> Path:
    known_by = hashlib.sha256(json.dumps([*identity, _version(), sys.prefix]).encode()).hexdigest()[:16]
    return private_dir / "environments" / known_by


def _version() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}.{sys.version_info.micro}"


def activated(env: dict[str, str], folder: Path) -> dict[str, str]:
    """Return the variables with an environment's programs first in PATH."""
    return env | {"PATH": f"{folder / 'bin'}{os.pathsep}{env.get('PATH', os.defpath)}", "VIRTUAL_ENV": str(folder)}


def _wait_for(lock: IO[str], processes: Processes) -> None:
    """Take the lock; wait while another run builds the same environment, but stop waiting when this run stops."""
    while True:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            processes.check_stopped()
            time.sleep(_LOCK_POLL_SECONDS)


def create(folder: Path) -> None:
    """Create a virtual environment that also sees the packages of the interpreter that runs localvertex.

    pip is among those packages and installs into the environment it is run from, so it is not installed again.
    """
    venv.create(folder, with_pip=False, symlinks=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = folder / "lib" / version / "site-packages"
    parents = [*site.getsitepackages(), *([site.getusersitepackages()] if site.ENABLE_USER_SITE else [])]
    lines = [f"import site; site.addsitedir({path!r})" for path in parents if path != str(packages)]
    (packages / "localvertex-parent.pth").write_text("\n".join(lines) + "\n")
