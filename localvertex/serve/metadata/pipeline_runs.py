"""What pipeline runs are in the metadata: contexts, executions, artifacts and events.

It is read from the runs' own records at the next request that asks for metadata, so a run does not depend on it.
A run that has ended is added once; what a user deletes or changes afterwards stays so.
"""

import re
import threading
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from localvertex.serve.api.call import Location
from localvertex.serve.api.errors import ApiError
from localvertex.serve.api.store import ID, UNUSABLE, Damaged, Store
from localvertex.serve.metadata.nodes import (
    ARTIFACT,
    ARTIFACTS,
    CONTEXT,
    EVENTS,
    EXECUTION,
    EXECUTIONS,
    PIPELINE,
    Kind,
    Nodes,
    changed,
    new_node,
    shown,
)
from localvertex.serve.metadata.relations import with_events
from localvertex.serve.metadata.stores import MetadataStores, Place
from localvertex.serve.pipeline_jobs.pipeline_jobs import COLLECTION as JOBS
from localvertex.serve.pipeline_jobs.view import pipeline_job, pipeline_name
from localvertex.state import record

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

    def __init__(self, store: Store, stores: MetadataStores, nodes: Nodes) -> None:
        self._store, self._stores, self._nodes = store, stores, nodes
        self._work_dir = store.folder.parent
        self._lock = threading.Lock()
        self._complete: dict[str, str] = {}
        """Creation times of the jobs that need not be looked at again."""

    def refresh(self) -> None:
        """Add what is new since the last call; a run that cannot be added is reported and hurts no other."""
        with self._lock:
            for job_id in self._store.ids(JOBS):
                run_dir = self._work_dir / job_id
                if job_id in self._complete or not (run_dir / record.FILE).is_file():
                    continue
                try:
                    self._refresh_one(job_id, run_dir)
                except Damaged:
                    continue
                except (OSError, *UNUSABLE) as error:
                    text = f"{type(error).__name__}: {str(error)[:200]}"
                    self._store.report(f"the metadata of the run {job_id} cannot be written yet ({text})")

    def contexts(self, job: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a job's `jobDetail` with its contexts."""
        job_id = job["name"].rpartition("/")[2]
        if self._complete.get(job_id, job["createTime"]) != job["createTime"]:
            # A job of that name was deleted.
            self._complete.pop(job_id, None)
        place = _place(job)
        try:
            pipeline = self._context(place, pipeline_name(job["pipelineSpec"]), PIPELINE)
            run = self._context(place, job_id, _RUN, [pipeline["name"]])
        except ApiError:
            return {}
        return {"pipelineContext": shown(pipeline), "pipelineRunContext": shown(run)}

    def _refresh_one(self, job_id: str, run_dir: Path) -> None:
        job = self._store.read(JOBS, job_id)
        if job is None:
            return
        place = _place(job)
        marker = self._store.read(place.records(_MARKERS), job_id)
        if marker is None or marker["jobCreateTime"] != job["createTime"]:
            details = pipeline_job(job, run_dir).get("jobDetail", {}).get("taskDetails", [])
            if not details:
                return
            self._stores.ensure(place.location)
            has_ended = details[0]["state"] in _END_STATES
            self._add(place, job, details if has_ended else details[:1])
            if not has_ended:
                return
            name = place.child(_MARKERS, job_id)
            marker = {"name": name, "createTime": record.now(), "jobCreateTime": job["createTime"]}
            self._store.write(place.records(_MARKERS), job_id, marker)
        self._complete[job_id] = job["createTime"]

    def _add(self, place: Place, job: dict[str, Any], details: list[dict[str, Any]]) -> None:
        """Write the nodes of a run; nodes refer only to what is written before."""
        artifacts: dict[str, dict[str, Any]] = {}
        events: dict[str, list[dict[str, Any]]] = {}
        for task in details:
            named = {side: _artifacts(place, task.get(f"{side.lower()}s", {})) for side in ("INPUT", "OUTPUT")}
            artifacts |= named["INPUT"] | named["OUTPUT"]
            events[task["taskId"]] = [{"artifact": name, "type": side} for side in named for name in named[side]]
        metrics = [name for name, each in artifacts.items() if each.get("schemaTitle") in _METRICS]
        # The SDK's get_pipeline_df reads the metrics from the outputs of the whole run.
        events[details[0]["taskId"]] += [{"artifact": name, "type": "OUTPUT"} for name in metrics]
        for name, given in artifacts.items():
            if self._nodes.read(place, ARTIFACT, _id(name)) is None:
                self._nodes.write(place, ARTIFACT, new_node(place, ARTIFACT, _id(name), given))
        executions = [self._execution(place, each, events[each["taskId"]]) for each in details if _state(each)]
        pipeline = self._context(place, pipeline_name(job["pipelineSpec"]), PIPELINE)
        run = self._context(place, job["name"].rpartition("/")[2], _RUN, [pipeline["name"]])
        self._write(place, CONTEXT, pipeline)
        self._write(place, CONTEXT, run | {ARTIFACTS: [*artifacts], EXECUTIONS: executions})

    def _execution(self, place: Place, task: dict[str, Any], events: list[dict[str, Any]]) -> str:
        """Write the execution of a task and return its name."""
        given = task["execution"] | {"state": _state(task)}
        times = {"createTime": task["createTime"]} if task.get("createTime") else {}
        node = self._nodes.read(place, EXECUTION, task["taskId"]) or new_node(place, EXECUTION, task["taskId"], given)
        metadata = node.get("metadata", {}) | given.get("metadata", {})
        self._write(
            place,
            EXECUTION,
            node | given | times | {"metadata": metadata, EVENTS: with_events(node.get(EVENTS, []), events)},
        )
        return str(node["name"])

    def _write(self, place: Place, kind: Kind, node: dict[str, Any]) -> None:
        """Write a record unless it is the same already."""
        with self._nodes.lock:
            if self._nodes.read(place, kind, _id(node["name"])) != node:
                self._nodes.write(place, kind, changed(node))

    def _context(self, place: Place, wanted: str, title: str, parents: list[str] | None = None) -> dict[str, Any]:
        """Return the record of a context, or a new one; contexts of users keep their names."""
        context_id = re.sub("[^A-Za-z0-9_-]+", "-", wanted).strip("-_")[:128] or "pipeline"
        present = self._nodes.read(place, CONTEXT, context_id)
        if present and present.get("schemaTitle") != title:
            context_id = f"{context_id[:119]}-{title.partition('.')[2].lower()}"[:128]
            present = self._nodes.read(place, CONTEXT, context_id)
        given = {"displayName": wanted, "schemaTitle": title}
        node = present or new_node(place, CONTEXT, context_id, given)
        above = [*dict.fromkeys([*(parents or []), *node.get("parentContexts", [])])]
        return node | ({"parentContexts": above} if above else {})


def _place(job: dict[str, Any]) -> Place:
    _, project, _, region, *_ = job["name"].split("/")
    return Place(location=Location(project=project, region=region))


def _id(name: str) -> str:
    return name.rpartition("/")[2]


def _state(task: dict[str, Any]) -> str:
    """Return the state of a task's execution, empty when it has none."""
    return _STATES.get(task["state"], task["state"])


def _artifacts(place: Place, values: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the fields of the artifacts of a task's inputs or outputs by their names in this metadata store."""
    found = {}
    for key, each in values.items():
        for artifact in each["artifacts"]:
            number = _id(artifact["name"])
            if not ID.fullmatch(number):
                number = str(uuid5(NAMESPACE_URL, artifact["uri"]))
            given = {field: artifact[field] for field in ("uri", "metadata") if artifact.get(field)}
            given |= {"displayName": key, "schemaTitle": artifact["schemaTitle"] or "system.Artifact", "state": "LIVE"}
            found[place.child(ARTIFACT.collection, number)] = given
    return found
