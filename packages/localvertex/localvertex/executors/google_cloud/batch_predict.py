"""ModelBatchPredictOp: JSON Lines through the container of a model, which runs for the time of the job."""

import glob
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.errors import UserError
from localvertex.containers.choice import Choice
from localvertex.containers.serving import batch
from localvertex.containers.serving.batch import BatchJob, Counts
from localvertex.containers.serving.container import ServingContainer
from localvertex.containers.serving.machine import Machine
from localvertex.containers.serving.process import NotServing, Serving, ServingProcess
from localvertex.errors import TaskFailed
from localvertex.executors.attempt import Attempt
from localvertex.executors.google_cloud.endpoints import payload_of
from localvertex.executors.launcher import LauncherExecutor, launcher_options, target, vertex_uri, write_resource
from localvertex.executors.model_upload import unmanaged_model
from localvertex.processes import logs
from localvertex.store import executor_files, record
from localvertex.store.model_versions import ModelVersions
from localvertex.store.models.reading import DEFAULT
from localvertex.values.buckets import Buckets

_MODULE = "google_cloud_pipeline_components.container.v1.batch_prediction_job.launcher"

_TYPE, _COLLECTION = "BatchPredictionJob", "batchPredictionJobs"

_FORMAT = "jsonl"

LOG = "container.log"
"""The file for the output of the serving container, in the folder of a step or job."""

_ID = re.compile(r"[A-Za-z0-9_-]+")

Message = JsonObject


class BatchPredictExecutor(LauncherExecutor):
    """Runs the job, and writes what the launcher writes (batch_prediction_job/remote_runner.py of GCPC 2.22)."""

    name: ClassVar[str] = "batch prediction"
    modules = frozenset({_MODULE})
    required = ("payload", "gcp_resources", "executor_input")

    def execute(self, attempt: Attempt) -> None:
        """Predict all lines.

        Raises:
            TaskFailed: The job cannot run, or not a single line has a prediction.
        """
        options = launcher_options(attempt.arguments())
        project, location = target(options, attempt)
        message = payload_of(options["payload"], attempt)
        number = attempt.scope.task["pipeline_task_uuid"]
        name = f"projects/{project}/locations/{location}/{_COLLECTION}/{number}"
        write_resource(attempt, options, _TYPE, name, location)
        machine = attempt.context.machine
        try:
            model = unmanaged_model(attempt) or _model_content(attempt, str(message.get("model", "")))
            prediction = Prediction.of(
                message,
                model,
                number=number,
                buckets=machine.buckets,
                choice=machine.choice,
                log=attempt.folder / LOG,
            )
        except UserError as error:
            raise TaskFailed(str(error), exit_code=2, is_retryable=False) from None
        log = prediction.serving.log
        text = f"{len(prediction.sources)} files into {prediction.folder}; the container's log is {log}"
        logs.add(attempt.log, text)
        counts = prediction.run(machine)
        logs.add(
            attempt.log, f"{counts.num_predicted} predictions and {counts.num_failed} errors in {prediction.folder}"
        )
        if text := prediction.problem(counts):
            attempt.warn(text)
        _write_outputs(attempt, name, location, prediction.address(machine.buckets))
        attempt.report_exit(0)


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """A BatchPredictionJob message that has been checked, for a pipeline's step or a request to the API."""

    job: BatchJob
    sources: list[Path]
    folder: Path
    """The new folder of the predictions."""
    serving: Serving

    @classmethod
    def of(
        cls, message: Message, model: Message, *, number: str, buckets: Buckets, choice: Choice, log: Path
    ) -> "Prediction":
        """Check a message.

        Args:
            message: The job, in snake_case.
            model: The content of the model's version.
            number: The id of the job.
            buckets: Where its files are.
            choice: How containers run.
            log: The file for the container's output.

        Raises:
            UserError: It cannot run here.
            TaskFailed: An address leads out of its bucket, or the model's files do not exist.
        """
        job, sources, prefix = _job_of(message), _sources(message, buckets), _prefix(message)
        buckets.check_writable(prefix)
        return cls(
            job=job,
            sources=sources,
            serving=_serving(model, message, number, buckets, choice, log),
            folder=Path(buckets.path_of(prefix)) / _folder_name(model),
        )

    def run(self, machine: Machine) -> Counts:
        """Predict all lines through a container of its own.

        Raises:
            TaskFailed: The container does not serve, or a file cannot be read or written, or no line has a prediction.
            Cancelled: The run was stopped.
        """
        try:
            self.folder.mkdir(parents=True)
        except OSError as error:
            raise TaskFailed(f"the output folder {self.folder} cannot be created: {error.strerror}") from None
        counts = self._predict(machine)
        if counts.num_failed and not counts.num_predicted:
            reason = json.dumps(counts.first_error)
            text = f"none of {counts.num_failed} lines has a prediction; the first error: {reason}"
            raise TaskFailed(text, is_retryable=False)
        return counts

    def problem(self, counts: Counts) -> str:
        """Return a sentence about the lines without a prediction; empty if all have one."""
        if not counts.num_failed:
            return ""
        total, reason = counts.num_predicted + counts.num_failed, json.dumps(counts.first_error)
        text = f"{counts.num_failed} of {total} lines have no prediction; the first error: {reason}; all are in "
        return f"{text}{self.folder / batch.ERRORS}-*"

    def address(self, buckets: Buckets) -> str:
        """Return the gs:// address of an output folder in a bucket, which parameters name by its path; or its path."""
        root, folder = buckets.root, self.folder
        return f"gs://{folder.relative_to(root)}" if root and folder.is_relative_to(root) else str(folder)

    def _predict(self, machine: Machine) -> Counts:
        process = None
        try:
            process = ServingProcess(self.serving, machine)
            process.wait_until_healthy(machine.processes.check_stopped)
            return batch.predict(self.job, process, self.sources, self.folder, machine.processes.check_stopped)
        except NotServing as error:
            machine.processes.check_stopped()
            raise TaskFailed(str(error)) from None
        except OSError as error:
            machine.processes.check_stopped()
            raise TaskFailed(f"the batch prediction stopped: {error}") from None
        finally:
            if process is not None:
                process.stop()


def _job_of(message: Message) -> BatchJob:
    """Read how each line is treated.

    Raises:
        UserError: The message has something that does not run locally.
    """
    given = message.get("input_config", {}).get("instances_format", _FORMAT)
    wanted = message.get("output_config", {}).get("predictions_format", _FORMAT)
    if (given, wanted) != (_FORMAT, _FORMAT):
        raise UserError(f"instances_format {given!r} and predictions_format {wanted!r}: only {_FORMAT!r} runs locally")
    if message.get("generate_explanation"):
        raise UserError("generate_explanation: explanations do not run locally; leave it out")
    if not message.get("dedicated_resources", {}).get("machine_spec", {}).get("machine_type"):
        raise UserError("machine_type is missing; the service needs one for a model with a container")
    config = message.get("instance_config", {})
    if unknown := config.keys() - {"key_field"}:
        raise UserError(f"{min(unknown)}: of the options for instances only key_field runs locally; leave it out")
    size = int(message.get("manual_batch_tuning_parameters", {}).get("batch_size", 0) or batch.BATCH_SIZE)
    return BatchJob(
        key_field=str(config.get("key_field", "")),
        parameters=message.get("model_parameters"),
        batch_size=size,
    )


def _model_content(attempt: Attempt, name: str) -> Message:
    """Return the content of the model that the job names.

    Raises:
        TaskFailed: It is not in the registry.
    """
    if not name:
        raise TaskFailed("the job has neither a model nor an unmanaged_container_model", is_retryable=False)
    resource, _, version = name.partition("@")
    model_id = resource.rpartition("/")[2]
    if not _ID.fullmatch(model_id):
        raise TaskFailed(f"Invalid model name: {name[:200]}", is_retryable=False)
    versions = ModelVersions.of(attempt.context.work_dir, model_id)
    try:
        return versions.content(versions.number(version or DEFAULT))
    except LookupError as error:
        raise TaskFailed(f"NOT_FOUND: {error}", is_retryable=False) from None
    except ValueError as error:
        raise TaskFailed(f"cannot read the registry: {error}", is_retryable=False) from None


def _sources(message: Message, buckets: Buckets) -> list[Path]:
    """Return the files of the input.

    Raises:
        UserError: The input has no files, or they are in Cloud Storage.
        TaskFailed: An address leads out of its bucket.
    """
    uris = message.get("input_config", {}).get("gcs_source", {}).get("uris", [])
    if not isinstance(uris, list) or not uris:
        raise UserError("gcs_source_uris is empty; only files with JSON Lines are read locally")
    found: list[Path] = []
    for uri in map(str, uris):
        path = buckets.path_of(uri)
        if uri.startswith("gs://") and buckets.root is None:
            raise UserError(f"gcs_source_uris {uri[:200]!r}: give a folder of buckets with --gcs-root")
        files = [Path(each) for each in sorted(glob.glob(path, recursive=True)) if Path(each).is_file()]
        if not files:
            raise UserError(f"gcs_source_uris {uri[:200]!r}: there is no such file ({path})")
        for each in files:
            buckets.check_links(each)
        found += files
    return list(dict.fromkeys(found))


def _prefix(message: Message) -> str:
    prefix = str(message.get("output_config", {}).get("gcs_destination", {}).get("output_uri_prefix", ""))
    if not prefix:
        raise UserError("gcs_destination_output_uri_prefix is empty; only files are written locally")
    return prefix.rstrip("/")


def _serving(model: Message, message: Message, number: str, buckets: Buckets, choice: Choice, log: Path) -> Serving:
    """Return the server to start for the job.

    Raises:
        UserError: The model has no container that runs here.
        TaskFailed: Its files do not exist.
    """
    container = ServingContainer.of_model(model)
    if problem := container.problem(choice):
        raise UserError(problem)
    spec = message["dedicated_resources"]["machine_spec"]
    variables = {"AIP_MACHINE_TYPE": spec["machine_type"], "AIP_ACCELERATOR_TYPE": spec.get("accelerator_type", "")}
    return Serving(
        container=container,
        artifact=buckets.model_files(str(model.get("artifact_uri", ""))),
        variables={name: text for name, text in variables.items() if text},
        default_route=f"/v1/endpoints/0/deployedModels/{number}",
        num_gpus=int(spec.get("accelerator_count", 0) or 0),
        log=log,
    )


def _folder_name(model: Message) -> str:
    """Return the name of the output folder, as the service forms it."""
    now = record.now()
    name = str(model.get("display_name") or "unmanaged").replace("/", "_")
    return f"prediction-{name}-{now.replace('-', '_').replace(':', '_').replace('.', '_')}"


def _write_outputs(attempt: Attempt, name: str, location: str, directory: str) -> None:
    planned = attempt.executor_input["outputs"]["artifacts"]
    metadata = {"resourceName": name, "gcsOutputDirectory": directory}
    metadata |= {"bigqueryOutputTable": "", "bigqueryOutputDataset": ""}
    found = {
        "batchpredictionjob": {"uri": vertex_uri(name, location), "metadata": metadata},
        "gcs_output_directory": {"uri": directory},
    }
    executor_files.write_output(
        attempt.executor_input,
        {each: planned[each]["artifacts"][0] | fields for each, fields in found.items() if each in planned},
    )
