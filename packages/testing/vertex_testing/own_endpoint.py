"""The endpoint of a run, for code of steps that a test calls in its own process."""

import contextlib
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing
from pathlib import Path
from unittest import mock

from localvertex.api.steps.reach import Reach
from localvertex.containers.choice import Choice
from localvertex.containers.serving.machine import Machine
from localvertex.credentials.isolation import IsolatedCredentials, NoCredentials
from localvertex.processes.processes import Processes


def steps_endpoint(work_dir: Path, credentials: IsolatedCredentials) -> AbstractContextManager[None]:
    """Return the endpoint of a run that has no processes of its own."""
    processes = Processes(grace_seconds=1)
    machine = Machine(work_dir=work_dir.absolute(), processes=processes, credentials=credentials, choice=Choice())
    return Reach().open_endpoint(machine, print)


@contextlib.contextmanager
def reachable(work_dir: Path) -> Iterator[dict[str, str]]:
    """Let this process reach the registry of a work folder as a step does; yield the variable for it."""
    with closing(NoCredentials()) as credentials, steps_endpoint(work_dir, credentials):
        variables = credentials.step_file.add_to({})
        with mock.patch.dict(os.environ, variables):
            yield variables
