"""A run from the compiled file to its record: what the command line, the tests and a server share."""

import math
import os
import re
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from localvertex import parameters as parameter_values
from localvertex import record, report
from localvertex.context import Context, Warnings
from localvertex.custom_jobs import Options as CustomJobOptions
from localvertex.display import Display, Silent
from localvertex.errors import Refused, UserError
from localvertex.load import PipelineFile, load
from localvertex.processes import Processes
from localvertex.refusals import harmless, refusals
from localvertex.run_ids import check_run_id, new_run_id
from localvertex.scheduler import Scheduler
from localvertex.spec import TaskSpec
from localvertex.task import Task, Values

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,99}")
"""Projects and regions: they become parts of resource names."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a run is done; none of it changes what the pipeline computes."""

    work_dir: Path = Path("runs")
    run_id: str | None = None
    project: str = "local-project"
    region: str = "us-central1"
    use_cache: bool = True
    max_parallel: int = field(default_factory=lambda: max(2, os.cpu_count() or 2))
    max_backoff_seconds: float = 10.0
    """Longest wait before a retry, whatever the pipeline says."""
    grace_seconds: float = 10.0
    """Between SIGTERM and SIGKILL when a run is stopped."""
    custom_jobs: CustomJobOptions = field(default_factory=CustomJobOptions)
    """Restart rule and faults of its custom jobs."""

    def __post_init__(self) -> None:
        """Refuses nonsense."""
        if self.max_parallel < 1:
            raise UserError(f"--max-parallel {self.max_parallel}: at least 1 expected")
        for name, seconds in (("--max-backoff", self.max_backoff_seconds), ("--grace", self.grace_seconds)):
            if not 0 <= seconds < math.inf:
                raise UserError(f"{name} {seconds}: seconds, 0 or more, expected")
        for name, text in (("--project", self.project), ("--region", self.region)):
            if not NAME.fullmatch(text):
                raise UserError(f"{name} {text!r}: letters, digits, '-', '.', ':' and '_' expected")


def open_pipeline(path: Path) -> PipelineFile:
    """Reads a compiled file and checks that all of it can run here.

    Raises:
        UserError: the file is not a pipeline.
        Refused: it uses what does not run here; every such thing is named.
    """
    file = load(path)
    reasons = refusals(file.pipeline)
    if reasons:
        raise Refused(reasons)
    return file


def run(
    file: PipelineFile | Path | str,
    *,
    parameters: Mapping[str, Any] | None = None,
    options: Options | None = None,
    display: Display | None = None,
) -> dict[str, Any]:
    """Runs a pipeline and returns its record, the content of run.json.

    Raises:
        UserError: the input is wrong; nothing has run and nothing was written.
    """
    options, display = options or Options(), display or Silent()
    file = file if isinstance(file, PipelineFile) else open_pipeline(Path(file))
    declared = file.pipeline.root.input_parameters
    for name in parameters or {}:
        parameter_values.check_name(name, declared)
    values = parameter_values.complete(parameters or {}, declared)
    work_dir = options.work_dir.absolute()
    run_id = (
        new_run_id(file.pipeline.name, work_dir) if options.run_id is None else check_run_id(options.run_id, work_dir)
    )
    run_dir = make_run_dir(work_dir, run_id)
    with record.hold(run_dir):
        return Run(file, values, run_id, options, display).execute()


def make_run_dir(work_dir: Path, run_id: str) -> Path:
    """Creates the folder of a new run.

    Raises:
        UserError: it cannot be created, or another run took it.
    """
    try:
        (work_dir / run_id).mkdir(parents=True)
    except FileExistsError:
        raise UserError(f"{work_dir / run_id} exists already; choose another --run-id") from None
    except OSError as error:
        raise UserError(f"the work directory {work_dir} cannot be used: {error.strerror}") from None
    return work_dir / run_id


class Run:
    """One run: puts the parts together and keeps run.json up to date."""

    def __init__(
        self, file: PipelineFile, values: dict[str, Any], run_id: str, options: Options, display: Display
    ) -> None:
        self._file, self._values, self._display = file, values, display
        work_dir = options.work_dir.absolute()
        self._context = Context(
            run_id=run_id,
            pipeline_name=file.pipeline.name,
            work_dir=work_dir,
            project=options.project,
            region=options.region,
            job=job_fields(run_id, work_dir, options),
            processes=Processes(grace_seconds=options.grace_seconds),
            warnings=Warnings(listener=display.warned),
            use_cache=options.use_cache,
            custom_jobs=options.custom_jobs,
        )
        self._root = root_task(file, {k: v for k, v in values.items() if v is not None}, self._context.run_dir)
        self._scheduler = Scheduler(
            file.pipeline,
            self._context,
            max_parallel=options.max_parallel,
            max_backoff_seconds=options.max_backoff_seconds,
            on_change=self._changed,
        )
        self._signals: list[int] = []

    def execute(self) -> dict[str, Any]:
        """Runs to the end, writes run.json and run.html, returns the record."""
        for text in harmless(self._file.pipeline):
            self._context.warnings.say(text)
        self._display.started(self._context.run_dir, self._root)
        try:
            with self._stopped_by_signals():
                self._scheduler.run(self._root)
        finally:
            self._context.processes.stop()
            content = self._content()
            record.write(self._context.run_dir, content, is_final=True)
            self._display.ended(content)
        report.write(self._context.run_dir, content)
        return content

    def _changed(self, task: Task) -> None:
        record.write(self._context.run_dir, self._content())
        self._display.changed(task)

    def _content(self) -> dict[str, Any]:
        return {
            "format": record.FORMAT,
            "run_id": self._context.run_id,
            "pipeline_name": self._file.pipeline.name,
            "file": str(self._file.path),
            "sha256": self._file.sha256,
            "resource_name": self._context.job["pipeline_job_resource_name"],
            "work_dir": str(self._context.work_dir),
            "project": self._context.project,
            "region": self._context.region,
            "create_time": self._context.job["pipeline_job_create_time_utc"],
            "parameters": self._values,
            "stopped_by_signal": self._signals[0] if self._signals else None,
            "warnings": list(self._context.warnings.texts),
            **record.summary(self._root, self._context.run_dir),
        }

    @contextmanager
    def _stopped_by_signals(self) -> Iterator[None]:
        """SIGINT and SIGTERM stop the run, a second one without grace; only where handlers can be set."""

        def handle(number: int, _: object) -> None:
            self._scheduler.stop(at_once=bool(self._signals))
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


def job_fields(run_id: str, work_dir: Path, options: Options) -> dict[str, str]:
    """Values of the job-wide placeholders. What a laptop has none of is empty, as on Vertex when it is not set."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {
        "pipeline_root": str(work_dir),
        "pipeline_job_name": run_id,
        "pipeline_job_uuid": str(uuid4().int >> 66),
        "pipeline_job_resource_name": f"projects/{options.project}/locations/{options.region}/pipelineJobs/{run_id}",
        "pipeline_job_create_time_utc": now,
        "pipeline_job_schedule_time_utc": now,
        "pipeline_google_cloud_project_id": options.project,
        "pipeline_google_cloud_location": options.region,
        "pipeline_service_account": "",
        "pipeline_network": "",
        "pipeline_persistent_resource_id": "",
        "pipeline_encryption_key_name": "",
    }


def root_task(file: PipelineFile, values: dict[str, Any], run_dir: Path) -> Task:
    """The root as a task: its inputs are the pipeline's parameters."""
    component = file.pipeline.root
    spec = TaskSpec(name="root", component="root")
    inputs = Values(parameters=values)
    return Task(spec=spec, component=component, name="root", path=(), folder=run_dir, inputs=inputs)
