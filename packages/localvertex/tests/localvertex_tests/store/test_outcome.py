"""The sentence that each run ends with, in the terminal, the record, the page and the API.

The pipelines are anybody's: nothing in them is known to localvertex but `reason`, `usage` and `has_nothing_new`.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from google_cloud_pipeline_components.types.artifact_types import UnmanagedContainerModel
from google_cloud_pipeline_components.v1.model import ModelGetOp, ModelUploadOp
from kfp import dsl
from localvertex_tests.support.run_records import TASK, run_record

from localvertex.api.pipeline_jobs import view
from localvertex.store import outcome, record
from vertex_testing.html import report_data
from vertex_testing.runs import STEP, Command, Compile, Execute

USAGE = "Count: {python} -c 'import os, sys; print(len(os.listdir(sys.argv[1])))' {path}"


@dsl.component(**STEP)
def plan(folder: str, label: str) -> NamedTuple("Plan", [("run_id", str), ("has_nothing_new", bool)]):  # type: ignore[valid-type]
    import os
    from collections import namedtuple

    is_done = os.path.exists(f"{folder}/{label}.done")
    return namedtuple("Plan", ["run_id", "has_nothing_new"])(f"identity-{label}", is_done)


@dsl.component(**STEP)
def train(
    folder: str,
    label: str,
    fails: bool,
    usage: str,
    metrics: dsl.Output[dsl.Metrics],
    model: dsl.Output[dsl.Model],
    servable: dsl.Output[UnmanagedContainerModel],
) -> None:
    import os
    import pathlib

    if fails:
        raise ValueError("no images")
    metrics.log_metric("accuracy", 0.875)
    metrics.metadata["reason"] = "accuracy 0.875 is what it is"
    os.makedirs(model.path)
    pathlib.Path(f"{model.path}/weights").write_text("weights")
    model.metadata["usage"] = usage
    servable.uri, servable.metadata["containerSpec"] = model.uri, {"imageUri": "x"}
    pathlib.Path(f"{folder}/{label}.done").touch()


@dsl.component(**STEP)
def judge(folder: str, label: str, metrics: dsl.Output[dsl.Metrics]) -> str:
    import pathlib

    metrics.metadata["reason"] = "accuracy 0.5 is below 0.8"
    pathlib.Path(f"{folder}/{label}.done").touch()
    return "no"


@dsl.pipeline(name="trains-once")
def trains_once(
    folder: str,
    label: str = "a",
    fails: bool = False,
    fails_later: bool = False,
    aliases: list = ["champion"],  # noqa: B006
    is_good: bool = True,
) -> None:
    planned = plan(folder=folder, label=label).set_caching_options(False)
    with dsl.If(planned.outputs["has_nothing_new"] == False):  # noqa: E712
        with dsl.If(is_good == True):  # noqa: E712
            trained = train(folder=folder, label=label, fails=fails, usage=USAGE).set_caching_options(False).outputs
            uploaded = ModelUploadOp(
                display_name="My Pets", unmanaged_container_model=trained["servable"], version_aliases=aliases
            )
            with dsl.If(fails_later == True):  # noqa: E712
                later = {"folder": folder, "label": label, "fails": True, "usage": ""}
                train(**later).after(uploaded).set_display_name("deploy")
        with dsl.Else():
            judge(folder=folder, label=label).set_caching_options(False)


@dsl.component(**STEP)
def upload_by_the_sdk() -> None:
    from google.cloud import aiplatform

    aiplatform.init(project="p", location="europe-west4")
    how = {"display_name": "By the SDK", "serving_container_image_uri": "serving:1"}
    first = aiplatform.Model.upload(**how)
    aiplatform.Model.upload(parent_model=first.resource_name, version_aliases=["champion"], **how)


@dsl.pipeline(name="uploads-by-the-sdk")
def uploads_by_the_sdk() -> None:
    upload_by_the_sdk()


@dsl.component(**STEP)
def give_aliases(name: str, version: str, aliases: list) -> None:
    from google.cloud import aiplatform

    aiplatform.init(project="p", location="europe-west4")
    (found,) = aiplatform.Model.list(filter=f'display_name="{name}"')
    found.versioning_registry.add_version_aliases(aliases, version)


@dsl.pipeline(name="promotes")
def promotes(name: str, version: str, aliases: list) -> None:
    give_aliases(name=name, version=version, aliases=aliases)


@dsl.component(**STEP)
def prints() -> None:
    print("hello")


@dsl.pipeline(name="uses-a-model")
def uses_a_model(name: str) -> None:
    ModelGetOp(model_name=name)
    prints()


@pytest.fixture
def run(compiled: Compile, command: Command, tmp_path: Path) -> Any:
    """Run the pipeline in a process; return the first line of its summary and the outcome in its record."""
    file = compiled(trains_once)

    def run_(run_id: str, *parameters: str) -> tuple[str, dict[str, Any]]:
        words = [word for each in (f"folder={tmp_path}", *parameters) for word in ("-p", each)]
        lines = command("run", file, "--run-id", run_id, *words).stdout.splitlines()
        found = json.loads((tmp_path / "runs" / run_id / "run.json").read_text())[outcome.FIELD]
        first = lines[next(number for number, line in enumerate(lines) if line.startswith("step ")) - 1]
        assert first == found["sentence"]
        assert command("show", run_id).stdout.splitlines()[0] == first
        assert report_data(tmp_path / "runs" / run_id / "run.html")["run"]["outcome"] == found
        return first, found

    return run_


def test_a_registered_model_is_named_with_its_aliases_and_the_command_that_uses_it(run: Any, tmp_path: Path) -> None:
    sentence, found = run("first")
    said, usage = sentence.split(". ", 1)
    assert said == "Made version 1 of My Pets, now champion"
    (model,) = found["models"]
    path = f"{tmp_path}/runs/models/{model['model_id']}/1/model"
    assert (found["kind"], model["name"], model["version"], model["aliases"]) == ("made", "My Pets", "1", ["champion"])
    assert (model["path"], model["endpoints"], found["reason"]) == (path, [], "accuracy 0.875 is what it is")
    # What is printed can be pasted, in any folder.
    command = usage.removeprefix("Count: ")
    assert usage == found["usage"]
    done = subprocess.run(command, shell=True, cwd="/", capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("1\n", "")


def test_a_version_without_an_alias_has_the_reason(run: Any) -> None:
    sentence, _ = run("first", "aliases=[]")
    assert sentence.startswith(
        "Made version 1 of My Pets, without an alias, because accuracy 0.875 is what it is. Count: "
    )


def test_no_model_has_the_reason_of_the_step_that_ended_last(run: Any) -> None:
    sentence, found = run("refused", "is_good=false")
    assert sentence == "No model was made, because accuracy 0.5 is below 0.8"
    assert (found["kind"], found["models"], found["usage"]) == ("not_made", [], "")
    sentence, found = run("same", "is_good=false")
    assert sentence == "Nothing new: same as run refused; it made no model, because accuracy 0.5 is below 0.8"
    assert (found["kind"], found["earlier_run"], found["models"]) == ("nothing_new", "refused", [])


def test_a_run_that_failed_says_so_whether_it_made_a_model_or_not(run: Any) -> None:
    sentence, found = run("broken", "fails=true")
    assert sentence == "No model was made, because train failed"
    assert found["reason"] == "train: exit code 1: ValueError: no images"
    sentence, found = run("later", "fails_later=true")
    assert sentence.startswith("Made version 1 of My Pets, now champion, but deploy failed. Count: ")
    assert (found["kind"], len(found["models"])) == ("made", 1)


def test_nothing_new_names_the_run_and_its_model(run: Any, command: Command, tmp_path: Path) -> None:
    _, made = run("first")
    for name in ("second", "third"):
        sentence, found = run(name)
        assert sentence.startswith("Nothing new: same as run first; its model is version 1 of My Pets, now champion. ")
        assert (found["kind"], found["earlier_run"]) == ("nothing_new", "first")
        assert (found["models"], found["usage"]) == (made["models"], made["usage"])
    assert not run("other", "label=b")[0].startswith("Nothing new")

    shutil.rmtree(tmp_path / "runs" / "models")
    (model,) = (tmp_path / "runs" / "first").rglob("train/model")
    assert run("left")[0].startswith(f"Nothing new: same as run first; its model is in {model}. Count: ")
    shutil.rmtree(model)
    assert run("fourth")[0] == "Nothing new: same as run first; its model was removed since then"
    # Its files were named by a later run, which would keep it.
    assert command("clean", "first", "left", "--yes").returncode == 0
    sentence, found = run("fifth")
    assert sentence == f"Nothing new: run identity-a is already finished; {tmp_path}/runs has no record of it"
    assert (found["kind"], found["earlier_run"]) == ("nothing_new", "")


def test_the_run_that_is_repeated_is_the_one_with_the_same_parameters(run: Any) -> None:
    run("broken", "fails=true")
    run("first")
    run("refused", "is_good=false", "label=c")
    assert run("second")[0].startswith("Nothing new: same as run first;")


def test_a_run_that_failed_after_its_first_metrics_is_not_the_one_that_is_repeated(tmp_path: Path) -> None:
    def write(run_id: str, hour: int, *metrics: str, is_done: bool = False) -> dict[str, Any]:
        planned = {"parameters": {"run_id": "i", "has_nothing_new": is_done}, "artifacts": {}}
        content = run_record(tmp_path, run_id, f"2026-01-01T0{hour}:00:00.000Z", tasks=[TASK | {"outputs": planned}])
        content["metrics"] = [{"task": "t", "artifact": "m", "name": name, "value": 0.5} for name in metrics]
        (tmp_path / run_id).mkdir()
        (tmp_path / run_id / "run.json").write_text(json.dumps(content))
        return content

    write("evaluated", 1, "images_added", "accuracy")
    write("failed", 2, "images_added")
    found = outcome.of(write("third", 3, "images_added", is_done=True))
    assert (found["kind"], found["earlier_run"]) == ("nothing_new", "evaluated")


def test_a_model_that_a_step_uploads_by_the_sdk_is_one_of_its_run(execute: Execute) -> None:
    found = execute(uploads_by_the_sdk)
    assert (found["state"], found["models"]) == ("SUCCEEDED", [])
    said = found[outcome.FIELD]
    assert [(each["name"], each["version"]) for each in said["models"]] == [("By the SDK", "2"), ("By the SDK", "1")]
    assert said["sentence"] == "Made version 2 of By the SDK, now champion and 1 more"


def test_a_run_that_gives_an_older_version_an_alias_has_promoted_it_and_made_none(execute: Execute) -> None:
    execute(uploads_by_the_sdk)
    values = {"name": "By the SDK", "version": "1"}
    found = execute(promotes, values | {"aliases": ["champion"]})[outcome.FIELD]
    assert (found["kind"], found["sentence"]) == ("promoted", "Promoted version 1 of By the SDK, now champion")
    found = execute(promotes, values | {"aliases": ["-champion"]})[outcome.FIELD]
    assert (found["kind"], found["models"]) == ("not_made", [])


def test_a_run_that_only_uses_a_model_has_made_none(run: Any, execute: Execute) -> None:
    _, made = run("first")
    found = execute(uses_a_model, {"name": made["models"][0]["model_id"]})
    assert [each["resource_name"] is not None for each in found["models"]] == [True]
    assert found[outcome.FIELD]["kind"] == "not_made"
    assert found[outcome.FIELD]["sentence"] == "No model was made"


def test_a_killed_run_has_an_outcome_and_a_moved_one_its_present_path(
    run: Any, command: Command, tmp_path: Path
) -> None:
    run("first")
    os.rename(tmp_path / "runs", tmp_path / "moved")
    sentence = command("show", "first", "--work-dir", "moved").stdout.splitlines()[0]
    assert f"{tmp_path}/moved/models/" in sentence
    assert f"{tmp_path}/runs" not in sentence
    content = json.loads((tmp_path / "moved" / "first" / "run.json").read_text())
    killed = content | {"state": "RUNNING", "end_time": None, "models": []}
    del killed[outcome.FIELD]
    (tmp_path / "moved" / "killed").mkdir()
    (tmp_path / "moved" / "killed" / "run.json").write_text(json.dumps(killed | {"run_id": "killed", "uuid": "7"}))
    sentence = command("show", "killed", "--work-dir", "moved").stdout.splitlines()[0]
    assert sentence == "No model was made, because the process that ran it was killed"


def test_the_api_has_the_outcome_at_the_task_of_the_run_itself(run: Any, tmp_path: Path) -> None:
    _, found = run("first")
    job = {"name": "projects/p/locations/l/pipelineJobs/first", "createTime": "2026-01-01T00:00:00Z"}
    root, *others = view.pipeline_job(job, tmp_path / "runs" / "first")["jobDetail"]["taskDetails"]
    assert root["execution"]["metadata"][outcome.FIELD] == found
    assert not any(outcome.FIELD in each["execution"]["metadata"] for each in others)
    assert record.read(tmp_path / "runs" / "first")[outcome.FIELD] == found
    assert found["usage"].startswith(f"Count: {shlex.quote(sys.executable)} ")
