"""Google Cloud calls of the notification: the failed steps, the webhook's address, and a Pub/Sub message.

Secret Manager and Pub/Sub are called by their REST APIs, with the session of google-auth, a dependency of
google-cloud-aiplatform: their own client libraries would be two more dependencies of the image.
"""

import base64
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from components import vertex_clients
from components.summary.notification.delivery import (
    Limits,
    NotSentError,
    TemporaryError,
    call_with_retries,
    check_status,
)
from components.summary.notification.failures import failed_tasks
from components.summary.notification.message import FailedStep
from localvertex_base.userinput.errors import UserError
from localvertex_base.userinput.google_errors import google_errors
from localvertex_base.userinput.spelling import on_one_line


@dataclass(frozen=True, kw_only=True)
class ServiceUrls:
    """URLs of the services."""

    vertex: str = "https://{region}-aiplatform.googleapis.com"
    secret_manager: str = "https://secretmanager.googleapis.com"  # noqa: S105 - a public address
    pubsub: str = "https://pubsub.googleapis.com"


class GoogleCloud:
    """The services, called as the account of the step.

    Args:
        limits: Limits of time and number.
        endpoints: URLs of the services.
        credentials: Credentials; None: the machine's, looked up at the first call.
    """

    def __init__(self, limits: Limits, *, endpoints: ServiceUrls | None = None, credentials: Any = None) -> None:
        self._limits, self._endpoints, self._given = limits, endpoints or ServiceUrls(), credentials

    @cached_property
    def _credentials(self) -> Any:
        if self._given is not None:
            return self._given
        try:
            return vertex_clients.google_credentials()[0]
        except UserError as error:
            raise NotSentError(str(error)) from None

    def secret(self, version: str) -> str:
        """Return the text of a secret's version, without white space around it.

        Raises:
            NotSentError: It cannot be read; the message does not contain it.
        """
        what = f"the secret {version} cannot be read"
        answer = self._call("GET", f"{self._endpoints.secret_manager}/v1/{version}:access", what)
        try:
            return base64.b64decode(answer["payload"]["data"], validate=True).decode().strip()
        except (KeyError, TypeError, ValueError):
            raise NotSentError(f"{what}: the answer has no text") from None

    def publish(self, topic: str, message: dict[str, Any]) -> None:
        """Publish a message as JSON, with its state and its job as attributes.

        Raises:
            NotSentError: It was not accepted.
        """
        data = base64.b64encode(json.dumps(message).encode()).decode()
        attributes = {name: str(message[name]) for name in ("state", "pipeline_job")}
        body = {"messages": [{"data": data, "attributes": attributes}]}
        what = f"the topic {topic} did not accept the message"
        self._call("POST", f"{self._endpoints.pubsub}/v1/{topic}:publish", what, body)

    def _call(self, method: str, url: str, what: str, body: Any = None) -> Any:
        try:
            return call_with_retries(lambda: self._call_once(method, url, body), self._limits)
        except NotSentError as error:
            raise NotSentError(f"{what}: {error}") from None

    def _call_once(self, method: str, url: str, body: Any) -> Any:
        from google.auth.transport.requests import AuthorizedSession

        options: dict[str, Any] = {"timeout": self._limits.timeout, "allow_redirects": False}
        with (
            google_errors(lambda error: TemporaryError(error.line())),
            AuthorizedSession(self._credentials) as session,  # type: ignore[no-untyped-call]
        ):
            answer = session.request(method, url, json=body, **options)
        check_status(answer.status_code, _detail(answer))
        try:
            return answer.json()
        except ValueError:
            raise NotSentError("the answer is not JSON") from None

    def failed_steps(self, job: str) -> list[FailedStep]:
        """Return the failed steps of a pipeline job, with the errors of their custom jobs.

        Raises:
            NotSentError: The job cannot be read.
        """
        with google_errors(lambda error: NotSentError(f"the pipeline job cannot be read: {error.line()}")):
            found = self._client("PipelineServiceClient", job).get_pipeline_job(name=job, timeout=self._seconds)
        tasks = {task.task_id: task for task in found.job_detail.task_details}
        return [
            FailedStep(
                step=task.path,
                error=task.error,
                custom_jobs={name: self._error_of(name) for name in task.custom_jobs},
            )
            for task in failed_tasks(tasks)
        ]

    def _error_of(self, custom_job: str) -> str:
        try:
            with google_errors(lambda error: NotSentError(error.line())):
                job = self._client("JobServiceClient", custom_job).get_custom_job(
                    name=custom_job, timeout=self._seconds
                )
        except NotSentError as error:
            return f"its error cannot be read: {error}"
        return str(job.error.message)

    @property
    def _seconds(self) -> float:
        return sum(self._limits.timeout)

    def _client(self, name: str, resource: str) -> Any:
        address = self._endpoints.vertex.format(region=resource.split("/")[3])
        return vertex_clients.make(name, url=address, credentials=self._credentials)


def _detail(answer: Any) -> str:
    """Return the message of a refusal, which is about the resource and the account."""
    try:
        return "" if answer.ok else on_one_line(answer.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return ""
