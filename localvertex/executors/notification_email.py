"""Google's e-mail op: here the message is said, not sent."""

from typing import ClassVar

from compiled.spec import Container, Importer
from localvertex.executors.attempt import Job
from localvertex.processes import logs

MODULE = "google_cloud_pipeline_components.container.v1.vertex_notification_email.executor"


class NotificationEmail:
    """VertexNotificationEmailOp. The service itself sends the mail; the container does nothing there either."""

    name: ClassVar[str] = "notification e-mail"

    def accepts(self, executor: Container | Importer) -> bool:
        """A container that runs Google's module."""
        return isinstance(executor, Container) and MODULE in executor.command

    def refusals(self, executor: Container | Importer) -> list[str]:
        """Nothing."""
        return []

    def execute(self, job: Job) -> None:
        """Says in one line what would have been sent to whom."""
        values = job.executor_input["inputs"]["parameterValues"]
        recipients = ", ".join(map(str, values.get("recipients", [])))
        state = next((value["state"] for value in values.values() if isinstance(value, dict) and "state" in value), "")
        text = f"{job.label}: no e-mail is sent from here; on Vertex {recipients} would be told: {state}"
        logs.add(job.log, text)
        job.context.warnings.say(text)
