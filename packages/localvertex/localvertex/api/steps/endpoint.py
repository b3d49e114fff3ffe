"""The endpoint for the steps of one run: of the server that started the run, or else the run's own."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from localvertex.api.access.step_access import StepAccess
from localvertex.api.steps.own_endpoint import OwnEndpoint
from localvertex.containers.serving.machine import Machine
from localvertex_base.lines import WriteLine


@contextmanager
def steps_endpoint(machine: Machine, server: StepAccess | None, warn: WriteLine) -> Iterator[None]:
    """Let the steps of a run call; a run whose steps do not call is not affected by a failure.

    Args:
        machine: The processes of the run, and the work folder with the registry. The file of the endpoint becomes
            part of the credentials that the processes get, until the block ends.
        server: Access to the server that started the run, or None.
        warn: Called with each problem, as a line of text.
    """
    with ExitStack() as held:
        try:
            _open(machine, server, warn, held)
        except OSError as error:
            warn(f"the steps of this run cannot reach the model registry: {error}")
            held.close()
        yield


def _open(machine: Machine, server: StepAccess | None, warn: WriteLine, held: ExitStack) -> None:
    secrets, file = machine.credentials.secrets, machine.credentials.step_file
    access = server
    if access is None:
        own = OwnEndpoint(machine, warn)
        held.callback(own.close)
        access = own.access
    tokens = [access.issue(secrets.use_tokens, may_change=each) for each in (True, False)]
    for each in tokens:
        held.callback(access.revoke, each)
        secrets.learn_token(each.token)
    held.callback(file.close)
    file.write(*tokens)
