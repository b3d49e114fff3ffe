"""pipelineJobs: a job is a run with the same engine and work directory as `localvertex run`."""

import json
import tempfile
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from localvertex import engine
from localvertex.errors import RecordNotWritten, Refused
from localvertex.runner.pipeline_run import PipelineRun
from localvertex.serve.api import messages
from localvertex.serve.api.call import Call, Location
from localvertex.serve.api.errors import ApiError, Status, invalid, not_found
from localvertex.serve.api.listing import page
from localvertex.serve.api.operations import Operations
from localvertex.serve.api.store import Store
from localvertex.serve.pipeline_job_view import FILTER_FIELDS, pipeline_job, pipeline_name, searchable
from localvertex.state import journal, record, removal, run_folder
from localvertex.state.runs import find_all
from userinput.errors import UserError

COLLECTION = "pipelineJobs"

_INPUT_FIELDS = (
    "displayName",
    "pipelineSpec",
    "labels",
    "runtimeConfig",
    "encryptionSpec",
    "serviceAccount",
    "network",
    "reservedIpRanges",
    "templateUri",
    "pscInterfaceConfig",
    "preflightValidations",
    "originalPipelineJobId",
    "pipelineTaskRerunConfigs",
)
"""Fields that a user may set; the service sets the others."""


class PipelineJobs:
    """The pipeline jobs of the API; running ones have a thread of this process each."""

    def __init__(
        self,
        store: Store,
        operations: Operations,
        log: Callable[[str], None],
        options: engine.Options,
    ) -> None:
        self._store, self._operations, self._log = store, operations, log
        self._options_of_all = options
        self._work_dir = store.folder.parent
        self._running: dict[str, tuple[PipelineRun, threading.Thread]] = {}
        self.on_end: Callable[[], None] = lambda: None
        """Called when a run has ended."""

    def create(self, call: Call) -> dict[str, Any]:
        """Start a run."""
        body = messages.checked(call.version, "PipelineJob", call.body)
        return self.start(call.location, body, call.query.get("pipelineJobId", ""))

    def start(
        self,
        location: Location,
        body: dict[str, Any],
        job_id: str = "",
        *,
        schedule_name: str = "",
        schedule_time: str = "",
    ) -> dict[str, Any]:
        """Start a run of a PipelineJob message and return the new resource.

        Raises:
            ApiError: The pipeline cannot run here, its parameters are wrong, or the id is in use.
        """
        spec = body.get("pipelineSpec")
        if not spec:
            raise invalid("pipelineSpec is missing; a template is read by the SDK, which sends the pipeline itself")
        with self._store.lock:
            job_id = job_id or run_folder.new_run_id(pipeline_name(spec), self._work_dir)
            self._check_id(location, job_id)
            _check_runtime_config(body)
            options = replace(
                self._options_of_all,
                work_dir=self._work_dir,
                run_id=job_id,
                project=location.project,
                region=location.region,
                schedule_time=schedule_time,
            )
            job = _new_resource(location.child(COLLECTION, job_id), body, schedule_name)
            self._store.write(COLLECTION, job_id, job)
            try:
                run = _prepared(body, options)
            except ApiError:
                self._store.remove(COLLECTION, job_id)
                raise
            thread = threading.Thread(target=self._execute, args=(job_id, run), name=job_id)
            self._running[job_id] = run, thread
            thread.start()
        return self._view(job)

    def _check_id(self, location: Location, job_id: str) -> None:
        if not run_folder.RUN_ID.fullmatch(job_id) or job_id in run_folder.RESERVED:
            raise invalid(
                f"pipelineJobId {job_id[:140]!r}: expected up to 128 lower-case letters, digits and '-', a letter first"
            )
        if (self._work_dir / job_id).exists():
            raise ApiError(Status.ALREADY_EXISTS, f"{location.child(COLLECTION, job_id)} already exists")

    def _execute(self, job_id: str, run: PipelineRun) -> None:
        self._log(f"pipelineJobs/{job_id}: running")
        try:
            content = run.execute()
            reason = f", {content['error']}" if content["error"] else ""
            self._log(f"pipelineJobs/{job_id}: {content['state']}{reason}")
        except RecordNotWritten as error:
            self._log(f"pipelineJobs/{job_id}: {error}")
        except Exception as error:  # the server keeps running, and run.json shows that the run no longer does
            self._log(f"pipelineJobs/{job_id}: internal error in localvertex: {type(error).__name__}: {error}")
        finally:
            with self._store.lock:
                self._running.pop(job_id, None)
            self.on_end()

    def get(self, call: Call) -> dict[str, Any]:
        """Return one job."""
        return self._view(self._find(call))

    def list_all(self, call: Call) -> dict[str, Any]:
        """List the jobs of a location."""
        jobs = [self._view(each) for each in self._existing()]
        fields = messages.field_names(call.version, "PipelineJob") | FILTER_FIELDS
        return page(call, COLLECTION, jobs, fields=fields, searchable=searchable)

    def cancel(self, call: Call) -> dict[str, Any]:
        """Ask a running job to stop; one that has ended is unchanged."""
        with self._store.lock:
            job = self._find(call)
            if call.resource_id in self._running:
                self._store.write(COLLECTION, call.resource_id, job | {"state": "PIPELINE_STATE_CANCELLING"})
                self._running[call.resource_id][0].stop()
        return {}

    def delete(self, call: Call) -> dict[str, Any]:
        """Delete a job that has ended, with all its files."""
        with self._store.lock:
            self._find(call)
            if record.is_running(self._work_dir / call.resource_id):
                raise ApiError(Status.FAILED_PRECONDITION, f"{call.resource_id} is running; cancel it first")
            self._store.remove(COLLECTION, call.resource_id)
            _remove_run(self._work_dir / call.resource_id)
        return self._operations.done(call, "DeleteOperationMetadata")

    def num_active(self, schedule_name: str) -> int:
        """Count the jobs of a schedule that have not ended."""
        jobs = [each for each in self._existing() if each.get("scheduleName") == schedule_name]
        return sum(record.is_running(self._work_dir / each["name"].rpartition("/")[2]) for each in jobs)

    def close(self) -> None:
        """Stop the running jobs and wait for them; they become FAILED, because no client cancelled them."""
        with self._store.lock:
            running = dict(self._running)
            for job_id, (run, _) in running.items():
                job = self._store.read(COLLECTION, job_id)
                if job and job.get("state") != "PIPELINE_STATE_CANCELLING":
                    self._store.write(COLLECTION, job_id, job | {"state": "PIPELINE_STATE_FAILED"})
                run.stop()
        for _, thread in running.values():
            thread.join()

    def _existing(self) -> list[dict[str, Any]]:
        """Return the jobs whose run exists; `localvertex clean` may have removed it."""
        jobs = self._store.all(COLLECTION)
        return [each for each in jobs if (self._work_dir / each["name"].rpartition("/")[2] / record.FILE).is_file()]

    def _find(self, call: Call) -> dict[str, Any]:
        name = call.location.child(COLLECTION, call.resource_id)
        job = self._store.read(COLLECTION, call.resource_id)
        if job is None or job["name"] != name or not (self._work_dir / call.resource_id / record.FILE).is_file():
            raise not_found(name)
        return job

    def _view(self, job: dict[str, Any]) -> dict[str, Any]:
        return pipeline_job(job, self._work_dir / job["name"].rpartition("/")[2])


def _new_resource(name: str, body: dict[str, Any], schedule_name: str) -> dict[str, Any]:
    """Build the stored part of a PipelineJob."""
    now, given = record.now(), {key: body[key] for key in _INPUT_FIELDS if key in body}
    job = {"name": name, "displayName": name.rpartition("/")[2], "createTime": now, "updateTime": now}
    return job | ({"scheduleName": schedule_name} if schedule_name else {}) | given


def _prepared(body: dict[str, Any], options: engine.Options) -> PipelineRun:
    """Prepare a run of a PipelineJob, whose settings are read like those of a PipelineJob file.

    Raises:
        ApiError: The pipeline cannot run here, or its parameters are wrong.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pipeline.json"
        path.write_text(json.dumps({name: body[name] for name in _INPUT_FIELDS if name in body}))
        try:
            return engine.prepare(path, options=options)
        except UserError as error:
            reasons = "; ".join(error.reasons) if isinstance(error, Refused) else str(error)
            raise invalid(reasons.replace(f"{path}: ", "")) from None


def _check_runtime_config(body: dict[str, Any]) -> None:
    """Refuse settings that a PipelineJob file may have, but a request may not.

    Raises:
        ApiError: There is such a setting.
    """
    config = body.get("runtimeConfig", {})
    if config.get("parameters"):
        raise invalid("runtimeConfig.parameters belongs to schema version 2.0.0; use parameterValues")
    if config.get("inputArtifacts"):
        raise invalid("runtimeConfig.inputArtifacts is not supported locally; pass the artifact with an importer")


def _remove_run(run_dir: Path) -> None:
    """Delete a run; keep its files, but not its record, when another run or a model refers to them."""
    every = find_all(run_dir.parent)
    removed = removal.plan(run_dir.parent, [each for each in every if each.run_dir == run_dir], every).removed
    for each in removed:
        removal.remove(each)
    for path in (run_dir / record.FILE, *run_dir.glob(journal.PATTERN)):
        path.unlink(missing_ok=True)
