"""The compiled pipeline for any training code, with a program and a server that know nothing of this project."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from typing import Any

import pytest

from localvertex.store.model_versions import ModelVersions
from tests.e2e.conftest import Run
from tests.support import any_server
from vertex_testing import kill_point

pytestmark = pytest.mark.slow

CODE = pathlib.Path(any_server.__file__).with_name("any_training.py")
IMAGE = "my/code:1"
SERVING = "us-docker.pkg.dev/project/images/serving:1"
Start = Callable[..., Run]


@pytest.fixture
def work_dir(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "runs"


@pytest.fixture
def command(python: str, compiled_training: pathlib.Path, work_dir: pathlib.Path) -> Callable[..., list[str]]:
    """The command line of a run of the training code with arguments."""

    def make(run_id: str, *arguments: Any, deploy_endpoint: str = "", program: str = CODE.name) -> list[str]:
        given = {
            "command": json.dumps(["python", program]),
            "image": IMAGE,
            "arguments": json.dumps(arguments),
            "model_name": "line",
            "serving_image": SERVING,
            "deploy_endpoint": deploy_endpoint,
        }
        words = [python, "-m", "localvertex", "run", str(compiled_training.with_name("training.json"))]
        words += [f"--work-dir={work_dir}", f"--run-id={run_id}", f"--image={SERVING}={python} {any_server.__file__}"]
        # As docs/any-training.md has it: the file is where the image would have it.
        words += [f"--image={IMAGE}=env --chdir={CODE.parent}"]
        return words + [f"--parameter={name}={value}" for name, value in given.items()]

    return make


@pytest.fixture
def run(command: Callable[..., list[str]], work_dir: pathlib.Path) -> Start:
    """Run the training code to its end."""

    def start(run_id: str, *arguments: Any, **options: str) -> Run:
        done = subprocess.run(command(run_id, *arguments, **options), capture_output=True, text=True)
        record = json.loads((work_dir / run_id / "run.json").read_text())
        return Run(done.returncode, done.stdout + done.stderr, record)

    return start


def aliases(work_dir: pathlib.Path) -> dict[str, str]:
    return ModelVersions(work_dir / "models" / "line").aliases


def versions(work_dir: pathlib.Path) -> list[str]:
    return sorted(path.parent.name for path in (work_dir / "models" / "line").glob("*/model.json"))


# With the reference trainer: tests/e2e/test_release.py.
def test_a_better_model_serves_and_is_registered_once_despite_a_kill_and_a_worse_one_is_refused(
    run: Start, command: Callable[..., list[str]], work_dir: pathlib.Path
) -> None:
    released = {"custom-training-job", "compare", "export", "model-upload", "record"}
    first = run("first", 0.5, "half")
    assert first.exit_code == 0, first.output
    assert first.steps == {"plan", "summary", *released}
    assert aliases(work_dir) == {"champion": "1", "default": "1"}

    # Killed after the upload: the version is there once, and is not the champion yet.
    words = command("killed", 0.5, deploy_endpoint="live")
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, start_new_session=True) as killed:
        while versions(work_dir) != ["1", "2"]:
            assert killed.poll() is None
            time.sleep(0.02)
        os.killpg(killed.pid, signal.SIGKILL)
    assert aliases(work_dir) == {"champion": "1", "default": "1"}
    better = run("resubmitted", 0.5, deploy_endpoint="live")
    assert better.exit_code == 0, better.output
    assert better.steps & {"custom-training-job", "export", "deploy"} == {"deploy"}
    assert (versions(work_dir), aliases(work_dir)) == (["1", "2"], {"champion": "2", "default": "2"})
    # It has a step `deploy` for a registration in the same run, and one for an earlier one.
    deployed = [each for each in better.record["tasks"] if re.match(r"deploy(-\d+)?$", each["name"])]
    (log,) = [each["log"] for each in deployed if each["state"] == "SUCCEEDED"]
    log = (work_dir / "resubmitted" / log).read_text()
    assert "8 live predictions differ from evaluate's by at most 0" in log
    assert (work_dir / "models" / "line" / "2" / "model" / "evaluation" / "predictions.jsonl").exists()

    worse = run("worse", 0.4, "half")
    assert worse.exit_code == 0, worse.output
    assert worse.steps == {"plan", "custom-training-job", "compare", "summary"}
    assert "on 200 examples: worse by" in worse.output
    useless = run("useless", -0.5)
    assert useless.steps == worse.steps
    assert "not better than a constant answer" in useless.output
    assert aliases(work_dir) == {"champion": "2", "default": "2"}


def test_a_worse_model_does_not_replace_a_better_one_that_was_promoted_after_its_comparison(
    python: str, run: Start, command: Callable[..., list[str]], work_dir: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    assert run("first", 0.5, "half").exit_code == 0
    # Killed between the comparison with version 1 and the upload.
    code = tmp_path / "code"
    code.mkdir()
    shutil.copy(pathlib.Path(*kill_point.__path__) / "sitecustomize.py", code)
    point = {"module": "localvertex.store.model_versions", "name": "ModelVersions.add"}
    (tmp_path / "point.json").write_text(json.dumps(point | {"when": "before", "is_run": True}))
    path = os.pathsep.join(filter(None, [str(code), os.environ.get("PYTHONPATH", "")]))
    shell = ["sh", "-c", 'echo $$ > "$0" && exec "$@"', str(tmp_path / "run.pid")]
    words = [*shell, *command("worse", 0.1, deploy_endpoint="live")]
    done = subprocess.run(words, capture_output=True, env=os.environ | {"PYTHONPATH": path})
    assert done.returncode == -signal.SIGKILL
    assert not (tmp_path / "point.json").exists()

    better = run("better", 0.5)
    assert better.exit_code == 0, better.output
    assert aliases(work_dir) == {"champion": "2", "default": "2"}
    words = [python, "-m", "localvertex", "run", "--resume", "worse", "--work-dir", str(work_dir)]
    resumed = subprocess.run(words, capture_output=True, text=True)
    assert resumed.returncode == 0, resumed.stdout + resumed.stderr
    worse = Run(0, resumed.stdout + resumed.stderr, json.loads((work_dir / "worse" / "run.json").read_text()))
    assert worse.parameter("record", "is_promoted") is False
    assert "deploy" not in worse.steps
    assert worse.registered.endswith("@3")
    assert aliases(work_dir) == {"champion": "2", "default": "2"}


def test_with_another_test_set_each_week_the_champion_is_compared_by_its_predictions_on_the_new_one(
    run: Start, work_dir: pathlib.Path
) -> None:
    for week, errors, version in ((1, 0.5, "1"), (2, 0.1, "2"), (3, 0.4, "2")):
        done = run(f"week-{week}", week, errors, program="weekly_training.py")
        assert done.exit_code == 0, done.output
        assert aliases(work_dir) == {"champion": version, "default": version}
    assert "on 200 examples: worse by" in done.output


def test_a_failure_of_the_code_is_the_failure_of_the_run_however_often_it_is_tried(
    run: Start, work_dir: pathlib.Path
) -> None:
    """It has written a result before it failed, which must not count as one."""
    for number in (1, 2):
        failed = run(f"failed-{number}", 0.5, "fails")
        assert failed.exit_code == 1
        assert failed.task("custom-training-job")["state"] == "FAILED"
        assert "exit" in failed.record["error"]
        assert failed.steps == {"plan", "summary"}
    (starts,) = work_dir.glob("training/*/checkpoints/starts")
    assert len(starts.read_text().splitlines()) == 2
    assert not [*(work_dir / "models").glob("*")]


EXAMPLES = [
    pytest.param("numpy_softmax", 250, id="numpy"),
    pytest.param("sklearn_table", 120, id="sklearn"),
    pytest.param("keras_fit", 70, id="keras"),
    *(pytest.param(f"{name}_digits", 70, id=name) for name in ("hugging_face", "lightning", "accelerate")),
]
"""An example of exact_resume, and the step at which its replica is killed."""
TORCH = pathlib.Path(__file__).parents[2] / ".venv-torch" / "bin" / "python"
"""The interpreter of `make venv-torch`."""


@pytest.mark.soak
@pytest.mark.parametrize(("name", "step"), EXAMPLES)
def test_an_example_that_is_killed_ends_with_the_weights_of_an_undisturbed_run(
    python: str, repository: pathlib.Path, compiled_training: pathlib.Path, tmp_path: pathlib.Path, name: str, step: int
) -> None:
    example = repository / "packages" / "exact_resume" / "examples" / f"{name}.py"
    is_torch = name.endswith("_digits")
    if is_torch and not TORCH.exists():
        pytest.skip("needs PyTorch in an environment of its own: make venv-torch")
    interpreter = str(TORCH) if is_torch else python
    words = [interpreter, str(example), str(tmp_path / "alone")]
    undisturbed = subprocess.run(words, capture_output=True, text=True, check=True)
    code, seen = tmp_path / example.name, tmp_path / "seen"
    # Otherwise, it is done before the fault.
    pause = r"\1__import__('time').sleep(0.002)\n\1"
    slower, count = re.subn(r"^( +)(?=if .*path := )", pause, example.read_text(), flags=re.M)
    assert count == 1
    code.write_text(slower)
    words = [python, "-m", "localvertex", "run", str(compiled_training.with_name("training.json"))]
    words += [f"--work-dir={tmp_path / 'runs'}", "--run-id=example", f"--fault=SIGKILL workerpool0-0 at step {step}"]
    # An interpreter that is not the one of the run belongs to an image, as docs/any-training.md has it.
    words += [f"--image={IMAGE}=env --chdir={tmp_path}", f"--parameter=image={IMAGE}"]
    given: dict[str, Any] = {"command": [interpreter, code.name], "environment": {"EXAMPLES_SEEN": str(seen)}}
    if name == "hugging_face_digits":
        given["metric"] = "eval_accuracy"
    words += [
        f"--parameter={name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in given.items()
    ]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "exit code 137 (SIGKILL)" in done.stdout
    rows: dict[int, str] = {}
    seen = seen.with_name("seen-1-0") if is_torch else seen
    lines = [line.split(" ", 1) for line in seen.read_text().splitlines()]
    for number, found in lines:
        assert rows.setdefault(int(number), found) == found
    # The steps after the last checkpoint were repeated, with the same examples.
    assert len(lines) > len(rows) == max(rows) - min(rows) + 1
    (log,) = (tmp_path / "runs" / "example").rglob("workerpool0-0.log")
    assert log.read_text().splitlines()[-1] == undisturbed.stdout.splitlines()[-1]
