"""The compiled graph for any training code: lists and mappings as a whole, and no step that an image would need."""

import json
import re
from typing import Any

import pytest
from google.protobuf import json_format

from components.release.serving_machines import ServingMachines
from components.train.machines import Machines
from pipelines.settings import Notification, Resources, Settings
from pipelines.training import training
from vertex_testing.in_process import call

IMAGE = "us-docker.pkg.dev/project/images/image-training-python@sha256:" + "b" * 64


@pytest.fixture(scope="module")
def spec() -> dict[str, Any]:
    settings = Settings(
        image=IMAGE,
        machines=Machines(machine_type="n1-standard-8", boot_disk_size_gb=200),
        resources=Resources(service_account="a@b.iam.gserviceaccount.com", serving_image="us-docker.pkg.dev/p/s:1"),
    )
    return json_format.MessageToDict(training(settings).pipeline_spec)


def tasks(spec: dict[str, Any], component: str) -> dict[str, Any]:
    found: dict[str, Any] = spec["components"][component]["dag"]["tasks"]
    return found


def after(spec: dict[str, Any], component: str) -> dict[str, list[str]]:
    return {name: sorted(task.get("dependentTasks", [])) for name, task in tasks(spec, component).items()}


def test_the_steps_follow_each_other_and_the_end_always_runs(spec: dict[str, Any]) -> None:
    assert set(spec["root"]["dag"]["tasks"]) == {"exit-handler-1", "summary"}
    assert after(spec, "comp-exit-handler-1") == {
        "plan": [],
        "train-unless-finished": ["plan"],
        "compare": ["plan", "train-unless-finished"],
        "condition-2": ["compare", "plan"],
        "condition-4": ["compare", "plan"],
    }
    assert after(spec, "comp-condition-2") == {
        "export": [],
        "model-upload": ["export"],
        "record": ["model-upload"],
        "condition-3": ["record"],
    }
    assert after(spec, "comp-condition-4") == {"record-2": [], "condition-5": ["record-2"]}
    conditions = {
        name: re.sub(r"inputs.parameter_values\['pipelinechannel--(.*?)'\]", r"\1", task["triggerPolicy"]["condition"])
        for group in ("comp-exit-handler-1", "comp-condition-2", "comp-condition-4")
        for name, task in tasks(spec, group).items()
        if "triggerPolicy" in task
    }
    assert conditions == {
        "condition-2": "compare-next == 'export'",
        "condition-3": "record-deploy_endpoint != ''",
        "condition-4": "compare-next == 'record'",
        "condition-5": "record-2-deploy_endpoint != ''",
    }


def test_lists_and_mappings_are_parameters_that_are_passed_on_whole(spec: dict[str, Any]) -> None:
    declared = spec["root"]["inputDefinitions"]["parameters"]
    kinds = {"command": "LIST", "arguments": "LIST"}
    kinds |= dict.fromkeys(("inputs", "environment", "secrets", "labels"), "STRUCT")
    assert {name: declared[name]["parameterType"] for name in kinds} == kinds
    planned = tasks(spec, "comp-exit-handler-1")["plan"]["inputs"]["parameters"]
    for name in kinds:
        assert planned[name] == {"componentInputParameter": f"pipelinechannel--{name}"}
    # What a graph builds or takes apart would be an expression.
    assert "parseJson" not in json.dumps(spec)
    assert [name for name, field in declared.items() if "defaultValue" not in field] == ["command"]
    assert all(len(field["description"]) > 10 for field in declared.values())
    labels = tasks(spec, "comp-train-unless-finished")
    (inner,) = (tasks(spec, each["componentRef"]["name"]) for each in labels.values())
    given = inner["custom-training-job"]["inputs"]["parameters"]
    assert given["labels"] == {"componentInputParameter": "pipelinechannel--labels"}
    assert given["worker_pool_specs"] == {"componentInputParameter": "pipelinechannel--worker_pool_specs"}
    handed_on = tasks(spec, "comp-exit-handler-1")["train-unless-finished"]["inputs"]["parameters"]
    assert handed_on["labels"] == {"taskOutputParameter": {"producerTask": "plan", "outputParameterKey": "labels"}}


def test_settings_of_the_project_are_defaults_and_constants(spec: dict[str, Any]) -> None:
    defaults = {
        name: field.get("defaultValue") for name, field in spec["root"]["inputDefinitions"]["parameters"].items()
    }
    assert (defaults["image"], defaults["serving_image"]) == (IMAGE, "us-docker.pkg.dev/p/s:1")
    assert (defaults["machine_type"], defaults["accelerator_type"], defaults["model_name"]) == ("n1-standard-8", "", "")
    inside = tasks(spec, "comp-exit-handler-1")
    constants = inside["plan"]["inputs"]["parameters"]["settings"]["runtimeValue"]["constant"]
    assert constants["boot_disk_size_gb"] == 200
    assert not {"machine_type", "serving_image"} & set(constants)
    account = inside["train-unless-finished"]["inputs"]["parameters"]["service_account"]
    assert account == {"runtimeValue": {"constant": "a@b.iam.gserviceaccount.com"}}


def test_no_step_answers_from_a_cache_or_installs_something(spec: dict[str, Any]) -> None:
    for definition in [*spec["components"].values(), spec["root"]]:
        for name, task in definition.get("dag", {}).get("tasks", {}).items():
            if "executorLabel" in spec["components"][task["componentRef"]["name"]]:
                assert not task["cachingOptions"].get("enableCache"), name
    own = [each["container"] for each in spec["deploymentSpec"]["executors"].values() if "container" in each]
    assert {each["image"] for each in own if "google-cloud-pipeline" not in each["image"]} == {IMAGE}
    assert not [each for each in own if each["image"] == IMAGE and "pip install" in " ".join(each["command"])]


def test_a_notification_by_mail_takes_the_place_of_the_summary() -> None:
    settings = Settings(notification=Notification(notify=["team@example.com"]))
    mailed = json_format.MessageToDict(training(settings).pipeline_spec)
    assert set(mailed["root"]["dag"]["tasks"]) == {"exit-handler-1", "vertex-pipelines-notification-email"}


def test_submit_refuses_what_plan_would_refuse(tmp_path: Any) -> None:
    import pipelines.__main__ as pipelines

    serving = ServingMachines(deploy_machine_type="n1-standard-4")
    path = tmp_path / "training.json"
    path.write_text(
        json.dumps(json_format.MessageToDict(training(Settings(image=IMAGE, serving=serving)).pipeline_spec))
    )
    place = ["submit", str(path), "--project=my-project", "--pipeline-root=gs://my-bucket/p", "--dry-run"]

    def submit(*options: str) -> Any:
        given = ["-p", 'command=["python", "train.py"]', *(word for each in options for word in ("-p", each))]
        return call(pipelines.main, [*place, *given], cwd=tmp_path, program="pipelines")

    done = submit("serving_image=us-docker.pkg.dev/p/s:1", "model_name=m", "deploy_endpoint=live")
    assert done.returncode == 0, done.stderr
    assert "1 x g2-standard-8 with 1 x NVIDIA_L4, STANDARD" in done.stderr
    assert "a new champion is deployed on 1 x n1-standard-4" in done.stderr
    for options, message in (
        (
            ('secrets={"HUB": "value"}',),
            "error: secrets.HUB is not valid; expected a variable, and projects/P/secrets/S/versions/3",
        ),
        (("direction=up",), "error: direction is 'up'; expected maximize or minimize"),
        (("model_name=m",), "error: serving_image is '', which is not an image name"),
        (("accelerator_count=3",), "error: 3 x NVIDIA_L4"),
    ):
        done = submit(*options)
        assert done.returncode == 2
        assert done.stderr.startswith(message)
        assert done.stderr.count("\n") == 1
