"""Compiled pipelines, as kfp 2.17 and google-cloud-pipeline-components 2.22 write them."""

import copy
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from kfp import compiler, dsl
from machines_tests.conftest import TODAY

from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.spelling import quote
from localvertex.machines import check_file, check_pipeline
from localvertex.machines.document import examine_file
from localvertex.machines.job.values import RuntimeValue

CONSTANT = "root.dag.tasks.custom-training-job.inputs.parameters.worker_pool_specs.runtimeValue.constant"
CACHED = ("training-cached", "warning")
NO_ROOT = ("no-pipeline-root", "warning")
PLACEHOLDER = ("placeholder-image", "warning")

EXPECTED = {
    "literal": [CACHED, ("accelerator-count", "error")],
    "nested": [CACHED, ("accelerator-count", "error"), NO_ROOT],
    "wrapped": [CACHED, *[("accelerator-machine", "error")] * 2, ("spot-without-restart", "warning")],
    "launcher": [
        ("launcher-accelerator", "error"),
        ("launcher-resources", "warning"),
        ("launcher-environment", "warning"),
    ],
    "artifact": [("artifact-in-worker-pools", "error")],
    "upload": [("flex-start-pools", "error"), ("flex-start-timeout", "error"), ("component-location", "error")],
    "planned": [PLACEHOLDER, NO_ROOT],
    "param": [("accelerator-count", "error")],
    "camel": [],
    "plain": [("accelerator-count", "error"), ("step-resources", "error"), ("step-resources", "error")],
}


def load(data: Path, name: str) -> Any:
    return json.loads((data / "pipelines" / f"{name}.json").read_text("utf-8"))


@pytest.mark.parametrize("name", EXPECTED)
def test_findings(data: Path, name: str) -> None:
    findings = check_file(data / "pipelines" / f"{name}.json", today=TODAY)
    assert [(finding.rule, finding.severity) for finding in findings] == EXPECTED[name]


@pytest.mark.slow
def test_the_compiled_files_are_what_the_installed_kfp_writes(data: Path, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        # kfp deprecates JSON output and some of its own names; these files are JSON on purpose.
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", FutureWarning)
        sys.path.insert(0, str(data / "pipelines"))
        try:
            import build
        finally:
            sys.path.remove(str(data / "pipelines"))
        build.build(tmp_path)
    for path in sorted(tmp_path.iterdir()):
        assert path.read_text("utf-8") == (data / "pipelines" / path.name).read_text("utf-8"), path.name


def resources(**given: Any) -> dict[str, Any]:
    """Return a pipeline with one step that has these resources."""
    container = {"image": "python:3.11", "resources": given}
    return {
        "pipelineInfo": {"name": "p"},
        "root": {"dag": {"tasks": {"a": {"componentRef": {"name": "comp-a"}, "taskInfo": {"name": "a"}}}}},
        "components": {"comp-a": {"executorLabel": "exec-a"}},
        "deploymentSpec": {"executors": {"exec-a": {"container": container}}},
        "defaultPipelineRoot": "gs://bucket/root",
        "schemaVersion": "2.1.0",
        "sdkVersion": "kfp-2.17.0",
    }


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # set_accelerator_limit(1) without set_accelerator_type, and set_memory_limit("1024"), as kfp 2.17 writes them.
        ({"accelerator": {"count": "1", "resourceCount": "1"}}, [("accelerator-pair", "warning")]),
        ({"accelerator": {"count": "0", "resourceCount": "0"}}, []),
        ({"memoryLimit": 1.024e-06, "resourceMemoryLimit": "1024"}, [("step-resources", "warning")]),
        ({"memoryLimit": 1.024, "resourceMemoryLimit": "1024M"}, []),
    ],
)
def test_the_resources_of_a_step(given: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    findings = check_pipeline(resources(**given), today=TODAY)
    assert [(each.rule, each.severity) for each in findings] == expected


def test_a_value_of_the_run_is_quoted_by_its_origin() -> None:
    # A mapping in place of a list of pools has a value that only the run knows.
    text = quote({"machine_type": RuntimeValue(origin="parameter 'machine'")})
    assert text == "{'machine_type': <parameter 'machine'>}"


@pytest.mark.parametrize(
    ("title", "is_refused"),
    [("system.Dataset", False), ("acme.Report", False), ("acme_ml.report.Card", True), ("Report", True), ("", False)],
)
def test_schema_titles_that_vertex_refuses(title: str, is_refused: bool) -> None:
    document = resources()
    outputs = {"artifacts": {"out": {"artifactType": {"schemaTitle": title, "schemaVersion": "0.0.1"}}}}
    document["components"]["comp-a"]["outputDefinitions"] = outputs
    rules = [each.rule for each in check_pipeline(document, today=TODAY) if each.severity == "error"]
    assert rules == ["artifact-type"] * is_refused


def collecting(num_items: int) -> Any:
    @dsl.component(base_image="python:3.11")
    def make(n: int, out: dsl.Output[dsl.Dataset]) -> None:
        pass

    @dsl.component(base_image="python:3.11")
    def join(every: dsl.Input[list[dsl.Dataset]]) -> None:
        pass

    @dsl.pipeline(name="collecting")
    def pipeline() -> None:
        with dsl.ParallelFor([*range(num_items)]) as n:
            made = make(n=n)
        join(every=dsl.Collected(made.outputs["out"]))

    return pipeline


@pytest.mark.parametrize(("num_items", "is_refused"), [(100, False), (101, True)])
def test_more_collected_artifacts_than_vertex_allows(tmp_path: Path, num_items: int, is_refused: bool) -> None:
    compiler.Compiler().compile(collecting(num_items), str(tmp_path / "p.yaml"))
    findings = check_file(tmp_path / "p.yaml", today=TODAY)
    assert [each.rule for each in findings if each.severity == "error"] == ["collected-artifacts"] * is_refused


def test_yaml_and_json_have_the_same_findings(data: Path) -> None:
    as_json, as_yaml = (check_file(data / "pipelines" / f"wrapped.{kind}", today=TODAY) for kind in ("json", "yaml"))
    assert as_json == as_yaml


def test_a_finding_has_the_path_of_the_value(data: Path) -> None:
    (finding,) = [f for f in check_pipeline(load(data, "literal"), today=TODAY) if f.severity == "error"]
    assert finding.path == f"{CONSTANT}[0].machine_spec.accelerator_count"
    assert finding.alternatives[0].startswith("n1-standard-8 with ")
    (finding,) = [f for f in check_pipeline(load(data, "nested"), today=TODAY) if f.severity == "error"]
    assert finding.path == "root.inputDefinitions.parameters.accelerator_count.defaultValue"
    text = (data / "pipelines" / "camel.json").read_text("utf-8").replace('"imageUri": "', '"imageUri": "<image>')
    (finding,) = check_pipeline(json.loads(text), today=TODAY)
    assert finding.path == f"{CONSTANT}[0].containerSpec.imageUri"


def with_default(data: Path, name: str, value: object) -> Any:
    spec = load(data, "planned")
    spec["root"]["inputDefinitions"]["parameters"][name]["defaultValue"] = value
    return spec


def test_a_planning_step_is_checked_through_nested_dags(data: Path) -> None:
    """The pools are traced through exit handler and condition to the step that plans them; its inputs are checked."""
    spec = with_default(data, "machine_type", "n1-standard-32")
    (finding,) = [f for f in check_pipeline(spec, today=TODAY) if f.severity == "error"]
    assert finding.rule == "accelerator-count"
    assert finding.path == "root.inputDefinitions.parameters.accelerator_count.defaultValue"
    assert "n1-standard-32 with 2 x NVIDIA_TESLA_T4" in finding.alternatives


def test_the_strategy_is_a_parameter_too(data: Path) -> None:
    spec = with_default(data, "scheduling_strategy", "FLEX_START")
    assert {f.rule for f in check_pipeline(spec, today=TODAY) if f.severity == "error"} == {"flex-start-accelerator"}


def test_no_accelerator_is_an_empty_parameter(data: Path) -> None:
    spec = with_default(data, "accelerator_type", "")
    spec["root"]["inputDefinitions"]["parameters"]["accelerator_count"]["defaultValue"] = 0.0
    assert {f.rule for f in check_pipeline(spec, today=TODAY)} == {"placeholder-image", "no-pipeline-root"}


def test_defaults_are_noted_even_without_findings(data: Path) -> None:
    seen = examine_file(data / "pipelines" / "planned.json", region=None, today=TODAY)
    assert len(seen.notes) == 1
    assert "machine_type='n1-standard-4'" in seen.notes[0]


def test_values_of_a_pipeline_job_replace_the_defaults(data: Path) -> None:
    spec = load(data, "nested")
    config = {"gcsOutputDirectory": "gs://shop-ml/root", "parameterValues": {"accelerator_count": 4}}
    job = {"displayName": "run", "pipelineSpec": spec, "runtimeConfig": config}
    assert {finding.rule for finding in check_pipeline(job, today=TODAY)} == {"training-cached"}


def test_parameters_without_defaults_are_not_guessed(data: Path) -> None:
    spec = load(data, "nested")
    del spec["root"]["inputDefinitions"]["parameters"]["machine_type"]["defaultValue"]
    findings = {finding.rule: finding.message for finding in check_pipeline(spec, today=TODAY)}
    assert set(findings) == {"training-cached", "no-pipeline-root", "not-checked"}
    assert "parameter 'machine_type', which has no default" in findings["not-checked"]


def test_pools_of_an_unknown_step_are_reported_as_not_checked(data: Path) -> None:
    spec = load(data, "planned")
    inner = spec["components"]["comp-exit-handler-1"]["dag"]["tasks"]["plan"]["inputs"]["parameters"]
    for name in ("machine_type", "accelerator_type", "accelerator_count"):
        inner[f"my_{name}"] = inner.pop(name)
    (finding,) = [f for f in check_pipeline(spec, today=TODAY) if f.rule == "not-checked"]
    assert "output 'Output' of step 'plan'" in finding.message


def test_the_region_of_the_pipeline_decides(data: Path) -> None:
    errors = [f for f in check_pipeline(load(data, "artifact"), region="europe-west1", today=TODAY)]
    assert {f.rule for f in errors} == {"artifact-in-worker-pools", "accelerator-region"}
    # The task has its own location, so that of the pipeline does not matter.
    found = check_pipeline(load(data, "param"), region="europe-west1", today=TODAY)
    assert {f.rule for f in found} == {"accelerator-count"}


def test_a_component_without_location(data: Path) -> None:
    """An error if the pipeline is in another region, a warning if it may be, and no finding if it is in the same."""
    spec = load(data, "upload")
    task = spec["root"]["dag"]["tasks"]["custom-training-job"]["inputs"]["parameters"]
    in_us = copy.deepcopy(spec)
    in_us["root"]["inputDefinitions"]["parameters"]["location"]["defaultValue"] = "us-central1"

    def severities(given: Any, region: str | None = None) -> list[str]:
        return [f.severity for f in check_pipeline(given, region=region, today=TODAY) if f.rule == "component-location"]

    assert severities(spec) == ["error"]
    assert severities(in_us) == []
    assert severities(spec, "asia-east1") == ["error"]
    del task["location"]
    assert severities(spec) == ["warning"]


def test_kfp_1_8_specs_are_read(data: Path) -> None:
    """Constants are wrapped by type, and pools are JSON text."""
    spec = load(data, "literal")
    pools = json.dumps(
        spec["root"]["dag"]["tasks"]["custom-training-job"]["inputs"]["parameters"]["worker_pool_specs"][
            "runtimeValue"
        ]["constant"]
    )
    parameters = spec["root"]["dag"]["tasks"]["custom-training-job"]["inputs"]["parameters"]
    parameters["worker_pool_specs"] = {"runtimeValue": {"constantValue": {"stringValue": pools}}}
    assert ("accelerator-count", "error") in {(f.rule, f.severity) for f in check_pipeline(spec, today=TODAY)}


def test_dags_that_contain_themselves_are_refused(data: Path) -> None:
    spec = load(data, "planned")
    spec["components"]["comp-condition-2"]["dag"]["tasks"]["again"] = {"componentRef": {"name": "comp-exit-handler-1"}}
    with pytest.raises(UserError, match="contains itself"):
        check_pipeline(spec, today=TODAY)


def test_dags_that_unfold_without_end_are_refused() -> None:
    double = {"a": {}, "b": {}}
    components = {
        f"c{n}": {"dag": {"tasks": {key: {"componentRef": {"name": f"c{n + 1}"}} for key in double}}} for n in range(30)
    }
    spec = {"root": {"dag": {"tasks": {"t": {"componentRef": {"name": "c0"}}}}}, "components": components}
    with pytest.raises(UserError, match="unfold"):
        check_pipeline(spec | {"deploymentSpec": {}}, today=TODAY)


@pytest.mark.parametrize("part", ["root", "components", "deploymentSpec"])
@pytest.mark.parametrize("value", [None, [], "text", 3, {"dag": []}, {"dag": {"tasks": [1]}}, {"executors": [2]}])
def test_broken_specs_do_not_raise(data: Path, part: str, value: Any) -> None:
    findings = check_pipeline(load(data, "planned") | {part: value}, today=TODAY)
    assert all(finding.severity == "warning" for finding in findings)


@pytest.mark.parametrize(
    ("image", "is_cached", "is_reported"),
    [
        ("gcr.io/me/train:latest", True, True),
        ("registry:5000/train", True, True),
        ("gcr.io/me/train", True, True),
        ("gcr.io/me/train:latest", False, False),
        ("registry:5000/train:1", True, False),
        ("gcr.io/me/train@sha256:" + "0" * 64, True, False),
        ("{{$.inputs.parameters['image']}}", True, False),
    ],
)
def test_a_cached_step_whose_image_may_move_is_reported(
    data: Path, image: str, is_cached: bool, is_reported: bool
) -> None:
    spec = load(data, "plain")
    for executor in spec["deploymentSpec"]["executors"].values():
        executor["container"]["image"] = image
    for task in spec["root"]["dag"]["tasks"].values():
        task["cachingOptions"] = {"enableCache": True} if is_cached else {}
    found = [finding.rule for finding in check_pipeline(spec, today=TODAY)]
    assert found.count("moving-tag") == is_reported


@pytest.mark.parametrize(("value", "rules"), [(0, []), ("", []), ({}, []), (1, ["unknown-field"])])
def test_an_unknown_field_that_googles_launcher_drops_is_no_mistake(data: Path, value: Any, rules: list[str]) -> None:
    document = load(data, "literal")
    parameters = document["root"]["dag"]["tasks"]["custom-training-job"]["inputs"]["parameters"]
    pools = parameters["worker_pool_specs"]["runtimeValue"]["constant"]
    machine = next(pool["machine_spec"] for pool in pools if pool)
    machine["acceleratorNumber"] = value
    found = [each.rule for each in check_pipeline(document, today=TODAY)]
    assert [each for each in found if each == "unknown-field"] == rules
