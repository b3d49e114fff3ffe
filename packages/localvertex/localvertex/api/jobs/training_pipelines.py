"""The collection trainingPipelines: CustomTrainingJob and its two siblings in the SDK.

A pipeline starts a custom job, which is a resource of its own, and adds the model that it wrote to the registry. A
version in the registry is the proof that the job has succeeded, even when the server is killed in between.
"""

from functools import partial

from localvertex._base.json_object import JsonObject
from localvertex._base.lines import WriteLine
from localvertex.api.jobs.collection import JobCollection, RunningJob, failed
from localvertex.api.jobs.custom_jobs import CustomJobs
from localvertex.api.models.models import Models, Upload
from localvertex.api.rest import messages
from localvertex.api.rest.call import Call, Location
from localvertex.api.rest.errors import Status, invalid, refusing, rpc_error
from localvertex.api.rest.records import Resource
from localvertex.api.rest.store import ID, Store
from localvertex.errors import TaskFailed
from localvertex.jobs import JobState
from localvertex.store.model_versions import ModelVersions
from localvertex.store.models.reading import UPLOADED_BY
from localvertex.values.buckets import Buckets

_CUSTOM_TASK = "gs://google-cloud-aiplatform/schema/trainingjob/definition/custom_task_1.0.0.yaml"
"""The definition of custom training; AutoML has others."""

_MODEL = "uploadedModel"
"""Field of the record only: the id of the model to add a version to."""


class TrainingPipelines(JobCollection):
    """The training pipelines of the API.

    Args:
        store: The records of the server.
        log: Called with the start, the end and the warnings of each pipeline.
        custom_jobs: The server's custom jobs, which run the training.
        models: The server's models, to which trained models are added.
    """

    collection, message, states = "trainingPipelines", "TrainingPipeline", "PIPELINE_STATE"
    objects = ("trainingTaskInputs", "modelToUpload")
    optional = ("trainingTaskDefinition", "modelId", "parentModel")

    def __init__(self, store: Store, log: WriteLine, custom_jobs: CustomJobs, models: Models) -> None:
        super().__init__(store, log)
        self._custom_jobs, self._models, self._work_dir = custom_jobs, models, store.folder.parent
        self._backing: dict[str, str] = {}
        """The custom jobs of running pipelines."""

    def create(self, call: Call) -> Resource:
        """Start a training."""
        body = messages.parse("TrainingPipeline", call.body)
        if data := body.get("inputDataConfig"):
            raise invalid(
                f"inputDataConfig.datasetId {str(data.get('datasetId', ''))[:200]!r}: managed datasets do not exist "
                "here; leave out dataset, and give the program its data in args, e.g. --data=gs://BUCKET/data.csv"
            )
        if (definition := body.get("trainingTaskDefinition", "")) != _CUSTOM_TASK:
            raise invalid(
                f"trainingTaskDefinition {definition[:200]!r} does not run locally; expected custom training: "
                f"{_CUSTOM_TASK!r}"
            )
        if not isinstance(inputs := body.get("trainingTaskInputs"), dict):
            raise invalid("trainingTaskInputs: expected an object with the fields of a CustomJobSpec")
        name = body.get("displayName", "")
        job = {"displayName": f"{name[:117]}-custom-job", "jobSpec": messages.parse("CustomJobSpec", inputs)}
        job |= {key: body[key] for key in ("labels",) if key in body}
        with refusing(Status.INVALID_ARGUMENT, TaskFailed):
            self._custom_jobs.host.read(job, call.location.region, lambda _: None)
        upload = self._upload(call, body, job)
        fields = {_MODEL: upload.versions.folder.name} if upload else {}
        work = partial(self._run, location=call.location, job=job, upload=upload)
        return self._shown(self._start(call.location, body, work, fields=fields).resource)

    def cancel(self, call: Call) -> JsonObject:
        """Ask a running pipeline and its job to stop; one that has ended is unchanged."""
        with self._store.lock:
            super().cancel(call)
            self._custom_jobs.stop(self._backing.get(call.resource_id, ""))
        return {}

    def _upload(self, call: Call, body: Resource, job: Resource) -> Upload | None:
        """Check the model that the pipeline adds to the registry; None without one.

        Raises:
            ApiError: It could not be added.
        """
        if not (model := body.get("modelToUpload")):
            return None
        if not _output_of(job):
            raise invalid("trainingTaskInputs.baseOutputDirectory.outputUriPrefix is missing; modelToUpload needs it")
        request = {"model": model, "parentModel": body.get("parentModel", ""), "modelId": body.get("modelId", "")}
        return self._models.plan(call, request)

    def _run(self, running: RunningJob, location: Location, job: Resource, upload: Upload | None) -> Resource:
        """Run the custom job, and add its model."""
        with self._store.lock:
            # A request to cancel comes before this or finds the job.
            running.processes.check_stopped()
            backing = self._custom_jobs.start(location, job)
            self._backing[running.number] = backing.number
            self._update(running.number, trainingTaskMetadata={"backingCustomJob": backing.resource["name"]})
            self._follow(running, JobState.RUNNING)
        end = backing.end.result()
        del self._backing[running.number]
        running.processes.check_stopped()
        if end["state"] == JobState.CANCELLED:
            return failed(Status.ABORTED, f"{backing.resource['name']} was cancelled")
        if end["state"] != JobState.SUCCEEDED or upload is None:
            return end
        number = self._add(running, upload, f"{_output_of(job).rstrip('/')}/model")
        return _succeeded(self._read_stored(running.number), upload.resource, number)

    def _add(self, running: RunningJob, upload: Upload, address: str) -> str:
        """Add the model, and return the number of its version.

        Raises:
            TaskFailed: The training has not written any file of it.
        """
        folder = Buckets(root=self._custom_jobs.host.buckets).model_files(address)
        fields = {"artifact_uri": folder, UPLOADED_BY: running.name}
        return str(self._models.add(upload, running.processes.check_stopped, **fields).number)

    def _stop_fields(self, job: Resource) -> Resource:
        """Return the fields of a pipeline that ended with its server: succeeded, if its model is in the registry."""
        if ID.fullmatch(model := str(job.get(_MODEL, ""))):
            location, number = job["name"].rsplit("/", 2)[0], job["name"].rpartition("/")[2]
            versions = ModelVersions.of(self._work_dir, model)
            if version := versions.find_upload(f"{self.collection}/{number}"):
                return _succeeded(job, f"{location}/models/{model}", version)
        fields = super()._stop_fields(job)
        if fields["state"] == JobState.CANCELLED:
            # Without an error, the SDK expects a model.
            fields["error"] = rpc_error(Status.CANCELLED, "the training pipeline was cancelled")
        return fields

    def _shown(self, job: Resource) -> Resource:
        """Return a pipeline as the API has it."""
        return {name: value for name, value in super()._shown(job).items() if name != _MODEL}


def _succeeded(job: Resource, resource: str, number: str) -> Resource:
    """Return the fields of a pipeline whose model is in the registry."""
    model = job.get("modelToUpload", {}) | {"name": resource, "versionId": number}
    return {"state": str(JobState.SUCCEEDED), "modelToUpload": model}


def _output_of(job: Resource) -> str:
    """Return the base output directory of a custom job; empty without one."""
    return str(job["jobSpec"].get("baseOutputDirectory", {}).get("outputUriPrefix", ""))
