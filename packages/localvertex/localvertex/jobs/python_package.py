"""Python package jobs: installs the packages of a pool into their own environment."""

import hashlib
from pathlib import Path

from localvertex._base.lines import WriteLine
from localvertex.errors import TaskFailed
from localvertex.jobs.job import Pool
from localvertex.jobs.status import Workspace
from localvertex.processes import environments
from localvertex.processes.processes import Processes
from localvertex.values.buckets import Buckets

_INSTALL = """\
python3 -m pip install --disable-pip-version-check --no-build-isolation --ignore-installed --no-deps "$@" &&
python3 -m pip install --disable-pip-version-check --no-build-isolation "$@"
"""
"""Installs the packages themselves, even where one of the same name is installed here, then missing dependencies."""

LOG = "packages.log"


def environment_of(
    pool: Pool, workspace: Workspace, processes: Processes, env: dict[str, str], report: WriteLine
) -> Path:
    """Return the environment with the pool's packages; the same files share one.

    Raises:
        TaskFailed: A package is not on this machine, or its installation failed.
        Cancelled: The run is being stopped.
    """
    stand_in = pool.stand_in
    script = f"{stand_in.install_script} || exit 1\n{_INSTALL}" if stand_in.packages else _INSTALL
    files = [_package_file(uri, workspace) for uri in pool.package_uris]
    identity = [script, *(f"{file.name} {hashlib.sha256(file.read_bytes()).hexdigest()}" for file in files)]
    return environments.build(
        identity,
        ["sh", "-c", script, "sh", *map(str, files)] if files else [],
        private_dir=workspace.private_dir,
        processes=processes,
        cwd=workspace.folder,
        env=env,
        log=workspace.folder / LOG,
        report=report,
        python=stand_in.python,
    )


def _package_file(uri: str, workspace: Workspace) -> Path:
    """Return the package's file on this machine: a local path, or an object of a bucket that is a folder here.

    Raises:
        TaskFailed: There is no such file.
    """
    file = Path(Buckets().path_of(workspace.to_local_path(uri)))
    if not file.is_file():
        raise TaskFailed(
            f"package_uris: {uri} is not on this machine ({file} is not a file); give a local path", is_retryable=False
        )
    return file.absolute()
