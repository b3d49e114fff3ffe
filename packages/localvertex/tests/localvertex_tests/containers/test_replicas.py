"""Replicas of custom jobs with a foreign command; Python of this machine stays a plain process."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from google_cloud_pipeline_components.v1.custom_job import CustomTrainingJobOp
from kfp import dsl

import localvertex
from localvertex.containers.options import ContainerOptions
from vertex_testing.runs import Compile, Execute, FindTask

LOOK = 'ls -A ~ > home.txt; mkdir -p "$AIP_MODEL_DIR"; echo model > "$AIP_MODEL_DIR/weights"; echo "$MODE $SHELL"'


def pool(*command: str, number: int = 1, **env: str) -> dict[str, Any]:
    return {
        "machine_spec": {"machine_type": "n1-standard-4"},
        "replica_count": number,
        "container_spec": {
            "image_uri": "gcr.io/x/trainer",
            "command": [*command],
            "env": [{"name": name, "value": text} for name, text in env.items()],
        },
    }


@dsl.pipeline(name="jobs")
def jobs(pools: list, base: str = "") -> None:
    CustomTrainingJobOp(display_name="j", worker_pool_specs=pools, base_output_directory=base)


def literal(pools: list[dict[str, Any]]) -> Any:
    @dsl.pipeline(name="literal")
    def pipeline() -> None:
        CustomTrainingJobOp(display_name="j", worker_pool_specs=pools)

    return pipeline


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "secret").touch()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.mark.usefixtures("sandbox", "home")
def test_a_foreign_replica_runs_in_the_sandbox_and_writes_its_model(
    execute: Execute, work_dir: Path, task: FindTask
) -> None:
    base = work_dir / "checkpoints"
    record = execute(jobs, {"pools": [pool("sh", "-c", LOOK, MODE="fast")], "base": str(base)}, run_id="r")
    assert record["state"] == "SUCCEEDED", record["error"]
    folder = work_dir / "r" / "custom-training-job"
    assert "secret" not in (folder / "home.txt").read_text()
    assert (base / "model" / "weights").read_text() == "model\n"
    assert (folder / "workerpool0-0.log").read_text() == "fast \n"
    assert any("in a bubblewrap sandbox" in text for text in record["warnings"])


@pytest.mark.usefixtures("sandbox")
def test_it_writes_no_other_place(execute: Execute, work_dir: Path, home: Path) -> None:
    (work_dir / "other").mkdir(parents=True)
    (work_dir / "other" / "run.json").write_text("{}")
    for place in (home, work_dir / "other", work_dir / "other" / "step", work_dir / ".localvertex" / "cache"):
        record = execute(jobs, {"pools": [pool("sh", "-c", LOOK)], "base": str(place)})
        assert f"base_output_directory {place}: a container command may write only in the work folder" in str(
            [each["error"] for each in record["tasks"]]
        )


@pytest.mark.usefixtures("home")
def test_python_of_this_machine_runs_as_before(execute: Execute, work_dir: Path) -> None:
    # In a sandbox, /var is empty.
    show = "import os; print(os.listdir(os.path.expanduser('~')), bool(os.listdir('/var')))"
    for containers in (ContainerOptions(), ContainerOptions(engine="docker")):
        for program in ("python", "python3", sys.executable):
            record = execute(jobs, {"pools": [pool(program, "-c", show)]}, containers=containers, use_cache=False)
            assert record["state"] == "SUCCEEDED", record["error"]
            text = (work_dir / record["run_id"] / "custom-training-job" / "workerpool0-0.log").read_text()
            assert text == "['secret'] True\n"
            assert not [each for each in record["warnings"] if "container commands" in each]


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (["python", "-m", "app.train"], "the Python module 'app.train' is not installed locally"),
        (["python3", "/app/train.py"], "the script '/app/train.py' is not on this machine"),
        (["sh", "/app/run.sh"], "the script '/app/run.sh' is not on this machine"),
        (["torchrun-of-the-image"], "the program 'torchrun-of-the-image' is not installed locally"),
    ],
)
@pytest.mark.usefixtures("sandbox")
def test_a_command_that_is_only_in_the_image_is_refused(
    compiled: Compile, execute: Execute, work_dir: Path, command: list[str], reason: str
) -> None:
    with pytest.raises(localvertex.Refused, match=reason):
        localvertex.run(compiled(literal([pool(*command)])), options=localvertex.Options(work_dir=work_dir))
    assert not work_dir.exists(), "a literal job is refused before anything starts"
    record = execute(jobs, {"pools": [pool(*command)]})
    assert reason in str([each["error"] for each in record["tasks"]])


@pytest.mark.usefixtures("sandbox")
def test_replicas_in_containers_find_each_other_only_with_the_network(execute: Execute, work_dir: Path) -> None:
    script = 'printf "%s" "$CLUSTER_SPEC" > cluster.json'
    pools = [pool("sh", "-c", script), pool("sh", "-c", "true")]
    record = execute(jobs, {"pools": pools})
    assert "find each other only with --allow-network" in str([each["error"] for each in record["tasks"]])
    record = execute(jobs, {"pools": pools}, containers=ContainerOptions(allow_network=True))
    assert record["state"] == "SUCCEEDED", record["error"]
    folder = work_dir / record["run_id"] / "custom-training-job"
    assert len(json.loads((folder / "cluster.json").read_text())["cluster"]) == 2


def test_no_variable_of_the_pipeline_reaches_a_program_outside_of_the_sandbox(
    execute: Execute, work_dir: Path, tmp_path: Path
) -> None:
    """LD_PRELOAD would load a library that the step has written into programs of this machine."""
    marker = tmp_path / "seen"
    script = 'tr "\\0" "\\n" < /proc/$PPID/environ > outer.txt; env > inner.txt'
    record = execute(jobs, {"pools": [pool("sh", "-c", script, EVIL=str(marker))]})
    if not any("sandbox" in text for text in record["warnings"]):
        pytest.skip("there is no sandbox")
    folder = work_dir / record["run_id"] / "custom-training-job"
    assert "EVIL" in (folder / "inner.txt").read_text()
    names = {line.partition("=")[0] for line in (folder / "outer.txt").read_text().splitlines()}
    assert "EVIL" not in names
    assert "PATH" in names
    assert os.environ.get("EVIL") is None


LINK = """
while [ ! -e workerpool0-0.log ]; do sleep 0.02; done
target=$(echo "$TARGET" | rev)
ln -sf "$target" workerpool0-0.log; touch linked; sleep 100
"""
"""The second replica replaces the log of the first one; the path is reversed, so that the user has not named it."""

FAIL = "while [ ! -e linked ]; do sleep 0.02; done; exit 1"


@pytest.mark.usefixtures("sandbox")
def test_the_error_of_a_replica_has_no_line_of_a_file_outside_of_the_sandbox(execute: Execute, home: Path) -> None:
    (home / "secret").write_text("secret words\n")
    pools = [pool("sh", "-c", FAIL), pool("sh", "-c", LINK, TARGET=str(home / "secret")[::-1])]
    record = execute(jobs, {"pools": pools}, containers=ContainerOptions(allow_network=True))
    assert record["state"] == "FAILED"
    assert "secret words" not in json.dumps(record)
    assert (home / "secret").read_text() == "secret words\n"
