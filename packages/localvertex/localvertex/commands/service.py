"""The API's collections and pages over one work folder, and their methods by path."""

import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from starlette.routing import Route

from localvertex._base.lines import WriteLine
from localvertex.api.endpoints.deployments import Deployments
from localvertex.api.jobs.batch_prediction_jobs import BatchPredictionJobs
from localvertex.api.jobs.collection import JobCollection
from localvertex.api.jobs.custom_jobs import CustomJobs
from localvertex.api.jobs.training_pipelines import TrainingPipelines
from localvertex.api.jobs.tuning_jobs import TuningJobs
from localvertex.api.metadata.metadata import Metadata
from localvertex.api.pipeline_jobs.pipeline_jobs import MAX_RUNS, PipelineJobs
from localvertex.api.rest.storage.storage import Storage
from localvertex.api.rest.store import Store
from localvertex.api.rpc import carried
from localvertex.api.schedules.clock import Clock
from localvertex.api.schedules.schedules import Schedules
from localvertex.api.steps.methods import Method, Methods, StepApi
from localvertex.api.steps.reach import with_api
from localvertex.api.tensorboards import service as tensorboards
from localvertex.console.console import Console
from localvertex.containers.serving.machine import Machine
from localvertex.credentials.isolation import NoCredentials
from localvertex.processes.processes import Processes
from localvertex.runner.engine import Options
from localvertex.values.buckets import Buckets

_UNSERVED = "localvertex serve does not implement {name} of Vertex AI; docs/serve.md lists its methods"


class Service:
    """Everything that the server offers; call `open` before the first request and `close` after the last."""

    unserved = _UNSERVED

    def __init__(
        self,
        work_dir: Path,
        *,
        time_factor: float,
        log: WriteLine,
        options: Options | None = None,
        max_runs: int = MAX_RUNS,
    ) -> None:
        options = with_api(options)
        self._store = Store(work_dir, log)
        self.metadata = Metadata(self._store)
        self.pipeline_jobs = PipelineJobs(self._store, log, options, self.metadata.runs, max_runs=max_runs)
        self.custom_jobs = CustomJobs(self._store, log, options)
        self._credentials = NoCredentials()
        self._processes = Processes(
            grace_seconds=Options().grace_seconds,
            secrets=self._credentials.secrets.spellings,
            mask=options.mask(work_dir, [self.custom_jobs.host.buckets]),
        )
        self.schedules = Schedules(self._store, self.pipeline_jobs, clock=Clock(factor=time_factor), log=log)
        host = self.custom_jobs.host
        buckets = Buckets(root=host.buckets)
        machine = Machine(
            work_dir=self._store.folder.parent.absolute(),
            processes=self._processes,
            credentials=self._credentials,
            choice=options.container_choice,
            buckets=buckets,
        )
        self.step_api = StepApi(self._store, Deployments(machine, log), buckets)
        self.console = Console(
            self._store, self.pipeline_jobs, self.custom_jobs, self.schedules, self.step_api.predictions
        )
        self._jobs: tuple[JobCollection, ...] = (
            self.custom_jobs,
            TrainingPipelines(self._store, log, self.custom_jobs, self.step_api.models),
            TuningJobs(self._store, log, host),
            BatchPredictionJobs(self._store, log, host),
        )
        self.storage = Storage(host.buckets, self._store.folder / "uploads")
        self._held = ExitStack()

    def hold(self) -> None:
        """Lock the work folder for this server.

        Raises:
            UserError: Another server uses it.
        """
        self._held.enter_context(self._store.hold())

    def open(self) -> None:
        """Clean up after an earlier server, and start the schedules."""
        self.storage.open()
        self.pipeline_jobs.complete_deletions()
        # It looks into the folder of each run, and no request has to wait for that.
        threading.Thread(target=self.pipeline_jobs.remove_left, name="left files", daemon=True).start()
        self.schedules.begin()

    def stop_deployments(self) -> None:
        """End the processes of deployed models, without waiting; no other one is started."""
        self._processes.stop()

    def close(self) -> None:
        """Stop everything that runs."""
        self.schedules.close()
        self.pipeline_jobs.close()
        # The training pipelines learn from their custom jobs how these end.
        for each in self._jobs:
            each.close()
        self.stop_deployments()
        self.step_api.close()
        self._credentials.close()
        self._store.close()
        self._held.close()

    @property
    def routes(self) -> list[Route]:
        """The console, and what Cloud Storage's clients call."""
        return [carried.ROUTE, *self.console.routes, *self.storage.routes]

    @property
    def collections(self) -> dict[str, Methods]:
        """For each collection its methods: HTTP method, path after the collection's, implementation."""
        return {
            "pipelineJobs": _jobs(self.pipeline_jobs),
            **{each.collection: _jobs(each) for each in self._jobs},
            **self.metadata.collections,
            "schedules": _standard(self.schedules)
            | {
                "patch": ("PATCH", "/{id:id}", self.schedules.patch),
                "pause": ("POST", "/{id:id}:pause", self.schedules.pause),
                "resume": ("POST", "/{id:id}:resume", self.schedules.resume),
            },
            "tensorboards": tensorboards.methods(self._store),
            **self.step_api.collections,
        }


def _standard(collection: Any) -> dict[str, tuple[str, str, Method]]:
    """Return create, get, list and delete, which most collections have."""
    return {
        "create": ("POST", "", collection.create),
        "get": ("GET", "/{id:id}", collection.get),
        "list": ("GET", "", collection.list_all),
        "delete": ("DELETE", "/{id:id}", collection.delete),
    }


def _jobs(collection: Any) -> dict[str, tuple[str, str, Method]]:
    """Return the methods of a collection of jobs."""
    return _standard(collection) | {"cancel": ("POST", "/{id:id}:cancel", collection.cancel)}
