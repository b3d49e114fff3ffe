"""A PipelineJob resource, built from the stored request and from run.json."""

from pathlib import Path
from typing import Any

from localvertex.api.pipeline_jobs.request import NUM_RESUMES
from localvertex.api.rest.errors import Status, rpc_error
from localvertex.api.rest.records import Viewed
from localvertex.api.rest.store import UNUSABLE
from localvertex.store import outcome, record
from localvertex.store.task import State

FILTER_FIELDS = {"pipelineName", "pipelineJobUserId"}
"""Fields that exist in filters only."""

CANCELLED_MARK = "run.cancelled"
"""An empty file in the folder of a run that a client cancelled: it needs no room on a full disk."""

GIVEN = "given"
"""Metadata of an execution whose outputs the user has given."""

_DEFAULT_ACCOUNT = "{project}-compute@developer.gserviceaccount.com"
"""The default service account; the service has the project's number in it, which does not exist here."""

_SCHEMAS = {"step": "system.ContainerExecution", None: "system.Run"}
"""Schemas of executions; only the run itself has no kind."""

_STOPPED = "the server was stopped during this run; resume it with `localvertex run --resume {run_id}`"


def pipeline_job(job: dict[str, Any], run_dir: Path) -> dict[str, Any]:
    """Build the current resource from the stored part, which does not change, and the run's record."""
    return list_view(job, run_dir).resource or {}


def list_view(job: dict[str, Any], run_dir: Path) -> Viewed:
    """Build the current resource as lists need it."""
    try:
        resource = _current(job, run_dir)
        resource.pop(NUM_RESUMES, None)
    except (OSError, *UNUSABLE) as error:
        text = f"run.json is damaged ({type(error).__name__}: {str(error)[:200]}); delete the job"
        failed = job | {"state": "PIPELINE_STATE_FAILED", "error": rpc_error(Status.INTERNAL, text)}
        return Viewed(resource=failed, is_sound=False)
    return Viewed(resource=resource, is_final="endTime" in resource)


def _current(job: dict[str, Any], run_dir: Path) -> dict[str, Any]:
    content = record.read(run_dir)
    project = job["name"].split("/")[1]
    job = {"serviceAccount": _DEFAULT_ACCOUNT.format(project=project)} | job
    state, text = state_and_error(job, content, run_dir)
    job = {key: value for key, value in job.items() if key != "error"} | {"state": f"PIPELINE_STATE_{state}"}
    job |= {"labels": {"vertex-ai-pipelines-run-billing-id": content["uuid"], **job.get("labels", {})}}
    job |= {
        key: content[field] for key, field in (("startTime", "start_time"), ("endTime", "end_time")) if content[field]
    }
    job |= {"updateTime": content["end_time"] or content["update_time"]}
    if state == State.FAILED:
        job |= {"error": rpc_error(Status.FAILED_PRECONDITION, text or "the run failed")}
    parent = job["name"].rpartition("/pipelineJobs/")[0]
    return job | {"jobDetail": {"taskDetails": _task_details(content, parent)}}


def state_and_error(job: dict[str, Any], content: dict[str, Any], run_dir: Path) -> tuple[str, str | None]:
    """Return the state of a job, without prefix, and its error, from its stored part and the record of its run."""
    state, text = content["state"], content.get("error")
    if not content.get("end_time") and "error" in job:
        text = job["error"]["message"]
    # A server's options have no effect on a later start in a terminal.
    wanted = job.get("state", "") if was_started_here(job, content) else ""
    if was_started_here(job, content) and (run_dir / CANCELLED_MARK).exists():
        wanted = "PIPELINE_STATE_CANCELLING"
    if wanted == "PIPELINE_STATE_FAILED" and state == State.CANCELLED:
        return State.FAILED, _STOPPED.format(run_id=run_dir.name)
    if wanted == "PIPELINE_STATE_CANCELLING" and state in (State.RUNNING, State.PENDING):
        return "CANCELLING", text
    if wanted == "PIPELINE_STATE_CANCELLING" and not content.get("end_time"):
        # The server was killed meanwhile, and the supervisors of its steps have ended them.
        return State.CANCELLED, None
    return state, text


def was_started_here(job: dict[str, Any], content: dict[str, Any]) -> bool:
    """Return whether a server was the last to start a run; `job` is empty if no server created it."""
    return bool(job) and job.get(NUM_RESUMES, 0) == len(content["resume_times"])


def pipeline_name(spec: dict[str, Any]) -> str:
    """Return the name in a spec that has not been checked yet; empty when it has none."""
    info = spec.get("pipelineInfo")
    return str(info.get("name", "")) if isinstance(info, dict) else ""


def searchable(job: dict[str, Any]) -> dict[str, Any]:
    """Return the resource with the fields that exist in filters only."""
    name = pipeline_name(job.get("pipelineSpec", {}))
    return job | {"pipelineName": name, "pipelineJobUserId": job["name"].rpartition("/")[2]}


def _task_details(content: dict[str, Any], parent: str) -> list[dict[str, Any]]:
    """Build the PipelineTaskDetail of the run itself and of each of its tasks."""
    base = int(content["uuid"]) % 10**12 * 1000
    root = content | {"name": content["run_id"], "path": "", "inputs": {"parameters": content["parameters"]}}
    root |= {"title": content["run_id"], "attempts": 1}
    ids = {"": base, **{task["path"]: base + number for number, task in enumerate(content["tasks"], 1)}}
    return [_task_detail(task, ids, parent) for task in (root, *content["tasks"])]


def _task_detail(task: dict[str, Any], ids: dict[str, int], parent: str) -> dict[str, Any]:
    """Build one PipelineTaskDetail. Parameters are in the execution's metadata, as on the service."""
    inputs, outputs = task["inputs"], task["outputs"]
    metadata = {f"input:{name}": value for name, value in inputs.get("parameters", {}).items()}
    metadata |= {f"output:{name}": value for name, value in outputs.get("parameters", {}).items()}
    number, is_given = str(ids[task["path"]]), task["state"] == State.GIVEN
    detail = {
        "taskId": number,
        "taskName": task["name"],
        # Vertex has no such state; a skipped step was not run either.
        "state": str(State.SKIPPED) if is_given else task["state"],
        "createTime": task["start_time"],
        "startTime": task["start_time"],
        "endTime": task["end_time"],
        "inputs": artifacts(inputs.get("artifacts", {})),
        "outputs": artifacts(outputs.get("artifacts", {})),
        "execution": {
            "name": f"{parent}/metadataStores/default/executions/{number}",
            "displayName": f"{task['title']} (given)" if is_given else task["title"],
            "schemaTitle": _SCHEMAS.get(task.get("kind"), "system.DagExecution"),
            "metadata": {name: value for name, value in metadata.items() if value is not None}
            | ({GIVEN: True} if is_given else {})
            | ({outcome.FIELD: task[outcome.FIELD]} if task.get(outcome.FIELD) else {}),
        },
    }
    if task["path"]:
        detail["parentTaskId"] = str(_parent_id(task["path"], ids))
    if task["state"] == State.FAILED and task["error"]:
        detail["error"] = rpc_error(Status.FAILED_PRECONDITION, task["error"])
    return {key: value for key, value in detail.items() if value not in (None, {})}


def _parent_id(path: str, ids: dict[str, int]) -> int:
    """Return the id of the innermost task that contains this one."""
    while path:
        path = path.rpartition("/")[0]
        if path in ids:
            break
    return ids[path]


def artifacts(values: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Format artifacts of inputs or outputs as the Metadata API does."""
    return {
        name: {
            "artifacts": [
                {
                    "name": each.get("name", ""),
                    "uri": each.get("uri", ""),
                    "schemaTitle": each.get("type", {}).get("schemaTitle", ""),
                    "metadata": each.get("metadata", {}),
                }
                for each in items
            ]
        }
        for name, items in values.items()
    }
