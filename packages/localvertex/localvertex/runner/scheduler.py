"""The scheduler: one loop in one thread makes all decisions; steps run in threads that only report back."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty, SimpleQueue

from localvertex._base.compiled.spec import Container, Importer, Pipeline
from localvertex.containers.memory import largest
from localvertex.executors.context import Context
from localvertex.executors.step_jobs import StepJobs
from localvertex.processes import logs
from localvertex.runner.agenda import Agenda
from localvertex.runner.step_attempt import AttemptOutcome, AttemptProgress, run_attempt
from localvertex.runner.task_inputs import InputError, complete_inputs, explanations, resolve_inputs
from localvertex.runner.task_tree import collect_dag, collect_loop, iterations, tasks_of
from localvertex.store import executor_files
from localvertex.store.steps.finished import FinishedSteps
from localvertex.store.task import State, Task, Values
from localvertex.values import conditions
from localvertex.values.placeholders import Scope


@dataclass(frozen=True, kw_only=True)
class Stop:
    """A request to stop the run."""

    at_once: bool = False


@dataclass(frozen=True, kw_only=True)
class JobsEnded:
    """The end of the jobs that a step has created, before which the step does not end."""

    task: Task
    state: State
    error: str
    note: str


_Event = AttemptOutcome | AttemptProgress | JobsEnded | Stop


class Scheduler:
    """Runs the tasks of one pipeline run. Every change of a task happens in `run`, in the caller's thread."""

    def __init__(
        self,
        pipeline: Pipeline,
        context: Context,
        *,
        max_parallel: int,
        max_backoff_seconds: float,
        fail_fast: bool,
        on_change: Callable[[Task], None],
        on_progress: Callable[[Task], None],
        on_settled: Callable[[], float | None],
        finished: FinishedSteps,
    ) -> None:
        self._pipeline = pipeline
        self._context = context
        self._max_parallel = max_parallel
        self._max_backoff_seconds = max_backoff_seconds
        self._fail_fast, self._first_failed = fail_fast, ""
        self._on_change, self._on_progress, self._on_settled = on_change, on_progress, on_settled
        """`on_settled` returns after how many seconds it wants to be called again, at the latest."""
        self._agenda = Agenda()
        self._finished = finished
        # SimpleQueue: `put` may be called from a signal handler.
        self._events: SimpleQueue[_Event] = SimpleQueue()
        self._num_running = 0
        self._starting: list[Task] = []
        self._step_jobs: dict[Task, StepJobs] = {}
        """The jobs of the steps that create some, from the first attempt on."""
        self._is_stopping = False

    def stop(self, *, at_once: bool = False) -> None:
        """Request the run to stop; may be called from any thread and from signal handlers."""
        self._events.put(Stop(at_once=at_once))

    def run(self, root: Task) -> None:
        """Run the root task to its end.

        The loop settles all that can be decided without waiting (conditions, dags, tasks whose upstream is final).
        Then it waits for one event: a step's outcome, a retry that is due, or a request to stop.
        """
        self.open(root)
        # A stop may have come while the run waited for its turn: then no step starts.
        for event in self.events(0):
            self.handle(event, root)
        while True:
            self.settle()
            # The record shows what has ended before anything that depends on it starts.
            record_seconds = self._on_settled()
            self.launch()
            if root.state.is_final:
                return
            retry_seconds = None if self._is_stopping else self._agenda.seconds_to_next_retry()
            if retry_seconds is None and self._num_running == 0:
                raise RuntimeError("no task can continue; the check before the run should have refused this pipeline")
            waits = [seconds for seconds in (record_seconds, retry_seconds) if seconds is not None]
            for event in self.events(min(waits, default=None)):
                self.handle(event, root)

    def handle(self, event: _Event, root: Task) -> None:
        """Handle an event."""
        if isinstance(event, AttemptProgress):
            event.task.custom_job = event.custom_job
            self._on_progress(event.task)
        elif isinstance(event, AttemptOutcome):
            self._num_running -= 1
            self.accept(event)
        elif isinstance(event, JobsEnded):
            self._num_running -= 1
            self.finish(event.task, event.state, error=event.error, note=event.note)
        else:
            self._is_stopping = True
            self._context.processes.stop(at_once=event.at_once)
            for task in root.walk():
                self._agenda.consider(task)

    def events(self, wait_seconds: float | None) -> list[_Event]:
        """Return all pending events; wait for the first one, `wait_seconds` at most."""
        found: list[_Event] = []
        try:
            found.append(self._events.get(timeout=wait_seconds))
            while True:
                found.append(self._events.get_nowait())
        except Empty:
            return found

    def settle(self) -> None:
        """Advance all tasks as far as possible without waiting."""
        while True:
            if task := self._agenda.next_closable():
                self.close(task)
            elif task := self._agenda.next_candidate():
                self.settle_pending(task)
            elif self._num_running < self._max_parallel and (task := self._agenda.next_ready()):
                self.settle_pending(task, has_slot=True)
            else:
                return

    def settle_pending(self, task: Task, *, has_slot: bool = False) -> None:
        """Start a task, or finish it when it will not run; steps start only with one of the slots."""
        siblings, upstream = task.parent.children if task.parent else {}, task.upstream
        if self._is_stopping:
            return self.conclude(task, State.CANCELLED, note="the run was stopped")
        if self._first_failed and task.attempts == 0 and not task.runs_after_failure:
            return self.finish(
                task, State.NOT_TRIGGERED, note=f"not started after {self._first_failed} failed (fail fast)"
            )
        blocked = [each for each in upstream if not each.state.has_outputs]
        if blocked and not task.spec.runs_after_failure:
            reasons = ", ".join(f"{each.name} is {each.state}" for each in blocked)
            return self.finish(task, State.NOT_TRIGGERED, note=reasons)
        if task.is_step and not has_slot:
            return self._agenda.wait_for_slot(task)
        if task.iteration is not None and not self._agenda.takes_room(task):
            return None
        if task.attempts == 0 and not self.take_inputs(task, siblings):
            return None
        if not task.is_step:
            return self.open(task)
        if not self._finished.restore(task, upstream):
            return self.start(task)
        self._agenda.add_unblocked(task)
        return self._on_change(task)

    def take_inputs(self, task: Task, siblings: dict[str, Task]) -> bool:
        """Resolve inputs and condition; return false when that finished the task."""
        if task.iteration is not None:
            return True
        scope = Scope(job=self._context.job, task=task.placeholders)
        try:
            values = resolve_inputs(task, siblings, scope, self._context.job["pipeline_job_resource_name"])
            if task.spec.condition and not self.is_triggered(task, values):
                self.finish(task, State.NOT_TRIGGERED, note="its condition is false")
                return False
            if task.is_loop:
                task.inputs = values
            else:
                task.inputs = complete_inputs(values, task.component, scope, explanations(task, siblings))
        except (InputError, conditions.ConditionError) as error:
            self.finish(task, State.FAILED, error=str(error))
            return False
        return True

    def is_triggered(self, task: Task, values: Values) -> bool:
        """Return whether the task's condition holds; inputs without a value are null in it."""
        try:
            return conditions.holds(task.spec.condition, values.parameters)
        except conditions.ConditionError as error:
            raise conditions.ConditionError(f"the condition {task.spec.condition!r} {error}") from None

    def open(self, task: Task) -> None:
        """Open a dag or a loop: its tasks become pending."""
        task.begin()
        if task.is_loop:
            try:
                task.children = iterations(task, self._context.scope)
            except InputError as error:
                return self.finish(task, State.FAILED, error=str(error))
        elif task.component.dag is not None:
            task.children = tasks_of(task, task.component.dag, self._pipeline)
        self._agenda.add_opened(task)
        return self._on_change(task)

    def start(self, task: Task) -> None:
        """Prepare an attempt at a step for `launch`."""
        task.attempts += 1
        task.retry_at, task.note = None, ""
        task.begin()
        try:
            task.folder.mkdir(parents=True, exist_ok=True)
            task.log = task.folder / executor_files.LOG
            if task.attempts > 1:
                logs.add(task.log, f"--- attempt {task.attempts} of {task.spec.retry.max_retries + 1} ---")
        except OSError as error:
            return self.finish(task, State.FAILED, error=f"cannot write to its folder: {error.strerror}")
        self._num_running += 1
        self._starting.append(task)
        return self._on_change(task)

    def launch(self) -> None:
        """Start the prepared attempts, each in a thread."""
        for task in self._starting:
            executor = None if task.component.given is not None else self._pipeline.executors[task.component.executor]
            # Daemon threads: each ends with its process, and processes are ended by their supervisors.
            threading.Thread(target=self.run_attempt, args=(task, executor), name=task.label, daemon=True).start()
        self._starting.clear()

    def run_attempt(self, task: Task, executor: Container | Importer | None) -> None:
        """Run one attempt at a step; called in its own thread."""
        self._events.put(run_attempt(task, executor, self._context, self._events.put, self._step_jobs))

    def accept(self, outcome: AttemptOutcome) -> None:
        """Process the outcome of an attempt: the task's final state, or its next attempt."""
        task, policy = outcome.task, outcome.task.spec.retry
        task.memory = largest([task.memory, outcome.memory])
        task.exit_code, task.outputs = outcome.exit_code, outcome.outputs
        may_retry = outcome.state is State.FAILED and outcome.is_retryable and not self._is_stopping
        if not may_retry or task.attempts > policy.max_retries:
            return self.conclude(task, outcome.state, error=outcome.error)
        # Local rule: waits are shorter than the service's minutes; only the order of attempts matters.
        delay = policy.delay_seconds(task.attempts, longest_seconds=self._max_backoff_seconds)
        task.state, task.error, task.retry_at = State.PENDING, outcome.error, time.monotonic() + delay
        task.note = f"attempt {task.attempts} of {policy.max_retries + 1} failed, retry in {delay:g} s"
        self._agenda.wait_for_retry(task)
        return self._on_change(task)

    def conclude(self, task: Task, state: State, *, error: str = "", note: str = "") -> None:
        """Finish a step; a thread of its own first ends the jobs that the step has left."""
        if (jobs := self._step_jobs.pop(task, None)) is None:
            return self.finish(task, state, error=error, note=note)

        def end_jobs() -> None:
            jobs.close()
            self._events.put(JobsEnded(task=task, state=state, error=error, note=note))

        self._num_running += 1
        # Between two attempts it is pending, and must not be looked at again.
        task.state = State.RUNNING
        return threading.Thread(target=end_jobs, name=task.label, daemon=True).start()

    def close(self, task: Task) -> None:
        """Finish a dag or loop whose tasks are all final."""
        states = {child.state for child in task.children.values()}
        if State.CANCELLED in states:
            return self.finish(task, State.CANCELLED, note="the run was stopped")
        if State.FAILED in states:
            failed = [child.name for child in task.children.values() if child.state is State.FAILED]
            return self.finish(task, State.FAILED, error=f"failed tasks: {', '.join(failed)}")
        task.outputs = collect_loop(task) if task.is_loop else collect_dag(task)
        # What has no step that ran has computed nothing.
        is_given = task.parent is not None and State.GIVEN in states and states <= {State.GIVEN, State.NOT_TRIGGERED}
        return self.finish(task, State.GIVEN if is_given else State.SUCCEEDED)

    def finish(self, task: Task, state: State, *, error: str = "", note: str = "") -> None:
        """Move a task to a final state and report the change."""
        if state is State.FAILED and self._fail_fast and not self._first_failed:
            self._first_failed = task.label
            self._agenda.reconsider_all()
        task.finish(state, error=error, note=note)
        self._agenda.add_unblocked(task)
        self._on_change(task)
