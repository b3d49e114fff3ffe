"""The API of the steps of a run, which the run gets from its caller.

Its methods are imported only by the steps that need them.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from localvertex._base import extras
from localvertex._base.lines import WriteLine
from localvertex.api.access.step_access import StepAccess
from localvertex.api.steps.own_endpoint import OwnEndpoint
from localvertex.containers.serving.machine import Machine
from localvertex.errors import TaskFailed
from localvertex.executors.api_access import Endpoints
from localvertex.runner.options import Options


class Reach:
    """The API of the steps of runs.

    Args:
        server: Access to the server that starts the runs; None: each run has an endpoint of its own.
    """

    def __init__(self, server: StepAccess | None = None) -> None:
        self._server = server

    @contextmanager
    def open_endpoint(self, machine: Machine, warn: WriteLine, run: str = "") -> Iterator[None]:
        """Let the processes of a machine call; a run whose steps do not call is not affected by a failure.

        The file of the endpoint becomes part of the credentials that the processes get, until the block ends.
        """
        with ExitStack() as held:
            try:
                self._open(machine, warn, held, run)
            except OSError as error:
                warn(f"the steps of this run cannot reach the model registry: {error}")
                held.close()
            yield

    def _open(self, machine: Machine, warn: WriteLine, held: ExitStack, run: str) -> None:
        secrets, file = machine.credentials.secrets, machine.credentials.step_file
        access = self._server
        if access is None:
            own = OwnEndpoint(machine, warn)
            held.callback(own.close)
            access = own.access
        tokens = [access.issue(secrets.use_tokens, may_change=each, run=run) for each in (True, False)]
        for each in tokens:
            held.callback(access.revoke, each)
            secrets.learn_token(each.token)
        held.callback(file.close)
        file.write(*tokens)

    @contextmanager
    def endpoints(self, machine: Machine, log: WriteLine) -> Iterator[Endpoints]:
        """Return the endpoints of the work folder; the processes that they start end with the block.

        Raises:
            TaskFailed: The packages that they need are not installed.
        """
        try:
            from localvertex.api.steps.endpoint_calls import local_endpoints

            with local_endpoints(machine, log) as found:
                yield found
        except ImportError as error:
            text = f"the operations of endpoints need {error.name}; {extras.install('serve')}"
            raise TaskFailed(text, is_retryable=False) from None


def with_api(options: Options | None) -> Options:
    """Return the options of runs whose steps reach the API, by endpoints of their own if no server starts the runs."""
    options = options or Options()
    return options if options.server else replace(options, server=Reach())
