"""Environments for steps and jobs that install packages, so that the user's own is never changed.

An environment is a virtual environment that sees this interpreter's packages and keeps what the step's own
`pip install` adds. It is known by the install script and the Python version, built once, and used only when a last
write has marked it complete: its scripts carry their own path, so a finished environment cannot be renamed.
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
from localvertex.processes import logs
from localvertex.processes.processes import Processes

COMPLETE = "complete.json"

LOCK_POLL_SECONDS = 0.1


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
    """The complete environment for what its identity names; made when there is none.

    Args:
        identity: What decides the content, besides this Python.
        install: The command that installs it; `python3` in it is the environment's. Empty when there is nothing to do.
        private_dir: Where environments are kept.
        processes: Runs the command.
        cwd: Where it runs.
        env: Its variables.
        log: pip's own text.

    Raises:
        TaskFailed: the installation failed.
        Cancelled: the run is being stopped.
    """
    version = f"{sys.version_info.major}.{sys.version_info.minor}.{sys.version_info.micro}"
    known_by = hashlib.sha256(json.dumps([*identity, version, sys.prefix]).encode()).hexdigest()[:16]
    folder = private_dir / "environments" / known_by
    folder.parent.mkdir(parents=True, exist_ok=True)
    # One builder at a time; the lock goes with its process, however that ends.
    with folder.with_suffix(".lock").open("w") as lock:
        wait_for(lock, processes)
        if (folder / COMPLETE).is_file():
            return folder
        shutil.rmtree(folder, ignore_errors=True)
        create(folder)
        if install:
            code = processes.run(install, cwd=cwd, env=activated(env, folder), log=log)
            if code != 0:
                shutil.rmtree(folder, ignore_errors=True)
                raise TaskFailed(f"installing the packages failed, {logs.failure_text(code, log)}", exit_code=code)
        (folder / COMPLETE).write_text(json.dumps({"identity": identity, "python": version}, indent=1))
    return folder


def activated(env: dict[str, str], folder: Path) -> dict[str, str]:
    """The variables with an environment's programs first."""
    return env | {"PATH": f"{folder / 'bin'}{os.pathsep}{env.get('PATH', os.defpath)}", "VIRTUAL_ENV": str(folder)}


def wait_for(lock: IO[str], processes: Processes) -> None:
    """Takes the lock; waits while another run builds the same environment, but not beyond the end of this run."""
    while True:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            processes.check_stopped()
            time.sleep(LOCK_POLL_SECONDS)


def create(folder: Path) -> None:
    """A virtual environment that also sees the packages of the interpreter that runs localvertex.

    pip is among those packages and installs into the environment it is run from, so none is put in.
    """
    venv.create(folder, with_pip=False, symlinks=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = folder / "lib" / version / "site-packages"
    lines = [f"import site; site.addsitedir({path!r})" for path in site.getsitepackages() if path != str(packages)]
    (packages / "localvertex-parent.pth").write_text("\n".join(lines) + "\n")
