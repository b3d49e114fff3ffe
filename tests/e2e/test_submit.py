"""The training pipeline submitted to `localvertex serve`, as one submits it to Vertex AI: watched to its end."""

import pathlib
import subprocess
from collections.abc import Callable, Iterator

import pytest

from tests.localvertex.serve.server import Server

pytestmark = pytest.mark.slow

SHORT = {"source": "digits", "max_examples": 200, "image_size": 16, "epochs": 1, "global_batch_size": 16}
Submit = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with runs of its own."""
    server = Server(tmp_path_factory.mktemp("served") / "runs")
    yield server
    server.end()


@pytest.fixture
def submit(python: str, compiled: pathlib.Path, server: Server) -> Submit:
    """Submits the compiled file and waits for its end."""

    def run(**parameters: object) -> subprocess.CompletedProcess[str]:
        given = [word for name, value in (SHORT | parameters).items() for word in ("-p", f"{name}={value}")]
        words = [python, "-m", "pipelines", "submit", str(compiled), "--endpoint", server.url, "--wait", *given]
        return subprocess.run(words, capture_output=True, text=True, timeout=300)

    return run


def test_a_training_that_fails_ends_with_the_replicas_own_words(submit: Submit) -> None:
    done = submit(learning_rate=1e30)
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert "prepare: SUCCEEDED" in done.stdout
    (failed,) = [line for line in lines if "train failed: " in line]
    own = lines[lines.index(failed) + 1]
    assert own.startswith("  projects/local-project/locations/us-central1/customJobs/")
    # The job's replica says what happened and what to do.
    assert "the loss is" in own
    assert "lower the learning rate (now 1e+30)" in own
    assert lines[-1].startswith("image-training-")
    assert "FAILED" in lines[-1]


def test_a_mistake_is_found_by_plan_before_a_machine_is_requested(submit: Submit) -> None:
    done = submit(global_batch_size=100000)
    assert done.returncode == 1
    assert "plan failed: " in done.stdout
    assert "global_batch_size is 100000, but the training split has" in done.stdout
    assert "train: " not in done.stdout


def test_a_training_that_ends_well_is_registered(submit: Submit, server: Server) -> None:
    done = submit(minimum_accuracy=0)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].endswith(": SUCCEEDED")
    assert "train-unless-finished/train: SUCCEEDED after" in done.stdout
    assert "register: SUCCEEDED after" in done.stdout
    # The same once more: nothing new.
    again = submit(minimum_accuracy=0)
    assert again.returncode == 0
    assert "something-new: NOT_TRIGGERED" in again.stdout
    assert "train: " not in again.stdout
    (model,) = server.call("GET", "models").json()["models"]
    assert model["displayName"] == "image-training"
