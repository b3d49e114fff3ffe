"""The tokens of runs: each has its own, which allows its steps the calls that they need, and ends with the run.

A step that creates jobs has a token of its own, which also allows these, and ends with its attempt.
"""

import hmac
import re
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass

from localvertex._base.step_endpoint import StepEndpoint
from localvertex.executors.step_jobs import StepJobs

_PARENT = "/v1/projects/[^/]+/locations/[^/]+"
_BELOW = "(?:[/:].*)?"

_REGISTRY = re.compile(rf"{_PARENT}/(?:models|endpoints){_BELOW}", re.S)
"""Paths that all steps may call, with everything below them."""

_RECORDS = re.compile(
    rf"{_PARENT}/(?:metadataStores|tensorboards){_BELOW}|/(?:(?:upload|download)/)?storage/v1/b(?:/.*)?", re.S
)
"""Experiments and buckets, which a command in the sandbox may only see if they belong to its run."""

_JOBS = re.compile(rf"{_PARENT}/(?:pipelineJobs|customJobs){_BELOW}", re.S)
"""Steps only read these: a job with its own token could leave the sandbox of its step, and outlive the run."""

_OWN_JOBS = {
    "POST": re.compile(rf"{_PARENT}/customJobs(?:/[^/:]+:cancel)?"),
    "DELETE": re.compile(rf"{_PARENT}/customJobs/[^/:]+"),
}
"""What a step that creates jobs may also call. Its jobs run in the mask, with the token of the run, and end with it."""

_CARRIED = re.compile("/rpc")
"""A call over gRPC, which is checked again as the request that it becomes."""

_PREDICTIONS = re.compile(rf"{_PARENT}/endpoints/[^/]+:predict")

REFUSAL = (
    "{call} is not available to steps: they may change models, endpoints and experiments, and read jobs; make a job a "
    "step of the pipeline, or give the step's outputs as [step.NAME] outputs in localvertex.toml"
)
"""The answer to other calls with a token of a run; `call` is the method."""

_NUM_BYTES = 32
"""Bytes of random data in a token."""


@dataclass(frozen=True, kw_only=True)
class _Caller:
    """The processes that have a token."""

    on_use: Callable[[], None]
    may_change: bool
    run: str
    jobs: StepJobs | None


class StepAccess:
    """The runs whose steps may call a server. Safe for several threads.

    Args:
        address: The address http://127.0.0.1:PORT; empty when the server does not listen yet.
    """

    def __init__(self, address: str = "") -> None:
        self._address = address
        self._lock = threading.Lock()
        self._callers: dict[str, _Caller] = {}

    def listens_at(self, address: str) -> None:
        """Take the address of the server, before the first run."""
        self._address = address

    def issue(
        self, on_use: Callable[[], None], *, may_change: bool = True, run: str = "", jobs: StepJobs | None = None
    ) -> StepEndpoint:
        """Return the address with a new token.

        Args:
            on_use: Called before each call with the token is answered.
            may_change: Whether it allows more than reading and predictions.
            run: The unique number of the run.
            jobs: The jobs that it allows to create and to stop.
        """
        found = StepEndpoint(address=self._address, token=secrets.token_urlsafe(_NUM_BYTES))
        with self._lock:
            self._callers[found.token] = _Caller(on_use=on_use, may_change=may_change, run=run, jobs=jobs)
        return found

    def revoke(self, endpoint: StepEndpoint) -> None:
        """End a token."""
        with self._lock:
            self._callers.pop(endpoint.token, None)

    def allows(self, token: bytes, method: str, path: str) -> bool:
        """Return whether a call may be carried out."""
        if (caller := self._caller(token)) is None:
            return False
        caller.on_use()
        is_reading = method in ("GET", "HEAD")
        allowed = [_PREDICTIONS, _CARRIED, *([_REGISTRY] if is_reading else [])]
        if caller.may_change:
            allowed = [_REGISTRY, _RECORDS, _CARRIED, *([_JOBS] if is_reading else [])]
        if caller.jobs is not None:
            allowed += [_JOBS] if is_reading else [_OWN_JOBS[method]] if method in _OWN_JOBS else []
        return any(each.fullmatch(path) for each in allowed)

    def run_of(self, token: bytes) -> str | None:
        """Return the unique number of the run with a token, whatever that allows; None when no run has it."""
        caller = self._caller(token)
        return caller.run if caller else None

    def jobs_of(self, token: bytes) -> StepJobs | None:
        """Return the jobs that a token allows to create; None for all other tokens."""
        caller = self._caller(token)
        return caller.jobs if caller else None

    def _caller(self, token: bytes) -> _Caller | None:
        with self._lock:
            found = [caller for each, caller in self._callers.items() if hmac.compare_digest(each.encode(), token)]
        return found[0] if found else None
