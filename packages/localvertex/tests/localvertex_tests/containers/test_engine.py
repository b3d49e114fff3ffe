"""The command lines of docker and podman, and runs with an engine that notes its calls."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from google_cloud_pipeline_components.v1.custom_job import CustomTrainingJobOp
from kfp import dsl
from localvertex_tests.containers.conftest import install_engine

import localvertex
from localvertex._base.userinput.errors import UserError
from localvertex.containers.call import ContainerCommand, Prepared
from localvertex.containers.engine import Engine
from localvertex.containers.options import ContainerOptions
from vertex_testing.runs import Command, Compile, Execute, FindTask


def call(tmp_path: Path, **changes: Any) -> ContainerCommand:
    """Build a call with every field set."""
    fields: dict[str, Any] = {
        "image": "gcr.io/x/tool:1",
        "command": ["tool", "--flag"],
        "arguments": ["a b", "c"],
        "env": {**os.environ, "MODE": "fast", "HF_TOKEN": "hf_planted", "GCE_METADATA_HOST": "127.0.0.1:9"},
        "declared": frozenset(("MODE", "HF_TOKEN")),
        "folder": tmp_path / "runs" / "r" / "step",
        "temporary": tmp_path / "tmp",
        "work_dir": tmp_path / "runs",
        "readable": (tmp_path / "runs" / "r", tmp_path / "data, more"),
        "writable": (tmp_path / "runs" / "out",),
        "gcs_root": tmp_path / "buckets",
        "gpus": "0,2",
    }
    return ContainerCommand(**fields | changes)


def prepared(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, network: bool = False, **changes: Any
) -> Prepared:
    monkeypatch.setenv("PATH", f"{install_engine(tmp_path / 'engine', name)}{os.pathsep}{os.environ['PATH']}")
    return Engine(ContainerOptions(engine=name, allow_network=network)).prepared(call(tmp_path, **changes))


def test_the_command_line_of_docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USERS_OWN", "x")
    done = prepared("docker", tmp_path, monkeypatch)
    name = done.command[4]
    assert name.startswith("localvertex-")
    run = tmp_path / "runs"
    assert done.command == [
        *(str(tmp_path / "engine" / "docker"), "run", "--rm", "--name", name),
        *("--user", f"{os.getuid()}:{os.getgid()}", "--cap-drop", "ALL"),
        *("--security-opt", "no-new-privileges", "--security-opt", "label=disable", "--init"),
        *("--gpus", '"device=0,2"', "--network", "none"),
        *("--mount", f"type=bind,source={run / 'r'},target={run / 'r'},readonly"),
        *("--mount", f'type=bind,"source={tmp_path}/data, more","target={tmp_path}/data, more",readonly'),
        *("--mount", f"type=bind,source={run / 'r' / 'step'},target={run / 'r' / 'step'}"),
        *("--mount", f"type=bind,source={tmp_path / 'tmp'},target={tmp_path / 'tmp'}"),
        *("--mount", f"type=bind,source={run / 'out'},target={run / 'out'}"),
        *("--mount", f"type=bind,source={tmp_path / 'buckets'},target=/gcs"),
        *("--mount", f"type=bind,source={tmp_path / 'buckets'},target={tmp_path / 'buckets'}"),
        *("--env", "HOME=/tmp", "--env", "MODE=fast", "--env", "HF_TOKEN"),
        *("--env", "GCE_METADATA_HOST=127.0.0.1:9", "--entrypoint", "tool"),
        *("gcr.io/x/tool:1", "--flag", "a b", "c"),
    ]
    assert done.clean_up == [str(tmp_path / "engine" / "docker"), "rm", "--force", name]
    assert done.env["HF_TOKEN"] == "hf_planted", "a secret is not in the list of processes"
    assert "MODE" not in done.env, "no other variable of the pipeline reaches the engine's own program"


def test_the_address_of_a_webhook_is_not_in_the_list_of_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = "https://hooks.example.org/services/planted"
    done = prepared(
        "docker", tmp_path, monkeypatch, env={"TEAM_WEBHOOK": address}, declared=frozenset(["TEAM_WEBHOOK"])
    )
    assert address not in " ".join(done.command)
    assert done.env["TEAM_WEBHOOK"] == address


def test_the_command_line_of_podman(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = prepared("podman", tmp_path, monkeypatch).command
    assert "--init" not in words, "it needs a program that may not be installed"
    assert words[words.index("--stop-timeout") + 1] == "0"
    assert ("--userns" in words) == (os.getuid() != 0)
    assert [words[index + 1] for index, word in enumerate(words) if word == "--device"] == [
        "nvidia.com/gpu=0",
        "nvidia.com/gpu=2",
    ]


@pytest.mark.parametrize(
    ("network", "host_name", "expected"), [(False, "", "none"), (True, "", "bridge"), (True, "workerpool0-0", "host")]
)
def test_the_network_is_none_unless_it_is_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, network: bool, host_name: str, expected: str
) -> None:
    words = prepared("docker", tmp_path, monkeypatch, network=network, host_name=host_name).command
    assert words[words.index("--network") + 1] == expected
    assert ("--add-host" in words) == (expected == "bridge")


def test_no_option_and_no_entry_point_when_the_spec_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changes = {"command": [], "arguments": [], "gpus": "", "gcs_root": None}
    words = prepared("docker", tmp_path, monkeypatch, **changes).command
    assert words[-1] == "gcr.io/x/tool:1"
    assert not {"--gpus", "--entrypoint"} & {*words}


def test_an_engine_that_does_not_answer_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_engine(tmp_path / "engine", "docker", code=1)
    monkeypatch.setenv("PATH", f"{tmp_path / 'engine'}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(UserError, match="--engine docker cannot run containers: exit code 1; start it"):
        Engine(ContainerOptions(engine="docker"))
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(UserError, match="--engine podman: this program is not installed"):
        Engine(ContainerOptions(engine="podman"))


@dsl.container_component
def tool(text: str, out: dsl.OutputPath(str)) -> dsl.ContainerSpec:
    script = 'mkdir -p "$(dirname "$1")"; printf "%s %s" "$0" "$MODE" > "$1"'
    return dsl.ContainerSpec(image="gcr.io/x/tool:1", command=["sh", "-c"], args=[script, text, out])


@dsl.container_component
def entry_point() -> dsl.ContainerSpec:
    return dsl.ContainerSpec(image="gcr.io/x/nameless", command=[], args=[])


@dsl.pipeline(name="tools")
def tools(text: str) -> None:
    step = tool(text=text).set_env_variable("MODE", "fast")
    step.set_cpu_limit("500m").set_memory_limit("1Gi")
    entry_point().after(step)
    pool = {"machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 1}
    image = {"image_uri": "gcr.io/x/trainer", "args": ["--steps", "3"], "command": ["python", "/app/train.py"]}
    CustomTrainingJobOp(display_name="j", worker_pool_specs=[pool | {"container_spec": image}])


def test_steps_and_replicas_run_in_their_images(
    execute: Execute, task: FindTask, docker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "app").mkdir()
    install_engine(docker, "docker")
    data = tmp_path / "data.txt"
    data.touch()
    record = execute(tools, {"text": str(data)}, run_id="r", containers=ContainerOptions(engine="docker"))
    calls = [json.loads(line)["arguments"] for line in (docker / "calls.jsonl").read_text().splitlines()]
    # The fake has no /app/train.py, which only the image would have; it was not refused for that.
    assert task(record, "custom-training-job")["state"] == "FAILED"
    assert task(record, "tool")["outputs"]["parameters"]["out"] == f"{data} fast"
    assert [each[0] for each in calls].count("version") == 1
    step, bare, *_, replica = sorted(
        (each for each in calls if each[0] == "run"),
        key=lambda each: ("--hostname" in each, "--entrypoint" not in each),
    )
    assert not {"--cpus", "--memory"} & {*step}
    assert f"type=bind,source={data},target={data},readonly" in step
    assert bare[-1] == "gcr.io/x/nameless"
    assert replica[replica.index("--hostname") + 1] == "workerpool0-0"
    assert replica[-4:] == ["gcr.io/x/trainer", "/app/train.py", "--steps", "3"]
    assert any(word.startswith("CLUSTER_SPEC=") for word in replica)
    assert record["warnings"][0].startswith("container commands run in their images with docker, without network")


@dsl.pipeline(name="replicas")
def replicas(pools: list) -> None:
    CustomTrainingJobOp(display_name="j", worker_pool_specs=pools)


def test_no_secret_of_a_replica_is_in_the_list_of_processes(execute: Execute, task: FindTask, docker: Path) -> None:
    install_engine(docker, "docker")
    container = {"image_uri": "alpine", "command": ["sh", "-c", 'test "$HF_TOKEN" && echo "$CLUSTER_SPEC" > spec.json']}
    container["env"] = [{"name": "HF_TOKEN", "value": 'hf_"planted'}]
    pool = {"machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 1, "container_spec": container}
    record = execute(replicas, {"pools": [pool]}, containers=ContainerOptions(engine="docker"))
    assert task(record, "custom-training-job")["state"] == "SUCCEEDED", record["error"]
    assert "planted" in (docker / "spec.json").read_text(), "the replica has it"
    calls = [json.loads(line)["arguments"] for line in (docker / "calls.jsonl").read_text().splitlines()]
    assert not [word for call in calls for word in call if "planted" in word]


@dsl.container_component
def unquoted(out: dsl.OutputPath(str)) -> dsl.ContainerSpec:
    script = f"mkdir -p $(dirname {out}); pwd > {out}; echo {out}"
    return dsl.ContainerSpec(image="alpine", command=["sh", "-ec", script])


@dsl.pipeline(name="odd")
def odd() -> None:
    unquoted()


def test_an_unusual_work_directory_is_found_in_a_container(compiled: Compile, docker: Path, tmp_path: Path) -> None:
    install_engine(docker, "docker")
    how = ContainerOptions(engine="docker")
    options = localvertex.Options(work_dir=tmp_path / "w o'dd", containers=how)
    record = localvertex.run(compiled(odd), options=options)
    assert record["state"] == "SUCCEEDED", record["error"]
    calls = [json.loads(line)["arguments"] for line in (docker / "calls.jsonl").read_text().splitlines()]
    (step,) = [each for each in calls if each[0] == "run"]
    mounts = [word for word in step if word.startswith("type=bind")]
    link = step[-1].rpartition(" ")[2].partition("/work/")[0]
    assert [word for word in mounts if word.endswith(f"target={link}")], (link, mounts)


def test_an_engine_and_the_host_exclude_each_other(command: Command, compiled: Compile) -> None:
    compiled(tools)
    done = command("run", "pipeline.json", "--engine", "docker", "--allow-host-commands")
    assert (done.returncode, "exclude each other" in done.stderr) == (2, True)


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(UserError, match="expected docker or podman"):
        localvertex.Options(containers=ContainerOptions(engine="lxc"))
