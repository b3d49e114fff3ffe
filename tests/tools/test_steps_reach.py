"""Steps of every kind list the models of their work folder: in a run, under a server, in a replica, in a sandbox."""

import json
from pathlib import Path
from typing import Any

import pytest
from google_cloud_pipeline_components.v1.custom_job import CustomTrainingJobOp
from kfp import dsl

from localvertex.containers.choice import Choice
from localvertex.containers.options import ContainerOptions
from localvertex.store import registry
from vertex_testing.runs import STEP, Compile, Execute
from vertex_testing.server import Server, wait_until

pytestmark = pytest.mark.slow

PLAIN = """\
import json, os, sys, urllib.request
with open(os.environ["LOCALVERTEX_ENDPOINT"]) as file:
    found = json.load(file)
url = found["address"] + "/v1/projects/local-project/locations/us-central1/models"
request = urllib.request.Request(url, headers={"Authorization": "Bearer " + found["token"]})
print("with", found["token"], flush=True)
with urllib.request.urlopen(request) as answer:
    names = [each["displayName"] for each in json.load(answer)["models"]]
print("after", found["token"], flush=True)
with open(sys.argv[1], "w") as file:
    json.dump(names, file)
"""
"""For programs without the packages of this project."""

CLIENT = """\
import json, sys, warnings
warnings.simplefilter("ignore")
from components.registry.registry import Registry
name = Registry(region="us-central1", pipeline_root=sys.argv[2]).find("pets")
open(sys.argv[1], "w").write(json.dumps([name.rpartition("/")[2]]))
"""
"""As the steps of this project."""


@dsl.component(**STEP)
def by_client(root: str, path: str) -> None:
    import json
    import warnings

    warnings.simplefilter("ignore")
    from components.registry.registry import Registry

    name = Registry(region="us-central1", pipeline_root=root).find("pets")
    with open(path, "w") as file:
        json.dump([name.rpartition("/")[2]], file)


@dsl.component(**STEP)
def by_sdk(path: str) -> None:
    import json
    import warnings

    warnings.simplefilter("ignore")
    from google.cloud import aiplatform

    from localvertex import client

    client.init()
    with open(path, "w") as file:
        json.dump([each.display_name for each in aiplatform.Model.list()], file)


@dsl.container_component
def by_command(program: str, found: dsl.OutputPath(str)) -> dsl.ContainerSpec:
    return dsl.ContainerSpec(image="python:3.11", command=["python3", "-c", program, found])


@dsl.component(**STEP)
def copy(found: str, path: str) -> None:
    with open(path, "w") as file:
        file.write(found)


@dsl.pipeline(name="lists-models")
def lists_models(program: str, folder: str, pools: list) -> None:
    forked = by_client(root="{{$.pipeline_root}}", path=f"{folder}/forked")
    executed = by_client(root="{{$.pipeline_root}}", path=f"{folder}/executed").set_env_variable("A", "b").after(forked)
    by_sdk(path=f"{folder}/sdk").after(forked)
    copy(found=by_command(program=program).after(executed).output, path=f"{folder}/command")
    CustomTrainingJobOp(display_name="j", worker_pool_specs=pools).after(forked)


@dsl.pipeline(name="in-sandbox")
def in_sandbox(program: str, folder: str) -> None:
    copy(found=by_command(program=program).output, path=f"{folder}/command")


def pools(folder: Path, root: Path) -> list[dict[str, Any]]:
    words = ["python3", "-c", CLIENT, str(folder / "replica"), str(root)]
    return [
        {
            "machine_spec": {"machine_type": "n1-standard-4"},
            "replica_count": 1,
            "container_spec": {"image_uri": "python:3.11", "command": words},
        }
    ]


@pytest.fixture
def inputs(tmp_path: Path, work_dir: Path) -> dict[str, Any]:
    registry.add(work_dir, {"display_name": "pets", "labels": {"managed-by": "vertex-gpu-training"}})
    (tmp_path / "found").mkdir()
    return {"program": PLAIN, "folder": str(tmp_path / "found"), "pools": pools(tmp_path / "found", work_dir)}


def found(inputs: dict[str, Any]) -> dict[str, Any]:
    return {each.name: json.loads(each.read_text()) for each in Path(inputs["folder"]).iterdir()}


EVERYWHERE = {each: ["pets"] for each in ("forked", "executed", "sdk", "command", "replica")}


def texts(work_dir: Path) -> str:
    paths = [each for each in work_dir.rglob("*") if each.is_file() and each.parts[-2:] != ("api", "token")]
    return "\n".join(each.read_text(errors="replace") for each in paths)


def test_all_steps_of_a_run_reach_its_registry(execute: Execute, inputs: dict[str, Any], work_dir: Path) -> None:
    record = execute(lists_models, inputs, containers=ContainerOptions(allow_host_commands=True))
    assert record["state"] == "SUCCEEDED", record["error"]
    assert found(inputs) == EVERYWHERE
    assert "with (secret removed)\n" in texts(work_dir)
    assert "after (secret removed)\n" in texts(work_dir)


def test_all_steps_of_a_server_s_run_and_its_custom_jobs_reach_it(
    compiled: Compile, inputs: dict[str, Any], work_dir: Path
) -> None:
    spec = json.loads(compiled(lists_models).read_text())
    with Server(work_dir, "--allow-host-commands") as server:
        config = {"parameterValues": inputs, "gcsOutputDirectory": str(work_dir)}
        body = {"displayName": "j", "pipelineSpec": spec.get("pipelineSpec", spec), "runtimeConfig": config}
        created = server.call("POST", "pipelineJobs", body)
        assert created.ok, created.text
        path = f"pipelineJobs/{created.json()['name'].rpartition('/')[2]}"
        wait_until(lambda: server.call("GET", path).json()["state"].endswith(("SUCCEEDED", "FAILED")))
        assert server.call("GET", path).json()["state"] == "PIPELINE_STATE_SUCCEEDED", server.text
        assert found(inputs) == EVERYWHERE
        (Path(inputs["folder"]) / "replica").unlink()
        job = server.call(
            "POST", "customJobs", {"displayName": "j", "jobSpec": {"workerPoolSpecs": inputs["pools"]}}
        ).json()
        path = f"customJobs/{job['name'].rpartition('/')[2]}"
        wait_until(lambda: server.call("GET", path).json()["state"].endswith(("SUCCEEDED", "FAILED")))
        assert server.call("GET", path).json()["state"] == "JOB_STATE_SUCCEEDED", server.text
    assert found(inputs)["replica"] == ["pets"]
    assert "with (secret removed)\n" in texts(work_dir)


def test_a_command_in_the_sandbox_reaches_it_with_the_network_only(
    execute: Execute, inputs: dict[str, Any], work_dir: Path
) -> None:
    if problem := Choice().how.problem:
        pytest.skip(problem)
    del inputs["pools"]
    record = execute(in_sandbox, inputs, containers=ContainerOptions(allow_network=True))
    assert record["state"] == "SUCCEEDED", texts(work_dir)
    assert found(inputs) == {"command": ["pets"]}
    assert "with (secret removed)\n" in texts(work_dir)
    record = execute(in_sandbox, inputs, containers=ContainerOptions(), use_cache=False)
    assert record["state"] == "FAILED"
    assert "URLError" in texts(work_dir)
