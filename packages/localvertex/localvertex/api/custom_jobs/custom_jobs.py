"""The collection customJobs of the API."""

import shutil
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from localvertex.api.custom_jobs.job_threads import JobThreads
from localvertex.api.custom_jobs.records import COLLECTION, JobRecords, Resource, damaged_resource
from localvertex.api.rest import errors, messages
from localvertex.api.rest.call import Call
from localvertex.api.rest.errors import ApiError, invalid, not_found
from localvertex.api.rest.listing import page_of
from localvertex.api.rest.operations import finished_operation
from localvertex.api.rest.records import StoredRecords, Viewed
from localvertex.api.rest.store import Damaged, Store
from localvertex.errors import TaskFailed
from localvertex.jobs import JobState, Workspace, images, read_job
from localvertex.jobs.status import FINAL_STATES
from localvertex.runner.engine import Options
from localvertex.store import record
from localvertex.values.buckets import Buckets
from localvertex_base.lines import WriteLine

_BUCKETS = "buckets"
"""The folder of the work folder that has one folder per bucket."""

_INPUT_FIELDS = ("displayName", "jobSpec", "labels", "encryptionSpec")


class CustomJobs:
    """The custom jobs of the API; running ones have a thread of this process each."""

    def __init__(self, store: Store, log: WriteLine, options: Options) -> None:
        self._store, self._options = store, options
        self._records = JobRecords(store)
        self.threads = JobThreads(self._records, log, options)
        self.buckets = options.gcs_root.absolute() if options.gcs_root else self._records.work_dir / _BUCKETS
        """The folder that has one folder per bucket."""
        self._listed = StoredRecords(
            store=store,
            collection=COLLECTION,
            large=frozenset({"jobSpec"}),
            stand_in=damaged_resource,
            view=self._list_view,
        )

    def create(self, call: Call) -> Resource:
        """Start a job."""
        body = messages.parse("CustomJob", call.body)
        warnings: list[str] = []
        try:
            job = read_job(
                body,
                region=call.location.region,
                command_prefixes=self._options.command_prefixes,
                warn=warnings.append,
                has_images=bool(self._options.container_choice.options.engine),
                stand_ins=self._options.container_choice.stand_ins,
            )
            images.check(job, self._options.container_choice)
            # Refuses what leads out of a bucket.
            Buckets(root=self.buckets).to_local_paths(job.spec)
        except TaskFailed as error:
            raise invalid(str(error)) from None
        if not job.display_name:
            raise invalid("displayName is missing")
        number, now = str(uuid4().int >> 66), record.now()
        resource = {"name": call.location.child(COLLECTION, number), "state": str(JobState.PENDING)}
        resource |= {"createTime": now, "updateTime": now, **{key: body[key] for key in _INPUT_FIELDS if key in body}}
        if job.spec.get("tensorboard"):
            warnings.append("tensorboard: its logs stay in their folder; upload them with aiplatform.upload_tb_log")
        for text in warnings:
            self.threads.warn(number, text)
        workspace = Workspace(
            folder=self._records.folder(number),
            private_dir=self._records.work_dir / record.PRIVATE,
            project=call.location.project,
            buckets=self.buckets,
        )
        self.threads.start(number, job, workspace, partial(self._store.write, COLLECTION, number, resource))
        return resource

    def get(self, call: Call) -> Resource:
        """Return one job."""
        return self._listed.get(call)

    def list_all(self, call: Call) -> dict[str, Any]:
        """List the jobs of a location."""
        fields = messages.field_names("CustomJob")
        return page_of(call, self._listed, fields=fields)

    def cancel(self, call: Call) -> dict[str, Any]:
        """Ask a running job to stop; one that has ended is unchanged."""
        with self._store.lock:
            with suppress(Damaged):
                self._store.find(call, COLLECTION)
            self.threads.cancel(call.resource_id)
        return {}

    def delete(self, call: Call) -> dict[str, Any]:
        """Delete a job that has ended, with its logs; files that it wrote elsewhere stay."""
        folder = self._records.folder(call.resource_id)
        with self._store.lock:
            with suppress(Damaged):
                self._store.find(call, COLLECTION)
            if record.is_running(folder):
                raise ApiError(errors.Status.FAILED_PRECONDITION, f"{call.resource_id} is running; cancel it first")
            # The record comes last, so that an interrupted deletion can be completed.
            shutil.rmtree(folder, ignore_errors=True)
            self._store.remove(COLLECTION, call.resource_id)
        return finished_operation(call, "DeleteOperationMetadata")

    def find(self, number: str) -> tuple[Resource, Path]:
        """Return a job of any location, and its folder.

        Raises:
            ApiError: It does not exist, or its record is damaged.
        """
        try:
            job = self._store.read(COLLECTION, number)
        except Damaged as error:
            raise error.api_error(f"{COLLECTION}/{number}") from None
        if job is None:
            raise not_found(f"{COLLECTION}/{number[:200]}")
        return self._records.current(job, self.threads), self._records.folder(number)

    def _list_view(self, job: Resource) -> Viewed:
        """Return a job for lists; the index contains only those that have ended."""
        job = self._records.current(job, self.threads)
        return Viewed(resource=job, is_sound=job["state"] in FINAL_STATES)
