"""The processes of deployed models: started at the deployment or at the first prediction, ended by their owner."""

import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from localvertex.containers.choice import Choice
from localvertex.containers.serving.container import ServingContainer
from localvertex.containers.serving.process import Machine, NotServing, Serving, ServingProcess
from localvertex.credentials.isolation import Credentials, NoCredentials
from localvertex.errors import Cancelled
from localvertex.processes.processes import Processes
from localvertex.serve.api.errors import ApiError, Status, not_found
from localvertex.serve.endpoints.records import Records
from localvertex.state.model_versions import ModelVersions
from localvertex.values.buckets import Buckets
from vertex_gpu_training.userinput.errors import UserError

_GRACE_SECONDS = 10.0

Resource = dict[str, Any]


class Deployments:
    """The running models of one owner: a server, or a run.

    Args:
        work_dir: The folder of the runs, with the registry and the endpoints.
        choice: How container commands run.
        command_prefixes: Local commands in place of container images, by image.
        buckets: The folders of the buckets.
        log: Called with each start and problem.
        processes: Of a run, which stops them with the run; None: of their own.
        credentials: What the processes get of the user's credentials; None: nothing.
    """

    def __init__(
        self,
        work_dir: Path,
        *,
        choice: Choice,
        command_prefixes: Mapping[str, tuple[str, ...]] | None = None,
        buckets: Buckets | None = None,
        log: Callable[[str], None] = lambda _: None,
        processes: Processes | None = None,
        credentials: Credentials | None = None,
    ) -> None:
        self.work_dir, self._choice, self._log = work_dir.absolute(), choice, log
        self._buckets, self._records = buckets or Buckets(), Records(self.work_dir)
        self._own = ExitStack()
        if credentials is None:
            credentials = NoCredentials()
            self._own.callback(credentials.close)
        self._is_owner = processes is None
        if processes is None:
            processes = Processes(grace_seconds=_GRACE_SECONDS)
            processes.secrets = credentials.secrets.known
        self._machine = Machine(
            work_dir=self.work_dir,
            processes=processes,
            credentials=credentials,
            choice=choice,
            command_prefixes=command_prefixes or {},
        )
        self._lock = threading.Lock()
        self._starting: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._running: dict[str, ServingProcess] = {}

    def check(self, model: Resource) -> ServingContainer:
        """Return the container of a model's content in the registry.

        Raises:
            ApiError: It has none that runs here.
        """
        try:
            container = ServingContainer.of_model(model)
            problem = container.problem(self._choice)
        except UserError as error:
            problem = str(error)
        if problem:
            raise ApiError(Status.FAILED_PRECONDITION, problem)
        return container

    def serving(self, endpoint: str, deployed: Resource) -> ServingProcess:
        """Return the healthy process of a deployed model; start it if it does not run.

        Args:
            endpoint: The resource name of the endpoint.
            deployed: The DeployedModel.

        Raises:
            ApiError: It cannot be started, or is not healthy in time.
        """
        key = f"{endpoint.rpartition('/')[2]}/{deployed['id']}"
        with self._lock:
            starting = self._starting[key]
        with starting:
            found = self._running.get(key)
            if found is not None and found.is_running:
                return found
            serving = self._plan(endpoint, deployed)
            process = None
            try:
                process = ServingProcess(serving, self._machine)
                process.wait_until_healthy(self._machine.processes.check_stopped)
            except NotServing as error:
                self._log(f"endpoints/{key}: {error}")
                raise ApiError(Status.FAILED_PRECONDITION, f"{deployed['model']} does not serve: {error}") from None
            except Cancelled:
                raise ApiError(Status.ABORTED, "the server is being stopped") from None
            self._running[key] = process
        self._log(f"endpoints/{key}: serving {deployed['model']}@{deployed['modelVersionId']}, log in {serving.log}")
        return process

    def stop(self, endpoint: str, deployed_id: str) -> None:
        """End the process of a deployed model, if it runs."""
        key = f"{endpoint.rpartition('/')[2]}/{deployed_id}"
        process = self._running.pop(key, None)
        if process is not None:
            process.stop()

    def close(self) -> None:
        """End all processes."""
        if self._is_owner:
            self._machine.processes.stop()
        with self._own:
            for process in [*self._running.values()]:
                process.stop()

    def _plan(self, endpoint: str, deployed: Resource) -> Serving:
        """Return what runs for a deployed model.

        Raises:
            ApiError: Its model was deleted, or has no container that runs here.
        """
        model_id, number = deployed["model"].rpartition("/")[2], deployed["modelVersionId"]
        try:
            content = ModelVersions.of(self.work_dir, model_id).content(number)
        except (LookupError, OSError):
            raise not_found(f"version {number} of {deployed['model']}, which is deployed to {endpoint},") from None
        except ValueError as error:
            raise ApiError(Status.FAILED_PRECONDITION, str(error)) from None
        container = self.check(content)
        endpoint_id, machine = endpoint.rpartition("/")[2], _machine_spec(deployed)
        variables = {
            "AIP_ENDPOINT_ID": endpoint_id,
            "AIP_DEPLOYED_MODEL_ID": deployed["id"],
            "AIP_PROJECT_NUMBER": endpoint.split("/")[1],
            "AIP_MACHINE_TYPE": machine.get("machineType", ""),
            "AIP_ACCELERATOR_TYPE": machine.get("acceleratorType", ""),
        }
        return Serving(
            container=container,
            artifact=str(self._buckets.localised(str(content.get("artifact_uri", "")))),
            variables={name: text for name, text in variables.items() if text},
            default_route=f"/v1/endpoints/{endpoint_id}/deployedModels/{deployed['id']}",
            num_gpus=int(machine.get("acceleratorCount", 0)),
            log=self._records.folder(endpoint_id) / f"{deployed['id']}.log",
        )


def _machine_spec(deployed: Resource) -> Resource:
    found: Resource = deployed.get("dedicatedResources", {}).get("machineSpec", {})
    return found
