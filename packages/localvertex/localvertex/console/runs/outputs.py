"""The runs of a work folder as summaries of the index: rows of the list, and what models need to know of their runs."""

import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any

from localvertex._base.json_object import JsonObject
from localvertex.api.pipeline_jobs.records import RunFiles
from localvertex.api.pipeline_jobs.view import state_and_error
from localvertex.api.rest.index import MISSING, Signature, Summary, both, signature
from localvertex.api.rest.store import UNUSABLE, Damaged, Store
from localvertex.console.runs import note
from localvertex.console.runs.row import DAMAGED, ListedRun
from localvertex.store import record
from localvertex.store.task import State

_JOBS = "pipelineJobs"

_FINGERPRINT = "fingerprint"
"""The entry of a system.Dataset's metadata that identifies its content."""

_MAX_ENTRIES, _MAX_CHARACTERS = 100, 1_000
"""Limits of metrics and parameters: entries, and characters of one value."""

_MAX_PROBLEM = 400
"""Characters of what is wrong with a record."""

Content = JsonObject


class RunOutputs(RunFiles):
    """The runs, each from run.json and what the server stored about its job.

    A content has `row`; `outputs` with all metrics, models and datasets is empty if the record has an unknown form.
    """

    collection = "runs with their outputs"

    def __init__(self, store: Store) -> None:
        super().__init__(store.folder.parent)
        self._store = store

    @property
    def lists(self) -> Iterable[str]:
        """The folder of the runs, and that of their jobs once there is one."""
        jobs = f"{self._store.folder}/{_JOBS}"
        return [*super().lists, *[jobs] * os.path.isdir(jobs)]

    def signatures(self, ids: Iterable[str]) -> dict[str, Signature]:
        """Return the signatures of the files, with the note, by the name of the run's folder."""
        jobs = self._store.signatures(_JOBS, ids)
        return {
            name: both(both(run, jobs.get(name, MISSING)), signature(f"{self._work_dir}/{name}/{note.FILE}"))
            for name, run in super().signatures({*ids, *jobs}).items()
        }

    def summary(self, resource_id: str) -> Summary:
        """Read a run; one that no server started has no job."""
        live: str | None = self.live(resource_id)
        run_dir, job, outputs = self._work_dir / resource_id, job_of(self._store, resource_id), Content()
        try:
            content = record.read(run_dir)
            state, error = state_and_error(job, content, run_dir)
        except (OSError, *UNUSABLE) as problem:
            live, content = None, Content()
            state, error = DAMAGED, f"run.json is damaged ({str(problem)[:_MAX_PROBLEM]}); delete the run"
        shown = str(error) if error and state in (State.FAILED, DAMAGED) else None
        with suppress(*UNUSABLE):
            outputs = _outputs(content)
            shown = shown and _reason(content, shown)
        run = ListedRun(
            id=resource_id,
            job=job,
            content=content,
            state=str(state),
            error=shown,
            note=note.read(run_dir),
            outputs=outputs,
        )
        return Summary.of({"row": run.row, "outputs": outputs}, live=live, is_final=bool(content.get("end_time")))


def _reason(content: Content, error: str) -> str:
    """Return the error of a failed step without its name and exit code."""
    task: Content = next((each for each in content["tasks"] if each["path"] == content.get("failed_task")), {})
    for each in (f"{task.get('title')}: ", f"exit code {task.get('exit_code')}: ", "error: "):
        error = error.removeprefix(each)
    return error


def job_of(store: Store, run_id: str) -> Content:
    """Return the stored fields of a run's job; empty if the server did not start the run."""
    with suppress(Damaged, OSError):
        return store.read(_JOBS, run_id) or {}
    return {}


def place_in(uri: str, work_dir: str) -> dict[str, str] | None:
    """Return the run and the path in its folder of a file of the work folder, None for any other address."""
    try:
        run, *path = PurePosixPath(uri).relative_to(work_dir).parts
    except ValueError:
        return None
    return {"run": run, "path": "/".join(path)} if path and ".." not in (run, *path) else None


def _outputs(content: Content) -> Content:
    titles = {each["path"]: each["title"] for each in content["tasks"]}
    # The shortest name that no other metric has.
    spellings = [
        [each["name"], f"{titles.get(each['task'])}/{each['name']}", f"{each['task']}/{each['name']}"]
        for each in content["metrics"]
    ]
    counts = Counter(each for every in spellings for each in {*every})
    metrics = {
        next((each for each in every if counts[each] == 1), every[-1]): of["value"]
        for every, of in zip(spellings, content["metrics"], strict=True)
    }
    return {
        "create_time": content["create_time"],
        "uuid": str(content.get("uuid", "")),
        "parameters": small(content.get("parameters") or {}),
        "metrics": small(metrics),
        "models": [name for each in content["models"] if (name := each.get("resource_name"))],
        "datasets": [each for task in content["tasks"] if task["kind"] == "step" for each in _fingerprints(task)],
    }


def _fingerprints(task: Content) -> list[str]:
    """Return the fingerprints of the datasets that a step has written."""
    written = [each for every in task["outputs"]["artifacts"].values() for each in every]
    values = [
        (each.get("metadata") or {}).get(_FINGERPRINT)
        for each in written
        if each["type"].get("schemaTitle") == "system.Dataset"
    ]
    return [each for each in values if isinstance(each, str)]


def small(values: Mapping[str, Any]) -> Content:
    """Return values in a size that fits a list; names that many runs have are kept once."""
    return {sys.intern(str(name)[:_MAX_CHARACTERS]): _short(value) for name, value in [*values.items()][:_MAX_ENTRIES]}


def _short(value: Any) -> Any:
    text = value if isinstance(value, str) else json.dumps(value)
    return value if len(text) <= _MAX_CHARACTERS else f"{text[:_MAX_CHARACTERS]}… ({len(text):,} characters)"
