"""What the form of a new run says before anything starts, for real compiled files and for broken ones."""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from localvertex._base.userinput.errors import UserError
from localvertex.api.rest.errors import ApiError
from localvertex.commands.service import Service
from localvertex.console.creating.creating import Creating
from localvertex.console.local_route import LocalCall
from localvertex.errors import Refused
from localvertex.runner import engine

COMPILED = Path(__file__).parents[2] / "constructs" / "compiled"
FILES = sorted(COMPILED.iterdir())
Check = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def creating(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Creating]:
    """Return the routes of a server that runs nothing."""
    work_dir = tmp_path_factory.mktemp("creating") / "runs"
    service = Service(work_dir, time_factor=1, log=print)
    yield Creating(service.pipeline_jobs)
    service.pipeline_jobs.close()
    assert not work_dir.exists(), "a check wrote something"


@pytest.fixture(scope="module")
def check(creating: Creating) -> Check:
    """Return the check of a request."""
    return lambda **body: creating.check(LocalCall(body=body))


def pipeline(parameters: dict[str, Any], **more: Any) -> str:
    """Return a compiled pipeline with one step and these parameters."""
    content = json.loads((COMPILED / "only_a_pipeline.json").read_text())
    spec = content.get("pipelineSpec", content)
    spec["root"].setdefault("inputDefinitions", {})["parameters"] = parameters
    return json.dumps(content | more)


BOMB = "b0: &b0 x\n" + "".join(f"b{n}: &b{n} [{', '.join([f'*b{n - 1}'] * 9)}]\n" for n in range(1, 9))
"""YAML of 300 bytes that unfolds to 9**8 values."""


def number(**more: Any) -> dict[str, Any]:
    return {"parameterType": "NUMBER_INTEGER", **more}


@pytest.mark.parametrize("path", FILES, ids=lambda each: each.name)
def test_a_file_that_would_be_refused_is_refused_before_anything_starts(check: Check, path: Path) -> None:
    try:
        engine.open_file(path, engine.Options())
        reasons = []
    except Refused as error:
        reasons = [*error.reasons, *filter(None, [error.way_on])]
    except UserError:
        with pytest.raises((UserError, ApiError)):
            check(content=path.read_text(), name=path.name)
        return
    found = check(content=path.read_text(), name=path.name)
    assert sorted(found["refusals"]) == sorted(reasons)
    assert found["pipeline"]
    assert isinstance(found["machine_check"]["findings"], list)


def test_the_form_has_type_default_and_choices_of_each_parameter(check: Check) -> None:
    found = check(
        content=pipeline(
            {
                "epochs": number(defaultValue=20.0, description="Passes <b>over</b> the data."),
                "mode": {"parameterType": "STRING", "literals": ["a", "b"], "defaultValue": "a"},
                "options": {"parameterType": "STRUCT", "defaultValue": {"x": 1.0, "y": None}},
                "rate": {"parameterType": "NUMBER_DOUBLE"},
                "note": {"parameterType": "STRING", "isOptional": True},
            }
        ),
        name="p.json",
    )
    fields = {each["name"]: each for each in found["parameters"]}
    assert fields["epochs"]["default"] == "20"
    assert fields["epochs"]["description"] == "Passes <b>over</b> the data."
    assert fields["mode"]["literals"] == ["a", "b"]
    assert fields["options"]["default"] == '{"x": 1, "y": null}'
    assert [name for name, each in fields.items() if each["is_required"]] == ["rate"]
    assert fields["note"]["default"] is None


TYPES = {
    "n": number(),
    "x": {"parameterType": "NUMBER_DOUBLE", "defaultValue": 0.5},
    "s": {"parameterType": "STRING", "defaultValue": ""},
    "b": {"parameterType": "BOOLEAN", "defaultValue": False},
    "items": {"parameterType": "LIST", "defaultValue": []},
    "o": {"parameterType": "STRUCT", "defaultValue": {}},
    "mode": {"parameterType": "STRING", "literals": ["a", "b"], "defaultValue": "a"},
    "__proto__": {"parameterType": "STRING", "defaultValue": "safe"},
}


@pytest.mark.parametrize(
    ("texts", "field", "message"),
    [
        ({}, "n", "required; expected NUMBER_INTEGER, such as 3"),
        ({"n": "NaN"}, "n", "found 'NaN'; expected NUMBER_INTEGER"),
        ({"n": "1.5"}, "n", "found 1.5; expected NUMBER_INTEGER"),
        ({"n": ""}, "n", "found ''; expected NUMBER_INTEGER"),
        ({"n": "null"}, "n", "found null; expected NUMBER_INTEGER"),
        ({"n": "9" * 400}, "n", "expected NUMBER_INTEGER"),
        ({"n": "1" * 5000}, "n", "expected NUMBER_INTEGER"),
        ({"n": "1", "x": "1e999"}, "x", "expected NUMBER_DOUBLE"),
        ({"n": "1", "b": "maybe"}, "b", "found 'maybe'; expected BOOLEAN, such as true"),
        ({"n": "1", "items": '["a",'}, "items", "is not JSON: Expecting value: line 1 column 6"),
        ({"n": "1", "items": '{"a": 1}'}, "items", "expected LIST, such as"),
        ({"n": "1", "items": "[" * 200 + "]" * 200}, "items", "nested too deeply"),
        ({"n": "1", "o": '{"a": 1, "a": 2}'}, "o", "has the key 'a' twice"),
        ({"n": "1", "o": '{"a": NaN}'}, "o", "NaN is not a number in JSON"),
        ({"n": "1", "mode": "c"}, "mode", "found 'c'; expected one of a, b"),
        ({"n": "1", "größe": "1"}, "größe", "the pipeline has no parameter 'größe'"),
        ({"n": "1", "nn": "2"}, "nn", "the pipeline has no parameter 'nn'; did you mean n?"),
        ({"n": 1}, "n", "expected text as in the form, found int"),
    ],
)
def test_an_error_is_one_line_at_its_field(check: Check, texts: dict[str, Any], field: str, message: str) -> None:
    content = pipeline(TYPES)
    (error,) = check(content=content, name="p.json", parameters=texts)["errors"]
    assert error["field"] == f"parameters.{field}"
    assert message in error["message"]
    assert "\n" not in error["message"]
    assert len(error["message"]) < 300
    with pytest.raises(ApiError) as refused:
        check(content=content, name="p.json", parameters=texts, is_start=True)
    assert list(refused.value.details) == [error]


@pytest.mark.parametrize("texts", [{"epochs": "-1"}, {"source": "/none"}, {"epochs": "-1", "source": "/none"}])
def test_a_value_that_its_description_excludes_is_an_error_at_its_field(check: Check, texts: dict[str, str]) -> None:
    content = pipeline(
        {
            "epochs": number(defaultValue=20, description="Passes over the data (1 to 100)."),
            "source": {"parameterType": "STRING", "defaultValue": "digits", "description": "It is an existing folder."},
        }
    )
    found = check(content=content, name="p.json", parameters=texts)
    assert [each["field"] for each in found["errors"]] == [f"parameters.{name}" for name in texts]
    with pytest.raises(ApiError):
        check(content=content, name="p.json", parameters=texts, is_start=True)
    assert check(content=content, name="p.json", parameters={"epochs": "1", "source": "/"})["errors"] == []


def test_the_request_has_the_values_that_were_written(check: Check) -> None:
    texts = {"n": "7", "x": "1", "s": "a\nb", "b": "True", "items": "[1.0]", "o": '{"k": null}', "__proto__": "p"}
    found = check(
        content=pipeline(TYPES),
        name="p.json",
        parameters=texts,
        labels={"team": "a"},
        display_name="Ä run",
        fail_fast=True,
        use_cache=False,
        is_start=True,
    )
    assert found["errors"] == found["refusals"] == []
    job = found["request"]
    values = {"n": 7, "x": 1.0, "s": "a\nb", "b": True, "items": [1], "o": {"k": None}, "__proto__": "p"}
    assert job["runtimeConfig"] == {"parameterValues": values, "failurePolicy": "PIPELINE_FAILURE_POLICY_FAIL_FAST"}
    assert job["labels"] == {"team": "a"}
    assert job["displayName"] == "Ä run"
    tasks = job["pipelineSpec"]["root"]["dag"]["tasks"].values()
    assert tasks
    assert all(each["cachingOptions"] == {"enableCache": False} for each in tasks)


def test_a_pipeline_with_an_input_artifact_is_refused_and_named_for_the_command(check: Check) -> None:
    content = (COMPILED / "input_artifact.json").read_text()
    (name,) = json.loads(content)["root"]["inputDefinitions"]["artifacts"]
    found = check(content=content, name="p.json", parameters={}, is_start=True)
    assert f"no input artifact for {name}" in found["refusals"][0]
    assert check(content=content, name="p.json")["input_artifacts"] == [name]


def test_labels_of_a_file_are_written_as_it_has_them(check: Check) -> None:
    job = {"pipelineSpec": json.loads(pipeline({})), "labels": {"a": "b", "none": None, "n": 1, "is": True}}
    assert check(content=json.dumps(job))["settings"]["labels"] == {"a": "b", "n": "1", "is": "true"}


def test_the_values_of_a_job_are_changes_of_the_defaults(check: Check) -> None:
    """The SDK sends a whole number as a double, and the record of a run that it started has the job."""
    declared = {"n": number(defaultValue=20.0), "m": number(defaultValue=1.0), "r": number()}
    spec = json.loads(pipeline(declared))
    config = {"parameterValues": {"n": 60.0, "r": 7.0}}
    job = json.dumps({"pipelineSpec": spec.get("pipelineSpec", spec), "runtimeConfig": config})
    fields = check(content=job, name="p.json")["parameters"]
    assert {each["name"]: (each["default"], each["value"], each["is_required"]) for each in fields} == {
        "n": ("20", "60", False),
        "m": ("1", None, False),
        "r": (None, "7", True),
    }
    for texts, values in (({"n": "60", "r": "7"}, {"n": 60, "r": 7}), ({"r": "8"}, {"n": 20, "r": 8})):
        found = check(content=job, name="p.json", parameters=texts, is_start=True)
        assert found["request"]["runtimeConfig"]["parameterValues"] == values
    (missing,) = check(content=job, name="p.json", parameters={"n": "60"})["errors"]
    assert missing["field"] == "parameters.r"


def test_wrong_settings_are_named(check: Check) -> None:
    content = pipeline({})
    found = check(content=content, parameters={}, labels={"Not": "valid"}, display_name="x" * 200)
    assert [each["field"] for each in found["errors"]] == ["display_name", "labels"]
    found = check(content=content, parameters={}, labels=[], fail_fast="yes")
    assert [each["field"] for each in found["errors"]] == ["labels", "fail_fast"]
    for region in ("mars-1", 7, ["us-central1"], "us-central1/../x"):
        with pytest.raises(ApiError) as refused:
            check(content=content, region=region)
        assert [each["field"] for each in refused.value.details] == ["region"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("p.json", " ", "p.json is empty"),
        ("p.json", "{", "p.json is not JSON"),
        ("p.json", "[1]", "expected an object, found list"),
        ("p.json", "{}", "this is not a compiled pipeline: expected 'root'"),
        ("photo.png", "\ufffdPNG\r\n\x1a\n", "photo.png is not a compiled pipeline"),
        ("p.yaml", BOMB, "through its aliases"),
        ("p.json", pipeline({"größe": number()}), "'größe' is not a usable name"),
        ("p.yaml", "a: 1\n---\nb: 2\n---\nc: 3", "found 3 documents"),
        ("p.yaml", "a: [\n", "p.yaml is not YAML"),
        ("p.json", '{"a": 1, "a": 2}', "the key 'a' twice"),
        ("p.json", '{"root": {}, "deploymentSpec": {}, "x": NaN}', "NaN is not a number"),
        ("p.json", '{"a":' * 300 + "1" + "}" * 300, "nested too deeply"),
        ("wörkflow.yaml", "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\n", "this is not a compiled pipeline"),
        ("big.json", '{"a": "' + "x" * 10_000_000 + '"}', "this is not a compiled pipeline"),
        ("a\nb.json", "{", "'a\\nb.json' is not"),
        ("p.json", '{"a\\nb": 1}', "found 'a\\nb'"),
        ("p.json", pipeline({"x": {"parameterType": "x" * 5000}}), "is not one of NUMBER_DOUBLE"),
        ("p.json", pipeline({"x" * 5000: number()}), "is not a usable name"),
    ],
    ids=lambda each: each[:20] if isinstance(each, str) else "",
)
def test_what_is_not_a_pipeline_is_refused_in_one_line(check: Check, name: str, content: str, message: str) -> None:
    with pytest.raises(UserError) as refused:
        check(content=content, name=name)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 300


def test_the_machines_are_checked_for_the_region_and_also_beside_an_error(check: Check) -> None:
    content, bad = (COMPILED / "accelerators.json").read_text(), {"region": "europe-west6"}
    forms: tuple[dict[str, Any], ...] = ({}, {"parameters": {}}, {"parameters": {"no-such": "1"}})
    for form in forms:
        (finding, *_) = check(content=content, **form, **bad)["machine_check"]["findings"]
        assert (finding["rule"], finding["severity"]) == ("accelerator-region", "error")
        assert "NVIDIA_TESLA_T4 in europe-west4" in finding["alternatives"]
        found = check(content=content, **form, region="europe-west4")["machine_check"]["findings"]
        assert [each["severity"] for each in found if each["severity"] == "error"] == []


def test_a_run_is_created_only_from_what_the_request_names(check: Check, tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text("{}")
    runs: list[dict[str, Any]] = [
        {"run": each} for each in ("../../etc", "latest", "api", "no-such", "a\0b", "x" * 5000)
    ]
    files = [{"file": str(secret)}, {"file": "../x.json"}]
    for body in (*runs, *files, {}, {"content": "{}", "file": "x"}, {"content": 1}):
        with pytest.raises(ApiError):
            check(**body)


@pytest.mark.parametrize("value", [None, [], {}, "x", 7])
def test_a_damaged_part_of_a_file_is_a_reason_and_no_defect(check: Check, value: Any) -> None:
    for name in ("pipeline_in_a_pipeline.json", "job_with_an_input_artifact.json", "accelerators.json"):
        whole = json.loads((COMPILED / name).read_text())
        for path in list(_paths(whole, 3)):
            content = json.loads(json.dumps(whole))
            part = content
            for key in path[:-1]:
                part = part[key]
            part[path[-1]] = value
            for form in ({}, {"parameters": {}, "use_cache": False, "is_start": True}):
                with suppress(ApiError, UserError):
                    check(content=json.dumps(content), name="p.json", **form)


def _paths(value: Any, depth: int) -> Iterator[tuple[str, ...]]:
    """Yield the path of each part of an object, down to a depth."""
    for key, inner in value.items() if isinstance(value, dict) and depth else ():
        yield (key,)
        yield from ((key, *rest) for rest in _paths(inner, depth - 1))
