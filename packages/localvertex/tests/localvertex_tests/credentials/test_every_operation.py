"""Every operation of google-cloud-pipeline-components is refused or runs locally, without a connection."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from kfp import dsl

from vertex_testing.runs import STEP, Compile

HERE = Path(__file__).parent
LOCAL = (
    "container.v1.batch_prediction_job.launcher",
    "container.v1.custom_job.launcher",
    "container.preview.custom_job.launcher",
    "container.v1.endpoint.create_endpoint.launcher",
    "container.v1.endpoint.delete_endpoint.launcher",
    "container.v1.endpoint.deploy_model.launcher",
    "container.v1.endpoint.undeploy_model.launcher",
    "container.v1.hyperparameter_tuning_job.launcher",
    "container.v1.model.get_model.launcher",
    "container.v1.model.upload_model.launcher",
    "container.v1.vertex_notification_email.executor",
)
"""The launchers that localvertex replaces."""
BWRAP = shutil.which("bwrap")


@dsl.component(**STEP)
def connect() -> None:
    import socket

    try:
        socket.create_connection(("192.0.2.1", 80), 1)
    except OSError as error:
        print(error)


@dsl.pipeline(name="connects")
def connects() -> None:
    connect()


@pytest.mark.slow
@pytest.mark.skipif(BWRAP is None, reason="bubblewrap is not installed")
@pytest.mark.parametrize(
    ("words", "least"),
    [(("custom_job", ".model.", "hyperparameter", "dataproc"), 10), pytest.param((), 200, marks=pytest.mark.soak)],
)
def test_no_operation_opens_a_connection(
    planted: dict[str, str], tmp_path: Path, compiled: Compile, package: Path, words: tuple[str, ...], least: int
) -> None:
    """In CI of the kinds that localvertex runs, and of one that it refuses."""
    folder, result = tmp_path / "operations", tmp_path / "result.json"
    folder.mkdir()
    subprocess.run([sys.executable, HERE / "operations.py", folder, *words], check=True, timeout=300)
    compiled(connects, "operations/control.json")
    # A name server that cannot be reached: a lookup counts as an attempt.
    (tmp_path / "resolv.conf").write_text("nameserver 192.0.2.53\n")
    places = ["--dev-bind", "/", "/", "--ro-bind", tmp_path / "resolv.conf", os.path.realpath("/etc/resolv.conf")]
    metadata = {name for name in planted if name.startswith("GCE_METADATA")}
    env = {name: value for name, value in (os.environ | planted).items() if name not in metadata}
    # pip may look for packages of steps that install some; it does so without credentials.
    env |= {"PIP_NO_INDEX": "1", "PYTHONPATH": str(package)}
    command = [BWRAP, "--unshare-net", *places, sys.executable, HERE / "run_all.py", folder, result]
    subprocess.run(command, check=True, env=env, timeout=500)
    found = json.loads(result.read_text())
    assert found.pop("control")[1] >= 1, "an attempt is counted"
    assert len(found) >= least
    assert {name: entry for name, entry in found.items() if entry[1]} == {}
    for name, (state, _) in found.items():
        text = (folder / f"{name}.json").read_text()
        launchers = re.findall(r"google_cloud_pipeline_components\.(container[\w.]+)", text)
        if not set(launchers) <= set(LOCAL):
            assert state.startswith("REFUSED"), (name, state)
    ran = {name for name, (state, _) in found.items() if state.startswith("SUCCEEDED")}
    expected = {"v1.custom_job.CustomTrainingJobOp", "preview.custom_job.CustomTrainingJobOp", "v1.model.ModelUploadOp"}
    assert expected | {"v1.hyperparameter_tuning_job.HyperparameterTuningJobRunOp"} <= ran
