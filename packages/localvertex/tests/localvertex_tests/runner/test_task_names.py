"""kfp 1.8 writes the name of a condition into the name of its task, whatever the author called it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from localvertex._base.compiled.load import load
from localvertex._base.userinput.errors import UserError
from vertex_testing.runs import Execute
from vertex_testing.server import Server, wait_until

NAMES = (
    "condition-accuracy<50-3",
    "condition-../../../../escaped-1",
    "condition-/tmp/../escaped-2",
    "condition-$(touch escaped)-4",
    'condition-"; touch escaped; "-5',
    "condition-`touch escaped`|'&-6",
    "condition-<img src=x onerror=alert(1)>-7",
    "condition-%2e%2e%2fescaped?x=1#y-8",
    "condition-C:\\..\\escaped-9",
    "condition-prêt 🎉 -10",
    "condition-..-11",
)

SHOW = 'printf %s "$0" > "$1"; pwd'
"""Writes its first argument as the output, and prints its folder."""


def document(names: tuple[str, ...] = NAMES, references: tuple[str, ...] | None = None) -> dict[str, Any]:
    """Return a pipeline of conditions and, with the same names, of steps in the first of them."""

    def step(**more: Any) -> dict[str, Any]:
        return {"componentRef": {"name": "comp-show"}} | more

    def output(name: str) -> dict[str, Any]:
        return {"valueFromParameter": {"producerSubtask": name, "outputParameterKey": "Output"}}

    result = {"parameters": {"Output": {"parameterType": "STRING"}}}
    first, *others = references or names
    condition = {"condition": "1 < 2"}
    groups = {name: {"componentRef": {"name": "comp-group"}, "triggerPolicy": condition} for name in names}
    groups[names[0]] |= {"componentRef": {"name": "comp-condition"}, "taskInfo": {"name": names[0]}}
    last = {"taskOutputParameter": {"producerTask": first, "outputParameterKey": "Output"}}
    after = step(dependentTasks=others) | {"inputs": {"parameters": {"text": last}}}
    words = [SHOW, "{{$.pipeline_task_name}}", "{{$.outputs.parameters['Output'].output_file}}"]
    inner = {"dag": {"tasks": {"show": step()}, "outputs": {"parameters": {"Output": output("show")}}}}
    steps = {"tasks": {name: step() for name in names}, "outputs": {"parameters": {"Output": output(first)}}}
    text = {"parameters": {"text": {"parameterType": "STRING", "isOptional": True}}}
    return {
        "schemaVersion": "2.0.0",
        "pipelineInfo": {"name": "names"},
        "components": {
            "comp-show": {"executorLabel": "exec-show", "inputDefinitions": text, "outputDefinitions": result},
            "comp-group": inner | {"outputDefinitions": result},
            "comp-condition": {"dag": steps, "outputDefinitions": result},
        },
        "deploymentSpec": {"executors": {"exec-show": {"container": {"image": "i", "command": ["sh", "-c", *words]}}}},
        "root": {"dag": {"tasks": groups | {"after": after}}},
    }


def written(folder: Path, content: dict[str, Any]) -> Path:
    path = folder / "names.json"
    path.write_text(json.dumps(content))
    return path


def assert_inside(folder: Path, run: Path, record: dict[str, Any]) -> None:
    """Check that a run with hostile names has its files below its folder, and that none of them is special."""
    assert not [*folder.rglob("escaped*")]
    assert not os.path.lexists("escaped")
    paths = [each["path"] for each in record["tasks"]]
    assert len({*paths}) == len(paths) == 3 * len(NAMES)
    for path in paths:
        assert (run / path).resolve().is_relative_to(run), path
        assert (run / path).is_dir(), path
        assert all(character.isascii() and (character.isalnum() or character in "-_/") for character in path), path


def test_a_name_becomes_no_path_and_no_word_of_a_shell(execute: Execute, tmp_path: Path) -> None:
    record = execute(written(tmp_path, document()))
    assert record["state"] == "SUCCEEDED", record["error"]
    assert_inside(tmp_path, Path(record["work_dir"], record["run_id"]), record)
    shown = {each["path"]: each["display_name"] for each in record["tasks"]}
    # The name of the author where the file has it, otherwise that of the path.
    assert shown["condition-accuracy_50-3"] == NAMES[0]
    assert shown["condition-accuracy_50-3/condition-__-11"] == "condition-__-11"
    (after,) = [each for each in record["tasks"] if each["name"] == "after"]
    assert after["inputs"]["parameters"] == {"text": "condition-accuracy_50-3"}


def test_the_endpoint_and_the_console_show_such_a_run(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    with Server(folder, "--allow-host-commands") as server:
        job = {"displayName": "names", "pipelineSpec": document(), "runtimeConfig": {"gcsOutputDirectory": "/unused"}}
        server.call("POST", "pipelineJobs?pipelineJobId=names", job).raise_for_status()
        path = "pipelineJobs/names"
        done = wait_until(lambda: (each := server.call("GET", path).json()).get("endTime") and each)
        assert done["state"] == "PIPELINE_STATE_SUCCEEDED", done
        record = json.loads((folder / "names" / "run.json").read_text())
        assert_inside(tmp_path, folder / "names", record)
        names = {each["taskName"] for each in done["jobDetail"]["taskDetails"]}
        assert names == {"names", "after", "show", *(each["name"] for each in record["tasks"])}
        view = server.get("/local/runs/names").json()
        for each in record["tasks"]:
            if each["kind"] == "step":
                log = server.request("GET", "/local/runs/names/log", params={"task": each["path"]})
                assert log.status_code == 200, log.text
                assert each["path"] in log.text, each["path"]
        page = (folder / "names" / "run.html").read_text()
        assert "<img src=x" not in page
        assert "<img src=x" not in json.dumps(view).replace(NAMES[0], "")


def test_a_hostile_name_can_be_listed_and_shown(tmp_path: Path) -> None:
    written(tmp_path, document())

    def run(*words: str) -> str:
        line = [sys.executable, "-m", "localvertex", *words]
        done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    run("run", "names.json", "--allow-host-commands")
    assert "names" in run("list")
    (name,) = [path.name for path in (tmp_path / "runs").glob("names-*")]
    assert "condition-accuracy_50-3/condition-_tmp____escaped-2" in run("show", name)
    assert not [*tmp_path.rglob("escaped*")]


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (("condition-a<b-1", "condition-a>b-1"), "have the same name here, 'condition-a_b-1'"),
        (("condition-a<b-1", "condition-a_b-1"), "have the same name here, 'condition-a_b-1'"),
        (("condition-a\nb-1",), "is not a usable name"),
        (("condition-a\x1b[31mb-1",), "is not a usable name"),
        (("condition-a\u202eb-1",), "is not a usable name"),
        (("condition-" + "<" * 200 + "-1",), "is not a usable name"),
        (("<b>-1",), "is not a usable name"),
        (("../x",), "is not a usable name"),
    ],
)
def test_names_that_would_mislead_are_refused(names: tuple[str, ...], problem: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=problem):
        load(written(tmp_path, document(names)))


def test_a_reference_has_to_be_the_name_of_the_file(tmp_path: Path, execute: Execute) -> None:
    """kfp 1.8 writes a dependency on such a condition as "condition-accuracy-50-3", which is not in the file."""
    with pytest.raises(UserError, match="condition-accuracy-50-3"):
        execute(written(tmp_path, document(NAMES[:1], ("condition-accuracy-50-3",))))
