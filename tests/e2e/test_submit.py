"""The training pipeline submitted to `localvertex serve` as to Vertex AI, and watched to its end."""

import pathlib
import subprocess
from collections.abc import Callable

import pytest

from vertex_testing.server import Server

pytestmark = pytest.mark.slow

SHORT = {"max_examples": 200, "image_size": 16, "epochs": 1, "global_batch_size": 16}
Submit = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def submit(python: str, compiled_training: pathlib.Path, digits_source: pathlib.Path, server: Server) -> Submit:
    """Submit the compiled file and wait for its end."""

    def run(**parameters: object) -> subprocess.CompletedProcess[str]:
        values = {"source": digits_source, **SHORT, **parameters}
        given = [word for name, value in values.items() for word in ("-p", f"{name}={value}")]
        words = [
            python,
            "-m",
            "pipelines",
            "submit",
            str(compiled_training),
            *server.endpoint,
            "--wait",
            *given,
        ]
        return subprocess.run(words, capture_output=True, text=True, timeout=300)

    return run


def test_a_failed_training_reports_the_message_of_the_replica(submit: Submit) -> None:
    # Found by the trainer, not by `plan`, which does not know a network's smallest image.
    done = submit(model="resnet50", weights="none")
    assert (done.returncode, done.stderr) == (1, "")
    own = "workerpool0-0: exit code 2: error: resnet50 needs images of at least 32x32 pixels, the dataset has 16x16"
    assert f"train-unless-finished/train failed: {own}" in done.stdout
    last = done.stdout.splitlines()[-1]
    assert last.startswith("image-training-")
    assert f": FAILED: train-unless-finished/train: {own}" in last


@pytest.mark.soak
def test_plan_finds_an_error_before_a_machine_is_requested(submit: Submit) -> None:
    done = submit(global_batch_size=100000)
    assert done.returncode == 1
    assert "plan failed: " in done.stdout
    assert "global_batch_size is 100000, but the training split has" in done.stdout
    assert "/train: " not in done.stdout


@pytest.mark.parametrize("is_repeated", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_a_successful_training_is_registered(submit: Submit, server: Server, *, is_repeated: bool) -> None:
    done = submit(minimum_score=0, force_promotion="true")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].endswith(": SUCCEEDED")
    assert "train-unless-finished/train: SUCCEEDED after" in done.stdout
    assert "register: SUCCEEDED after" in done.stdout
    if is_repeated:
        # The same again: nothing new.
        again = submit(minimum_score=0, force_promotion="true")
        assert again.returncode == 0
        assert "something-new: NOT_TRIGGERED" in again.stdout
        assert "/train: " not in again.stdout
    models = server.call("GET", "models").json()["models"]
    assert [model["displayName"] for model in models].count("image-training") == 1
