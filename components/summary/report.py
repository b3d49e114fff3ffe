"""Print the end of a run, and send it if requested; a failure to send never changes how the run ends."""

import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from components.local_run import is_local_run
from components.summary.notification import webhook
from components.summary.notification.delivery import Limits, NotSentError
from components.summary.notification.google_cloud import GoogleCloud
from components.summary.notification.message import FailedStep, message_of
from components.summary.notification.targets import VARIABLE, Targets, local_address
from localvertex_base.userinput.errors import UserError
from localvertex_base.userinput.spelling import on_one_line

if TYPE_CHECKING:
    from kfp.dsl import PipelineTaskFinalStatus


def report_end(
    status: "PipelineTaskFinalStatus",
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
    line = one_line(status)
    # Whatever happens to the notification, the log has the error by now.
    print(line, flush=True)
    chosen = limits or Limits()
    services = cloud or GoogleCloud(chosen)

    def send(lines: list[str]) -> None:
        _send(Targets(notify_webhook=secret, notify_topic=topic), status, services, chosen, lines)

    for text in _within(chosen, send):
        print(f"notification {text}", flush=True)
    return line


def one_line(status: "PipelineTaskFinalStatus") -> str:
    """Return the final state of a run, e.g. `image-training-20260101: SUCCEEDED`, and the cause of a failure."""
    job = status.pipeline_job_resource_name.rpartition("/")[2]
    cause = " ".join((status.error_message or "").split())
    return f"{job}: {status.state}" + (f": {cause}" if cause else "")


def _within(limits: Limits, send: Callable[[list[str]], None]) -> list[str]:
    """Return the lines that `send` adds until the time is over; no line has a webhook's address."""
    lines: list[str] = []
    is_done = threading.Event()

    def work() -> None:
        try:
            send(lines)
        except Exception as error:
            lines.append(f"not sent: {_reason(error)}")
        is_done.set()

    # A receiver that sends a byte now and then keeps each time limit of a socket.
    threading.Thread(target=work, daemon=True).start()
    is_in_time = is_done.wait(limits.total_seconds)
    return [*lines, *([] if is_in_time else [f"given up after {limits.total_seconds:g} s"])]


def _send(
    targets: Targets, status: "PipelineTaskFinalStatus", cloud: GoogleCloud, limits: Limits, lines: list[str]
) -> None:
    """Send the end of a run, and add one line per target."""
    address, is_local = local_address(), is_local_run()
    google = [name for name in ("" if address else targets.notify_webhook, targets.notify_topic) if name]
    if is_local:
        lines += [f"not sent to {name}: a local run uses no Google service; set {VARIABLE}" for name in google]
    if not address and (is_local or not google):
        return
    message = _message(status, cloud, lines, is_local=is_local)
    if source := VARIABLE if address else targets.notify_webhook:
        to_webhook = partial(_to_webhook, address, targets, message, cloud, limits)
        lines.append(_deliver(to_webhook, f"the webhook in {source}"))
    if targets.notify_topic and not is_local:
        lines.append(_deliver(partial(cloud.publish, targets.notify_topic, message), targets.notify_topic))


def _to_webhook(address: str, targets: Targets, message: dict[str, Any], cloud: GoogleCloud, limits: Limits) -> None:
    webhook.post(address or cloud.secret(targets.secret_version), message, limits)


def _message(
    status: "PipelineTaskFinalStatus", cloud: GoogleCloud, lines: list[str], *, is_local: bool
) -> dict[str, Any]:
    """Return the message, and add a line if it lacks the failed steps.

    The status of a local run has the error of the step itself.
    """
    job, error, steps = status.pipeline_job_resource_name, status.error_message or "", list[FailedStep]()
    if status.state != "SUCCEEDED" and not is_local:
        try:
            steps = cloud.failed_steps(job)
        except Exception as failure:
            # The message is worth sending without them.
            lines.append(f"without the errors of the steps: {_reason(failure)}")
    return message_of(job=job, state=status.state, error=error, steps=steps, is_local=is_local)


def _deliver(send: Callable[[], None], target: str) -> str:
    """Return what came of a target; the failure of one, of any kind, leaves the other its message."""
    try:
        send()
    except Exception as error:
        return f"not sent to {target}: {_reason(error)}"
    return f"sent to {target}"


def _reason(error: Exception) -> str:
    """Return the text of an error that is known to contain no address, and otherwise only its kind."""
    return on_one_line(error) if isinstance(error, NotSentError | UserError) else type(error).__name__
