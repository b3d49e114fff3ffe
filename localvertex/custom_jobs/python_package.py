"""Python package jobs: the packages of a pool, installed into an environment of their own."""

import hashlib
from pathlib import Path

from localvertex.custom_jobs.job import Pool
from localvertex.custom_jobs.status import Place
from localvertex.errors import TaskFailed
from localvertex.processes import environments
from localvertex.processes.processes import Processes
from localvertex.values.placeholders import local_path

INSTALL = """\
python3 -m pip install --disable-pip-version-check --no-build-isolation --ignore-installed --no-deps "$@" &&
python3 -m pip install --disable-pip-version-check --no-build-isolation "$@"
"""
"""First the packages themselves, whatever of the same name is installed here already; then what they need and lack."""

LOG = "packages.log"


def environment_of(pool: Pool, place: Place, processes: Processes, env: dict[str, str]) -> Path:
    """The environment with the pool's packages; built once for the same files.

    Raises:
        TaskFailed: a package is not on this machine, or its installation failed.
        Cancelled: the run is being stopped.
    """
    files = [package_file(uri, place) for uri in pool.package_uris]
    identity = [INSTALL, *(f"{file.name} {hashlib.sha256(file.read_bytes()).hexdigest()}" for file in files)]
    return environments.build(
        identity,
        ["sh", "-c", INSTALL, "sh", *map(str, files)] if files else [],
        private_dir=place.private_dir,
        processes=processes,
        cwd=place.folder,
        env=env,
        log=place.folder / LOG,
    )


def package_file(uri: str, place: Place) -> Path:
    """Where the package is on this machine: as it stands, or in a bucket that is a folder here.

    Raises:
        TaskFailed: nowhere.
    """
    file = Path(local_path(place.localised(uri)))
    if not file.is_file():
        raise TaskFailed(
            f"package_uris: {uri} is not on this machine ({file} is no file); give a local path", is_retryable=False
        )
    return file.absolute()
