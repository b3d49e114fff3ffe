"""Environments for steps that install packages, so that the user's own is never changed.

An environment is a virtual environment that sees this interpreter's packages and keeps what the step's own
`pip install` adds. It is known by the install script and the Python version, built once, and used only when a last
write has marked it complete: its scripts carry their own path, so a finished environment cannot be renamed.
"""

import fcntl
import hashlib
import json
import re
import shutil
import site
import sys
import time
import venv
from pathlib import Path
from typing import IO

from localvertex import logs
from localvertex.errors import TaskFailed
from localvertex.job import Job

COMPLETE = "complete.json"

LOCK_POLL_SECONDS = 0.1

INSTALLS = re.compile(r"python3? -m pip install|pip3? install")

OWN_ENVIRONMENT = re.compile(r"^tmp=.*\npython3 -m venv .*\n\. .*/bin/activate\"?\n", re.MULTILINE)
"""What `@dsl.component(use_venv=True)` adds (kfp 2.17, component_factory.py): the same purpose, served here already."""


def for_command(command: list[str], job: Job, bin_folder: Path) -> tuple[Path, list[str]]:
    """The folder of programs for a step's command, and what is left of the command to run.

    kfp writes `sh -c '<pip install ...> && "$0" "$@"' <the step's own command>`. The first part is done once, when the
    environment is built; a command of another form runs whole in an environment of its own.
    """
    if not any(INSTALLS.search(part) for part in command[:3]):
        return bin_folder, command
    script = OWN_ENVIRONMENT.sub("", command[2])
    can_split = command[:2] == ["sh", "-c"] and script.rstrip().endswith('&& "$0" "$@"')
    install = [*command[:2], script, "true"] if can_split else []
    environment = build(script, install, job)
    return environment / "bin", command[3:] if can_split else command


def build(script: str, install: list[str], job: Job) -> Path:
    """The complete environment for an install script; made when there is none.

    Raises:
        TaskFailed: the installation failed; pip's own text is in the step's log.
    """
    version = f"{sys.version_info.major}.{sys.version_info.minor}.{sys.version_info.micro}"
    identity = json.dumps([script, version, sys.prefix])
    folder = job.context.private_dir / "environments" / hashlib.sha256(identity.encode()).hexdigest()[:16]
    folder.parent.mkdir(parents=True, exist_ok=True)
    # One builder at a time; the lock goes with its process, however that ends.
    with folder.with_suffix(".lock").open("w") as lock:
        wait_for(lock, job)
        if (folder / COMPLETE).is_file():
            return folder
        shutil.rmtree(folder, ignore_errors=True)
        create(folder)
        if install:
            code = job.context.processes.run(
                install, cwd=job.folder, env=job.environment(folder / "bin") | {"VIRTUAL_ENV": str(folder)}, log=job.log
            )
            if code != 0:
                shutil.rmtree(folder, ignore_errors=True)
                raise TaskFailed(
                    f"installing the step's packages failed, {logs.failure_text(code, job.log)}", exit_code=code
                )
        (folder / COMPLETE).write_text(json.dumps({"script": script, "python": version}, indent=1))
    return folder


def wait_for(lock: IO[str], job: Job) -> None:
    """Takes the lock; waits while another run builds the same environment, but not beyond the end of this run."""
    while True:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            job.context.processes.check_stopped()
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
