"""A job with an evaluator through the API, with the real SDK and the real trainer."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from vertex_testing.server import Server

pytestmark = [pytest.mark.slow, pytest.mark.soak]

STEPS_PER_EPOCH, EPOCHS = 7, 150
"""300 images, 224 of them for training, 32 per step; some ten seconds, in which the evaluator sees checkpoints."""

TRAIN = """
import pathlib, subprocess, sys, time
events, *words = sys.argv[1:]
subprocess.run([sys.executable, "-m", "trainer.task", *words], check=True)
# The end of the primary ends the job, and the evaluator may have started late.
while not (path := pathlib.Path(events)).exists() or '"evaluate"' not in path.read_text():
    time.sleep(0.1)
"""


@pytest.fixture(scope="module")
def dataset(python: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Prepare small images of digits."""
    folder = tmp_path_factory.mktemp("data") / "dataset"
    words = ["digits", str(folder), "--image-size", "16", "--max-examples", "300"]
    subprocess.run([python, "-m", "trainer.prepare", *words], check=True, capture_output=True)
    return folder


def test_an_evaluator_beside_the_training_evaluates_its_checkpoints(
    server: Server, sdk: Any, dataset: Path, tmp_path: Path
) -> None:
    args = [f"--dataset={dataset}", f"--epochs={EPOCHS}", "--global-batch-size=32", "--keep-checkpoints=100"]
    pool: dict[str, Any] = {
        "machine_spec": {"machine_type": "n1-standard-4"},
        "replica_count": 1,
        "container_spec": {"image_uri": "gcr.io/x/trainer:1", "command": ["python", "-m", "trainer.task"]},
    }
    pool["container_spec"]["args"] = [*args, "--checkpoint-every-steps=35"]
    events = tmp_path / "out" / "checkpoints" / "events" / "workerpool3-0.jsonl"
    primary = pool | {"container_spec": pool["container_spec"] | {"command": ["python", "-c", TRAIN, str(events)]}}
    # The position in this list decides the role; unlike Google's pipeline launcher, the service keeps empty pools.
    job = sdk(server).CustomJob(
        display_name="evaluated",
        worker_pool_specs=[primary, {}, {}, pool],
        base_output_dir=str(tmp_path / "out"),
        staging_bucket="gs://bucket",
    )
    job.submit()
    job._block_until_complete()
    assert job.state.name == "JOB_STATE_SUCCEEDED", job.error
    trained, evaluated = (events_of(tmp_path / "out", f"workerpool{number}-0") for number in (0, 3))
    assert {event["task"] for event in evaluated if event["event"] == "start"} == {"evaluator 0"}
    assert trained[-1]["code"] == 0
    assert max(event["step"] for event in trained if event["event"] == "save") == EPOCHS * STEPS_PER_EPOCH
    # The evaluator reads the chief's checkpoints while the chief trains; both get the same accuracy.
    own = {event["step"]: event["accuracy"] for event in trained if event["event"] == "evaluate"}
    seen = {event["step"]: event["accuracy"] for event in evaluated if event["event"] == "evaluate"}
    assert seen
    assert set(seen) <= {event["step"] for event in trained if event["event"] == "save"}
    assert all(own[step] == seen[step] for step in own.keys() & seen.keys())
    assert not any(event["event"] in ("steps", "save") for event in evaluated)


def events_of(base: Path, replica: str) -> list[dict[str, Any]]:
    """Read the event log of a replica."""
    path = base / "checkpoints" / "events" / f"{replica}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]
