"""The list of all runs of the work folder, from the index: a page reads only the records that have changed."""

from collections.abc import Generator
from contextlib import closing
from typing import Any

from localvertex.api.pipeline_jobs.records import RunRecords, job_records
from localvertex.api.rest import filters
from localvertex.api.rest.errors import invalid
from localvertex.api.rest.store import Store
from localvertex.console.local_route import LocalCall, local_route
from localvertex.store.task import State
from localvertex_base.userinput.spelling import camel

_JOBS, _CUSTOM_JOBS, _SCHEDULES = "pipelineJobs", "customJobs", "schedules"

_DEFAULT_SIZE, _MAX_SIZE = 100, 1000

_MAX_ERROR = 500
"""Characters of an error that a row has; the run's page has all of them."""

_DAMAGED = "DAMAGED"
"""The state of a run whose record cannot be read."""

_PREFIX = "PIPELINE_STATE_"

Row = dict[str, Any]


class RunList:
    """The runs, also those that `localvertex run` started.

    Args:
        store: The records of the server.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._runs = RunRecords(store.folder.parent)
        # Only their summaries are used, the same as in the API's lists.
        self._jobs = job_records(store, _JOBS, lambda call, job_id, reason: {}, lambda job: job)

    @local_route("GET", "/local/runs")
    def page(self, call: LocalCall) -> dict[str, Any]:
        """Return one page of the rows that pass a filter, newest first.

        Raises:
            ApiError: A value of the query is wrong.
        """
        size, after = _size(call.query.get("page_size", "")), call.query.get("page_token", "")
        test = filters.parse(call.query.get("filter", ""), {camel(name) for name in _row("", {}, {})})
        # The index is locked until all rows are there.
        with closing(self._rows()) as rows:
            passed = [each for each in rows if test({camel(name): value for name, value in each.items()})]
        found = sorted(((_place(each), each) for each in passed), key=lambda each: each[0], reverse=True)
        left = [each for place, each in found if not after or place < after]
        shown = left[:size]
        token = _place(shown[-1]) if len(left) > size else ""
        return {"runs": shown, "next_page_token": token, "total_size": len(found)}

    def files(self) -> object:
        """Return what changes whenever the record of a run, a custom job or a schedule does."""
        return self._runs.signatures(), [self._store.signatures(each) for each in (_JOBS, _CUSTOM_JOBS, _SCHEDULES)]

    def live(self, unfinished: set[str]) -> dict[str, str]:
        """Return the locks and journals of runs that have not ended."""
        return {each: self._runs.live(each) for each in unfinished}

    def unfinished_runs(self) -> set[str]:
        """Return the runs that have not ended."""
        return {each["id"] for each in self._rows() if each["state"] != _DAMAGED and not each["end_time"]}

    def _rows(self) -> Generator[Row]:
        jobs = {job_id: each.content for job_id, each in self._store.index.summaries(self._jobs) if each.content}
        for run_id, summary in self._store.index.summaries(self._runs):
            damaged = {"state": _DAMAGED, "error": f"its record cannot be read: {summary.damaged}"}
            yield _row(run_id, damaged if summary.content is None else summary.content, jobs.get(run_id) or {})


def _row(run_id: str, run: dict[str, Any], job: dict[str, Any]) -> Row:
    """Build a row.

    Args:
        run_id: The name of its folder.
        run: Fields of run.json in the index.
        job: The pipeline job, empty when the server did not start the run.
    """
    state = str(job.get("state", run.get("state", ""))).removeprefix(_PREFIX)
    error = job.get("error", {}).get("message") or run.get("error")
    return {
        "id": run_id,
        "name": job.get("displayName") or run_id,
        "pipeline": run.get("pipeline_name", ""),
        "state": run["state"] if run.get("state") == _DAMAGED else state,
        "create_time": run.get("create_time"),
        "start_time": run.get("start_time"),
        "end_time": run.get("end_time"),
        "seconds": run.get("seconds"),
        "idle_seconds": run.get("idle_seconds") or 0.0,
        "error": str(error)[:_MAX_ERROR] if error and state in (State.FAILED, _DAMAGED) else None,
        "resource": job.get("name"),
        "schedule": str(job.get("scheduleName") or "").rpartition("/")[2] or None,
        "is_own": bool(job),
    }


def _place(row: Row) -> str:
    """Return where a row is in the order, which is also the token of the page after it."""
    return f"{row['create_time'] or ''} {row['id']}"


def _size(text: str) -> int:
    """Read the size of a page.

    Raises:
        ApiError: It is not a number.
    """
    if text and not (text.isdecimal() and len(text) < 16):
        raise invalid(f"page_size: expected a number from 1 to {_MAX_SIZE}, found {text[:50]!r}")
    return min(int(text or 0) or _DEFAULT_SIZE, _MAX_SIZE)
