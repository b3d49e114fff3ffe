"""The endpoint of a run, for code of steps that a test calls in its own process."""

import contextlib
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from unittest import mock

from localvertex.credentials.isolation import NoCredentials
from localvertex.runner.endpoint.steps_endpoint import StepsEndpoint


@contextlib.contextmanager
def reachable(work_dir: Path) -> Iterator[dict[str, str]]:
    """Let this process reach the registry of a work directory as a step does; yield the variable for it."""
    with closing(NoCredentials()) as credentials, StepsEndpoint(work_dir, credentials, None, print):
        variables = credentials.step_file.added_to({})
        with mock.patch.dict(os.environ, variables):
            yield variables
