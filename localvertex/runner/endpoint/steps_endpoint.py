"""What the steps of one run get: the endpoint of the server that started the run, or else one of its own."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from localvertex.credentials.isolation import Credentials
from localvertex.runner.endpoint.own_endpoint import OwnEndpoint
from localvertex.serve.access.step_access import StepAccess


class StepsEndpoint:
    """The endpoint of a run, from `open` to `close`.

    Args:
        work_dir: The work directory with the registry.
        credentials: What the processes of the run get; the file of the endpoint becomes part of it.
        server: Access to the server that started the run; None if there is none.
        warn: Called with each problem, as a line of text.
    """

    def __init__(
        self, work_dir: Path, credentials: Credentials, server: StepAccess | None, warn: Callable[[str], None]
    ) -> None:
        self._work_dir, self._credentials, self._server, self._warn = work_dir, credentials, server, warn
        self._held = ExitStack()

    def open(self) -> None:
        """Let steps call; a run whose steps do not call is not affected by a failure."""
        secrets, file = self._credentials.secrets, self._credentials.step_file
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
        own = OwnEndpoint(self._work_dir, self._warn)
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
