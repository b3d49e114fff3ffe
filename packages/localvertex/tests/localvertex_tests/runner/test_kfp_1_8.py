"""A file of kfp 1.8.22 gives the values that the same pipeline gives in a later version.

Its steps install kfp, so their commands are replaced here by one that shows what a step receives.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from kfp import dsl

from localvertex.containers.options import ContainerOptions
from vertex_testing.runs import STEP, Compile, Execute, FindTask

SHOW = """
import json, sys
given = json.loads(sys.argv[1])
values = given["inputs"]["parameterValues"]
data = given["inputs"]["artifacts"].get("data")
result = open(data["artifacts"][0]["uri"]).read() if data else values["ratio"] * values["number"]
with open(given["outputs"]["parameters"]["Output"]["outputFile"], "w") as file:
    file.write(str(result))
"""


@pytest.fixture
def constants(package: Path, tmp_path: Path) -> Path:
    """Return the compiled file with the commands of its steps replaced."""
    document: dict[str, Any] = json.loads((package / "tests/data/kfp_1_8/constants.json").read_text())
    (tmp_path / "imported").write_text("constant")
    (tmp_path / "given").write_text("parameter")
    executors = document["pipelineSpec"]["deploymentSpec"]["executors"]
    for executor in executors.values():
        if "container" in executor:
            executor["container"] |= {"command": ["python3", "-c", SHOW], "args": ["{{$}}"]}
    path = tmp_path / "constants.json"
    path.write_text(json.dumps(document).replace("/imported", str(tmp_path / "imported")))
    return path


def test_constants_conditions_loops_and_importers_of_kfp_1_8(
    constants: Path, execute: Execute, task: FindTask, tmp_path: Path
) -> None:
    # In the sandbox a container command does not see files that only the compiled file names.
    on_host = ContainerOptions(allow_host_commands=True)
    record = execute(constants, {"uri": str(tmp_path / "given")}, containers=on_host)
    assert record["state"] == "SUCCEEDED", record["error"]

    def inputs(path: str) -> dict[str, Any]:
        found: dict[str, Any] = task(record, path)["inputs"]["parameters"]
        return {name: value for name, value in found.items() if "pipelineparam" not in name}

    # Lists, objects and booleans are text in these files; kfp 1.8 decodes it in the step.
    defaults = {"number": 7, "ratio": 0.5, "flag": "True", "items": "[1, 2]", "table": '{"k": 1}'}
    assert inputs("show") == defaults | {"text": "bye"}
    first = {"text": "hello there", "number": 3, "ratio": 2.0, "items": "[]", "table": '{"x": {"y": 1.5}}'}
    assert inputs("exit-handler-1/show-2") == defaults | first
    loops = [each["inputs"]["parameters"] for each in record["tasks"] if each["path"].startswith("for-loop")]
    shown = sorted((each["text"], each["number"], each["flag"]) for each in loops if "text" in each)
    # False is the number 0 in these files, as kfp 1.8 writes it.
    assert shown == [("loop", 4, "True"), ("loop", 5, "True"), ("s", 1, "0"), ("t", 2, "0")]


def test_conditions_compare_by_the_type_that_they_name(constants: Path, execute: Execute, tmp_path: Path) -> None:
    record = execute(constants, {"uri": str(tmp_path / "given"), "n": 4, "word": "bye"})
    states = {each["name"]: each["state"] for each in record["tasks"] if each["kind"] == "dag"}
    assert states["condition-large-2"] == states["condition-never-3"] == "SUCCEEDED"
    assert states["condition-greeting-4"] == "NOT_TRIGGERED"
    read = [each["outputs"]["parameters"]["Output"] for each in record["tasks"] if each["name"].startswith("read")]
    assert sorted(filter(None, read)) == ["parameter"]


STATUS = """
import json, sys
given = json.loads(sys.argv[1])["inputs"]["parameterValues"]["status"]
status = json.loads(given)
assert status["error"] == {}, given
with open(sys.argv[2], "w") as file:
    file.write(status["state"] + " " + status["pipelineTaskName"])
"""


def test_the_final_status_is_text_where_the_file_declares_text(compiled: Compile, execute: Execute) -> None:
    """kfp 1.8 declares a PipelineTaskFinalStatus as STRING, and its executor reads it as JSON."""

    @dsl.component(**STEP)
    def report(status: dsl.PipelineTaskFinalStatus) -> str:
        return status.state

    @dsl.component(**STEP)
    def work() -> str:
        return "done"

    @dsl.pipeline(name="reports")
    def reports() -> None:
        with dsl.ExitHandler(report()):  # type: ignore[call-arg]
            work()

    file = compiled(reports)
    document = json.loads(file.read_text())
    document["components"]["comp-report"]["inputDefinitions"]["parameters"]["status"] = {"parameterType": "STRING"}
    container = document["deploymentSpec"]["executors"]["exec-report"]["container"]
    output = "{{$.outputs.parameters['Output'].output_file}}"
    container |= {"command": ["python3", "-c", STATUS], "args": ["{{$}}", output]}
    file.write_text(json.dumps(document))
    record = execute(file, containers=ContainerOptions(allow_host_commands=True))
    assert record["state"] == "SUCCEEDED", record["error"]
    (step,) = [each for each in record["tasks"] if each["name"] == "report"]
    assert step["outputs"]["parameters"]["Output"] == "SUCCEEDED exit-handler-1"
