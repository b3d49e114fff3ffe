"""The compiled graph: the parts of the spec that determine what runs where."""

import dataclasses
import json
import re
from typing import Any

import pytest
from google.protobuf import json_format
from kfp.cli.compile_ import collect_pipeline_or_component_from_module

import pipelines.image_training
from components.container_image import PLACEHOLDER_IMAGE
from components.export.exported import own_container
from components.train.machines import Machines
from localvertex._base.compiled.reader import read_pipeline
from localvertex.show.view.groups import documented_problem
from pipelines.image_training import image_training
from pipelines.settings import Settings
from pipelines.steps import StepMachines
from trainer.config import TrainConfig

IMAGE = "us-docker.pkg.dev/project/images/image-training-python@sha256:" + "b" * 64


@pytest.fixture(scope="module")
def spec() -> dict[str, Any]:
    """The spec for two machines with two GPUs each."""
    machines = Machines(
        machine_type="n1-standard-16", accelerator_type="NVIDIA_TESLA_V100", accelerator_count=2, replica_count=2
    )
    return json_format.MessageToDict(image_training(Settings(image=IMAGE, machines=machines)).pipeline_spec)


def dag(spec: dict[str, Any], component: str) -> dict[str, Any]:
    return spec["components"][component]["dag"]["tasks"]


def after(spec: dict[str, Any], component: str) -> dict[str, list[str]]:
    return {name: sorted(task.get("dependentTasks", [])) for name, task in dag(spec, component).items()}


def executor(spec: dict[str, Any], component: str) -> dict[str, Any]:
    return spec["deploymentSpec"]["executors"][spec["components"][component]["executorLabel"]]


def depth(spec: dict[str, Any], component: dict[str, Any]) -> int:
    """Return how deep dags are nested in a component, its own included."""
    tasks = component.get("dag", {}).get("tasks", {}).values()
    inner = (depth(spec, spec["components"][task["componentRef"]["name"]]) for task in tasks)
    return 1 + max(inner) if tasks else 0


def test_dags_are_nested_at_most_six_deep(spec: dict[str, Any]) -> None:
    assert depth(spec, spec["root"]) <= 6


def test_the_exit_handler_always_runs(spec: dict[str, Any]) -> None:
    tasks = spec["root"]["dag"]["tasks"]
    assert set(tasks) == {"exit-handler-1", "summary"}
    assert tasks["summary"]["triggerPolicy"] == {"strategy": "ALL_UPSTREAM_TASKS_COMPLETED"}
    assert tasks["summary"]["inputs"]["parameters"]["status"] == {"taskFinalStatus": {"producerTask": "exit-handler-1"}}


def test_the_steps_follow_each_other(spec: dict[str, Any]) -> None:
    assert after(spec, "comp-exit-handler-1") == {
        "prepare": [],
        "plan": ["prepare"],
        "condition-2": ["plan", "prepare"],
    }
    assert after(spec, "comp-condition-2") == {
        "train-unless-finished": [],
        "evaluate": ["train-unless-finished"],
        "condition-3": ["evaluate"],
    }
    assert after(spec, "comp-condition-3") == {
        "compare": [],
        "condition-4": ["compare"],
        "condition-6": ["compare"],
    }
    assert after(spec, "comp-condition-4") == {
        "export": [],
        "model-upload": ["export"],
        "record": ["model-upload"],
        "condition-5": ["record"],
    }
    assert after(spec, "comp-condition-6") == {"record-2": [], "condition-7": ["record-2"]}
    assert after(spec, "comp-condition-5") == {"deploy": []}
    assert after(spec, "comp-condition-7") == {"deploy-2": []}


def test_the_rest_runs_only_for_something_new_and_the_registry_gets_only_what_is_good_enough(
    spec: dict[str, Any],
) -> None:
    new = dag(spec, "comp-exit-handler-1")["condition-2"]
    assert (
        new["triggerPolicy"]["condition"] == "inputs.parameter_values['pipelinechannel--plan-has_nothing_new'] == false"
    )
    assert dag(spec, "comp-condition-2")["condition-3"]["triggerPolicy"]["condition"] == (
        "inputs.parameter_values['pipelinechannel--evaluate-Output'] >= "
        "inputs.parameter_values['pipelinechannel--minimum_score']"
    )


def condition(spec: dict[str, Any], component: str, task: str) -> str:
    found: str = dag(spec, component)[task]["triggerPolicy"]["condition"]
    return found.replace("inputs.parameter_values['pipelinechannel--", "").replace("']", "")


def test_a_version_is_uploaded_once_and_deployed_only_if_asked_for(spec: dict[str, Any]) -> None:
    assert condition(spec, "comp-condition-3", "condition-4") == "compare-next == 'export'"
    assert condition(spec, "comp-condition-3", "condition-6") == "compare-next == 'record'"
    assert condition(spec, "comp-condition-4", "condition-5") == "record-deploy_endpoint != ''"
    assert condition(spec, "comp-condition-6", "condition-7") == "record-2-deploy_endpoint != ''"
    # The known version takes the place of the upload.
    uploaded, known = (
        dag(spec, group)[name]["inputs"]
        for group, name in (("comp-condition-4", "record"), ("comp-condition-6", "record-2"))
    )
    version = {"componentInputParameter": "pipelinechannel--compare-registered_version"}
    assert known["parameters"]["registered_version"] == version
    assert "registered_model" not in known.get("artifacts", {})
    assert "registered_version" not in uploaded["parameters"]
    assert uploaded["artifacts"]["registered_model"]["taskOutputArtifact"]["producerTask"] == "model-upload"
    defaults = spec["root"]["inputDefinitions"]["parameters"]
    assert defaults["deploy_endpoint"]["defaultValue"] == ""
    assert defaults["force_promotion"]["defaultValue"] is False


def test_an_upload_sets_no_alias_and_takes_all_of_the_export(spec: dict[str, Any]) -> None:
    given = dag(spec, "comp-condition-4")["model-upload"]["inputs"]
    assert "version_aliases" not in given["parameters"]
    of_export = [
        given["parameters"]["labels"]["taskOutputParameter"],
        *(each["taskOutputArtifact"] for each in given["artifacts"].values()),
    ]
    assert {each["producerTask"] for each in of_export} == {"export"}
    assert set(given["artifacts"]) == {"parent_model", "unmanaged_container_model"}


def test_a_finished_run_requests_no_machines(spec: dict[str, Any]) -> None:
    tasks = dag(spec, "comp-train-unless-finished")
    (condition,) = tasks.values()
    assert condition["triggerPolicy"]["condition"] == "inputs.parameter_values['pipelinechannel--is_finished'] == false"
    inner = dag(spec, condition["componentRef"]["name"])
    assert set(inner) == {"custom-training-job"}


def test_the_machines_are_on_the_job_and_not_on_the_launcher(spec: dict[str, Any]) -> None:
    launcher = executor(spec, "comp-custom-training-job")
    assert "resources" not in launcher["container"]
    assert "env" not in launcher["container"]
    assert "google_cloud_pipeline_components.container.v1.custom_job.launcher" in launcher["container"]["command"]
    (condition,) = dag(spec, "comp-train-unless-finished").values()
    task = dag(spec, condition["componentRef"]["name"])["custom-training-job"]
    inputs = task["inputs"]["parameters"]
    assert inputs["worker_pool_specs"] == {"componentInputParameter": "pipelinechannel--worker_pool_specs"}
    assert inputs["strategy"] == {"componentInputParameter": "pipelinechannel--scheduling_strategy"}
    assert inputs["restart_job_on_worker_restart"] == {
        "componentInputParameter": "pipelinechannel--restart_job_on_worker_restart"
    }
    wired = dag(spec, "comp-exit-handler-1")["condition-2"]["inputs"]["parameters"]
    assert wired["pipelinechannel--plan-worker_pool_specs"] == {
        "taskOutputParameter": {"producerTask": "plan", "outputParameterKey": "worker_pool_specs"}
    }
    handed_on = dag(spec, "comp-condition-2")["train-unless-finished"]["inputs"]["parameters"]
    assert handed_on["worker_pool_specs"] == {"componentInputParameter": "pipelinechannel--plan-worker_pool_specs"}
    planned = dag(spec, "comp-exit-handler-1")["plan"]["inputs"]["parameters"]
    for name in ("machine_type", "accelerator_type", "accelerator_count", "replica_count", "scheduling_strategy"):
        assert planned[name] == {"componentInputParameter": f"pipelinechannel--{name}"}
    defaults = spec["root"]["inputDefinitions"]["parameters"]
    assert defaults["accelerator_type"]["defaultValue"] == "NVIDIA_TESLA_V100"
    assert defaults["accelerator_count"]["defaultValue"] == 2


def test_plan_decides_the_wait_and_the_persistent_resource(spec: dict[str, Any]) -> None:
    (condition,) = dag(spec, "comp-train-unless-finished").values()
    inputs = dag(spec, condition["componentRef"]["name"])["custom-training-job"]["inputs"]["parameters"]
    for name in ("max_wait_duration", "persistent_resource_id"):
        assert inputs[name] == {"componentInputParameter": f"pipelinechannel--{name}"}
    planned = dag(spec, "comp-exit-handler-1")["plan"]["inputs"]["parameters"]
    default = {"runtimeValue": {"constant": "{{$.pipeline_persistent_resource_id}}"}}
    assert planned["persistent_resource_id"] == default


def test_only_given_machines_of_steps_are_in_the_file(spec: dict[str, Any]) -> None:
    """Without GPUs the file has no accelerator at all: an empty type is not one that the service knows."""
    assert not [name for name in spec["components"] if "resources" in executor_container(spec, name)]
    steps = StepMachines(
        prepare_cpus=16, prepare_memory_gb=60, evaluate_accelerator_type="NVIDIA_L4", evaluate_accelerator_count=1
    )
    sized = json_format.MessageToDict(image_training(Settings(image=IMAGE, steps=steps)).pipeline_spec)
    resources = {name: executor_container(sized, name).get("resources") for name in sized["components"]}
    given = {name: value for name, value in resources.items() if value}
    assert set(given) == {"comp-prepare", "comp-evaluate", "comp-compare"}
    assert given["comp-compare"] == given["comp-evaluate"]
    assert (given["comp-prepare"]["cpuLimit"], given["comp-prepare"]["memoryLimit"]) == (16.0, 60.0)
    gpus = given["comp-evaluate"]["accelerator"]
    assert (gpus["type"], gpus["count"], gpus["resourceType"], gpus["resourceCount"]) == (*("NVIDIA_L4", "1") * 2,)


def executor_container(spec: dict[str, Any], component: str) -> dict[str, Any]:
    label = spec["components"][component].get("executorLabel", "")
    return spec["deploymentSpec"]["executors"].get(label, {}).get("container", {})


def test_locations_are_that_of_the_pipeline(spec: dict[str, Any]) -> None:
    (condition,) = dag(spec, "comp-train-unless-finished").values()
    job = dag(spec, condition["componentRef"]["name"])["custom-training-job"]
    upload = dag(spec, "comp-condition-4")["model-upload"]
    plan = dag(spec, "comp-exit-handler-1")["plan"]
    here = {"runtimeValue": {"constant": "{{$.pipeline_google_cloud_location}}"}}
    assert job["inputs"]["parameters"]["location"] == here
    assert upload["inputs"]["parameters"]["location"] == here
    assert plan["inputs"]["parameters"]["region"] == here


def test_no_step_answers_from_a_cache(spec: dict[str, Any]) -> None:
    steps = {
        (component, name): task
        for component, definition in {**spec["components"], "root": spec["root"]}.items()
        for name, task in definition.get("dag", {}).get("tasks", {}).items()
        if "executorLabel" in spec["components"][task["componentRef"]["name"]]
    }
    assert {name for _, name in steps} == {
        "prepare",
        "plan",
        "custom-training-job",
        "evaluate",
        "compare",
        "export",
        "model-upload",
        "record",
        "record-2",
        "deploy",
        "deploy-2",
        "summary",
    }
    assert [name for name, task in steps.items() if task["cachingOptions"].get("enableCache")] == []


def test_the_steps_share_one_container_image_and_install_nothing(spec: dict[str, Any]) -> None:
    for step in ("prepare", "plan", "evaluate", "compare", "export", "record", "deploy", "summary"):
        container = executor(spec, f"comp-{step}")["container"]
        assert container["image"] == IMAGE
        assert "pip install" not in " ".join(container["command"])
    assert dag(spec, "comp-exit-handler-1")["plan"]["inputs"]["parameters"]["image"] == {
        "runtimeValue": {"constant": IMAGE}
    }
    assert PLACEHOLDER_IMAGE not in json.dumps(spec)


def test_every_parameter_has_a_type_a_default_and_a_description(spec: dict[str, Any]) -> None:
    declared = spec["root"]["inputDefinitions"]["parameters"]
    assert len(declared) <= 35
    for name, field in declared.items():
        assert field["parameterType"] in {"STRING", "NUMBER_INTEGER", "NUMBER_DOUBLE", "BOOLEAN"}, name
        assert "defaultValue" in field, name
        assert len(field.get("description", "")) > 10, name


def test_every_parameter_is_in_a_group_of_the_form(spec: dict[str, Any]) -> None:
    lines = re.findall(r"^\w+: (.*)$", spec["pipelineInfo"]["description"], flags=re.M)
    names = re.findall(r"\w+", " ".join(lines))
    assert sorted(names) == sorted(spec["root"]["inputDefinitions"]["parameters"])


def test_every_hyperparameter_of_the_trainer_is_a_parameter_with_the_same_default(spec: dict[str, Any]) -> None:
    declared = spec["root"]["inputDefinitions"]["parameters"]
    hyperparameters = TrainConfig().to_dict()
    assert {name: declared[name]["defaultValue"] for name in hyperparameters} == hyperparameters
    planned = dag(spec, "comp-exit-handler-1")["plan"]["inputs"]["parameters"]
    for name in hyperparameters:
        assert planned[name] == {"componentInputParameter": f"pipelinechannel--{name}"}


def test_the_registered_model_is_served_by_the_image_of_the_settings(spec: dict[str, Any]) -> None:
    given = dag(spec, "comp-condition-4")["export"]["inputs"]["parameters"]
    assert given["serving_image"] == {"runtimeValue": {"constant": ""}}
    assert given["own_image"] == {"runtimeValue": {"constant": IMAGE}}
    assert own_container(IMAGE)["command"] == ["python", "-m", "trainer.serve"]


def test_the_module_has_one_pipeline_for_kfps_own_command() -> None:
    assert collect_pipeline_or_component_from_module(pipelines.image_training).name == "image-training"


def test_the_first_step_gets_every_value_that_a_later_step_checks(spec: dict[str, Any]) -> None:
    given = dag(spec, "comp-exit-handler-1")["prepare"]["inputs"]["parameters"]
    settings = given["settings"]
    checked = {field.name for kind in (TrainConfig, Machines) for field in dataclasses.fields(kind)}
    assert "recipe" in given
    assert checked - {"recipe"} | {
        "minimum_score",
        "max_regression",
        "min_compared_images",
        "model_name",
        "deploy_machine_type",
    } <= set(settings["runtimeValue"]["constant"])


@pytest.mark.parametrize(
    ("name", "values", "wrong"),
    [
        ("epochs", [1, 100_000], [-1, 0]),
        ("learning_rate", [1e-12, 0.1], [0, -1]),
        ("image_size", [8, 2048], [7]),
        ("minimum_score", [0, 1], [95]),
        ("max_steps", [0], [-1]),
        ("source", ["digits", "tfds:mnist", "gs://bucket/photos", "/"], ["/none", "my/photos"]),
    ],
)
def test_the_form_of_the_console_reads_limits_in_the_descriptions(
    spec: dict[str, Any], name: str, values: list[Any], wrong: list[Any]
) -> None:
    parameter = read_pipeline(spec).root.input_parameters[name]
    assert [each for each in (parameter.default, *values) if documented_problem(parameter, each)] == []
    assert [each for each in wrong if not documented_problem(parameter, each)] == []
