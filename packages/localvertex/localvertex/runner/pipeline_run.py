"""One run: connects scheduler, display and record, and keeps run.json up to date."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from localvertex._base.compiled.load import PipelineFile
from localvertex._base.compiled.spec import Container, Pipeline
from localvertex._base.json_object import JsonObject
from localvertex._base.userinput import temporary
from localvertex.containers.mounts import given_paths
from localvertex.credentials import step_file
from localvertex.credentials.isolation import NoCredentials, UserCredentials
from localvertex.executors.context import Context, Warnings
from localvertex.jobs import FaultLedger
from localvertex.processes import pins
from localvertex.processes.processes import Processes
from localvertex.runner import repeated_options
from localvertex.runner.checks import addresses, bigquery, container_commands, given_outputs, pinned_versions
from localvertex.runner.display import Display
from localvertex.runner.options import Options
from localvertex.runner.pipeline_inputs import buckets_of, file_values, inputs_of, notes_of, tasks_of_file
from localvertex.runner.run_record import RunRecord
from localvertex.runner.scheduler import Scheduler
from localvertex.runner.step_attempt import remove_secrets
from localvertex.runner.task_tree import root_task
from localvertex.store import outcome, record, run_folder
from localvertex.store.copies import Copies
from localvertex.store.steps import cache as step_cache, failure
from localvertex.store.steps.finished import FinishedSteps
from localvertex.store.task import Task, Values
from localvertex.values.repository import Repository

WritePage = Callable[[Path, JsonObject, Pipeline, Callable[[Any], Any]], object]
"""Writes the page of a run into its folder, from the record and what was run; the last removes secrets."""


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
        write_page: WritePage,
        earlier: JsonObject | None = None,
        hold: IO[str] | None = None,
    ) -> None:
        self._file, self._display, self._earlier = file, display, earlier or {}
        self._write = write_page
        output_directory = file.pipeline.job.output_directory
        self._origin = {
            "file": self._earlier.get("file") or options.file or str(file.path),
            "sha256": self._earlier.get("sha256") or options.sha256 or file.sha256,
        }
        self.run_id, self.work_dir = job["pipeline_job_name"], Path(job["pipeline_root"])
        copies = Copies(self.work_dir / self.run_id / record.COPIES)
        self._buckets = replace(buckets_of(options, self._earlier), copies=copies)
        self._inputs, self._notes = inputs_of(file, inputs), notes_of(file, inputs, self._buckets)
        self._signals: list[int] = []
        self.unwritten: JsonObject | None = None
        """The complete record, if it could not be written at the end."""
        if not_run := given_outputs.given_paths(file.pipeline):
            self._notes.append(f"given in {options.configuration.file}, not run: {', '.join(not_run)}")
        self._notes += bigquery.calls(file.pipeline, self._inputs.parameters, has_credentials=options.with_credentials)
        self._credentials = UserCredentials() if options.with_credentials else NoCredentials()
        given = given_paths(
            self._inputs.parameters, file_values(self._file), self._inputs.artifacts, work_dir=self.work_dir
        )
        mask = options.mask(self.work_dir, given)
        pip_ends = time.monotonic() + pins.MAX_SECONDS
        with ExitStack() as refused:
            refused.callback(self._credentials.close)
            self._pins = pinned_versions.replacements(
                file.pipeline,
                self.work_dir / record.PRIVATE,
                options.container_choice.stand_ins,
                options.configuration,
                lambda words: mask.ask(
                    words,
                    env=self._credentials.environment(os.environ),
                    seconds=max(0.0, pip_ends - time.monotonic()),
                ),
                report=display.on_report,
                warn=self._notes.append,
                has_time=lambda: time.monotonic() < pip_ends,
            )
            refused.pop_all()
        self._notes += filter(None, [pins.announcement(self._pins)])
        if self._buckets.root is not None and output_directory:
            job = job | {"pipeline_root": output_directory}
            self._buckets.create_named(output_directory)
        self._processes = Processes(
            grace_seconds=options.grace_seconds, secrets=self._credentials.secrets.live, mask=mask
        )
        constants = [each.constant for task in tasks_of_file(file) for each in task.parameters.values()]
        self._credentials.secrets.learn_declared([dict(inputs.parameters), constants])
        self._first_secrets = self._credentials.secrets.spellings()
        self._context = self._new_context(job, options, given)
        self._held = ExitStack()
        self._root = root_task(file.pipeline, self._inputs, self.run_dir)
        self._root.started_at = record.seconds_of(self._earlier.get("start_time"))
        self._root.idle_seconds = record.idle_seconds(self._earlier)
        self._fail_fast = options.fail_fast or file.pipeline.job.fail_fast or bool(self._earlier.get("fail_fast"))
        finished = FinishedSteps(self._earlier, self.run_dir)
        self._scheduler = Scheduler(
            file.pipeline,
            self._context,
            max_parallel=options.max_parallel,
            max_backoff_seconds=options.max_backoff_seconds,
            fail_fast=self._fail_fast,
            on_change=self._on_change,
            on_progress=lambda task: self._record.write_change(task),
            on_settled=lambda: self._record.settled(),
            finished=finished,
        )
        self._configuration = options.configuration.as_json()
        self._resume_options = repeated_options.words(options)
        self._resume_times = [*self._earlier.get("resume_times", []), *([record.now()] if earlier else [])]
        secrets = self._credentials.secrets
        self._record = RunRecord(self._root, self.run_dir, fields=self._fields, secrets=secrets, finished=finished)
        if options.configuration.buckets.get("create"):
            addresses.create_buckets(file.pipeline, inputs.parameters, self._buckets)
        if hold is not None:
            self._record.begin(self.run_dir)
        self._hold = hold or run_folder.create(self.run_dir, file, self._record.begin)
        self._processes.holds.append(self._hold.fileno())

    def _new_context(self, job: dict[str, str], options: Options, given: tuple[Path, ...]) -> Context:
        return Context(
            run_id=self.run_id,
            pipeline_name=self._file.pipeline.name,
            work_dir=self.work_dir,
            project=job["pipeline_google_cloud_project_id"],
            region=job["pipeline_google_cloud_location"],
            job=job,
            processes=self._processes,
            credentials=self._credentials,
            api=options.server,
            warnings=Warnings(listener=self._display.on_warning, texts=list(self._earlier.get("warnings", []))),
            report=self._display.on_report,
            use_cache=options.use_cache,
            faults=options.replica_faults,
            fault_ledger=FaultLedger(options.faults),
            output_directory=job["pipeline_root"] if job["pipeline_root"] != str(self.work_dir) else "",
            buckets=self._buckets,
            containers=options.container_choice,
            images=options.container_choice.images_variable(self.work_dir),
            pins=self._pins,
            repository=Repository.of(
                self._file.pipeline,
                self._origin["file"],
                options.container_choice.stand_ins.sources,
            ),
            given_paths=given,
        )

    @property
    def run_dir(self) -> Path:
        """Return the folder of this run, which contains run.json."""
        return self._context.run_dir

    def stop(self, *, at_once: bool = False) -> None:
        """End every process by SIGTERM, with `at_once` by SIGKILL, without waiting; the run becomes CANCELLED."""
        self._scheduler.stop(at_once=at_once)

    def execute(self) -> JsonObject:
        """Run to the end, write run.json and run.html, and return the record.

        Raises:
            RecordNotWritten: The disk is full, for example; the run was stopped and can be resumed.
        """
        pipeline = self._file.pipeline
        if line := container_commands.announcement(pipeline, self._context.containers):
            self._context.warnings.add(line)
        for text in filter(None, [self._processes.mask.warning, *self._notes]):
            self._context.warnings.add(text)
        self._display.on_start(self.run_dir, self._root)
        temporary.remove_left(step_file.FILES)
        try:
            if self._earlier:
                self._remove_page()
            with self._stop_on_signals():
                if (api := self._context.api) is not None:
                    run = self._context.job["pipeline_job_uuid"]
                    self._held.enter_context(api.open_endpoint(self._context.machine, self._context.warnings.add, run))
                # No step has written anything before the token was known.
                self._first_secrets = self._credentials.secrets.spellings()
                self._scheduler.run(self._root)
        finally:
            # Whatever happens to the record, the run is no longer locked.
            with closing(self._hold):
                content = self._end()
        return content

    def _write_page(self, content: JsonObject) -> None:
        """Write the page; the run has its result and its record without it."""
        page = self.run_dir / record.PAGE
        try:
            self._write(self.run_dir, content, self._file.pipeline, self._credentials.secrets.remove)
        except Exception as error:
            self._remove_page()
            reason = " ".join(str(error).split())
            text = f"{page} was not written ({type(error).__name__}: {reason}); {record.FILE} has everything"
            self._display.on_warning(text)

    def _remove_page(self) -> None:
        """Remove a page that shows another result: of an earlier start, or a part of this one's."""
        with suppress(OSError):
            (self.run_dir / record.PAGE).unlink()

    def _end(self) -> JsonObject:
        """Stop everything and write the complete record."""
        self._processes.stop()
        self._held.close()
        self._remove_late_secrets()
        self._credentials.close()
        content = self.unwritten = self._record.content()
        content[outcome.FIELD] = outcome.of(content)
        try:
            # Whoever sees in the record that the run has ended finds its page.
            self._write_page(content)
            self._record.end(content)
            self.unwritten = None
        finally:
            if self.unwritten is not None:
                self._remove_page()
            self._display.on_end(content)
        return content

    def _on_change(self, task: Task) -> None:
        # The printed log must not be lost, however this process ends.
        self._record.write_change(task)
        self._display.on_change(task)

    def _remove_late_secrets(self) -> None:
        """Take secrets out of what steps wrote before these values were known to be secrets."""
        secrets = self._credentials.secrets
        if secrets.spellings() == self._first_secrets:
            return
        with suppress(OSError):
            for task in self._root.walk():
                if task.is_step:
                    remove_secrets(task, self._context)
            step_cache.remove_secrets(self.work_dir, self.run_id, secrets)

    def _fields(self) -> JsonObject:
        """Return the fields of the record that are not about single tasks."""
        return {
            "format": record.FORMAT,
            "run_id": self.run_id,
            "pipeline_name": self._file.pipeline.name,
            **self._origin,
            "copy_sha256": self._file.sha256,
            "resource_name": self._context.job["pipeline_job_resource_name"],
            "uuid": self._context.job["pipeline_job_uuid"],
            "work_dir": str(self.work_dir),
            "project": self._context.project,
            "region": self._context.region,
            "create_time": self._context.job["pipeline_job_create_time_utc"],
            "schedule_time": self._context.job["pipeline_job_schedule_time_utc"],
            "fail_fast": self._fail_fast,
            "gcs_root": str(self._buckets.root) if self._buckets.root else None,
            "resume_times": self._resume_times,
            "resume_options": self._resume_options,
            "configuration": self._configuration,
            "replaced_packages": self._replaced_packages() if self._pins else [],
            "parameters": self._inputs.parameters,
            "input_artifacts": self._inputs.artifacts,
            "stopped_by_signal": self._signals[0] if self._signals else None,
            "warnings": list(self._context.warnings.texts),
            "unused_faults": self._context.fault_ledger.unused,
            **failure.of_run(self._root),
            **record.of_root(self._root),
        }

    def _replaced_packages(self) -> list[dict[str, str]]:
        """Return the pins of steps that were not installed: the step's path, the pin, and what was used instead."""
        executors = self._file.pipeline.executors
        return [
            {"step": task.label, "wanted": wanted, "used": used}
            for task in self._root.walk()
            if task.is_step and isinstance(container := executors.get(task.component.executor), Container)
            for wanted, used in pins.used_by(" ".join(container.command), self._pins)
        ]

    @contextmanager
    def _stop_on_signals(self) -> Iterator[None]:
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
