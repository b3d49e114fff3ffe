"""One run: connects scheduler, display and record, and keeps run.json up to date."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

from compiled import platforms
from compiled.load import PipelineFile
from compiled.spec import TaskSpec
from localvertex.containers.mounts import given_paths
from localvertex.credentials import cloud_launchers
from localvertex.credentials.isolation import NoCredentials, UserCredentials
from localvertex.executors.context import Context, Warnings
from localvertex.processes.pins import announcement
from localvertex.processes.processes import Processes
from localvertex.runner import container_commands
from localvertex.runner.options import Options
from localvertex.runner.refusals import reachable
from localvertex.runner.scheduler import Scheduler
from localvertex.show import failure, report
from localvertex.show.display import Display
from localvertex.state import record, run_folder
from localvertex.state.finished_steps import FinishedSteps
from localvertex.state.task import Task, Values
from userinput import doubles
from userinput.parameters import convert


class PipelineRun:
    """A prepared run. `execute` may be called once; `stop` at any time and from any thread."""

    def __init__(
        self,
        file: PipelineFile,
        inputs: Values,
        job: dict[str, str],
        *,
        options: Options,
        display: Display,
        pins: dict[str, str],
        earlier: dict[str, Any] | None = None,
        hold: IO[str] | None = None,
    ) -> None:
        self._file, self._display, self._earlier = file, display, earlier or {}
        self._inputs, self._notes = _inputs_of(file, inputs), _notes_of(file, inputs)
        self._notes += filter(None, [announcement(pins)])
        self._pins = pins
        self._signals: list[int] = []
        self._is_changed = False
        self.run_id, self.work_dir = job["pipeline_job_name"], Path(job["pipeline_root"])
        self._processes = Processes(grace_seconds=options.grace_seconds)
        self._credentials = UserCredentials() if options.with_credentials else NoCredentials()
        constants = [each.constant for task in _tasks_of_file(file) for each in task.parameters.values()]
        self._credentials.secrets.learn_declared([dict(inputs.parameters), constants])
        self._context = self._new_context(job, options)
        self._root = _root_task(file, self._inputs, self.run_dir)
        self._root.started_at = record.seconds_of(self._earlier.get("start_time"))
        self._fail_fast = options.fail_fast or file.pipeline.job.fail_fast or bool(self._earlier.get("fail_fast"))
        self._scheduler = Scheduler(
            file.pipeline,
            self._context,
            max_parallel=options.max_parallel,
            max_backoff_seconds=options.max_backoff_seconds,
            fail_fast=self._fail_fast,
            on_change=self._changed,
            on_settled=self._write_changes,
            finished=FinishedSteps(self._earlier.get("tasks", []), self.run_dir),
        )
        self._resume_times = [*self._earlier.get("resume_times", []), *([record.now()] if earlier else [])]
        write = partial(record.write, content=self._content())
        self._hold = hold or run_folder.create(self.run_dir, file, write)
        self._processes.hold = self._hold.fileno()

    def _new_context(self, job: dict[str, str], options: Options) -> Context:
        return Context(
            run_id=self.run_id,
            pipeline_name=self._file.pipeline.name,
            work_dir=self.work_dir,
            project=job["pipeline_google_cloud_project_id"],
            region=job["pipeline_google_cloud_location"],
            job=job,
            processes=self._processes,
            credentials=self._credentials,
            allow_cloud_launchers=options.allow_cloud_launchers,
            warnings=Warnings(listener=self._display.warned, texts=list(self._earlier.get("warnings", []))),
            report=self._display.reported,
            use_cache=options.use_cache,
            custom_jobs=options.custom_jobs,
            command_prefixes=options.command_prefixes,
            containers=options.container_choice,
            pins=self._pins,
            given_paths=given_paths(self._inputs.parameters, _known_values(self._file), self._inputs.artifacts),
        )

    @property
    def run_dir(self) -> Path:
        """Return the folder of this run, which contains run.json."""
        return self._context.run_dir

    def stop(self, *, at_once: bool = False) -> None:
        """End every process by SIGTERM, with `at_once` by SIGKILL, without waiting; the run becomes CANCELLED."""
        self._scheduler.stop(at_once=at_once)

    def execute(self) -> dict[str, Any]:
        """Run to the end, write run.json and run.html, and return the record."""
        if self._context.allow_cloud_launchers:
            self._context.warnings.add(cloud_launchers.announcement(self._file.pipeline, self._context.project))
        pipeline = self._file.pipeline
        if line := container_commands.announcement(pipeline, reachable(pipeline, []), self._context.containers):
            self._context.warnings.add(line)
        for text in self._notes:
            self._context.warnings.add(text)
        self._display.started(self.run_dir, self._root)
        try:
            with self._stopped_by_signals():
                self._scheduler.run(self._root)
        finally:
            self._processes.stop()
            self._context.fork_servers.close()
            self._credentials.close()
            content = self._content()
            record.write(self.run_dir, content, is_final=True)
            self._hold.close()
            self._display.ended(content)
        report.write(self.run_dir, content)
        # The page also contains pages that steps wrote.
        self._credentials.secrets.remove_from([self.run_dir / report.FILE])
        return content

    def _changed(self, task: Task) -> None:
        self._is_changed = True
        self._display.changed(task)

    def _write_changes(self) -> None:
        if self._is_changed:
            self._is_changed = False
            record.write(self.run_dir, self._content())

    def _content(self) -> dict[str, Any]:
        content: dict[str, Any] = self._credentials.secrets.removed(self._whole_content())
        return content

    def _whole_content(self) -> dict[str, Any]:
        return {
            "format": record.FORMAT,
            "run_id": self.run_id,
            "pipeline_name": self._file.pipeline.name,
            "file": self._earlier.get("file", str(self._file.path)),
            "sha256": self._file.sha256,
            "resource_name": self._context.job["pipeline_job_resource_name"],
            "uuid": self._context.job["pipeline_job_uuid"],
            "work_dir": str(self.work_dir),
            "project": self._context.project,
            "region": self._context.region,
            "create_time": self._context.job["pipeline_job_create_time_utc"],
            "schedule_time": self._context.job["pipeline_job_schedule_time_utc"],
            "fail_fast": self._fail_fast,
            "resume_times": self._resume_times,
            "parameters": self._inputs.parameters,
            "input_artifacts": self._inputs.artifacts,
            "stopped_by_signal": self._signals[0] if self._signals else None,
            "warnings": list(self._context.warnings.texts),
            **failure.of_run(self._root),
            **record.summary(self._root, self.run_dir),
        }

    @contextmanager
    def _stopped_by_signals(self) -> Iterator[None]:
        """Stop the run on SIGINT and SIGTERM, on a second one without grace; only the main thread can set handlers."""

        def handle(number: int, _: object) -> None:
            self.stop(at_once=bool(self._signals))
            self._signals.append(number)

        if threading.current_thread() is not threading.main_thread():
            yield
            return
        previous = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)


def _tasks_of_file(file: PipelineFile) -> list[TaskSpec]:
    """Return the tasks of all dags of a file."""
    dags = [each.dag for each in (file.pipeline.root, *file.pipeline.components.values())]
    return [task for dag in dags if dag for task in dag.tasks.values()]


def _known_values(file: PipelineFile) -> dict[str, Any]:
    """Return the values that a file has for the parameters of its pipeline."""
    declared = file.pipeline.root.input_parameters
    return {name: each.default for name, each in declared.items()} | dict(file.pipeline.job.parameters)


def _inputs_of(file: PipelineFile, given: Values) -> Values:
    """Return the inputs of the pipeline with the numbers that its steps see."""
    declared = file.pipeline.root.input_parameters
    parameters = {name: convert(value, declared[name].type) for name, value in given.parameters.items()}
    return Values(parameters=parameters, artifacts=given.artifacts)


def _notes_of(file: PipelineFile, inputs: Values) -> list[str]:
    """Return what differs from the service and is known before the run, one warning each."""
    rounded = [doubles.warning(f"parameter {name!r}", value) for name, value in inputs.parameters.items()]
    settings = [*platforms.harmless(file.pipeline.platforms), *file.pipeline.job.without_effect]
    return [*settings, *filter(None, rounded)]


def _root_task(file: PipelineFile, inputs: Values, run_dir: Path) -> Task:
    """Return the root as a task, whose inputs are those of the pipeline."""
    component = file.pipeline.root
    spec = TaskSpec(name="root", component="root")
    parameters = {name: value for name, value in inputs.parameters.items() if value is not None}
    inputs = Values(parameters=parameters, artifacts=inputs.artifacts)
    return Task(spec=spec, component=component, name="root", path=(), folder=run_dir, inputs=inputs)
