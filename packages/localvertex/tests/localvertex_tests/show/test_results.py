"""What a run computed, and a run that found nothing new."""

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from google_cloud_pipeline_components.types.artifact_types import UnmanagedContainerModel
from google_cloud_pipeline_components.v1.model import ModelUploadOp
from kfp import dsl
from localvertex_tests.support.run_records import TASK, run_record

from localvertex.show import results
from localvertex.store import record
from vertex_testing.html import report_data
from vertex_testing.runs import STEP, Command, Compile


@dsl.component(**STEP)
def plan(folder: str, label: str) -> NamedTuple("Plan", [("run_id", str), ("has_nothing_new", bool)]):  # type: ignore[valid-type]
    import os
    from collections import namedtuple

    is_done = os.path.exists(f"{folder}/{label}.done")
    return namedtuple("Plan", ["run_id", "has_nothing_new"])(f"identity-{label}", is_done)


@dsl.component(**STEP)
def train(folder: str, label: str, fails: bool, metrics: dsl.Output[dsl.Metrics], model: dsl.Output[dsl.Model]) -> str:
    import pathlib

    if fails:
        raise ValueError("no images")
    metrics.log_metric("accuracy", 0.875)
    pathlib.Path(model.path).write_text("weights")
    pathlib.Path(f"{folder}/{label}.done").touch()
    return model.path


@dsl.pipeline(name="trains-once")
def trains_once(folder: str, label: str = "a", fails: bool = False, registers: bool = False) -> None:
    planned = plan(folder=folder, label=label).set_caching_options(False)
    with dsl.If(planned.outputs["has_nothing_new"] == False):  # noqa: E712
        trained = train(folder=folder, label=label, fails=fails).set_caching_options(False)
        with dsl.If(registers == True):  # noqa: E712
            found = dsl.importer(
                artifact_uri=trained.outputs["Output"],
                artifact_class=UnmanagedContainerModel,
                metadata={"containerSpec": {"imageUri": "x"}},
            )
            ModelUploadOp(display_name="m", unmanaged_container_model=found.output)


@pytest.fixture
def run(compiled: Compile, command: Command, tmp_path: Path) -> Any:
    file = compiled(trains_once)

    def run_(run_id: str, *parameters: str) -> list[str]:
        words = [word for each in (f"folder={tmp_path}", *parameters) for word in ("-p", each)]
        return command("run", file, "--run-id", run_id, *words).stdout.splitlines()

    return run_


def test_nothing_new_names_the_run(run: Any, command: Command, tmp_path: Path) -> None:
    first = run("first")
    assert not any(line.startswith("nothing new") for line in first)
    said = "nothing new: same as run first"
    for name in ("second", "third"):
        assert run(name).count(said) == 1
        found = report_data(tmp_path / "runs" / name / "run.html")["run"]["nothing_new"]
        assert found == {"text": said, "run": "first"}
    assert command("show", "third").stdout.splitlines().count(said) == 1
    assert re.search(r"^third +SUCCEEDED +[0-9.]+ +nothing new ", command("list").stdout, re.MULTILINE)
    assert not any(line.startswith("nothing new") for line in run("other", "label=b"))

    assert command("clean", "first", "--yes").returncode == 0
    said = f"nothing new: run identity-a is already finished; {tmp_path}/runs has no record of it"
    assert run("fifth").count(said) == 1


def test_a_run_that_failed_is_not_the_one_that_is_repeated(run: Any) -> None:
    assert any("FAILED" in line for line in run("broken", "fails=true"))
    run("first", "registers=true")
    assert run("second").count("nothing new: same as run first") == 1


def test_a_run_that_failed_after_its_first_metrics_is_not_the_one_that_is_repeated(tmp_path: Path) -> None:
    def record(run_id: str, hour: int, *metrics: str, is_done: bool = False) -> dict[str, Any]:
        planned = {"parameters": {"run_id": "i", "has_nothing_new": is_done}, "artifacts": {}}
        content = run_record(tmp_path, run_id, f"2026-01-01T0{hour}:00:00.000Z", tasks=[TASK | {"outputs": planned}])
        content["metrics"] = [{"task": "t", "artifact": "m", "name": name, "value": 0.5} for name in metrics]
        (tmp_path / run_id).mkdir()
        (tmp_path / run_id / "run.json").write_text(json.dumps(content))
        return content

    record("evaluated", 1, "images_added", "accuracy")
    record("failed", 2, "images_added")
    found = results.nothing_new(record("third", 3, "images_added", is_done=True))
    assert found is not None
    assert found.sentence == "nothing new: same as run evaluated"


@pytest.mark.parametrize(
    ("metrics", "expected"),
    [
        ({}, ""),
        ({"note": "good"}, ""),
        ({"loss": 0.5, "f1": 0.25}, "loss 0.5"),
        ({"loss": 0.5, "val_accuracy": 0.123456789, "accuracy_top5": 1}, "val_accuracy 0.12346"),
        ({"accuracy": 0.88, "baseline_accuracy": 0.9, "baseline_class": "cat"}, "accuracy 0.88 (baseline 0.9)"),
    ],
)
def test_the_main_metric_is_the_accuracy_or_else_the_first(metrics: dict[str, Any], expected: str) -> None:
    entries = [{"task": "t", "artifact": "m", "name": name, "value": value} for name, value in metrics.items()]
    assert results.main_metric({"metrics": entries}) == expected


def test_the_parent_of_an_upload_is_not_one_of_its_models() -> None:
    parent, other = "projects/p/locations/r/models/pets", "projects/p/locations/r/models/cats"
    tasks = [
        {
            "path": name,
            "kind": "step",
            "state": "SUCCEEDED",
            "outputs": {
                "artifacts": {
                    "model": [
                        {"uri": name, "type": {"schemaTitle": "google.VertexModel"}, "metadata": {"resourceName": name}}
                    ]
                }
            },
        }
        for name in (parent, f"{parent}@2", other, "")
    ]
    assert [each["resource_name"] for each in record.models(tasks)] == [f"{parent}@2", other]
