"""Print the end of a run, and send it if requested; a failure to send never changes how the run ends."""

import os
import threading
from typing import TYPE_CHECKING

from components.summary import webhook
from localvertex._base.step_endpoint import MARKER
from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.spelling import on_one_line

if TYPE_CHECKING:
    from kfp.dsl import PipelineTaskFinalStatus

_TOTAL_SECONDS = 90.0
"""Time for everything together, for a receiver that answers a byte at a time."""
_LONGEST_ERROR = 3000
"""Chat services refuse or cut longer texts; Google Chat's limit was 4,096 characters."""


def report_end(status: "PipelineTaskFinalStatus", *, secret: str) -> str:
    """Print how a run ended, then send it to the webhook, if there is one, and print the outcome.

    Args:
        status: The final state of the run.
        secret: Resource name of the secret with the webhook's address; empty for none.

    Returns:
        The first printed line.
    """
    job, cause = status.pipeline_job_resource_name.rpartition("/")[2], " ".join((status.error_message or "").split())
    line = f"{job}: {status.state}" + (f": {cause}" if cause else "")
    # Whatever happens to the notification, the log has the error by now.
    print(line, flush=True)
    results: list[str] = []
    # A receiver that sends a byte now and then keeps each time limit of a socket.
    thread = threading.Thread(target=lambda: results.append(_send(status, secret)), daemon=True)
    thread.start()
    thread.join(_TOTAL_SECONDS)
    if result := results[0] if results else f"given up after {_TOTAL_SECONDS:g} s":
        print(f"notification {result}", flush=True)
    return line


def run_page(project: str, region: str, job_id: str) -> str:
    """Return the URL of the console's page that shows a pipeline job."""
    base = f"https://console.cloud.google.com/vertex-ai/locations/{region}/pipelines/runs"
    return f"{base}/{job_id}?project={project}"


def _send(status: "PipelineTaskFinalStatus", secret: str) -> str:
    """Send the end of a run; return the outcome, empty if nothing is to be sent."""
    address = os.environ.get(webhook.VARIABLE, "").strip()
    source = webhook.VARIABLE if address else secret
    if not source:
        return ""
    if MARKER in os.environ and not address:
        return f"not sent to {secret}: a local run uses no Google service; set {webhook.VARIABLE}"
    try:
        webhook.post(address or webhook.address_in(secret), _text(status))
    except Exception as error:
        # Only these are known to contain no address.
        is_safe = isinstance(error, webhook.NotSentError | UserError)
        return f"not sent to the webhook in {source}: {on_one_line(error) if is_safe else type(error).__name__}"
    return f"sent to the webhook in {source}"


def _text(status: "PipelineTaskFinalStatus") -> str:
    """Return the end of the run, the error without its middle, and the console's page."""
    _, project, _, region, _, job_id = status.pipeline_job_resource_name.split("/")
    error, half = status.error_message or "", _LONGEST_ERROR // 2
    if len(error) > _LONGEST_ERROR:
        # The cause of a Python error is at its end.
        error = f"{error[:half]} [...] {error[-half:]}"
    page = "" if MARKER in os.environ else run_page(project, region, job_id)
    return "\n".join(filter(None, (f"{job_id}: {status.state}", error, page)))
