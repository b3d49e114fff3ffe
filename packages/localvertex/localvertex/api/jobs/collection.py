"""A collection of jobs: what the API does with jobs of every kind once they are created."""

import shutil
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

from localvertex.api.jobs import records
from localvertex.api.jobs.records import JobKind, JobRecords, Resource
from localvertex.api.jobs.threads import JobThreads, RunningJob, Work
from localvertex.api.rest import errors, messages
from localvertex.api.rest.call import Call, Location
from localvertex.api.rest.errors import ApiError, invalid, not_found
from localvertex.api.rest.listing import page_of
from localvertex.api.rest.operations import finished_operation
from localvertex.api.rest.records import StoredRecords, Viewed
from localvertex.api.rest.store import Damaged, Store
from localvertex.jobs import JobState
from localvertex.jobs.status import FINAL_STATES
from localvertex.store import record
from localvertex_base.lines import WriteLine


class JobCollection:
    """The jobs of a kind; running ones have a thread of this process each.

    Args:
        store: The records of the server.
        log: Called with the start, the end and the warnings of each job.
    """

    kind: ClassVar[JobKind]

    def __init__(self, store: Store, log: WriteLine) -> None:
        self._store = store
        self._records = JobRecords(store, self.kind, self._stop_fields)
        self.threads = JobThreads(self._records, log)
        self._listed = StoredRecords(
            store=store,
            collection=self.kind.collection,
            large=frozenset(self.kind.objects),
            stand_in=self.kind.damaged_resource,
            view=self._list_view,
        )

    def get(self, call: Call) -> Resource:
        """Return one job."""
        return self._listed.get(call)

    def list_all(self, call: Call) -> dict[str, Any]:
        """List the jobs of a location."""
        return page_of(call, self._listed, fields=messages.field_names(self.kind.message))

    def cancel(self, call: Call) -> dict[str, Any]:
        """Ask a running job to stop; one that has ended is unchanged."""
        with self._store.lock:
            with suppress(Damaged):
                self._store.find(call, self.kind.collection)
            self.threads.cancel(call.resource_id)
        return {}

    def delete(self, call: Call) -> dict[str, Any]:
        """Delete a job that has ended, with its logs; files that it wrote elsewhere stay."""
        folder = self._records.folder(call.resource_id)
        with self._store.lock:
            with suppress(Damaged):
                self._store.find(call, self.kind.collection)
            if record.is_running(folder):
                raise ApiError(errors.Status.FAILED_PRECONDITION, f"{call.resource_id} is running; cancel it first")
            # The record comes last, so that an interrupted deletion can be completed.
            shutil.rmtree(folder, ignore_errors=True)
            self._store.remove(self.kind.collection, call.resource_id)
        return finished_operation(call, "DeleteOperationMetadata")

    def find(self, number: str) -> tuple[Resource, Path]:
        """Return a job of any location, and its folder.

        Raises:
            ApiError: It does not exist, or its record is damaged.
        """
        collection = self.kind.collection
        try:
            job = self._store.read(collection, number)
        except Damaged as error:
            raise error.api_error(f"{collection}/{number}") from None
        if job is None:
            raise not_found(f"{collection}/{number[:200]}")
        return self._records.current(job, self.threads), self._records.folder(number)

    def _start(
        self, location: Location, body: Resource, work: Work, warnings: Iterable[str] = (), **fields: Any
    ) -> tuple[Resource, RunningJob]:
        """Record a new job and start it.

        Args:
            location: Where it is created.
            body: The request, which has been checked.
            work: Runs it.
            warnings: What to warn of.
            fields: Further fields of the record.

        Raises:
            ApiError: It has no display name.
        """
        if not body.get("displayName"):
            raise invalid("displayName is missing")
        number, now = str(uuid4().int >> 66), record.now()
        resource = {"name": location.child(self.kind.collection, number), "state": str(JobState.PENDING)}
        resource |= {"createTime": now, "updateTime": now, **self.kind.inputs(body), **fields}
        job = self.threads.start(number, work, partial(self._store.write, self.kind.collection, number, resource))
        for text in warnings:
            job.warn(text)
        return resource, job

    def _stop_fields(self, job: Resource) -> Resource:
        """Return the fields of a job that ended with its server."""
        return records.stop_fields(job)

    def _shown(self, job: Resource) -> Resource:
        """Return a job as the API has it."""
        return self.kind.show(job)

    def _list_view(self, job: Resource) -> Viewed:
        """Return a job for lists; the index contains only those that have ended."""
        job = self._records.current(job, self.threads)
        return Viewed(resource=self._shown(job), is_sound=job["state"] in FINAL_STATES)
