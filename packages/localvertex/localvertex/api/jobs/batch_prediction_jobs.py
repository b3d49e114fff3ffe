"""The collection batchPredictionJobs: JSON Lines of a bucket through the container of a model, as in pipelines."""

from dataclasses import replace
from functools import partial
from pathlib import Path

from localvertex._base.lines import WriteLine
from localvertex._base.userinput.errors import UserError
from localvertex.api.jobs.collection import JobCollection, RunningJob
from localvertex.api.jobs.host import JobHost
from localvertex.api.models.registered import Registered
from localvertex.api.rest import messages
from localvertex.api.rest.call import Call
from localvertex.api.rest.errors import Status, invalid, refusing, rpc_error
from localvertex.api.rest.records import Resource
from localvertex.api.rest.store import Store
from localvertex.errors import TaskFailed
from localvertex.executors.google_cloud.batch_predict import LOG, Prediction
from localvertex.jobs import JobState
from localvertex.machines.job.finding import sentences
from localvertex.machines.job.shape import Reading
from localvertex.machines.rules import prediction as rules
from localvertex.store import record
from localvertex.values.buckets import Buckets


class BatchPredictionJobs(JobCollection):
    """The batch predictions of the API.

    Args:
        store: The records of the server.
        log: Called with the start, the end and the warnings of each job.
        host: Runs the containers.
    """

    collection, message = "batchPredictionJobs", "BatchPredictionJob"
    objects = ("inputConfig", "outputConfig", "dedicatedResources", "instanceConfig", "unmanagedContainerModel")
    optional = ("model", "modelParameters", "manualBatchTuningParameters", "generateExplanation", "serviceAccount")

    def __init__(self, store: Store, log: WriteLine, host: JobHost) -> None:
        super().__init__(store, log)
        self._host, self._registered = host, Registered(store.folder.parent)

    def create(self, call: Call) -> Resource:
        """Start a job."""
        body = messages.parse("BatchPredictionJob", call.body)
        message = messages.normalise("BatchPredictionJob", self.inputs(body), snake_case=True)
        _check_addresses(message)
        warnings = _check_machines(message, call.location.region)
        model, fields = message.get("unmanaged_container_model"), {}
        if not model:
            _, number, model = self._registered.named(call.location, message.get("model", ""), "model")
            fields = {"modelVersionId": number}
        with refusing(Status.INVALID_ARGUMENT, TaskFailed, UserError):
            prediction = Prediction.of(
                message,
                model,
                number=record.new_number(),
                buckets=Buckets(root=self._host.buckets),
                choice=self._host.choice,
                log=Path(LOG),
            )
        work = partial(self._run, prediction=prediction)
        return self._start(call.location, body, work, warnings, fields=fields).resource

    def _run(self, running: RunningJob, prediction: Prediction) -> Resource:
        """Predict all lines."""
        prediction = replace(prediction, serving=replace(prediction.serving, log=running.folder / LOG))
        with self._host.surroundings(running) as (machine, _):
            self._follow(running, JobState.RUNNING)
            counts = prediction.run(machine)
            end: Resource = {
                "state": str(JobState.SUCCEEDED),
                "outputInfo": {"gcsOutputDirectory": prediction.address(machine.buckets)},
                "completionStats": {
                    "successfulCount": str(counts.num_predicted),
                    "failedCount": str(counts.num_failed),
                },
            }
        if text := prediction.problem(counts):
            running.warn(text)
            end["partialFailures"] = [rpc_error(Status.INVALID_ARGUMENT, text)]
        return end


def _check_addresses(message: Resource) -> None:
    """Refuse files that are not in buckets; whatever else is wrong is refused later.

    Raises:
        ApiError: There are some.
    """
    uris = message.get("input_config", {}).get("gcs_source", {}).get("uris", [])
    prefix = message.get("output_config", {}).get("gcs_destination", {}).get("output_uri_prefix", "gs://")
    for field, each in [("gcsSource.uris", uri) for uri in uris] + [("gcsDestination.outputUriPrefix", prefix)]:
        if not each.startswith("gs://"):
            raise invalid(f"{field} {each[:200]!r}: expected an address, gs://BUCKET/OBJECT")


def _check_machines(message: Resource, region: str) -> list[str]:
    """Check the machines of a job, and return warnings.

    Raises:
        ApiError: The service would refuse them.
    """
    resources = message.get("dedicated_resources", {})
    findings = rules.check_resources(resources, Reading(), kind=rules.BATCH, region=region)
    if errors := [each for each in findings if each.severity == "error"]:
        raise invalid(f"dedicatedResources: {sentences(errors)}")
    return [sentences([each]) for each in findings]
