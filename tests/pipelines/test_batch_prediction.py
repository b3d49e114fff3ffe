"""The pipeline batch_prediction through `localvertex`: images of a folder, the champion's container, and the page."""

import json
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

import compile
import localvertex
from localvertex.containers.choice import Choice
from localvertex.containers.options import ContainerOptions
from localvertex.store import registry
from tests.support import answering, tiny_images
from tests.test_docs import commands
from vertex_testing.in_process import call

NAMES = ["cat", "dog"]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled pipeline."""
    folder = tmp_path_factory.mktemp("compiled")
    words = ["batch_prediction", "--output-dir", str(folder)]
    assert call(compile.main, words, cwd=folder, program="compile.py").returncode == 0
    return folder / "batch_prediction.json"


def register(work_dir: Path, folder: Path, probabilities: list[float], *, is_champion: bool, name: str = "pets") -> str:
    """Register a version that gives each image the same answer, and return its number."""
    (folder / "assets.extra").mkdir(parents=True)
    (folder / "saved_model.pb").write_text("")
    (folder / "assets.extra" / "model.json").write_text(json.dumps({"class_names": NAMES, "image_size": 8}))
    stored = {"class_names": NAMES, "probabilities": {}, "other": probabilities}
    (folder / "answers.json").write_text(json.dumps(stored))
    model = {
        "display_name": name,
        "artifact_uri": str(folder),
        "labels": {"managed-by": "vertex-gpu-training"},
        "container_spec": {
            "image_uri": "serving:1",
            "command": ["python", "-P", answering.__file__],
            "health_route": "/health",
            "predict_route": "/predict",
        },
    }
    aliases = ["champion", "default"] if is_champion else []
    return str(registry.add(work_dir, model, aliases=aliases).number)


def run(compiled: Path, work_dir: Path, **parameters: Any) -> dict[str, Any]:
    containers = ContainerOptions(allow_host_commands=bool(Choice().how.problem))
    options = localvertex.Options(work_dir=work_dir, containers=containers)
    return localvertex.run(compiled, parameters=parameters, options=options)


def artifact(record: dict[str, Any], task: str, name: str) -> Path:
    (found,) = [each for each in record["tasks"] if each["name"] == task]
    (made,) = found["outputs"]["artifacts"][name]
    return Path(made["uri"])


def test_each_version_has_a_uri_of_its_own(compiled: Path) -> None:
    """The service may use the artifact of an earlier run again if it has the same URI: that of an older champion."""
    assert "{{channel:" not in compiled.read_text()


@pytest.mark.slow
def test_the_champion_predicts_all_images_of_a_folder(compiled: Path, tmp_path: Path) -> None:
    work_dir, source = tmp_path / "runs", tmp_path / "new"
    register(work_dir, tmp_path / "one", [0.9, 0.1], is_champion=True)
    register(work_dir, tmp_path / "two", [0.25, 0.75], is_champion=False)
    tiny_images.write(source, 20)
    (source / "broken.png").write_bytes(b"x")
    record = run(compiled, work_dir, source=str(source), model_name="pets")
    assert record["state"] == "SUCCEEDED", record
    results = artifact(record, "batch-report", "results").read_text().splitlines()
    found = [json.loads(line) for line in results]
    assert len({each["file_name"] for each in found}) == len(found) == 20
    assert {(each["label"], each["probability"]) for each in found} == {("cat", 0.9)}
    page = artifact(record, "batch-report", "report").read_text()
    assert "models/" in page
    assert "broken.png" in page


@pytest.mark.slow
def test_the_commands_of_the_page(repository: Path, python: str, tmp_path: Path) -> None:
    register(tmp_path / "runs", tmp_path / "one", [0.9, 0.1], is_champion=True, name="image-training")
    tiny_images.write(tmp_path / "new", 3)
    compiles, runs = commands(repository / "docs" / "batch-prediction.md")
    words = [*shlex.split(compiles)[2:], "--output-dir", str(tmp_path / "build")]
    assert call(compile.main, words, cwd=tmp_path, program="compile.py").returncode == 0
    given = [word.replace("FOLDER", str(tmp_path / "new")) for word in shlex.split(runs)[1:]]
    allowed = ["--allow-host-commands"] * bool(Choice().how.problem)
    variables = os.environ | {"PYTHONPATH": str(repository)}
    done = subprocess.run([python, *given, *allowed], cwd=tmp_path, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SUCCEEDED" in done.stdout


@pytest.mark.slow
def test_without_a_champion_the_run_ends_with_one_line(compiled: Path, tmp_path: Path) -> None:
    work_dir = tmp_path / "runs"
    tiny_images.write(tmp_path / "new", 2)
    record = run(compiled, work_dir, source=str(tmp_path / "new"), model_name="pets")
    assert record["state"] == "FAILED"
    expected = "no registered model in us-central1 has the name 'pets' and the label managed-by=vertex-gpu-training"
    assert expected in json.dumps(record)
