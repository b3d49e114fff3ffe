"""Whole runs of the compiled file, as separate processes, as a user starts them."""

import dataclasses
import json
import pathlib
import re
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from trainer.data.sources import factory
from vertex_testing.shared import locked, make_once, run_folder

STEPS = {
    "prepare",
    "plan",
    "custom-training-job",
    "evaluate",
    "compare",
    "export",
    "model-upload",
    "record",
    "summary",
}
"""Steps of a run that trains and registers a model."""


@dataclasses.dataclass(frozen=True)
class Run:
    """A run as a user sees it: the exit code, the output and the record."""

    exit_code: int
    output: str
    record: dict[str, Any]

    def task(self, name: str) -> dict[str, Any]:
        (found,) = [task for task in self.record["tasks"] if task["name"] == name]
        return found

    def parameter(self, task: str, name: str) -> Any:
        return self.task(task)["outputs"]["parameters"][name]

    def artifact(self, task: str, name: str) -> dict[str, Any]:
        (found,) = self.task(task)["outputs"]["artifacts"][name]
        return found

    @property
    def steps(self) -> set[str]:
        """Names of the steps that ran and succeeded, without the number of a second one of its kind."""
        return {re.sub(r"-\d+$", "", name) for name in self._succeeded}

    @property
    def _succeeded(self) -> list[str]:
        tasks = self.record["tasks"]
        return [task["name"] for task in tasks if task["kind"] == "step" and task["state"] == "SUCCEEDED"]

    @property
    def registered(self) -> str:
        """Resource name of the version that was uploaded, as the first one or as a parent's."""
        (name,) = [name for name in self._succeeded if name.startswith("model-upload")]
        found: str = self.artifact(name, "model")["metadata"]["resourceName"]
        return found

    @property
    def accuracy(self) -> float:
        return self.parameter("evaluate", "Output")

    def events(self) -> list[dict[str, Any]]:
        path = pathlib.Path(self.parameter("plan", "checkpoint_directory")) / "events" / "workerpool0-0.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()]


Runner = Callable[..., Run]


@pytest.fixture
def command(python: str, compiled_training: pathlib.Path) -> Callable[..., list[str]]:
    """The command line of a run in a work folder."""

    def make(
        work_dir: pathlib.Path, run_id: str, file: pathlib.Path = compiled_training, **parameters: object
    ) -> list[str]:
        given = [f"--parameter={name}={value}" for name, value in parameters.items()]
        here = ["--work-dir", str(work_dir), "--run-id", run_id]
        return [python, "-m", "localvertex", "run", str(file), *here, *given]

    return make


@pytest.fixture
def run(command: Callable[..., list[str]]) -> Runner:
    """Run the compiled file to its end."""

    def start(work_dir: pathlib.Path, run_id: str, **parameters: object) -> Run:
        done = subprocess.run(command(work_dir, run_id, **parameters), capture_output=True, text=True)
        path = work_dir / run_id / "run.json"
        assert path.exists(), done.stdout + done.stderr
        record = json.loads(path.read_text())
        return Run(done.returncode, done.stdout + done.stderr, record)

    return start


@pytest.fixture(scope="session")
def digits_source(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The images of the source `digits`, which a step would have to import scikit-learn for and to write again."""
    return make_once(tmp_path_factory, "digits-source", lambda folder: factory.write_digits(str(folder)))


@pytest.fixture(scope="session")
def demo_folder(repository: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Exit code, output and work folder of `make demo`, the README's first command."""

    def make(folder: pathlib.Path) -> None:
        words = ["make", "demo", f"WORK_DIR={folder / 'runs'}"]
        with locked(run_folder(tmp_path_factory) / "build.lock"):
            done = subprocess.run(words, capture_output=True, text=True, cwd=repository)
        (record,) = (folder / "runs").glob("*/run.json")
        seen = {"exit_code": done.returncode, "output": done.stdout + done.stderr, "record": str(record)}
        (folder / "demo.json").write_text(json.dumps(seen))

    return make_once(tmp_path_factory, "demo", make)


@pytest.fixture(scope="session")
def work_dir(demo_folder: pathlib.Path) -> pathlib.Path:
    """The work folder of the demo's runs."""
    return demo_folder / "runs"


@pytest.fixture(scope="session")
def demo(demo_folder: pathlib.Path) -> Run:
    """The run of `make demo`."""
    seen = json.loads((demo_folder / "demo.json").read_text())
    return Run(seen["exit_code"], seen["output"], json.loads(pathlib.Path(seen["record"]).read_text()))
