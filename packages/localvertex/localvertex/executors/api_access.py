"""Interface of the API for the steps of a run. `api` implements it, and the caller of a run provides it."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from localvertex._base.json_object import JsonObject
from localvertex._base.lines import WriteLine
from localvertex.containers.serving.machine import Machine
from localvertex.credentials.step_file import StepFile


@dataclass(frozen=True, kw_only=True)
class EndpointCall:
    """A call of a method of endpoints."""

    method: Literal["create", "get", "deploy", "undeploy", "delete"]
    project: str
    region: str
    endpoint_id: str
    body: JsonObject


Endpoints = Callable[[EndpointCall], JsonObject]
"""The endpoints of a work folder: carries out a call, and returns what Vertex AI does, in its JSON."""


class ApiAccess(Protocol):
    """Access of a run's steps to the API."""

    def open_endpoint(self, machine: Machine, warn: WriteLine, run: str = "") -> AbstractContextManager[object]:
        """Let the processes of a machine call the API.

        Args:
            machine: The processes of the run, and the work folder with the registry.
            warn: Called with each problem, as a line of text.
            run: The unique number of the run, which the models that they upload get.
        """
        ...

    def grant(self, jobs: Any, machine: Machine) -> AbstractContextManager[StepFile | None]:
        """Let the processes of one step create jobs: yield their file of the endpoint; None if there is no endpoint.

        Args:
            jobs: The `StepJobs` that they may create.
            machine: The processes of the run.
        """
        ...

    def endpoints(self, machine: Machine, log: WriteLine) -> AbstractContextManager[Endpoints]:
        """Return the endpoints of the work folder; the processes that they start end with the block.

        Within it, a refused call raises TaskFailed, and Cancelled when the run was stopped.

        Args:
            machine: The processes of the run, and the work folder with the endpoints.
            log: Called with each start and problem.
        """
        ...
