"""A champion on an endpoint with the project's own server: killed while it is deployed, resumed, then a batch."""

import json
import os
import pathlib
import signal
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.conftest import Runner
from vertex_testing.server import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.soak]

PARAMETERS = {
    "model_name": "deployed",
    "image_size": 16,
    "max_examples": 300,
    "epochs": 6,
    "learning_rate": 0.005,
    "global_batch_size": 32,
    "augment": "none",
    "minimum_score": 0.0,
    "deploy_endpoint": "live",
}


def notes(work_dir: pathlib.Path) -> dict[str, Any]:
    found = list(work_dir.glob("training/*/checkpoints/deployment.json"))
    return dict(json.loads(found[0].read_text())) if found else {}


def test_a_killed_deployment_resumes_and_the_champion_predicts_a_batch(
    run: Runner, command: Callable[..., list[str]], python: str, repository: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    work_dir = tmp_path / "runs"
    killed = subprocess.Popen(
        command(work_dir, "killed", **PARAMETERS), stdout=subprocess.DEVNULL, start_new_session=True
    )
    wait_until(lambda: notes(work_dir) or killed.poll() is not None, timeout_seconds=300)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait(60)
    assert notes(work_dir)["is_live"] is False

    resumed = run(work_dir, "resumed", **PARAMETERS)
    assert resumed.exit_code == 0, resumed.output
    assert "deploy" in resumed.steps
    assert not {"custom-training-job", "export"} & resumed.steps
    version = notes(work_dir)["resource_name"]
    assert notes(work_dir) | {"checkpoint_sha256": ""} == {
        "checkpoint_sha256": "",
        "endpoint": "live",
        "resource_name": version,
        "is_live": True,
    }
    (path,) = work_dir.glob("endpoints/*/endpoint.json")
    (deployed,) = json.loads(path.read_text())["deployedModels"]
    assert version.endswith(f"{deployed['model']}@{deployed['modelVersionId']}")
    nothing_new = run(work_dir, "again", **PARAMETERS)
    assert nothing_new.steps == {"prepare", "plan", "summary"}

    compiled = tmp_path / "build" / "batch_prediction.json"
    words = [python, str(repository / "compile.py"), "batch_prediction", "--output-dir", str(compiled.parent)]
    assert subprocess.run(words, capture_output=True).returncode == 0
    given = ["--work-dir", str(work_dir), "--run-id", "batch", "-p", "source=digits", "-p", "model_name=deployed"]
    done = subprocess.run([python, "-m", "localvertex", "run", str(compiled), *given], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "num_predictions = 1797" in done.stdout
