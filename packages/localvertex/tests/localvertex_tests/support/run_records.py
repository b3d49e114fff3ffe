"""Records of pipeline jobs and their runs, written as the server and `localvertex run` leave them."""

import json
import os
import time
from pathlib import Path
from typing import Any

from vertex_testing.server import PARENT

TASK = {
    "name": "train",
    "display_name": "train",
    "path": "train",
    "title": "train",
    "kind": "step",
    "state": "SUCCEEDED",
    "seconds": 1.0,
    "start_time": "2026-01-01T00:00:00.000Z",
    "end_time": "2026-01-01T00:00:01.000Z",
    "attempts": 1,
    "error": None,
    "log": None,
    "inputs": {"parameters": {"n": 1}, "artifacts": {}},
    "outputs": {"parameters": {}, "artifacts": {}},
}


def run_record(work_dir: Path, run_id: str, created: str, *, state: str = "SUCCEEDED", **fields: Any) -> dict[str, Any]:
    """Return the content of run.json of a run with one step; a state that is not final has no end."""
    is_final = state in ("SUCCEEDED", "FAILED", "CANCELLED")
    return {
        "format": 1,
        "run_id": run_id,
        "uuid": str(10**15 + sum(run_id.encode())),
        "state": state,
        "create_time": created,
        "start_time": created,
        "end_time": created.replace("T0", "T1") if is_final else None,
        "update_time": created,
        "seconds": 1.5,
        "idle_seconds": 0.0,
        "resume_times": [],
        "resume_options": [],
        "replaced_packages": [],
        "configuration": {},
        "error": "it failed" if state == "FAILED" else None,
        "pipeline_name": "small",
        "work_dir": str(work_dir),
        "parameters": {"n": 1},
        "outputs": {"parameters": {}, "artifacts": {}},
        "tasks": [TASK],
        "metrics": [],
        "models": [],
        **fields,
    }


def job_record(job_id: str, created: str, **fields: Any) -> dict[str, Any]:
    """Return the stored part of a pipeline job."""
    times = {"createTime": created, "updateTime": created}
    spec = {"pipelineSpec": {"pipelineInfo": {"name": "small"}}, "runtimeConfig": {"parameterValues": {"n": 1}}}
    return {"name": f"{PARENT}/pipelineJobs/{job_id}", "displayName": job_id, **times, **spec, **fields}


def write(path: Path, content: Any, *, age_seconds: float = 60) -> None:
    """Write a file that seems to be older, so that the index keeps what it contains."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.aside")
    aside.write_text(content if isinstance(content, str) else json.dumps(content))
    changed = time.time() - age_seconds
    os.utime(aside, (changed, changed))
    aside.replace(path)


def write_job(work_dir: Path, number: int, *, state: str = "SUCCEEDED", **fields: Any) -> str:
    """Write a job and its run, and return its id; a larger number means a later creation time."""
    job_id = f"run-{number:05d}"
    created = (
        f"2026-{1 + number // 2400:02d}-{1 + number // 100 % 24:02d}T0{number // 60 % 10}:{number % 60:02d}:00.000Z"
    )
    write(work_dir / job_id / "run.json", run_record(work_dir, job_id, created, state=state))
    write(work_dir / "api" / "pipelineJobs" / f"{job_id}.json", job_record(job_id, created, **fields))
    return job_id
