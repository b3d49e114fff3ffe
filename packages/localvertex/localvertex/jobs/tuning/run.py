"""A running tuning job: parallel trials, each a custom job in its own folder.

One loop in the caller's thread makes all decisions. The thread of a trial only runs its job.
"""

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from queue import Empty, SimpleQueue

from localvertex._base.json_object import JsonObject
from localvertex._base.lines import WriteLine
from localvertex._base.userinput import atomic_write
from localvertex.errors import Cancelled, TaskFailed
from localvertex.jobs.goodput.goodput import add_up
from localvertex.jobs.status import JobState, JobStatus, Outcome
from localvertex.jobs.tuning.job import METRIC_FILE, TuningJob
from localvertex.jobs.tuning.suggestions import suggestions
from localvertex.jobs.tuning.trial import Trial
from localvertex.jobs.tuning.trial_run import RunJob, TrialRun, gpu_slots
from localvertex.store import executor_files
from localvertex.store.steps.logs import TRIALS

FILE = "hyperparameter_tuning_job.json"
"""File in the job's folder with its state and its trials, with the API's names."""

_POLL_SECONDS = 0.1
"""How often the metric files are read. The end of a trial wakes the loop at once."""


class TuningRun:
    """One tuning job; call `execute` once."""

    def __init__(
        self,
        job: TuningJob,
        *,
        name: str,
        folder: Path,
        run_job: RunJob,
        stopped: threading.Event,
        observe: Callable[[JobStatus], None],
        warn: WriteLine,
        report: WriteLine,
    ) -> None:
        """Prepare the run.

        Args:
            job: Result of `read_tuning_job`.
            name: Its resource name.
            folder: Absolute path; the trials of an earlier attempt at the same job may be in it.
            run_job: Runs the custom job of a trial.
            stopped: Set when the user stops the run.
            observe: Called with the replicas of all running trials after each change.
            warn: Called with a line about each difference from the service.
            report: Called with a line about the result of each trial.
        """
        self._job, self._name, self._folder, self._run_job = job, name, folder, run_job
        self._stopped, self._observe, self._warn, self._report = stopped, observe, warn, report
        self._ended: SimpleQueue[TrialRun] = SimpleQueue()
        self._cancel = threading.Event()
        self._trials: list[Trial] = []
        self._started: list[TrialRun] = []
        self._running: list[TrialRun] = []
        self._num_failed, self._failed_replica = 0, ""
        self._shown: JobStatus | None = None

    def execute(self) -> list[Trial]:
        """Run all trials and return them.

        Raises:
            TaskFailed: Too many trials failed, or one could not be started.
            Cancelled: The run was stopped.
        """
        self._forget_other_job()
        slots = gpu_slots(self._job, self._warn)
        waiting = self._pending_trials()
        state = JobState.FAILED
        try:
            while True:
                self._fill(slots, waiting)
                if not self._running:
                    break
                self._follow(slots)
            state = JobState.SUCCEEDED
        except Cancelled:
            state = JobState.CANCELLED
            raise
        finally:
            self._end(state)
        return self._trials

    def _forget_other_job(self) -> None:
        """Remove the trials of an earlier attempt, unless they belong to the same job."""
        path = self._folder / TRIALS / "digest"
        if not path.is_file() or path.read_text() != self._job.digest:
            executor_files.remove(self._folder / TRIALS)
            path.parent.mkdir(parents=True)
            atomic_write.write_text(path, self._job.digest)

    def _pending_trials(self) -> Iterator[TrialRun]:
        """Yield the trials to run; those that an earlier attempt finished are only recorded."""
        for number, point in enumerate(islice(suggestions(self._job.study), self._job.max_trials), start=1):
            folder = self._folder / TRIALS / str(number)
            name = self._name.replace("/hyperparameterTuningJobs/", "/customJobs/")
            trial = Trial(id=str(number), point=point, custom_job=f"{name}{number:04d}")
            self._trials.append(trial)
            if trial.restore(folder):
                self._report(f"{trial.sentence} (finished before)")
                continue
            yield TrialRun(trial=trial, folder=folder, cancel=self._cancel)

    def _fill(self, slots: list[list[str] | None], waiting: Iterator[TrialRun]) -> None:
        """Start trials while there are slots."""
        while slots and (running := next(waiting, None)):
            running.gpus = slots.pop(0)
            running.folder.mkdir(parents=True, exist_ok=True)
            # Reports of an interrupted attempt do not belong to this one.
            (running.folder / METRIC_FILE).unlink(missing_ok=True)
            running.trial.start()
            running.thread = threading.Thread(target=self._run, args=(running,), daemon=True)
            self._started.append(running)
            self._running.append(running)
            running.thread.start()
            self._write(JobState.RUNNING)

    def _run(self, running: TrialRun) -> None:
        """Run the job of a trial; called in its own thread."""
        try:
            job = self._job.trial_job(running.id, running.trial.point, running.folder)
            running.outcome = self._run_job(job, running)
        except TaskFailed as error:
            running.outcome = error
        except Cancelled:
            running.outcome = None
        except Exception as error:  # a defect of localvertex must end the job, not hang it
            running.outcome = TaskFailed(f"localvertex failed: {type(error).__name__}: {error}", is_retryable=False)
        finally:
            self._ended.put(running)

    def _follow(self, slots: list[list[str] | None]) -> None:
        """Wait for a trial to end, and read the metrics of all trials."""
        try:
            ended: TrialRun | None = self._ended.get(timeout=_POLL_SECONDS)
        except Empty:
            ended = None
        if self._stopped.is_set():
            raise Cancelled
        for each in self._running:
            each.metrics.poll()
        if ended:
            self._running.remove(ended)
            slots.insert(0, ended.gpus)
            self._accept(ended)
        self._show(JobState.RUNNING)

    def _accept(self, ended: TrialRun) -> None:
        """Record how a trial ended.

        Raises:
            TaskFailed: The job fails because of it.
        """
        trial, outcome, metrics = ended.trial, ended.outcome, ended.metrics
        if not isinstance(outcome, Outcome):
            raise outcome or Cancelled
        if outcome.state is JobState.CANCELLED:
            raise Cancelled
        if outcome.state is JobState.FAILED:
            trial.end(None, outcome.error)
        elif final := metrics.final(self._job.study):
            trial.end(final)
        else:
            trial.end(None, self._missing_reason(metrics.names))
            self._warn(f"trial {trial.id}: {trial.infeasible_reason}")
        trial.write(ended.folder)
        self._report(trial.sentence)
        self._write(JobState.RUNNING)
        if outcome.state is JobState.FAILED:
            self._fail_if_too_many(trial, outcome)

    def _missing_reason(self, reported: list[str]) -> str:
        """Return why a trial that has ended has no measurement."""
        wanted = ", ".join(each.name for each in self._job.study.metrics)
        found = f"only {', '.join(reported)}" if reported else "nothing"
        return f"it reported {found} to the file of CLOUD_ML_HP_METRIC_FILE; the study's metrics are {wanted}"

    def _fail_if_too_many(self, trial: Trial, outcome: Outcome) -> None:
        """Fail the job by `max_failed_trial_count`; without one, by the first failure before any success.

        The API leaves that case to the service, and its rule is not documented.
        """
        self._num_failed += 1
        limit = self._job.max_failed_trials
        if limit:
            trials = "1 failed trial" if self._num_failed == 1 else f"{self._num_failed} failed trials"
            fails, rule = self._num_failed >= limit, f"{trials} (max_failed_trial_count)"
        else:
            fails, rule = not any(each.has_succeeded for each in self._trials), "a trial failed before any succeeded"
        if fails:
            permanent = outcome.is_permanent
            self._failed_replica = f"{TRIALS}/{trial.id}/{outcome.status.failed_replica}"
            text = f"{rule}: trial {trial.id}: {outcome.error}; its logs are in {TRIALS}/{trial.id}"
            raise TaskFailed(text, exit_code=outcome.exit_code, is_retryable=not permanent)

    def _end(self, state: JobState) -> None:
        """Stop the trials that still run, and record how the job ended."""
        self._cancel.set()
        for each in self._running:
            if each.thread:
                each.thread.join()
            each.trial.state = "STOPPING"
        self._running.clear()
        self._write(state)
        self._show(state)

    def _show(self, state: JobState) -> None:
        """Report the replicas of the running trials, and the goodput of those that have ended, if they have changed.

        The names of the replicas lead to their logs.
        """
        running = [(each.trial.id, each.status) for each in self._running]
        ended = [each.status.goodput for each in self._started if each.status.goodput and each not in self._running]
        status = JobStatus(
            state=state,
            replicas=tuple(
                replace(replica, name=f"{TRIALS}/{trial_id}/{replica.name}")
                for trial_id, found in running
                for replica in found.replicas
            ),
            num_restarts=sum(each.status.num_restarts for each in self._started),
            num_preemptions=sum(each.status.num_preemptions for each in self._started),
            stalled="; ".join(f"trial {trial_id}: {found.stalled}" for trial_id, found in running if found.stalled),
            goodput=add_up(ended),
            failed_replica=self._failed_replica,
        )
        if status != self._shown:
            self._shown = status
            self._observe(status)

    def _write(self, state: JobState) -> None:
        """Write the job's file."""
        content: JsonObject = {"name": self._name, "displayName": self._job.display_name, "state": str(state)}
        trials = [each.as_json() for each in self._trials]
        atomic_write.write_text(self._folder / FILE, json.dumps(content | {"trials": trials}, indent=1))
