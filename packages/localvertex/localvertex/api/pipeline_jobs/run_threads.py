"""The runs that this process executes, each in a thread of its own; some at once, the others wait in their order."""

import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from localvertex._base.lines import WriteLine
from localvertex.api.pipeline_jobs.request import NUM_RESUMES
from localvertex.api.pipeline_jobs.run_files import write_end
from localvertex.api.pipeline_jobs.view import CANCELLED_MARK
from localvertex.api.rest.errors import ApiError, Status, rpc_error
from localvertex.api.rest.store import Damaged, Store
from localvertex.errors import RecordNotWritten
from localvertex.runner.pipeline_run import PipelineRun
from localvertex.store import record
from localvertex.store.task import State


class RunThreads:
    """The running jobs, and runs that were started elsewhere and are resumed here.

    Args:
        store: Store with the stored part of the jobs.
        collection: Its collection.
        log: Called with the start and the end of each run.
        on_end: Called with the id of each run that has ended.
        max_runs: Number of runs at once.
    """

    def __init__(
        self, store: Store, collection: str, log: WriteLine, on_end: Callable[[str], None], max_runs: int
    ) -> None:
        self._store, self._collection, self._log, self._on_end = store, collection, log, on_end
        self._running: dict[str, tuple[PipelineRun, threading.Thread, int]] = {}
        """Runs by name, including those that wait."""
        self._max_runs, self._turns = max_runs, threading.Condition(store.lock)
        self._waiting: list[str] = []

    def start(self, run_id: str, run: PipelineRun, num_resumes: int = 0) -> None:
        """Execute a prepared run, which is resumed for the given time."""
        thread = threading.Thread(target=self._execute, args=(run_id, run), name=run_id)
        with self._store.lock:
            self._running[run_id] = run, thread, num_resumes
            self._waiting.append(run_id)
            thread.start()

    def __contains__(self, run_id: str) -> bool:
        """Return whether this process executes a run."""
        return run_id in self._running

    def stop(self, run_id: str, *, at_once: bool = False) -> bool:
        """Ask a run to stop, with `at_once` without grace time; return whether this process executes it."""
        with self._store.lock:
            running = self._running.get(run_id)
            if running is None:
                return False
            with suppress(OSError):
                self._mark(run_id).touch()
            self._note(run_id, state="PIPELINE_STATE_CANCELLING")
            running[0].stop(at_once=at_once)
            self._end_wait(run_id)
        return True

    def wait_for_end(self, run_id: str, num_resumes: int) -> None:
        """Wait for the thread of a run whose record shows that it has ended, after this number of resumes.

        Raises:
            ApiError: The record is from an earlier end; the run is starting again.
        """
        with self._store.lock:
            _, thread, number = self._running.get(run_id, (None, None, 0))
        if thread is not None and number != num_resumes:
            raise ApiError(Status.FAILED_PRECONDITION, f"{run_id} is being started already")
        if thread is not None:
            thread.join()

    def forget_end(self, run_id: str, num_resumes: int) -> None:
        """Remove from the stored part of a job why it was stopped; it runs again, after this number of resumes."""
        with self._store.lock, suppress(Damaged):
            self._mark(run_id).unlink(missing_ok=True)
            if job := self._store.read(self._collection, run_id):
                present = {key: value for key, value in job.items() if key not in ("state", "error")}
                self._store.keep(self._collection, run_id, present | {NUM_RESUMES: num_resumes})

    def close(self) -> None:
        """Stop all runs and wait for them; they become FAILED, because no client cancelled them."""
        with self._store.lock:
            running = dict(self._running)
            for run_id, (run, *_) in running.items():
                with suppress(Damaged):
                    job = self._store.read(self._collection, run_id)
                    if job and job.get("state") != "PIPELINE_STATE_CANCELLING":
                        self._note(run_id, state="PIPELINE_STATE_FAILED")
                run.stop()
                self._end_wait(run_id)
        for _, thread, _ in running.values():
            thread.join()

    def _mark(self, run_id: str) -> Path:
        return self._store.folder.parent / run_id / CANCELLED_MARK

    def _note(self, run_id: str, **fields: object) -> None:
        """Change fields of the stored part of a job; a run that was started elsewhere has none."""
        with self._store.lock, suppress(Damaged):
            if job := self._store.read(self._collection, run_id):
                self._store.keep(self._collection, run_id, job | fields)

    def _execute(self, run_id: str, run: PipelineRun) -> None:
        title = f"{self._collection}/{run_id}"
        with self._turns:
            if not self._has_turn(run_id):
                self._log(f"{title}: waiting, {self._max_runs} runs are running (--max-runs)")
            self._turns.wait_for(lambda: self._has_turn(run_id))
            self._end_wait(run_id)
        self._log(f"{title}: running")
        try:
            content = run.execute()
            reason = f", {content['error']}" if content["error"] else ""
            self._log(f"{title}: {content['state']}{reason}")
        except RecordNotWritten as error:
            self._log(f"{title}: {error}")
            self._keep_end(run_id, run, str(error))
        except Exception as error:  # the server keeps running, and run.json shows that the run no longer does
            self._log(f"{title}: internal error in localvertex: {type(error).__name__}: {error}")
        finally:
            with self._turns:
                self._running.pop(run_id, None)
                self._turns.notify_all()
            self._on_end(run_id)

    def _has_turn(self, run_id: str) -> bool:
        """Return whether a run may start: it is the next one and there is room, or it was stopped and ends at once."""
        num_started = len(self._running) - len(self._waiting)
        return run_id not in self._waiting or (self._waiting[0] == run_id and num_started < self._max_runs)

    def _end_wait(self, run_id: str) -> None:
        if run_id in self._waiting:
            self._waiting.remove(run_id)
            self._turns.notify_all()

    def _keep_end(self, run_id: str, run: PipelineRun, reason: str) -> None:
        """Note why a record has no end, and write the end as soon as there is room."""
        self._note(run_id, error=rpc_error(Status.RESOURCE_EXHAUSTED, reason))
        content = run.unwritten
        if content is not None:
            if not State(content["state"]).is_final:
                state = State.CANCELLED if self._mark(run_id).exists() else State.FAILED
                content |= {"state": str(state), "error": reason, "end_time": record.now()}
            self._store.later(partial(write_end, run.run_dir, content))
