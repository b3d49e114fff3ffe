"""The processes of deployed models: started at the deployment or at the first prediction, ended by their owner."""

import threading
from collections import defaultdict

from localvertex._base.lines import WriteLine
from localvertex._base.userinput.errors import UserError
from localvertex.api.endpoints.records import EndpointRecords
from localvertex.api.rest.errors import ApiError, Status, not_found, refusing
from localvertex.api.rest.records import Resource
from localvertex.containers.serving.container import ServingContainer
from localvertex.containers.serving.machine import Machine
from localvertex.containers.serving.process import NotServing, Serving, ServingProcess
from localvertex.errors import Cancelled, TaskFailed
from localvertex.store.model_versions import ModelVersions


class Deployments:
    """The running models of one owner: a server, or a run.

    Args:
        machine: The owner's processes.
        log: Called with each start and problem.
    """

    def __init__(self, machine: Machine, log: WriteLine = lambda _: None) -> None:
        self._machine, self.log, self._records = machine, log, EndpointRecords(machine.work_dir)
        self._lock = threading.Lock()
        self._starting: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._running: dict[str, ServingProcess] = {}
        self._is_closed = False

    def check(self, model: Resource) -> ServingContainer:
        """Return the container of a model's content in the registry.

        Raises:
            ApiError: It has none that runs here.
        """
        try:
            container = ServingContainer.of_model(model)
            problem = container.problem(self._machine.choice)
        except UserError as error:
            problem = str(error)
        if problem:
            raise ApiError(Status.FAILED_PRECONDITION, problem)
        return container

    def process_of(self, endpoint: str, deployed: Resource, *, is_new: bool = False) -> ServingProcess:
        """Return the healthy process of a deployed model; start it if it does not run.

        Args:
            endpoint: The resource name of the endpoint.
            deployed: The DeployedModel.
            is_new: Whether the endpoint does not have it yet.

        Raises:
            ApiError: It cannot be started, or is not healthy in time, or was undeployed meanwhile.
        """
        key = f"{endpoint.rpartition('/')[2]}/{deployed['id']}"
        with self._lock:
            starting = self._starting[key]
        with starting:
            found = self._running.get(key)
            # Another process may have deployed another model with this id meanwhile.
            if found is not None and found.is_running and found.serving.created == deployed["createTime"]:
                return found
            self.stop(endpoint, deployed["id"])
            try:
                process = self._start(key, self._plan(endpoint, deployed))
                if not is_new:
                    self._check_deployed(endpoint, deployed)
            except NotServing as error:
                self.stop(endpoint, deployed["id"])
                self.log(f"endpoints/{key}: {error}")
                raise ApiError(Status.FAILED_PRECONDITION, f"{deployed['model']} does not serve: {error}") from None
            except Cancelled:
                raise ApiError(Status.ABORTED, "the server is being stopped") from None
            except BaseException:
                self.stop(endpoint, deployed["id"])
                raise
        text = f"serving {deployed['model']}@{deployed['modelVersionId']}, log in {process.serving.log}"
        self.log(f"endpoints/{key}: {text}")
        return process

    def _start(self, key: str, serving: Serving) -> ServingProcess:
        """Start a process, which `stop` and `close` end from its first moment on, and wait until it is healthy.

        Raises:
            NotServing: It is not healthy in time.
            Cancelled: The owner is being stopped.
        """
        process = self._running[key] = ServingProcess(serving, self._machine)
        if self._is_closed:
            process.stop()
            raise Cancelled
        process.wait_until_healthy(self._machine.processes.check_stopped)
        return process

    def _check_deployed(self, endpoint: str, deployed: Resource) -> None:
        """Check that a model is still deployed, after the start of its process: `stop` ends only what runs already.

        Raises:
            ApiError: It was undeployed.
        """
        now = self._records.find(endpoint).get("deployedModels", [])
        if (deployed["id"], deployed["createTime"]) not in [(each["id"], each.get("createTime")) for each in now]:
            raise not_found(f"deployed model {deployed['id']} of {endpoint}")

    def stop(self, endpoint: str, deployed_id: str) -> None:
        """End the process of a deployed model, if it runs."""
        key = f"{endpoint.rpartition('/')[2]}/{deployed_id}"
        process = self._running.pop(key, None)
        if process is not None:
            process.stop()

    def close(self) -> None:
        """End all processes; none is started afterwards."""
        self._is_closed = True
        for process in [*self._running.values()]:
            process.stop()

    def _plan(self, endpoint: str, deployed: Resource) -> Serving:
        """Return the server to start for a deployed model.

        Raises:
            ApiError: Its model was deleted, or has no container that runs here, or its files do not exist.
        """
        model_id, number = deployed["model"].rpartition("/")[2], deployed["modelVersionId"]
        try:
            content = ModelVersions.of(self._machine.work_dir, model_id).content(number)
        except (LookupError, OSError):
            raise not_found(f"version {number} of {deployed['model']}, which is deployed to {endpoint},") from None
        except ValueError as error:
            raise ApiError(Status.FAILED_PRECONDITION, str(error)) from None
        container = self.check(content)
        with refusing(Status.FAILED_PRECONDITION, TaskFailed):
            artifact = self._machine.buckets.model_files(str(content.get("artifact_uri", "")))
        endpoint_id = endpoint.rpartition("/")[2]
        machine: Resource = deployed.get("dedicatedResources", {}).get("machineSpec", {})
        variables = {
            "AIP_ENDPOINT_ID": endpoint_id,
            "AIP_DEPLOYED_MODEL_ID": deployed["id"],
            "AIP_PROJECT_NUMBER": endpoint.split("/")[1],
            "AIP_MACHINE_TYPE": machine.get("machineType", ""),
            "AIP_ACCELERATOR_TYPE": machine.get("acceleratorType", ""),
        }
        return Serving(
            container=container,
            artifact=artifact,
            variables={name: text for name, text in variables.items() if text},
            default_route=f"/v1/endpoints/{endpoint_id}/deployedModels/{deployed['id']}",
            created=deployed["createTime"],
            num_gpus=int(machine.get("acceleratorCount", 0)),
            log=self._records.folder(endpoint_id) / f"{deployed['id']}.log",
        )
