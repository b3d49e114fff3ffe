"""A compiled file runs, and its record has what the steps wrote."""

import json
import warnings
from pathlib import Path
from typing import NamedTuple

import pytest
from kfp import dsl
from kfp.dsl import HTML, Dataset, Input, Metrics, Model, Output, OutputPath

import localvertex
from vertex_testing.html import report_data
from vertex_testing.runs import STEP, Compile, Execute, FindTask


@dsl.component(**STEP)
def make(n: int, factor: float, names: list, options: dict, flag: bool, text: str, data: Output[Dataset]) -> str:
    import json

    with open(data.path, "w") as file:
        json.dump([n, factor, names, options, flag, text], file)
    data.metadata["rows"] = n
    return repr((n, factor, names, options, flag, text))


@dsl.component(**STEP)
def measure(data: Input[Dataset], metrics: Output[Metrics], page: Output[HTML], model: Output[Model]) -> int:
    import json

    with open(data.path) as file:
        values = json.load(file)
    metrics.log_metric("accuracy", 0.25)
    with open(page.path, "w") as file:
        file.write("<h1>Quite unique heading</h1>")
    with open(model.path, "w") as file:
        file.write("weights")
    return values[0] + data.metadata["rows"]


@dsl.component(**STEP)
def several(n: int, file_text: OutputPath(str)) -> NamedTuple("Outputs", [("total", int), ("share", float)]):
    from collections import namedtuple

    with open(file_text, "w") as file:
        file.write(f"n is {n}")
    return namedtuple("Outputs", ["total", "share"])(n + 1, n / 2)


@dsl.pipeline(name="values")
def values(
    n: int = 3,
    factor: float = 2.0,
    names: list = ["a", 1],  # noqa: B006 - literals in the compiled file
    options: dict = {"deep": [{"count": 2}], "depth": 1, "rate": 0.5},  # noqa: B006
    flag: bool = True,
    text: str = "plain",
) -> int:
    made = make(n=n, factor=factor, names=names, options=options, flag=flag, text=text)
    measured = measure(data=made.outputs["data"])
    several(n=measured.outputs["Output"])
    return measured.outputs["Output"]


def test_values_of_every_type_arrive_unchanged_and_integers_stay_integers(execute: Execute, task: FindTask) -> None:
    text = 'it\'s "quoted"\nand {{$.not.a.placeholder}} ümlaut'
    record = execute(values, {"text": text})
    assert record["state"] == "SUCCEEDED"
    expected = (3, 2.0, ["a", 1], {"deep": [{"count": 2}], "depth": 1, "rate": 0.5}, True)
    assert task(record, "make")["outputs"]["parameters"]["Output"] == repr((*expected, text))
    assert task(record, "several")["outputs"]["parameters"] == {"file_text": "n is 6", "total": 7, "share": 3.0}
    assert record["outputs"]["parameters"] == {"Output": 6}


def test_given_parameters_win_over_defaults(execute: Execute, task: FindTask) -> None:
    record = execute(values, {"n": 5, "options": {"a": 1.0}, "flag": False})
    assert task(record, "make")["outputs"]["parameters"]["Output"].startswith("(5, 2.0, ['a', 1], {'a': 1}, False")
    assert record["parameters"]["n"] == 5


def test_the_record_contains_metrics_models_and_artifacts(execute: Execute, task: FindTask, work_dir: Path) -> None:
    record = execute(values, run_id="my-run")
    assert record["metrics"] == [{"task": "measure", "artifact": "metrics", "name": "accuracy", "value": 0.25}]
    assert Path(record["models"][0]["uri"]).read_text() == "weights"
    data = task(record, "make")["outputs"]["artifacts"]["data"][0]
    assert data["type"] == {"schemaTitle": "system.Dataset", "schemaVersion": "0.0.1"}
    assert data["metadata"] == {"rows": 3}
    assert task(record, "measure")["inputs"]["artifacts"]["data"] == [data]
    assert json.loads((work_dir / "my-run" / "run.json").read_text()) == json.loads(json.dumps(record))
    assert (work_dir / "my-run" / "make" / "executor_input.json").is_file()


def test_the_page_embeds_html_artifacts_without_letting_them_run_scripts(execute: Execute, work_dir: Path) -> None:
    execute(values, run_id="my-run")
    page = work_dir / "my-run" / "run.html"
    (tasks,) = [each["tasks"] for name, each in report_data(page)["events"] if name == "run"]
    views = [each["view"] for task in tasks for found in task["outputs"]["artifacts"].values() for each in found]
    assert "<h1>Quite unique heading</h1>" in [each["page"] for each in views]
    assert "<h1>Quite unique" not in page.read_text()


def test_json_and_yaml_of_the_same_pipeline_give_equal_results(compiled: Compile, execute: Execute) -> None:
    files = [compiled(values, "p.json"), compiled(values, "p.yaml")]
    records = [execute(file, use_cache=False) for file in files]
    outputs = [[each["outputs"]["parameters"] for each in record["tasks"]] for record in records]
    assert outputs[0] == outputs[1]
    assert records[0]["sha256"] != records[1]["sha256"]


@dsl.component(**STEP)
def where() -> str:
    import os

    return os.getcwd()


@dsl.component(**STEP)
def variables(extra: str) -> str:
    import os

    return os.environ["GREETING"] + os.environ["OF_THE_USER"] + extra


@dsl.pipeline(name="environment")
def environment() -> None:
    where()
    variables(extra="!").set_env_variable("GREETING", "hello ").set_cpu_limit("4").set_accelerator_type(
        "NVIDIA_TESLA_T4"
    ).set_accelerator_limit(1)


def test_steps_run_in_their_own_folder_with_the_users_and_their_own_variables(
    execute: Execute, task: FindTask, work_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_THE_USER", "world")
    monkeypatch.setenv("GREETING", "overridden by the container's")
    record = execute(environment, run_id="here")
    assert task(record, "where")["outputs"]["parameters"]["Output"] == str(work_dir / "here" / "where")
    assert task(record, "variables")["outputs"]["parameters"]["Output"] == "hello world!"
    assert len([text for text in record["warnings"] if "accelerator" in text]) == 1


@dsl.component(**STEP)
def forgets(data: Output[Dataset]) -> int:
    import os

    os._exit(0)


@dsl.pipeline(name="forgetful")
def forgetful() -> None:
    forgets()


def test_a_missing_declared_output_is_a_failure_that_names_it(execute: Execute, task: FindTask) -> None:
    record = execute(forgetful)
    assert record["state"] == "FAILED"
    assert task(record, "forgets")["error"] == "the step ended without its declared output parameter 'Output'"


@dsl.component(**STEP)
def square(n: int) -> int:
    return n * n


@dsl.component(**STEP)
def write(n: int, out: Output[Dataset]) -> None:
    with open(out.path, "w") as file:
        file.write("x" * n)


@dsl.component(**STEP)
def count(data: Input[Dataset]) -> int:
    with open(data.path) as file:
        return len(file.read())


@dsl.pipeline(name="cross-check")
def cross_check(n: int = 3) -> int:
    squared = square(n=n)
    written = write(n=squared.output)
    with dsl.If(n == 3):
        square(n=100)
    return count(data=written.outputs["out"]).output


def test_outputs_equal_those_of_kfp_local(execute: Execute, tmp_path: Path) -> None:
    from kfp import local

    found = execute(cross_check)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        local.init(runner=local.SubprocessRunner(use_venv=False), pipeline_root=str(tmp_path / "kfp"))
        expected = cross_check(n=3)
    assert found["outputs"]["parameters"] == expected.outputs
    assert type(found["outputs"]["parameters"]["Output"]) is type(expected.outputs["Output"])


def test_an_unknown_parameter_is_refused_before_anything_is_written(compiled: Compile, work_dir: Path) -> None:
    file = compiled(values)
    with pytest.raises(localvertex.UserError, match="no parameter 'flagg'; did you mean flag"):
        localvertex.run(file, parameters={"flagg": 1}, options=localvertex.Options(work_dir=work_dir))
    assert not work_dir.exists()
