"""The same components under kfp's own local runner and under localvertex: equal outputs."""

import json
import os
import pathlib
import subprocess
from typing import Any

import pytest

pytestmark = pytest.mark.slow
MODULE = "tests.e2e.without_the_job"


def under_kfp(
    python: str, repository: pathlib.Path, folder: pathlib.Path, parameters: dict[str, object]
) -> dict[str, Any]:
    command = [python, "-m", MODULE, "kfp-local", str(folder), *map(str, parameters.values())]
    path = os.pathsep.join([os.path.dirname(python), os.environ["PATH"]])
    done = subprocess.run(command, capture_output=True, text=True, cwd=repository, env={**os.environ, "PATH": path})
    assert done.returncode == 0, done.stdout + done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("OUTPUTS ")]
    return json.loads(line.removeprefix("OUTPUTS "))


def under_localvertex(
    python: str, spec: pathlib.Path, folder: pathlib.Path, parameters: dict[str, object]
) -> dict[str, Any]:
    given = [f"--parameter={name}={value}" for name, value in parameters.items()]
    options = ["--work-dir", str(folder), "--run-id", "one", *given]
    done = subprocess.run([python, "-m", "localvertex", "run", spec, *options], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((folder / "one" / "run.json").read_text())["outputs"]["parameters"]


def without_paths(outputs: dict[str, Any]) -> dict[str, Any]:
    """Return the outputs with the run's own dataset folder taken out of the arguments."""
    for pool in outputs["worker_pool_specs"]:
        args = pool["container_spec"]["args"]
        assert args[0].startswith("--dataset=")
        pool["container_spec"]["args"] = args[1:]
    return outputs


@pytest.mark.slow(first=True)
@pytest.mark.soak
@pytest.mark.parametrize("is_long", [False, True])
def test_both_give_equal_outputs_before_and_after_training(
    python: str, repository: pathlib.Path, digits_source: pathlib.Path, tmp_path: pathlib.Path, *, is_long: bool
) -> None:
    spec, root = tmp_path / "spec.json", tmp_path / "root"
    parameters: dict[str, object] = {"source": digits_source, "pipeline_root": root, "exports": json.dumps(is_long)}
    subprocess.run([python, "-m", MODULE, "compile", spec], check=True, cwd=repository, capture_output=True)

    ours = without_paths(under_localvertex(python, spec, tmp_path / "ours-before", parameters))
    job = ours["worker_pool_specs"][0]["container_spec"]
    if is_long:
        assert ours == without_paths(under_kfp(python, repository, tmp_path / "kfp-before", parameters))
    assert ours["is_finished"] is False
    assert ours["accuracy"] == -1.0

    checkpoints = root / "training" / ours["run_id"] / "checkpoints"
    dataset = next((tmp_path / "ours-before").rglob("prepare/dataset"))
    args = [f"--dataset={dataset}", *job["args"]]
    environment = {**os.environ, "AIP_CHECKPOINT_DIR": f"{checkpoints}/"}
    subprocess.run([python, *job["command"][1:], *args], check=True, env=environment, capture_output=True)

    ours = under_localvertex(python, spec, tmp_path / "ours-after", parameters)
    theirs = under_kfp(python, repository, tmp_path / "kfp-after", parameters)
    assert without_paths(ours) == without_paths(theirs)
    assert ours["is_finished"] is True
    assert 0 < ours["accuracy"] <= 1
    # kfp.local turns these into floats; localvertex keeps integers.
    assert [type(pool["replica_count"]) for pool in ours["worker_pool_specs"]] == [int, int]
