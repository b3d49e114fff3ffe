"""`GET /local/events`: one stream per tab, of a run with its logs and jobs, or of the list of runs."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain

from starlette.responses import Response

from localvertex.api.connection import EVENTS
from localvertex.api.jobs.custom_jobs import CustomJobs
from localvertex.api.rest.errors import ApiError
from localvertex.console.events.changes import LogChanges, RunChanges
from localvertex.console.events.job_changes import ApiJobChanges, JobChanges
from localvertex.console.events.list_changes import ListChanges
from localvertex.console.events.stream import LAST, Event, EventStream, Streams
from localvertex.console.local_route import LocalCall, local_route
from localvertex.console.runs.folders import find_run, step_folder
from localvertex.console.runs.listing import RunList
from localvertex.console.runs.record import WatchedRuns

Source = Callable[[], Iterator[Event]]


class Events:
    """The streams of a server.

    Args:
        records: The runs.
        runs: Their list.
        custom_jobs: The custom jobs of the API.
    """

    def __init__(self, records: WatchedRuns, runs: RunList, custom_jobs: CustomJobs) -> None:
        self._runs, self._custom_jobs = runs, custom_jobs
        self._records, self._work_dir = records, records.work_dir
        self._streams = Streams()

    @local_route("GET", EVENTS)
    def follow(self, call: LocalCall) -> Response:
        """Return the stream of a run, of a custom job of the API, or by default of the list of runs.

        Raises:
            ApiError: There is no such run, step or job.
        """
        job = call.query.get("job", "")
        if job and not call.query.get("run"):
            return self._of_api_job(job, call.query.get("file"))
        if "run" not in call.query:
            return EventStream(ListChanges(self._runs), self._streams)
        run_dir = find_run(self._work_dir, call.query["run"])
        sources: list[Source] = [RunChanges(self._records, run_dir)]
        if task := call.query.get("log", ""):
            with suppress(ApiError):  # the page shows the run, and that it has no such step
                step_folder(run_dir, task)
                sources.append(LogChanges(run_dir, task, call.query.get("file", "")))
        if job:
            step_folder(run_dir, job)
            sources.append(JobChanges(self._records, run_dir, job))
        return EventStream(lambda: chain.from_iterable(each() for each in sources), self._streams)

    def _of_api_job(self, number: str, file: str | None) -> Response:
        """Return the stream of a job, with one of its logs if a file is given; empty: the first."""
        try:
            folder = self._custom_jobs.find(number)[1]
        except ApiError as error:
            missing: Event = (LAST, {"text": str(error)})
            return EventStream(lambda: [missing], self._streams)
        sources: list[Source] = [ApiJobChanges(self._custom_jobs, number)]
        if file is not None:
            # A job of the API has the logs of a step, in a folder named by its number.
            sources.append(LogChanges(folder.parent, number, file))
        return EventStream(lambda: chain.from_iterable(each() for each in sources), self._streams)
