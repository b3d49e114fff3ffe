"""The errors of the steps, the webhook's address and the topic's message, with Google's services on loopback."""

import base64
import dataclasses
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from google.oauth2.credentials import Credentials

from components.summary.notification import targets
from components.summary.notification.google_cloud import GoogleCloud, ServiceUrls
from components.summary.notification.targets import Targets, UserError
from localvertex.processes import own_pip
from tests.components.summary.notification.conftest import ERROR, JOB, PATIENT, Ended
from tests.support.receiver import Receiver, receiving

SECRET, TOPIC = "projects/my-project/secrets/hook", "projects/my-project/topics/ends"
CUSTOM_JOB = "projects/123/locations/us-central1/customJobs/42"
REPLICA = "The replica workerpool0-0 exited with a non-zero status of 2: ValueError: no images"
TOKEN = "ya29.of-the-step"


def job() -> dict[str, Any]:
    """A pipeline job whose training failed, in the JSON of the API."""
    resources = json.dumps({"resources": [{"resourceUri": f"https://x/v1/{CUSTOM_JOB}"}]})
    train = {"taskId": "3", "parentTaskId": "2", "taskName": "train", "state": "FAILED"}
    train |= {"error": {"code": 9, "message": "the job failed"}}
    train |= {"execution": {"metadata": {"output:gcp_resources": resources}}}
    graph = {"taskId": "2", "parentTaskId": "1", "taskName": "run", "state": "FAILED"}
    root = {"taskId": "1", "taskName": "image-training-1", "state": "RUNNING"}
    return {"name": JOB, "state": "PIPELINE_STATE_RUNNING", "jobDetail": {"taskDetails": [root, graph, train]}}


class Google(Receiver):
    """Secret Manager, Pub/Sub and Vertex AI."""

    def __init__(self) -> None:
        super().__init__(200)
        self.answers: dict[str, tuple[int, Any]] = {
            f"/v1/{TOPIC}:publish": (200, {"messageIds": ["1"]}),
            f"/v1/{JOB}": (200, job()),
            f"/v1/{CUSTOM_JOB}": (200, {"name": CUSTOM_JOB, "error": {"code": 3, "message": REPLICA}}),
        }

    def keep(self, address: str) -> None:
        """Make an address the content of the secret."""
        data = base64.b64encode(f"{address}\n".encode()).decode()
        self.answers[f"/v1/{SECRET}/versions/latest:access"] = (200, {"payload": {"data": data}})

    def refuse(self, path: str, message: str) -> None:
        """Answer with 403 as Google does."""
        self.answers[path] = (403, {"error": {"code": 403, "message": message, "status": "PERMISSION_DENIED"}})

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        path = request.path.partition("?")[0]
        self._answers = [self.answers.get(path, (404, {}))[0]]
        super().answer(request)

    def body(self, request: BaseHTTPRequestHandler) -> Any:
        return self.answers.get(request.path.partition("?")[0], (404, {}))[1]

    @property
    def paths(self) -> list[str]:
        return [path.partition("?")[0] for _, path, _ in self.received]

    @property
    def cloud(self) -> GoogleCloud:
        """The services as the step calls them."""
        endpoints = ServiceUrls(vertex=self.url, secret_manager=self.url, pubsub=self.url)
        return GoogleCloud(PATIENT, endpoints=endpoints, credentials=Credentials(TOKEN))


@pytest.fixture
def google() -> Iterator[Google]:
    google = Google()
    yield google
    google.close()


def test_the_address_comes_from_the_secret_and_the_topic_gets_the_same_fields(ended: Ended, google: Google) -> None:
    with receiving(200) as receiver:
        google.keep(receiver.address)
        found = ended(state="SUCCEEDED", secret=SECRET, topic=TOPIC, cloud=google.cloud)
        assert found == f"notification sent to the webhook in {SECRET}\nnotification sent to {TOPIC}"
        ((_, _, body),) = receiver.received
    # Nothing has failed, so the job is not read; the token goes to Google only.
    assert google.paths == [f"/v1/{SECRET}/versions/latest:access", f"/v1/{TOPIC}:publish"]
    assert [each["Authorization"] for each in google.headers] == [f"Bearer {TOKEN}"] * 2
    assert "Authorization" not in receiver.headers[0]
    (message,) = google.received[1][2]["messages"]
    assert json.loads(base64.b64decode(message["data"])) == body
    assert message["attributes"] == {"state": "SUCCEEDED", "pipeline_job": JOB}


@pytest.mark.slow  # it imports google.cloud.aiplatform_v1
def test_the_message_has_the_errors_of_the_failed_step_and_of_its_custom_job(ended: Ended, google: Google) -> None:
    with receiving(200) as receiver:
        google.keep(receiver.address)
        assert ended(secret=SECRET, cloud=google.cloud) == f"notification sent to the webhook in {SECRET}"
        ((_, _, body),) = receiver.received
    assert body["failed_steps"] == [
        {"step": "run/train", "error": "the job failed", "custom_jobs": {CUSTOM_JOB: REPLICA}}
    ]
    assert body["text"].splitlines()[:3] == [
        "image-training-1: FAILED",
        "run/train failed: the job failed",
        f"  {CUSTOM_JOB}: {REPLICA}",
    ]
    assert body["error"] == ERROR


@pytest.mark.slow  # it imports google.cloud.aiplatform_v1
def test_without_the_right_to_read_the_job_the_message_is_sent_all_the_same(ended: Ended, google: Google) -> None:
    google.refuse(f"/v1/{JOB}", "aiplatform.pipelineJobs.get denied")
    with receiving(200) as receiver:
        first, second = ended(address=receiver.address, cloud=google.cloud).splitlines()
        ((_, _, body),) = receiver.received
    assert first.startswith("notification without the errors of the steps: the pipeline job cannot be read")
    assert "aiplatform.pipelineJobs.get denied" in first
    assert second == f"notification sent to the webhook in {targets.VARIABLE}"
    assert body["text"].splitlines()[:2] == ["image-training-1: FAILED", ERROR]


def test_a_secret_that_cannot_be_read_is_one_line_and_the_topic_gets_its_message(ended: Ended, google: Google) -> None:
    google.refuse(f"/v1/{SECRET}/versions/latest:access", "versions.access denied on hook")
    found = ended(state="SUCCEEDED", secret=SECRET, topic=TOPIC, cloud=google.cloud)
    reason = f"the secret {SECRET}/versions/latest cannot be read: the answer was 403 (versions.access denied on hook)"
    assert found == (f"notification not sent to the webhook in {SECRET}: {reason}\nnotification sent to {TOPIC}")


@pytest.mark.parametrize("data", [{}, {"payload": {"data": "?"}}, [], {"payload": {"data": "/w=="}}])
def test_a_secret_without_a_text_is_one_line(ended: Ended, google: Google, data: Any) -> None:
    google.answers[f"/v1/{SECRET}/versions/7:access"] = (200, data)
    found = ended(state="SUCCEEDED", secret=f"{SECRET}/versions/7", cloud=google.cloud)
    assert found.endswith(f"the secret {SECRET}/versions/7 cannot be read: the answer has no text")
    assert "\n" not in found


def test_a_topic_that_is_temporarily_unavailable_is_tried_again(ended: Ended, google: Google) -> None:
    google.answers[f"/v1/{TOPIC}:publish"] = (503, {"error": {"message": "overloaded"}})
    found = ended(state="SUCCEEDED", topic=TOPIC, cloud=google.cloud)
    assert found.endswith("did not accept the message: the answer was 503 (overloaded), in 3 attempts")
    assert len(google.paths) == 3


def test_without_credentials_the_end_of_the_run_stays(
    ended: Ended, google: Google, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "")
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    found = ended(state="SUCCEEDED", topic=TOPIC, cloud=GoogleCloud(PATIENT))
    reason = "did not accept the message: no credentials for Google Cloud: run `gcloud auth application-default login`"
    assert found.startswith(f"notification not sent to {TOPIC}: the topic {TOPIC} {reason}")


def test_a_local_run_asks_nothing_of_google(ended: Ended, google: Google, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(own_pip.STEP, "x")
    found = ended(secret=SECRET, topic=TOPIC, cloud=google.cloud).splitlines()
    reason = f"a local run uses no Google service; set {targets.VARIABLE}"
    assert found == [f"notification not sent to {name}: {reason}" for name in (SECRET, TOPIC)]
    with receiving(200) as receiver:
        found = ended(address=receiver.address, secret=SECRET, topic=TOPIC, cloud=google.cloud).splitlines()
        assert found == [
            f"notification not sent to {TOPIC}: {reason}",
            f"notification sent to the webhook in {targets.VARIABLE}",
        ]
        assert receiver.received[0][2]["page"] == ""
    assert google.received == []


@pytest.mark.parametrize(
    "names",
    [
        {"secret": "https://hooks.slack.com/services/T0SECRET/B1SECRET/wxyzSECRETSECRET"},
        {"secret": "projects/p/secrets/a/b"},
        {"secret": f"{SECRET}/versions/latest:access"},
        {"secret": "projects/p/secrets/../topics/t"},
        {"topic": "ends"},
        {"topic": f"{TOPIC}:publish"},
        {"topic": f"{TOPIC}/x"},
    ],
)
def test_a_name_that_is_not_a_resource_is_refused_without_being_shown(ended: Ended, names: dict[str, str]) -> None:
    with pytest.raises(UserError) as refused:
        Targets(notify_webhook=names.get("secret", ""), notify_topic=names.get("topic", ""))
    (value,) = names.values()
    assert value not in str(refused.value)
    assert "projects/PROJECT/" in str(refused.value)
    assert ended(state="SUCCEEDED", **names) == f"notification not sent: {refused.value}"


def test_the_services_are_googles() -> None:
    assert dataclasses.asdict(ServiceUrls()) == {
        "vertex": "https://{region}-aiplatform.googleapis.com",
        "secret_manager": "https://secretmanager.googleapis.com",
        "pubsub": "https://pubsub.googleapis.com",
    }
    assert Targets(notify_webhook=SECRET).secret_version == f"{SECRET}/versions/latest"
    assert Targets(notify_webhook=f"{SECRET}/versions/7").secret_version == f"{SECRET}/versions/7"
