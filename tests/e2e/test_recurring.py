"""Recurring runs over a growing folder of images, started by `localvertex serve` from the file that is uploaded."""

import itertools
import json
import pathlib
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import yaml
from PIL import Image

from pipelines.jobs.watch import ENDED
from tests.e2e.conftest import STEPS, Run
from vertex_testing.server import Server, wait_until

pytestmark = pytest.mark.slow

MINIMUM_SCORE = 0.9
PARAMETERS = {"image_size": 16, "epochs": 10, "global_batch_size": 16, "augment": "none", "learning_rate": 0.005}


@pytest.fixture
def server(tmp_path: pathlib.Path) -> Iterator[Server]:
    """A server on which a minute of a schedule takes two seconds."""
    with Server(tmp_path / "runs", "--time-factor", "30") as server:
        yield server


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    """The folder of the images, one sub-folder per class; it does not exist yet."""
    return tmp_path / "images"


@pytest.fixture
def add(folder: pathlib.Path) -> Callable[[dict[str, Any]], None]:
    """Add images: an array of 8x8 pixels per class."""
    numbers = itertools.count()

    def arrive(images: dict[str, Any]) -> None:
        for name, arrays in images.items():
            (folder / name).mkdir(parents=True, exist_ok=True)
            for array in arrays:
                Image.fromarray(array.astype(np.uint8)).save(folder / name / f"{next(numbers):04}.png")

    return arrive


@pytest.fixture
def fire(tmp_path: pathlib.Path, server: Server) -> Callable[[], Run]:
    """Make the schedule start its next run; return the ended run, with the output of `plan`."""
    before: set[str] = set()

    def next_run() -> Run:
        (schedule,) = server.call("GET", "schedules").json()["schedules"]
        name = schedule["name"].rpartition("/")[2]
        server.call("POST", f"schedules/{name}:resume", {}).raise_for_status()
        wait_until(lambda: len(jobs(server)) > len(before))
        # The schedule skips its times until the run has ended: it has one run at a time.
        server.call("POST", f"schedules/{name}:pause", {}).raise_for_status()
        wait_until(lambda: all(job["state"] in ENDED for job in jobs(server)), timeout_seconds=300)
        # On a loaded machine the schedule may start another one before it is paused, even right after its creation.
        new = [job for job in jobs(server) if job["name"] not in before]
        before.update(job["name"] for job in new)
        first = min(new, key=lambda job: str(job["createTime"]))
        assert first["scheduleName"] == schedule["name"]
        run_dir = tmp_path / "runs" / first["name"].rpartition("/")[2]
        record = json.loads((run_dir / "run.json").read_text())
        assert first["state"] == "PIPELINE_STATE_SUCCEEDED", record
        (log,) = [task["log"] for task in record["tasks"] if task["name"] == "plan"]
        return Run(0, (run_dir / log).read_text(), record)

    return next_run


def jobs(server: Server) -> list[dict[str, Any]]:
    return server.call("GET", "pipelineJobs").json().get("pipelineJobs", [])


NOTHING_NEW = {"prepare", "plan", "summary"}


@pytest.mark.soak
@pytest.mark.slow(first=True)
def test_new_images_are_trained_on_and_unchanged_ones_end_early(
    compiled_for_few_images: pathlib.Path,
    server: Server,
    folder: pathlib.Path,
    add: Any,
    fire: Any,
    python: str,
    tmp_path: pathlib.Path,
) -> None:
    # Imports a large package.
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    digits = {str(n): images[labels == n].reshape(-1, 8, 8) * 255 / 16 for n in (0, 1)}
    add({name: arrays[:60] for name, arrays in digits.items()})
    schedule = {
        "name": "each-minute",
        "cron": "* * * * *",
        "file": str(compiled_for_few_images),
        "enabled": False,
        "parameters": {
            "source": str(folder),
            "minimum_score": MINIMUM_SCORE,
            **PARAMETERS,
        },
    }
    (tmp_path / "schedules.yaml").write_text(yaml.safe_dump({"schedules": [schedule]}))
    words = [python, "-m", "pipelines", "schedule", "apply", *server.endpoint]
    subprocess.run(words, cwd=tmp_path, check=True, capture_output=True)

    first = fire()
    assert first.steps == STEPS
    assert first.accuracy >= MINIMUM_SCORE
    registered = first.registered
    assert registered.endswith("@1")

    second = fire()
    assert second.steps == NOTHING_NEW
    assert second.parameter("plan", "run_id") == first.parameter("plan", "run_id")
    assert "nothing new" in second.output
    assert registered in second.output

    # The same source is resolved again.
    add({name: arrays[60:110] for name, arrays in digits.items()})
    third = fire()
    assert third.steps == STEPS
    # Both models were compared on the new test images that neither has seen.
    assert third.parameter("compare", "is_promoted") is True
    assert third.artifact("export", "parent_model")["metadata"]["resourceName"] == registered.partition("@")[0]
    assert third.parameter("plan", "run_id") != first.parameter("plan", "run_id")
    assert third.artifact("prepare", "dataset")["metadata"]["num_train"] > 120
    assert third.registered == f"{registered.partition('@')[0]}@2"

    # Noise is trained on once, fails the quality check, and is not registered.
    noise = np.random.default_rng(0).integers(0, 256, (2, 150, 8, 8))
    add({"0": noise[0], "1": noise[1]})
    fourth = fire()
    assert fourth.steps == STEPS - {"compare", "export", "model-upload", "record"}
    assert fourth.accuracy < MINIMUM_SCORE
    fifth = fire()
    assert fifth.steps == NOTHING_NEW
    assert f"below minimum_score {MINIMUM_SCORE:g}: not registered" in fifth.output
