"""Pipeline runs in the metadata: contexts, executions, artifacts and events.

It is read from the runs' own records when a run has ended and at each request for metadata, so no run depends on it. A
run that has ended is added once; what a user deletes or changes afterwards stays so.
"""

import re
import threading
from contextlib import suppress
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from localvertex._base.json_object import JsonObject
from localvertex.api.metadata.nodes import (
    ARTIFACT,
    ARTIFACTS,
    CONTEXT,
    EVENTS,
    EXECUTION,
    EXECUTIONS,
    PIPELINE,
    NodeKind,
    Nodes,
    new_node,
    resource_of,
    touch,
)
from localvertex.api.metadata.relations import with_events
from localvertex.api.metadata.stores import MetadataStore
from localvertex.api.pipeline_jobs.pipeline_jobs import COLLECTION as JOBS
from localvertex.api.pipeline_jobs.view import GIVEN, pipeline_job, pipeline_name
from localvertex.api.rest.call import Location
from localvertex.api.rest.errors import ApiError, reason_of
from localvertex.api.rest.store import ID, UNUSABLE, Damaged, Store
from localvertex.store import record

_MARKERS = "pipelineRuns"
"""Records of the runs that have been added completely."""

_RUN = "system.PipelineRun"

_STATES = {"SUCCEEDED": "COMPLETE", "SKIPPED": "CACHED", "PENDING": "NEW", "NOT_TRIGGERED": ""}
"""States of executions, where tasks have others; one without a state has no execution."""

_METRICS = (
    "system.Metrics",
    "google.ClassificationMetrics",
    "google.RegressionMetrics",
    "google.ForecastingMetrics",
)
"""Schemas of artifacts that the SDK shows as the metrics of a run."""

_END_STATES = ("SUCCEEDED", "FAILED", "CANCELLED")


class PipelineRuns:
    """Adds pipeline runs to the metadata of their location."""

    def __init__(self, store: Store, nodes: Nodes) -> None:
        self._store, self._nodes = store, nodes
        self._work_dir = store.folder.parent
        self._lock = threading.Lock()
        self._complete: dict[str, str] = {}
        """Creation times of the jobs that need not be looked at again."""

    def refresh(self) -> None:
        """Add the runs that are new since the last call."""
        for job_id in self._store.ids(JOBS):
            if job_id not in self._complete:
                self.add(job_id)

    def add(self, job_id: str) -> None:
        """Add a run as far as it has come; a failure is reported and does not affect other runs."""
        run_dir = self._work_dir / job_id
        if not (run_dir / record.FILE).is_file():
            return
        try:
            with self._lock:
                self._refresh_one(job_id, run_dir)
        except Damaged:
            return
        except (OSError, *UNUSABLE) as error:
            text = reason_of(error)
            self._store.report(f"the metadata of the run {job_id} cannot be written yet ({text})")

    def forget(self, job_id: str) -> None:
        """Add a run again when it ends: it is being resumed."""
        with self._lock:
            self._complete.pop(job_id, None)
            with suppress(Damaged):
                if job := self._store.read(JOBS, job_id):
                    self._store.remove(_place(job).records(_MARKERS), job_id)

    def contexts(self, job: JsonObject) -> JsonObject:
        """Return the fields of a job's `jobDetail` with its contexts."""
        job_id = job["name"].rpartition("/")[2]
        if self._complete.get(job_id, job["createTime"]) != job["createTime"]:
            # A job of that name was deleted.
            self._complete.pop(job_id, None)
        place = _place(job)
        try:
            pipeline, run = self._contexts(place, job)
        except ApiError:
            return {}
        return {"pipelineContext": resource_of(pipeline), "pipelineRunContext": resource_of(run)}

    def find_artifact(self, location: Location, artifact_id: str) -> JsonObject | None:
        """Return an artifact of the default metadata store of a location, None when it does not exist."""
        return self._nodes.read(MetadataStore(location=location), ARTIFACT, artifact_id)

    def _refresh_one(self, job_id: str, run_dir: Path) -> None:
        if job_id in self._complete:
            return
        job = self._store.read(JOBS, job_id)
        if job is None:
            return
        place = _place(job)
        if not self._was_added(place, job_id, job["createTime"]):
            details = pipeline_job(job, run_dir).get("jobDetail", {}).get("taskDetails", [])
            if not details:
                return
            has_ended = details[0]["state"] in _END_STATES
            with self._nodes.lock:
                # The ids of tasks are final when the run has ended.
                self._add(place, job, details if has_ended else details[:1])
            if not has_ended:
                return
            name = place.child(_MARKERS, job_id)
            marker = {"name": name, "createTime": record.now(), "jobCreateTime": job["createTime"]}
            self._store.write(place.records(_MARKERS), job_id, marker)
        self._complete[job_id] = job["createTime"]

    def _was_added(self, place: MetadataStore, job_id: str, create_time: str) -> bool:
        """Return whether this run, and not an earlier one of the same id, was added when it had ended."""
        try:
            marker = self._store.read(place.records(_MARKERS), job_id)
        except Damaged:
            return True
        return marker is not None and marker["jobCreateTime"] == create_time

    def _add(self, place: MetadataStore, job: JsonObject, details: list[JsonObject]) -> None:
        """Write the nodes of a run; nodes refer only to what is written before."""
        artifacts: dict[str, JsonObject] = {}
        events: dict[str, list[JsonObject]] = {}
        for task in details:
            named = {side: _artifacts(place, task, f"{side.lower()}s") for side in ("INPUT", "OUTPUT")}
            artifacts = named["INPUT"] | artifacts | named["OUTPUT"]
            events[task["taskId"]] = [{"artifact": name, "type": side} for side in named for name in named[side]]
        given = {
            name
            for task in details
            if task["execution"]["metadata"].get(GIVEN)
            for name in _artifacts(place, task, "outputs")
        }
        metrics = [name for name, each in artifacts.items() if each["schemaTitle"] in _METRICS and name not in given]
        # The SDK's get_pipeline_df reads the metrics from the outputs of the whole run.
        events[details[0]["taskId"]] += [{"artifact": name, "type": "OUTPUT"} for name in metrics]
        for name, fields in artifacts.items():
            if self._nodes.read(place, ARTIFACT, _id(name)) is None:
                self._nodes.write(place, ARTIFACT, new_node(place, ARTIFACT, _id(name), fields))
        executions = [self._execution(place, each, events[each["taskId"]]) for each in details if _state(each)]
        pipeline, run = self._contexts(place, job)
        self._write(place, CONTEXT, pipeline)
        self._write(place, CONTEXT, run | {ARTIFACTS: [*artifacts], EXECUTIONS: executions})

    def _execution(self, place: MetadataStore, task: JsonObject, events: list[JsonObject]) -> str:
        """Write the execution of a task and return its name."""
        given = task["execution"] | {"state": _state(task)}
        given |= {"createTime": task["createTime"]} if "createTime" in task else {}
        node = self._nodes.read(place, EXECUTION, task["taskId"]) or new_node(place, EXECUTION, task["taskId"], given)
        metadata = node.get("metadata", {}) | given.get("metadata", {})
        node |= given | {"metadata": metadata, EVENTS: with_events(node.get(EVENTS, []), events, task.get("endTime"))}
        self._write(place, EXECUTION, node)
        return str(node["name"])

    def _write(self, place: MetadataStore, kind: NodeKind, node: JsonObject) -> None:
        """Write a record unless it is the same already."""
        if self._nodes.read(place, kind, _id(node["name"])) != node:
            self._nodes.write(place, kind, touch(node))

    def _contexts(self, place: MetadataStore, job: JsonObject) -> tuple[JsonObject, JsonObject]:
        """Return the records of the contexts of a pipeline and of its run, written or not."""
        given = {"createTime": job["createTime"]}
        pipeline = self._context(place, pipeline_name(job["pipelineSpec"]), given | {"schemaTitle": PIPELINE})
        run = self._context(place, _id(job["name"]), given | {"schemaTitle": _RUN})
        parents = dict.fromkeys([pipeline["name"], *run.get("parentContexts", [])])
        return pipeline, run | {"parentContexts": [*parents]}

    def _context(self, place: MetadataStore, wanted: str, given: JsonObject) -> JsonObject:
        """Return the record of a context, or a new one; contexts of users keep their names."""
        title = given["schemaTitle"]
        context_id = re.sub("[^A-Za-z0-9_-]+", "-", wanted).strip("-_")[:128] or "pipeline"
        present = self._nodes.read(place, CONTEXT, context_id)
        if present and present.get("schemaTitle") != title:
            context_id = f"{context_id[:110]}-{title.partition('.')[2].lower()}"
            present = self._nodes.read(place, CONTEXT, context_id)
        return present or new_node(place, CONTEXT, context_id, {"displayName": wanted} | given)


def _place(job: JsonObject) -> MetadataStore:
    _, project, _, region, *_ = job["name"].split("/")
    return MetadataStore(location=Location(project=project, region=region))


def _id(name: str) -> str:
    return str(name.rpartition("/")[2])


def _state(task: JsonObject) -> str:
    """Return the state of a task's execution, empty when it has none."""
    return str(_STATES.get(task["state"], task["state"]))


def _artifacts(place: MetadataStore, task: JsonObject, side: str) -> dict[str, JsonObject]:
    """Return the fields of the artifacts of a task's inputs or outputs by their names in this metadata store."""
    found = {}
    for key, each in task.get(side, {}).items():
        for artifact in each["artifacts"]:
            number = _id(artifact["name"])
            if not ID.fullmatch(number):
                number = str(uuid5(NAMESPACE_URL, artifact["uri"]))
            given = {field: artifact[field] for field in ("uri", "metadata") if artifact.get(field)}
            given |= {"displayName": key, "schemaTitle": artifact["schemaTitle"] or "system.Artifact", "state": "LIVE"}
            given |= {"createTime": task["endTime"]} if task.get("endTime") else {}
            found[place.child(ARTIFACT.collection, number)] = given
    return found
