"""Google's e-mail op: print the message instead of sending it."""

from typing import ClassVar

from localvertex._base.compiled.spec import Container, Importer
from localvertex.executors.attempt import Attempt
from localvertex.processes import logs

_MODULE = "google_cloud_pipeline_components.container.v1.vertex_notification_email.executor"

_CHANNEL = "pipelinechannel--"
"""kfp's prefix of inputs that a constant refers to; the operation declares none of its own with it."""

_IN_A_LIST = (
    "a parameter inside the list `recipients` works here, but Vertex AI sends to its placeholder "
    "(kubeflow/pipelines#12204); make the whole list a parameter"
)


class NotificationEmailExecutor:
    """Executes VertexNotificationEmailOp. On Vertex AI the service sends the mail; the container does nothing."""

    name: ClassVar[str] = "notification e-mail"

    def accepts(self, executor: Container | Importer) -> bool:
        """Accept a container that runs Google's module."""
        return isinstance(executor, Container) and _MODULE in executor.command

    def refusals(self, executor: Container | Importer) -> list[str]:
        """Refuse nothing."""
        return []

    def execute(self, attempt: Attempt) -> None:
        """Warn which message Vertex AI would send, and to whom."""
        values = attempt.executor_input["inputs"]["parameterValues"]
        recipients = ", ".join(map(str, values.get("recipients", []))) or "no recipient, which is an error there"
        state = next((value["state"] for value in values.values() if isinstance(value, dict) and "state" in value), "")
        text = f"{attempt.label}: no e-mail is sent locally; Vertex AI would notify {recipients}: {state}"
        logs.add(attempt.log, text)
        attempt.context.warnings.add(text)
        if any(name.startswith(_CHANNEL) for name in values):
            attempt.context.warnings.add(f"{attempt.label}: {_IN_A_LIST}")
