"""Events of a stream about custom jobs: `job` and `steps`, from the functions in `live`."""

from collections.abc import Iterator
from pathlib import Path

from localvertex._base.json_object import JsonObject
from localvertex.api.jobs.custom_jobs import CustomJobs
from localvertex.api.rest.errors import ApiError
from localvertex.console.events.stream import LAST
from localvertex.console.runs.record import WatchedRuns
from localvertex.jobs.status import FINAL_STATES, StatusFile
from localvertex.show.view.live import LiveJob, Message
from localvertex.store.task import State


class JobChanges:
    """The custom job of a step.

    Args:
        records: The runs.
        run_dir: The folder of the run.
        task: The path of the step.
    """

    def __init__(self, records: WatchedRuns, run_dir: Path, task: str) -> None:
        self._watched, self._task, self._live = records.watch(run_dir), task, LiveJob(task)

    def __call__(self) -> Iterator[Message]:
        """Return the messages since the last call."""
        content = self._watched.read().content
        entry: JsonObject = next((each for each in content.get("tasks", []) if each["path"] == self._task), {})
        is_running = bool(content) and not State(content["state"]).is_final
        yield from self._live.poll(entry.get("custom_job"), is_running=is_running)


class ApiJobChanges:
    """A custom job of the API: besides the others, `resource` with the job as the API has it.

    Args:
        custom_jobs: The jobs.
        number: The id of the job.

    Raises:
        ApiError: There is no such job.
    """

    def __init__(self, custom_jobs: CustomJobs, number: str) -> None:
        self._custom_jobs, self._number, self._live = custom_jobs, number, LiveJob()
        self._shown: object = None
        custom_jobs.find(number)

    def __call__(self) -> Iterator[Message]:
        """Return the messages since the last call."""
        try:
            job, folder = self._custom_jobs.find(self._number)
        except ApiError as error:
            yield LAST, {"text": str(error)}
            return
        if job != self._shown:
            self._shown = job
            yield "resource", {"job": job}
        yield from self._live.poll(StatusFile.read(folder), is_running=job["state"] not in FINAL_STATES)
