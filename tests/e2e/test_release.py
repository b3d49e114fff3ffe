"""The end of the pipeline, as a user runs it: versions under one model, of which the better one is the champion."""

import functools
import os
import pathlib
import signal
import subprocess
import time
from collections.abc import Callable
from typing import Any

import pytest

from localvertex.store.model_versions import ModelVersions
from tests.e2e.conftest import STEPS, Run, Runner

# A shorter one is in tests/e2e/test_any_code.py, with the same steps but another training.
pytestmark = [pytest.mark.slow, pytest.mark.soak]

NAME = "release"
COMMON = {
    "model_name": NAME,
    "image_size": 16,
    "max_examples": 600,
    "global_batch_size": 32,
    "augment": "none",
    "minimum_score": 0.0,
    "learning_rate": 0.005,
}
WEAK = COMMON | {"epochs": 1}
# Better than a constant answer, too: one that is not would not be compared.
WORSE = COMMON | {"epochs": 1, "learning_rate": 0.002}
BETTER = COMMON | {"epochs": 6}


@pytest.fixture
def command(
    command: Callable[..., list[str]], compiled_for_few_images: pathlib.Path, digits_source: pathlib.Path
) -> Callable[..., list[str]]:
    """The command line of a run of the file for few images."""
    return functools.partial(command, file=compiled_for_few_images, source=digits_source)


@pytest.fixture
def run(run: Runner, compiled_for_few_images: pathlib.Path, digits_source: pathlib.Path) -> Runner:
    """Run the file for few images to its end."""
    return functools.partial(run, file=compiled_for_few_images, source=digits_source)


def aliases(work_dir: pathlib.Path) -> dict[str, str]:
    # As readers see them, even after a kill in the middle of a change.
    return ModelVersions(work_dir / "models" / NAME).aliases


def versions(work_dir: pathlib.Path) -> list[str]:
    return sorted(path.parent.name for path in (work_dir / "models" / NAME).glob("*/model.json"))


def log(work_dir: pathlib.Path, run: Run, task: str) -> str:
    return (work_dir / run.record["run_id"] / run.task(task)["log"]).read_text()


# Of a worse model there is a test of the step, in tests/components/compare/test_promotion.py.
def test_only_a_better_model_becomes_the_champion_and_nothing_is_registered_twice(
    run: Runner, command: Callable[..., list[str]], tmp_path: pathlib.Path
) -> None:
    work_dir = tmp_path / "runs"
    first = run(work_dir, "first", **WEAK)
    assert first.exit_code == 0, first.output
    assert first.steps == STEPS
    assert aliases(work_dir) == {"champion": "1", "default": "1"}

    # Refused, with its table, and the run succeeds; the reason holds until the champion changes.
    worse = run(work_dir, "worse", **WORSE)
    assert worse.exit_code == 0, worse.output
    assert worse.steps == {"prepare", "plan", "custom-training-job", "evaluate", "compare", "summary"}
    assert worse.accuracy < first.accuracy
    assert "not promoted against projects/local-project/locations/us-central1/models/release@1" in log(
        work_dir, worse, "compare"
    )
    page = pathlib.Path(worse.artifact("compare", "comparison")["uri"]).read_text()
    assert "Images by result" in page
    assert (versions(work_dir), aliases(work_dir)["champion"]) == (["1"], "1")
    again = run(work_dir, "worse-again", **WORSE)
    assert again.steps == {"prepare", "plan", "summary"}
    assert "not registered: " in log(work_dir, again, "plan")

    # Better, and killed after the upload: the version is there once, with both aliases.
    killed = subprocess.Popen(command(work_dir, "killed", **BETTER), stdout=subprocess.DEVNULL, start_new_session=True)
    wait_for(lambda: versions(work_dir) == ["1", "2"] or killed.poll() is not None)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait(60)
    assert aliases(work_dir) == {"champion": "2", "default": "2"}
    resubmitted = run(work_dir, "resubmitted", **BETTER)
    assert resubmitted.exit_code == 0, resubmitted.output
    assert "export" not in resubmitted.steps
    assert (versions(work_dir), aliases(work_dir)) == (["1", "2"], {"champion": "2", "default": "2"})
    assert len(list((work_dir / "models" / NAME / "2" / "evaluations").iterdir())) == 1
    assert resubmitted.parameter("evaluate", "Output") > first.accuracy

    same = run(work_dir, "same", **BETTER)
    assert same.steps == {"prepare", "plan", "summary"}
    assert "registered as projects/local-project/locations/us-central1/models/release@2" in log(work_dir, same, "plan")


def wait_for(condition: Callable[[], Any]) -> None:
    while not condition():
        time.sleep(0.02)
