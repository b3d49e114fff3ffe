"""PipelineJob files: what they say about the run is followed or refused, never dropped; input artifacts of the root."""

import json
from pathlib import Path
from typing import Any

import pytest
from kfp import dsl
from kfp.dsl import Dataset, Input

import localvertex
from localvertex._base.userinput.errors import UserError
from vertex_testing.runs import STEP, Command, Compile, Execute, FindTask


@dsl.component(**STEP)
def repeat(text: str, times: int) -> str:
    return text * times


@dsl.component(**STEP)
def fail() -> None:
    raise ValueError("no")


@dsl.component(**STEP)
def account(email: str) -> str:
    return email


@dsl.component(**STEP)
def read(data: Input[Dataset]) -> str:
    with open(data.path) as file:
        return file.read()


@dsl.component(**STEP)
def read_all(data: Input[list[Dataset]]) -> str:
    return " ".join(open(each.path).read() for each in data)


@dsl.pipeline(name="repeats")
def repeats(text: str = "a", times: int = 1) -> str:
    account(email="{{$.pipeline_service_account}}")
    account(email="{{$.pipeline_persistent_resource_id}}")
    return repeat(text=text, times=times).output


@dsl.pipeline(name="fails")
def fails(text: str = "a", times: int = 1) -> None:
    failed = fail()
    first = repeat(text=text, times=times).after(failed).ignore_upstream_failure()
    repeat(text="independent", times=1).after(first)


@dsl.pipeline(name="reads")
def reads(data: Input[Dataset]) -> str:
    return read(data=data).output


@dsl.pipeline(name="reads-all")
def reads_all(data: Input[list[Dataset]]) -> str:
    return read_all(data=data).output


def job_file(spec: Path, config: dict[str, Any] | None = None, **fields: Any) -> Path:
    """Wrap a compiled file as the service returns it."""
    job = {"displayName": "job", "state": "PIPELINE_STATE_SUCCEEDED", "pipelineSpec": json.loads(spec.read_text())}
    path = spec.with_name("job.json")
    path.write_text(json.dumps(job | {"runtimeConfig": config or {}} | fields))
    return path


def test_the_values_of_the_job_are_used_and_the_users_win(
    compiled: Compile, execute: Execute, command: Command
) -> None:
    file = job_file(compiled(repeats), {"parameterValues": {"text": "xy", "times": 3.0}})
    record = execute(file)
    assert record["parameters"] == {"text": "xy", "times": 3}
    assert record["outputs"]["parameters"] == {"Output": "xyxyxy"}
    assert execute(file, {"times": 1})["outputs"]["parameters"] == {"Output": "xy"}
    assert command("run", file, "-p", "text=z", "--run-id", "mine").returncode == 0
    content = json.loads((file.parent / "runs" / "mine" / "run.json").read_text())
    assert content["outputs"]["parameters"] == {"Output": "zzz"}


def test_values_as_kfp_1_8_writes_them_are_read(compiled: Compile, execute: Execute) -> None:
    older = {"text": {"stringValue": "ab"}, "times": {"intValue": "2"}}
    assert execute(job_file(compiled(repeats), {"parameters": older}))["outputs"]["parameters"] == {"Output": "abab"}


@pytest.mark.parametrize("policy", ["FAST", "SLOW"])
def test_the_failure_policy_is_followed(compiled: Compile, execute: Execute, task: FindTask, policy: str) -> None:
    record = execute(job_file(compiled(fails), {"failurePolicy": f"PIPELINE_FAILURE_POLICY_FAIL_{policy}"}))
    assert record["state"] == "FAILED"
    assert record["fail_fast"] == (policy == "FAST")
    assert task(record, "repeat-2")["state"] == ("NOT_TRIGGERED" if policy == "FAST" else "SUCCEEDED")


def test_settings_of_the_job_reach_the_placeholders_or_a_warning(
    compiled: Compile, execute: Execute, task: FindTask, work_dir: Path
) -> None:
    detail = {"persistentResourceName": "projects/p/locations/l/persistentResources/pool"}
    config = {
        "gcsOutputDirectory": "gs://bucket/root",
        "defaultRuntime": {"persistentResourceRuntimeDetail": detail},
    }
    record = execute(
        job_file(compiled(repeats), config, serviceAccount="me@p.iam", reservedIpRanges=["range"], labels={"a": "b"})
    )
    assert task(record, "account")["outputs"]["parameters"]["Output"] == "me@p.iam"
    assert task(record, "account-2")["outputs"]["parameters"]["Output"] == "pool"
    assert task(record, "repeat")["log"].startswith("repeat/")
    warnings = "\n".join(record["warnings"])
    assert "gs://bucket/root: outputs go to the work folder" in warnings
    assert "persistentResources/pool does not exist here" in warnings
    assert "reservedIpRanges has no effect here" in warnings
    assert (work_dir / record["run_id"]).is_dir()


REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "unknown field": ({"failPolicy": 1}, {}, "runtimeConfig: the field 'failPolicy' is unknown; did you mean"),
    "unknown field of the job": ({}, {"runtimConfig": {}}, "the field 'runtimConfig' is unknown; did you mean"),
    "policy": ({"failurePolicy": "FAST"}, {}, "failurePolicy: 'FAST' is not one of PIPELINE_FAILURE_POLICY_"),
    "values are a list": ({"parameterValues": [1]}, {}, "parameterValues: expected an object, found a list"),
    "unknown parameter": ({"parameterValues": {"tex": "a"}}, {}, "runtimeConfig: the pipeline has no parameter 'tex'"),
    "wrong type": ({"parameterValues": {"times": "a"}}, {}, "parameter 'times' is 'a'; expected NUMBER_INTEGER"),
    "given twice": (
        {"parameterValues": {"times": 1}, "parameters": {"times": {"intValue": "1"}}},
        {},
        "'times' is in 'parameters' and in 'parameterValues'",
    ),
    "rerun": ({}, {"originalPipelineJobId": "7"}, "--resume RUN resumes a local run"),
    "artifact by id": (
        {"inputArtifacts": {"data": {"artifactId": "123"}}},
        {},
        "add --input-artifact data=URI",
    ),
    "runtime": ({"defaultRuntime": {"other": {}}}, {}, "defaultRuntime: the field 'other' is unknown"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_followed_is_refused_before_anything_runs(
    compiled: Compile, command: Command, work_dir: Path, name: str
) -> None:
    config, fields, message = REFUSED[name]
    done = command("run", job_file(compiled(repeats), config, **fields))
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not work_dir.exists()


def test_an_input_artifact_is_a_file_of_this_machine(
    compiled: Compile, execute: Execute, command: Command, tmp_path: Path
) -> None:
    (tmp_path / "data=1 ü.csv").write_text("rows")
    file = compiled(reads)
    done = command("run", file, "--input-artifact", "data=data=1 ü.csv", "--run-id", "given")
    assert done.returncode == 0, done.stderr
    content = json.loads((tmp_path / "runs" / "given" / "run.json").read_text())
    assert content["outputs"]["parameters"] == {"Output": "rows"}
    artifact = content["input_artifacts"]["data"][0]
    assert artifact["uri"] == str(tmp_path / "data=1 ü.csv")
    assert artifact["type"]["schemaTitle"] == "system.Dataset"
    # The same file has the same identity: the step is found in the cache.
    command("run", file, "--input-artifact", f"data=file://{tmp_path}/data=1 ü.csv", "--run-id", "again")
    again = json.loads((tmp_path / "runs" / "again" / "run.json").read_text())
    assert again["tasks"][0]["cache_hit"]


def test_a_list_of_artifacts_is_given_one_by_one(compiled: Compile, work_dir: Path, tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_text(name)
    options = localvertex.Options(work_dir=work_dir)
    files = [str(tmp_path / "a"), str(tmp_path / "b")]
    record = localvertex.run(compiled(reads_all), artifacts={"data": files}, options=options)
    assert record["outputs"]["parameters"] == {"Output": "a b"}


def test_an_artifact_given_as_an_id_is_replaced_by_a_file(compiled: Compile, work_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "rows").write_text("rows")
    file = job_file(compiled(reads), {"inputArtifacts": {"data": {"artifactId": "1"}}})
    options = localvertex.Options(work_dir=work_dir)
    with pytest.raises(UserError, match="add --input-artifact data=URI"):
        localvertex.run(file, options=options)
    assert not work_dir.exists()
    record = localvertex.run(file, artifacts={"data": str(tmp_path / "rows")}, options=options)
    assert record["state"] == "SUCCEEDED"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "no input artifact for data (system.Dataset); add --input-artifact NAME=URI"),
        (("data",), "expected NAME=URI"),
        (("=x",), "expected NAME=URI"),
        (("dat=x",), "the pipeline has no input artifact 'dat'; did you mean data?"),
        (("data=missing.csv",), "there is no file or folder"),
        (("data=gs://bucket/data",), "expected a file or folder of this machine; download it first"),
        (("data=pipeline.json", "data=pipeline.json"), "--input-artifact data is given 2 times; expected one"),
    ],
)
def test_a_missing_or_wrong_input_artifact_is_refused_before_anything_runs(
    compiled: Compile, command: Command, work_dir: Path, words: tuple[str, ...], message: str
) -> None:
    options = [text for word in words for text in ("--input-artifact", word)]
    done = command("run", compiled(reads), *options)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not work_dir.exists()


def test_a_resumed_run_has_its_settings_and_artifacts(compiled: Compile, work_dir: Path, tmp_path: Path) -> None:
    @dsl.component(**STEP)
    def fail_unless(folder: str, data: Input[Dataset], email: str) -> str:
        import os

        if not os.path.exists(f"{folder}/there"):
            raise ValueError("not there")
        with open(data.path) as file:
            return f"{file.read()} {email}"

    @dsl.pipeline(name="resumed")
    def resumed(folder: str, data: Input[Dataset]) -> str:
        first = read(data=data)
        return fail_unless(folder=folder, data=data, email="{{$.pipeline_service_account}}").after(first).output

    (tmp_path / "rows").write_text("rows")
    values = {"parameterValues": {"folder": str(tmp_path)}, "failurePolicy": "PIPELINE_FAILURE_POLICY_FAIL_FAST"}
    file = job_file(compiled(resumed), values, serviceAccount="me")
    options = localvertex.Options(work_dir=work_dir, run_id="first")
    failed = localvertex.run(file, artifacts={"data": str(tmp_path / "rows")}, options=options)
    assert failed["state"] == "FAILED"
    (tmp_path / "there").touch()
    record = localvertex.resume("first", options=localvertex.Options(work_dir=work_dir))
    assert record["state"] == "SUCCEEDED"
    assert record["fail_fast"]
    assert record["outputs"]["parameters"] == {"Output": "rows me"}
    assert [each["restored"] for each in record["tasks"]] == [True, False]
