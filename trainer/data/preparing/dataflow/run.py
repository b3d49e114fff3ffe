"""Finds or starts the job of a dataset, waits for its end, and cancels it if this step is stopped."""

import contextlib
import logging
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from trainer.command_line import TrainingError
from trainer.data.preparing.dataflow.service import Job, Service, emulator, explain, is_refusal
from trainer.data.preparing.dataflow.settings import Settings
from trainer.google_errors import google_error

_NUM_ERRORS = 3
_MAX_POLLS = 6
"""Polls for facts that the service shows up to half a minute late: messages of a failed job, and a new job."""


def run(settings: Settings, build: Callable[[Any], None], is_done: Callable[[], bool]) -> None:
    """Process the dataset in one Dataflow job.

    An active job of an earlier attempt, or of another run, is awaited first. `is_done` then decides by the files in the
    bucket whether a new job is needed.

    Args:
        settings: Settings of the job; its name follows from the dataset's folder.
        build: Adds the transforms to a pipeline of Beam; called for a new job only.
        is_done: Returns whether the bucket contains all results of the job.

    Raises:
        TrainingError: The job failed or was cancelled, or the service refused a call.
    """
    if is_done():
        return
    with _running(settings) as steps:
        steps.until(is_done, build)


def wait_for_earlier(settings: Settings) -> None:
    """Wait for the dataset's job if one is active, and cancel it if this step is stopped.

    Raises:
        TrainingError: The job failed or was cancelled, or the service refused a call.
    """
    with _running(settings) as steps:
        steps.wait_for_earlier()


@contextlib.contextmanager
def _running(settings: Settings) -> Iterator["_Run"]:
    try:
        with _stop_on_exit() as stop:
            yield _Run(settings, stop)
    except Exception as error:
        if google_error(error) is None:
            raise
        raise explain(error, settings, "a call to Dataflow") from None


class _Stop:
    """Ends the process on SIGTERM and SIGINT, but not while a new job could remain uncancelled."""

    def __init__(self) -> None:
        self._number = 0
        self._is_held = False

    def receive(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal; a second one changes nothing."""
        del frame
        if self._number:
            return
        self._number = number
        if not self._is_held:
            sys.exit(128 + number)

    def hold(self) -> None:
        """Defer signals from now on."""
        self._is_held = True

    def release(self) -> None:
        """End the process on a deferred signal, and on signals from now on."""
        self._is_held = False
        if self._number:
            sys.exit(128 + self._number)


class _Run:
    def __init__(self, settings: Settings, stop: _Stop) -> None:
        self._settings = settings
        self._stop = stop
        self._service = Service(settings)

    def wait_for_earlier(self) -> bool:
        """Wait for the active job of this name, and return whether there was one."""
        self._stop.hold()
        if job := self._service.active(self._settings.job_name):
            self._wait(job)
        self._stop.release()
        return job is not None

    def until(self, is_done: Callable[[], bool], build: Callable[[Any], None]) -> None:
        """Wait for jobs until everything is done; this step starts at most one of them."""
        created = ""
        while not is_done():
            if created:
                raise TrainingError(f"the Dataflow job {created} is done, but parts of the dataset are missing")
            if self.wait_for_earlier():
                continue
            self._stop.hold()
            if created := self._create(build):
                job = Job(id=created, state="PENDING")
                if is_done():
                    # The job of another step ended while this one was being created.
                    self._cancel(job)
                else:
                    self._wait(job)
            self._stop.release()

    def _create(self, build: Callable[[Any], None]) -> str:
        """Return the id of the new job; empty if another job of this name has become active."""
        print(f"starting the Dataflow job {self._settings.job_name}", flush=True)
        try:
            return submit(self._settings, build)
        except Exception as error:
            # The service may have received the request although the answer was lost, and lists a new job late.
            for _ in range(1 if is_refusal(error) else _MAX_POLLS):
                if self._service.active(self._settings.job_name):
                    return ""
                time.sleep(self._settings.pause_seconds)
            raise explain(error, self._settings, "the submission to Dataflow") from None

    def _wait(self, job: Job) -> None:
        """Wait until the job is done, or until one that was already ending has ended."""
        was_ending, start = job.is_ending, time.monotonic()
        try:
            self._stop.release()
            while not job.is_over:
                minutes, seconds = divmod(int(time.monotonic() - start), 60)
                print(f"Dataflow job {job.id}: {job.state.lower()}, waited {minutes} min {seconds} s", flush=True)
                time.sleep(self._settings.pause_seconds)
                job = self._service.get(job.id)
        finally:
            if not job.is_over:
                self._cancel(job)
        if job.state != "DONE" and not was_ending:
            raise TrainingError(self._why(job))

    def _cancel(self, job: Job) -> None:
        location = f"--region={self._settings.region} --project={self._settings.project}"
        try:
            self._service.cancel(job.id)
            print(f"cancelled the Dataflow job {job.id}", file=sys.stderr, flush=True)
        except Exception as error:
            line = f"cannot cancel the Dataflow job {job.id}: run `gcloud dataflow jobs cancel {job.id} {location}`"
            print(f"{line} ({error})", file=sys.stderr, flush=True)

    def _why(self, job: Job) -> str:
        if job.state != "FAILED":
            return f"the Dataflow job {job.id} was {job.state.lower()}; run the pipeline again to start a new one"
        for _ in range(_MAX_POLLS):
            if found := self._service.errors(job.id):
                break
            time.sleep(self._settings.pause_seconds)
        # The same exception occurs once per attempt.
        last = list(dict.fromkeys(found))[-_NUM_ERRORS:] or ["there is no message"]
        return f"the Dataflow job {job.id} failed: {'; '.join(last)}"


@contextlib.contextmanager
def _stop_on_exit() -> Iterator[_Stop]:
    stop = _Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.signal(number, stop.receive) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def submit(settings: Settings, build: Callable[[Any], None]) -> str:
    """Create the job and return its id; empty if the active job of another step has the name.

    Args:
        settings: Settings of the job.
        build: Adds the transforms to a pipeline of Beam.
    """
    # Beam logs hundreds of lines on the job; this project reports a refusal as a single line.
    logging.disable(logging.CRITICAL)
    try:
        return _submit(settings, build)
    finally:
        logging.disable(logging.NOTSET)


def _submit(settings: Settings, build: Callable[[Any], None]) -> str:
    import apache_beam
    from apache_beam.options.pipeline_options import PipelineOptions
    from apache_beam.runners.dataflow.dataflow_runner import DataflowRunner
    from apache_beam.runners.dataflow.internal.apiclient import DataflowJobAlreadyExistsError
    from google.api_core.exceptions import Conflict

    flags = settings.arguments()
    if address := emulator():
        flags += [f"--dataflow_endpoint={address}", "--no_auth"]
    pipeline = apache_beam.Pipeline(runner=DataflowRunner(), options=PipelineOptions(flags))
    build(pipeline)
    try:
        return str(pipeline.run().job_id())
    except (DataflowJobAlreadyExistsError, Conflict):
        return ""
