"""pipelineJobs: a job is a run with the same engine and work folder as `localvertex run`."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from localvertex._base.json_object import JsonObject
from localvertex._base.lines import WriteLine
from localvertex._base.userinput import atomic_write
from localvertex.api.pipeline_jobs.input_artifacts import given_artifacts
from localvertex.api.pipeline_jobs.records import RunFiles, job_records
from localvertex.api.pipeline_jobs.request import DIGEST, RECORD, check_runtime_config, file_of, new_resource
from localvertex.api.pipeline_jobs.retry import content_to_retry, prepare_retry
from localvertex.api.pipeline_jobs.run_files import check_removable, remove_run
from localvertex.api.pipeline_jobs.run_threads import RunThreads
from localvertex.api.pipeline_jobs.view import FILTER_FIELDS, pipeline_job, pipeline_name, was_started_here
from localvertex.api.rest import messages
from localvertex.api.rest.call import Call, Location
from localvertex.api.rest.errors import ApiError, Status, invalid, not_found, rpc_error
from localvertex.api.rest.listing import page_of
from localvertex.api.rest.operations import finished_operation
from localvertex.api.rest.store import Damaged, Store
from localvertex.runner import engine
from localvertex.runner.pipeline_inputs import buckets_of, notes_of
from localvertex.show import report
from localvertex.store import record, run_folder
from localvertex.store.task import Artifact
from localvertex.values.buckets import Buckets

COLLECTION = "pipelineJobs"

MAX_RUNS = 4
"""Runs of this server at once: each has a thread, steps and replicas of its own."""


class RunMetadata(Protocol):
    """How the API's metadata represents runs."""

    def find_artifact(self, location: Location, artifact_id: str) -> JsonObject | None:
        """Return an artifact of the default metadata store of a location, None when it does not exist."""
        ...

    def contexts(self, job: JsonObject) -> JsonObject:
        """Return the fields of `jobDetail` that come from the metadata of a stored job."""
        ...

    def add(self, job_id: str) -> None:
        """Add the run of a job that has ended."""
        ...

    def forget(self, job_id: str) -> None:
        """Add a run again when it ends: it is being resumed."""
        ...


class PipelineJobs:
    """The pipeline jobs of the API; each running job has a thread of this process."""

    def __init__(
        self,
        store: Store,
        log: WriteLine,
        options: engine.Options,
        metadata: RunMetadata,
        *,
        max_runs: int = MAX_RUNS,
    ) -> None:
        self._store, self.metadata = store, metadata
        self._options_of_all = options
        self.work_dir = store.folder.parent
        self._threads = RunThreads(store, COLLECTION, log, self._on_end, max_runs)
        self._starting: set[str] = set()
        """Ids of the jobs that are being checked, which takes seconds for a large pipeline."""
        store.expect(COLLECTION, RECORD)
        self._records = job_records(store, COLLECTION, self._damaged_resource, self._with_contexts)
        self._listeners: list[Callable[[], None]] = []

    def when_one_ends(self, listener: Callable[[], None]) -> None:
        """Call a function when a run has ended."""
        self._listeners.append(listener)

    def create(self, call: Call) -> JsonObject:
        """Start a run."""
        body = messages.parse("PipelineJob", call.body)
        return self.start(call.location, body, call.query.get("pipelineJobId", ""))

    def start(
        self,
        location: Location,
        body: JsonObject,
        job_id: str = "",
        *,
        schedule_name: str = "",
        schedule_time: str = "",
    ) -> JsonObject:
        """Start a run of a PipelineJob message and return the new resource.

        Raises:
            ApiError: The pipeline cannot run here, its parameters are wrong, or the id is in use.
            OSError: The run cannot be created, e.g. because the disk is full.
        """
        spec = body.get("pipelineSpec")
        if not spec:
            raise invalid("pipelineSpec is missing; a template is read by the SDK, which sends the pipeline itself")
        check_runtime_config(body)
        with self._store.lock:
            job_id = job_id or self._new_id(pipeline_name(spec))
            self._check_id(location, job_id)
            job = new_resource(location.child(COLLECTION, job_id), body, schedule_name)
            self._store.write(COLLECTION, job_id, job)
            self._starting.add(job_id)
        try:
            with file_of(body) as path:
                template = body.get("templateUri"), body.get("templateMetadata", {}).get("version", "")
                options = replace(
                    self._options(location, job_id, schedule_time),
                    # The file from which it is run has another path than the run's copy, and is removed.
                    file=template[0] or str(self.work_dir.absolute() / job_id / path.name),
                    sha256=template[1].removeprefix(DIGEST) if template[1].startswith(DIGEST) else "",
                )
                artifacts = self._artifacts(location, body)
                run = engine.prepare(path, artifacts=artifacts, options=options, write_page=report.write)
            self._threads.start(job_id, run)
        except BaseException:
            self._store.remove(COLLECTION, job_id)
            raise
        finally:
            with self._store.lock:
                self._starting.discard(job_id)
        return self._with_contexts(self._view(job))

    def retry(self, run_id: str) -> None:
        """Resume a run that has ended without success, including one that was started in a terminal.

        Raises:
            ApiError: It cannot be resumed here, or another request is resuming it.
        """
        with self._store.lock:
            if run_id in self._starting:
                raise ApiError(Status.FAILED_PRECONDITION, f"{run_id} is being started already")
            self._starting.add(run_id)
        try:
            content = content_to_retry(self.work_dir, run_id)
            num_resumes = len(content["resume_times"])
            self._threads.wait_for_end(run_id, num_resumes)
            run = prepare_retry(content, replace(self._options_of_all, work_dir=self.work_dir))
            self._threads.forget_end(run_id, num_resumes + 1)
            self.metadata.forget(run_id)
            self._threads.start(run_id, run, num_resumes + 1)
        finally:
            with self._store.lock:
                self._starting.discard(run_id)

    def is_here(self, run_id: str) -> bool:
        """Return whether this process executes a run, or is starting it."""
        return run_id in self._threads or run_id in self._starting

    def is_left(self, run_id: str) -> bool:
        """Return whether a killed server was the last to start a run, whose supervisors end its processes."""
        with suppress(Damaged, OSError, ValueError):
            job, content = self._store.read(COLLECTION, run_id) or {}, record.read(self.work_dir / run_id)
            return was_started_here(job, content) and not self.is_here(run_id)
        return False

    def stop(self, run_id: str, *, at_once: bool) -> bool:
        """Ask a run to stop as `cancel` does, or without grace time; return whether it is one of this server."""
        return self._threads.stop(run_id, at_once=at_once)

    def remove(self, run_id: str) -> None:
        """Delete a run that has ended, with all its files, including one that was started in a terminal.

        Raises:
            ApiError: It is running, something else needs its files, or a file cannot be deleted.
        """
        with self._store.lock:
            check_removable(self.work_dir / run_id)
            self._remove(run_id)

    def complete_deletions(self) -> None:
        """Delete what is left of runs whose deletion an earlier server did not complete: a run has a record."""
        with self._store.lock:
            for run_id in self._store.ids(COLLECTION):
                run_dir = self.work_dir / run_id
                if run_dir.is_dir() and not self.is_started(run_id) and not record.is_running(run_dir):
                    with suppress(ApiError, OSError):
                        self._remove(run_id)

    def remove_left(self) -> None:
        """Remove the temporary files of records that a killed server or `localvertex run` was writing."""
        for run_id in RunFiles(self.work_dir).ids():
            atomic_write.remove_left(self.work_dir / run_id / record.FILE)

    def _remove(self, run_id: str) -> None:
        remove_run(self.work_dir / run_id)
        self._store.remove(COLLECTION, run_id)

    def check(
        self,
        location: Location,
        body: JsonObject,
        *,
        only_pipeline: bool = False,
    ) -> list[str]:
        """Check a PipelineJob message as `start` does, start nothing, and return what differs from the service.

        Args:
            location: The location of the run.
            body: The message.
            only_pipeline: Whether the values of the run are not known yet.

        Raises:
            ApiError: The pipeline cannot run here, or its parameters are wrong.
        """
        check_runtime_config(body)
        with file_of(body) as path:
            options = self._options(location)
            if only_pipeline:
                engine.open_file(path, options)
                return []
            artifacts = self._artifacts(location, body)
            file, inputs = engine.check(path, artifacts=artifacts, options=options)
            return notes_of(file, inputs, buckets_of(options, {}))

    def was_begun(self, job_id: str, schedule_name: str) -> bool:
        """Return whether this run of a schedule was already started."""
        try:
            job = self._store.read(COLLECTION, job_id)
        except Damaged:
            # The id contains the number of the schedule.
            return self.is_started(job_id)
        return job is not None and job.get("scheduleName") == schedule_name

    def is_started(self, job_id: str) -> bool:
        """Return whether the run of a job exists; `localvertex clean` may have removed it."""
        return (self.work_dir / job_id / record.FILE).is_file()

    def _artifacts(self, location: Location, body: JsonObject) -> dict[str, list[Artifact]]:
        """Return the input artifacts that a PipelineJob message names, see `given_artifacts`."""
        buckets = Buckets(root=self._options_of_all.gcs_root)
        return given_artifacts(body.get("runtimeConfig", {}), location, self.metadata.find_artifact, buckets)

    def _options(self, location: Location, job_id: str | None = None, schedule_time: str = "") -> engine.Options:
        return replace(
            self._options_of_all,
            work_dir=self.work_dir,
            run_id=job_id,
            project=location.project,
            region=location.region,
            schedule_time=schedule_time,
        )

    def _new_id(self, name: str) -> str:
        stem = job_id = run_folder.new_run_id(name, self.work_dir)
        number = 1
        while job_id in self._starting:
            number += 1
            job_id = f"{stem}-{number}"
        return job_id

    def _check_id(self, location: Location, job_id: str) -> None:
        if not run_folder.RUN_ID.fullmatch(job_id) or job_id in run_folder.RESERVED:
            raise invalid(
                f"pipelineJobId {job_id[:140]!r}: expected up to 128 lower-case letters, digits and '-', a letter first"
            )
        if (self.work_dir / job_id).exists() or job_id in self._starting:
            raise ApiError(Status.ALREADY_EXISTS, f"{location.child(COLLECTION, job_id)} already exists")

    def get(self, call: Call) -> JsonObject:
        """Return one job."""
        return self._records.get(call)

    def list_all(self, call: Call) -> JsonObject:
        """List the jobs of a location."""
        fields = messages.field_names("PipelineJob") | FILTER_FIELDS
        return page_of(call, self._records, fields=fields)

    def cancel(self, call: Call) -> JsonObject:
        """Ask a running job to stop; one that has ended is unchanged."""
        with self._store.lock, suppress(Damaged):
            self._find(call)
        self.stop(call.resource_id, at_once=False)
        return {}

    def delete(self, call: Call) -> JsonObject:
        """Delete a job that has ended, with all its files; a deletion that was interrupted is completed."""
        run_folder.wait_for_last_processes(self._folder_of(call))
        with self._store.lock:
            run_dir = self._folder_of(call)
            if record.is_running(run_dir):
                raise ApiError(Status.FAILED_PRECONDITION, f"{call.resource_id} is running; cancel it first")
            self._remove(call.resource_id)
        return finished_operation(call, "DeleteOperationMetadata")

    def num_active(self, schedule_name: str) -> int:
        """Count the jobs of a schedule that have not ended."""
        every = self._store.index.summaries(self._records)
        ids = [job_id for job_id, each in every if each.content and each.content.get("scheduleName") == schedule_name]
        return sum(record.is_running(self.work_dir / job_id) for job_id in ids)

    def close(self) -> None:
        """Stop the running jobs and wait for them; they become FAILED, because no client cancelled them."""
        self._threads.close()

    def _on_end(self, run_id: str) -> None:
        for listener in self._listeners:
            listener()
        self.metadata.add(run_id)

    def _folder_of(self, call: Call) -> Path:
        """Return the folder of a job, whose record may be damaged."""
        run_dir = self.work_dir / call.resource_id
        with suppress(Damaged):
            self._find(call, is_enough=run_dir.is_dir())
        return run_dir

    def _find(self, call: Call, *, is_enough: bool = False) -> JsonObject:
        """Return the stored part of a job whose run exists; with `is_enough` it need not."""
        job = self._store.find(call, COLLECTION)
        if not is_enough and not self.is_started(call.resource_id):
            raise not_found(job["name"])
        return job

    def _view(self, job: JsonObject) -> JsonObject:
        return pipeline_job(job, self.work_dir / job["name"].rpartition("/")[2])

    def _with_contexts(self, view: JsonObject) -> JsonObject:
        """Add the contexts of the metadata to the `jobDetail` of a resource, which contains its stored part."""
        if not view.keys() >= {"jobDetail", "createTime", "pipelineSpec"}:
            return view
        return view | {"jobDetail": view["jobDetail"] | self.metadata.contexts(view)}

    def _damaged_resource(self, call: Call, job_id: str, reason: str) -> JsonObject:
        """Build the stand-in for a job whose stored request is damaged, with the state of its run."""
        stored = {"name": call.location.child(COLLECTION, job_id), "displayName": job_id, "pipelineSpec": {}}
        error = rpc_error(Status.INTERNAL, f"its record is damaged ({reason}); delete it")
        return self._view(stored) | {"error": error}
