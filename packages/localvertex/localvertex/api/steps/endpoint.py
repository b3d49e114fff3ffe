"""The endpoint for the steps of one run: of the server that started the run, or else the run's own."""

from contextlib import ExitStack
from typing import Self

from localvertex.api.access.step_access import StepAccess
from localvertex.api.steps.own_endpoint import OwnEndpoint
from localvertex.containers.serving.machine import Machine
from localvertex_base.lines import WriteLine


class StepsEndpoint:
    """The endpoint of a run, from `open` to `close`.

    Args:
        machine: The processes of the run, and the work folder with the registry. The file of the endpoint becomes
            part of the credentials that the processes get.
        server: Access to the server that started the run, or None.
        warn: Called with each problem, as a line of text.
    """

    def __init__(self, machine: Machine, server: StepAccess | None, warn: WriteLine) -> None:
        self._machine, self._server, self._warn = machine, server, warn
        self._held = ExitStack()

    def open(self) -> None:
        """Let steps call; a run whose steps do not call is not affected by a failure."""
        secrets, file = self._machine.credentials.secrets, self._machine.credentials.step_file
        try:
            access = self._server or self._own()
            tokens = [access.issue(secrets.use_tokens, may_change=each) for each in (True, False)]
            for each in tokens:
                self._held.callback(access.revoke, each)
                secrets.learn_token(each.token)
            self._held.callback(file.close)
            file.write(*tokens)
        except OSError as error:
            self._warn(f"the steps of this run cannot reach the model registry: {error}")
            self.close()

    def _own(self) -> StepAccess:
        own = OwnEndpoint(self._machine, self._warn)
        self._held.callback(own.close)
        return own.access

    def __enter__(self) -> Self:
        """Open it."""
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Remove the file, end the token, and close the endpoint if it is the run's own."""
        self._held.close()
