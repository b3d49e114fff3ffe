"""The end of a run: printed, and sent if that was asked for; sending never changes how the run ends."""

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from kfp.dsl import PipelineTaskFinalStatus

from training_job.notification import webhook
from training_job.notification.delivery import Limits, NotSentError
from training_job.notification.google_cloud import GoogleCloud
from training_job.notification.message import FailedStep, message_of, one_line
from training_job.notification.targets import VARIABLE, Targets, is_local_run, local_address
from training_job.report import one_line as ending
from vertex_gpu_training.userinput.errors import UserError


def report_end(
    status: PipelineTaskFinalStatus,
    *,
    secret: str,
    topic: str,
    limits: Limits | None = None,
    cloud: GoogleCloud | None = None,
) -> str:
    """Print how a run ended, then send it to the targets, if there are any, and print what came of that.

    Args:
        status: The final state of the run.
        secret: Resource name of the secret with the webhook's address; empty for none.
        topic: Resource name of a Pub/Sub topic; empty for none.
        limits: Limits of time and number.
        cloud: Google's services.

    Returns:
        The first printed line.
    """
    line = ending(status)
    # Whatever happens to the notification, the log has the error by now.
    print(line, flush=True)
    chosen = limits or Limits()
    services = cloud or GoogleCloud(chosen)
    for text in _within(chosen, lambda: _send(Targets(secret=secret, topic=topic), status, services, chosen)):
        print(f"notification {text}", flush=True)
    return line


def _within(limits: Limits, send: Callable[[], list[str]]) -> list[str]:
    """Return the lines of `send`, or one line if it fails or takes too long; no line has a webhook's address."""
    lines: list[str] = []
    is_done = threading.Event()

    def work() -> None:
        try:
            lines.extend(send())
        except Exception as error:
            lines.append(f"not sent: {_reason(error)}")
        is_done.set()

    # A receiver that sends a byte now and then keeps each time limit of a socket.
    threading.Thread(target=work, daemon=True).start()
    return lines if is_done.wait(limits.total_seconds) else [f"not sent: no end within {limits.total_seconds:g} s"]


def _send(targets: Targets, status: PipelineTaskFinalStatus, cloud: GoogleCloud, limits: Limits) -> list[str]:
    """Send the end of a run, and return one line per target."""
    address, is_local = local_address(), is_local_run()
    google = [name for name in ("" if address else targets.secret, targets.topic) if name]
    lines = [f"not sent to {name}: a local run uses no Google service; set {VARIABLE}" for name in google if is_local]
    if not address and (is_local or not google):
        return lines
    steps, problems = _failed_steps(status, cloud, is_local=is_local)
    job, error = status.pipeline_job_resource_name, status.error_message or ""
    message = message_of(job=job, state=status.state, error=error, steps=steps, is_local=is_local)
    if source := VARIABLE if address else targets.secret:
        sends = partial(_to_webhook, address, targets, message, cloud, limits)
        lines.append(_delivered(sends, f"the webhook in {source}"))
    if targets.topic and not is_local:
        lines.append(_delivered(partial(cloud.publish, targets.topic, message), targets.topic))
    return [*problems, *lines]


def _to_webhook(address: str, targets: Targets, message: dict[str, Any], cloud: GoogleCloud, limits: Limits) -> None:
    webhook.post(address or cloud.secret(targets.secret_version), message, limits)


def _failed_steps(
    status: PipelineTaskFinalStatus, cloud: GoogleCloud, *, is_local: bool
) -> tuple[list[FailedStep], list[str]]:
    """Return the failed steps, and a line if they cannot be read; a local run's status has the step's own error."""
    if is_local or status.state == "SUCCEEDED":
        return [], []
    try:
        return cloud.failed_steps(status.pipeline_job_resource_name), []
    except Exception as error:
        # The message is worth sending without them.
        return [], [f"without the errors of the steps: {_reason(error)}"]


def _delivered(send: Callable[[], None], target: str) -> str:
    """Return what came of a target; the failure of one, of any kind, leaves the other its message."""
    try:
        send()
    except Exception as error:
        return f"not sent to {target}: {_reason(error)}"
    return f"sent to {target}"


def _reason(error: Exception) -> str:
    """Return the text of an error that is known to contain no address, and otherwise only its kind."""
    return one_line(error) if isinstance(error, NotSentError | UserError) else type(error).__name__
