"""A work folder with spaces, quotes and characters beyond ASCII works in every kind of step."""

import json
from pathlib import Path

import pytest
from google_cloud_pipeline_components.v1.custom_job import CustomTrainingJobOp
from kfp import dsl
from kfp.dsl import Dataset, Input, Output, OutputPath

import localvertex
from vertex_testing.runs import STEP, Command, Compile, FindTask

NAMES = ["with spaces", 'it\'s "quoted" \\ $HOME `id`', "Größe-数据-🙂", "%s {} #!&;*"]

IMAGE = "shell"


@dsl.container_component
def shell(text: str, data: Output[Dataset], length: OutputPath(int)) -> dsl.ContainerSpec:  # type: ignore[valid-type]
    """Write with placeholders as arguments, and with one within the script."""
    script = 'mkdir -p "$(dirname "$1")" && printf %s "$0" > "$1" && printf %s "${#0}" > "$2" && test -f "$1"'
    return dsl.ContainerSpec(image=IMAGE, command=["sh", "-c", script, text], args=[data.path, length])


@dsl.container_component
def script(data: Input[Dataset], copy: Output[Dataset], where: OutputPath(str)) -> dsl.ContainerSpec:  # type: ignore[valid-type]
    """Use paths within a script and without quotes, as most pipelines do: on Vertex AI they need none."""
    words = f"mkdir -p $(dirname {copy.path}) && cp {data.path} {copy.path} && printf %s {copy.path} > {where}"
    return dsl.ContainerSpec(image=IMAGE, command=["sh", "-c", words])


@dsl.component(**STEP)
def read(data: Input[Dataset], copy: Output[Dataset]) -> str:
    import os
    import shutil
    import subprocess

    shutil.copyfile(data.path, copy.path)
    # The working directory of a step is in the work folder, too.
    assert os.getcwd() == os.path.dirname(copy.path)
    return subprocess.check_output(["cat", copy.path], text=True)


REPLICA = "import os, sys; open(os.path.join(sys.argv[1], 'seen'), 'w').write(open(sys.argv[2]).read())"


@dsl.pipeline(name="odd")
def odd(text: str, folder: str) -> str:
    written = shell(text=text)
    copied = script(data=written.outputs["data"])
    found = read(data=copied.outputs["copy"])
    container = {
        "image_uri": "gcr.io/x/y:1",
        "command": ["python", "-c", REPLICA],
        "args": [folder, f"{folder}/odd/shell/data"],
    }
    pool = {"machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 1, "container_spec": container}
    CustomTrainingJobOp(display_name="job", worker_pool_specs=[pool]).after(written)
    return found.outputs["Output"]


@pytest.mark.parametrize("name", NAMES)
def test_steps_run_in_it(compiled: Compile, command: Command, task: FindTask, tmp_path: Path, name: str) -> None:
    work_dir = tmp_path / name / "runs"
    options = localvertex.Options(work_dir=work_dir, run_id="odd", command_prefixes={IMAGE: ("env",)})
    text = 'it\'s "text" 数'
    parameters = {"text": text, "folder": str(work_dir)}
    content = localvertex.run(compiled(odd), parameters=parameters, options=options)
    assert content["state"] == "SUCCEEDED", content["error"]
    assert content["outputs"]["parameters"]["Output"] == text
    assert (work_dir / "seen").read_text() == text
    assert task(content, "script")["outputs"]["parameters"]["where"] == str(work_dir / "odd" / "script" / "copy")
    again = localvertex.Options(work_dir=work_dir, run_id="again", command_prefixes={IMAGE: ("env",)})
    cached = localvertex.run(compiled(odd), parameters=parameters, options=again)
    assert task(cached, "shell")["state"] == "SKIPPED"
    assert json.loads((work_dir / "odd" / "run.json").read_text())["work_dir"] == str(work_dir)
    for words in (("show", "odd"), ("logs", "odd"), ("list",), ("clean", "--yes")):
        done = command(*words, "--work-dir", work_dir)
        assert (done.returncode, done.stderr) == (0, "")
