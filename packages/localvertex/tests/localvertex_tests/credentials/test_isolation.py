"""No step and no replica finds the user's credentials, unless the user passes them on."""

import importlib.util
import json
import os
from pathlib import Path
from typing import Any

import pytest
from google_cloud_pipeline_components.v1.custom_job import CustomTrainingJobOp
from kfp import dsl
from localvertex_tests.credentials.conftest import TOKEN, Metadata

from localvertex.containers.options import ContainerOptions
from localvertex.credentials import isolation
from vertex_testing.cloud_storage.server import CloudStorage
from vertex_testing.runs import STEP, Execute
from vertex_testing.server import Server, wait_until

SHOW = """\
import json, os, sys, time, urllib.error, urllib.request
name = sys.argv[1]
names = ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_API_KEY", "HF_TOKEN", "CLOUDSDK_AUTH_ACCESS_TOKEN",
         "GOOGLE_AUTH_TOKEN_FOR_TESTING", "GCE_METADATA_ROOT")
found = {"variables": [each for each in names if each in os.environ], "config": os.environ["CLOUDSDK_CONFIG"]}
found["files"] = os.listdir(found["config"])
for variable in ("GCE_METADATA_HOST", "GCE_METADATA_IP"):
    url = f"http://{os.environ[variable]}/computeMetadata/v1/instance/service-accounts/default/token"
    try:
        request = urllib.request.Request(url, headers={"Metadata-Flavor": "Google"})
        found[variable] = urllib.request.urlopen(request).read().decode()
    except urllib.error.HTTPError as error:
        found[variable] = error.code
try:
    import google.auth
    local = getattr(google.auth.default()[0], "token", None)
    found["local"] = local if local == "localvertex-step" else None
    # What google.auth itself would find.
    find = getattr(google.auth.default, "__wrapped__", google.auth.default)
    found["google.auth"] = type(find()[0]).__name__
except Exception as error:
    found["google.auth"] = type(error).__name__
with open(name + ".part", "w") as file:
    json.dump(found, file)
os.rename(name + ".part", name)
while len(sys.argv) > 2 and not os.path.exists(sys.argv[2]):
    time.sleep(0.05)
"""
ON_HOST = ContainerOptions(allow_host_commands=True)
"""The sandbox of container commands hides more, see tests/localvertex_tests/containers."""
NOTHING = {
    "variables": [],
    "files": [],
    "GCE_METADATA_HOST": 404,
    "GCE_METADATA_IP": 404,
    "local": "localvertex-step",
    "google.auth": "DefaultCredentialsError",
}
"""What a process without credentials finds."""


@dsl.component(**STEP)
def python_step(program: str, path: str) -> None:
    import sys

    sys.argv = ["program", path]
    exec(program, {"__name__": "program"})


@dsl.container_component
def command_step(program: str, path: str) -> dsl.ContainerSpec:
    return dsl.ContainerSpec(image="python:3.11", command=["python3", "-c", program, path])


@dsl.pipeline(name="shows")
def shows(program: str, folder: str, pools: list) -> None:
    python_step(program=program, path=f"{folder}/forked")
    python_step(program=program, path=f"{folder}/executed").set_env_variable("A", "b")
    sly = python_step(program=program, path=f"{folder}/sly")
    sly.set_env_variable("GOOGLE_APPLICATION_CREDENTIALS", os.path.expanduser("~/key.json"))
    sly.set_env_variable("CLOUDSDK_CONFIG", os.path.expanduser("~/.config/gcloud"))
    sly.set_env_variable("GCE_METADATA_HOST", "169.254.169.254")
    sly.set_env_variable("GCE_METADATA_IP", "169.254.169.254")
    command_step(program=program, path=f"{folder}/command")
    CustomTrainingJobOp(display_name="j", worker_pool_specs=pools)


def pools(folder: Path) -> list[dict[str, Any]]:
    """Build two pools; the second declares credentials of its own, and the first waits for it."""
    env = [
        {"name": "GOOGLE_APPLICATION_CREDENTIALS", "value": os.path.expanduser("~/key.json")},
        {"name": "CLOUDSDK_CONFIG", "value": os.path.expanduser("~/.config/gcloud")},
        {"name": "GCE_METADATA_HOST", "value": "169.254.169.254"},
    ]
    return [
        {
            "machine_spec": {"machine_type": "n1-standard-4"},
            "replica_count": 1,
            "container_spec": {
                "image_uri": "python:3.11",
                "command": ["python3", "-c", SHOW, *(str(folder / f"replica-{each}") for each in names)],
                "env": env[: number * 3],
            },
        }
        for number, names in enumerate([(0, 1), (1,)])
    ]


@pytest.mark.usefixtures("with_planted")
def test_no_step_and_no_replica_finds_credentials(execute: Execute, tmp_path: Path, metadata: Metadata) -> None:
    inputs = {"program": SHOW, "folder": str(tmp_path), "pools": pools(tmp_path)}
    record = execute(shows, inputs, containers=ON_HOST)
    assert record["state"] == "SUCCEEDED", record["error"]
    for name in ("forked", "executed", "sly", "command", "replica-0", "replica-1"):
        found = json.loads((tmp_path / name).read_text())
        config = found.pop("config")
        assert (name, found) == (name, NOTHING)
        assert not os.path.exists(config), "the empty folder is removed with its run"
    assert metadata.paths == []


@dsl.pipeline(name="plain")
def plain(program: str, folder: str) -> None:
    python_step(program=program, path=f"{folder}/forked")
    python_step(program=program, path=f"{folder}/executed").set_env_variable("A", "b")
    command_step(program=program, path=f"{folder}/command")


def test_the_planted_credentials_would_be_found(
    execute: Execute, tmp_path: Path, metadata: Metadata, with_planted: dict[str, str]
) -> None:
    record = execute(plain, {"program": SHOW, "folder": str(tmp_path)}, with_credentials=True, containers=ON_HOST)
    assert record["state"] == "SUCCEEDED", record["error"]
    for name in ("forked", "executed", "command"):
        found = json.loads((tmp_path / name).read_text())
        assert len(found["variables"]) == 6, name
        assert (found["google.auth"], found["local"]) == ("Credentials", None)
        assert TOKEN in found["GCE_METADATA_HOST"]
        assert found["config"] == with_planted["CLOUDSDK_CONFIG"]
    assert metadata.paths


def test_google_auth_finds_nothing_in_home_alone(
    execute: Execute, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_planted: dict[str, str]
) -> None:
    for name in with_planted.keys() - {"HOME"}:
        monkeypatch.delenv(name)

    @dsl.pipeline(name="home")
    def home(program: str, path: str) -> None:
        python_step(program=program, path=path)

    assert execute(home, {"program": SHOW, "path": str(tmp_path / "found")})["state"] == "SUCCEEDED"
    assert json.loads((tmp_path / "found").read_text())["google.auth"] == "DefaultCredentialsError"


@pytest.mark.usefixtures("with_planted")
def test_replicas_of_the_server_find_no_credentials(tmp_path: Path, metadata: Metadata) -> None:
    with Server(tmp_path / "runs") as server:
        job = {"displayName": "j", "jobSpec": {"workerPoolSpecs": pools(tmp_path)}}
        name = server.call("POST", "customJobs", job).json()["name"].rpartition("/")[2]
        wait_until(lambda: "endTime" in server.call("GET", f"customJobs/{name}").json())
    for number in (0, 1):
        found = json.loads((tmp_path / f"replica-{number}").read_text())
        del found["config"]
        assert found == NOTHING
    assert metadata.paths == []


needs_tensorflow = pytest.mark.skipif(not importlib.util.find_spec("tensorflow"), reason="needs TensorFlow")

READ = """\
import os, sys
import tensorflow as tf
with open(sys.argv[1], "w") as file:
    try:
        file.write(str(tf.io.gfile.exists("gs://bucket/object")))
    except tf.errors.OpError as error:
        file.write(type(error).__name__)
"""


@dsl.pipeline(name="reads")
def reads(program: str, path: str) -> None:
    python_step(program=program, path=path)


@needs_tensorflow
@pytest.mark.slow
@pytest.mark.parametrize(
    "place",
    [
        "HOME",
        pytest.param("GCE_METADATA_HOST", marks=pytest.mark.soak),
        pytest.param("CLOUDSDK_CONFIG", marks=pytest.mark.soak),
        pytest.param("GOOGLE_APPLICATION_CREDENTIALS", marks=pytest.mark.soak),
    ],
)
def test_tensorflow_reads_no_bucket_with_the_users_credentials(
    place: str,
    execute: Execute,
    tmp_path: Path,
    cloud_storage: CloudStorage,
    monkeypatch: pytest.MonkeyPatch,
    planted: dict[str, str],
    metadata: Metadata,
) -> None:
    redirected = {name: cloud_storage.proxy[name] for name in ("https_proxy", "no_proxy", "CURL_CA_BUNDLE")}
    nowhere = dict.fromkeys(("HOME", "CLOUDSDK_CONFIG"), str(tmp_path / "empty"))
    if place == "HOME":
        del nowhere["CLOUDSDK_CONFIG"]
    for name in (*planted, "NO_GCE_CHECK"):
        monkeypatch.delenv(name, raising=False)
    for name, value in (redirected | nowhere | {place: planted[place]}).items():
        monkeypatch.setenv(name, value)
    asked = {}
    for with_credentials in (False, True):
        cloud_storage.faults.requests.clear()
        values = {"program": READ, "path": str(tmp_path / "read")}
        record = execute(reads, values, with_credentials=with_credentials, use_cache=False)
        assert record["state"] == "SUCCEEDED", record["error"]
        tokens = [each.target for each in cloud_storage.faults.requests if "oauth2" in each.target]
        asked[with_credentials] = bool(tokens or metadata.paths)
    assert asked == {False: False, True: True}, "TensorFlow asks for a token only where it finds credentials"


@pytest.mark.slow
@needs_tensorflow
def test_tensorflow_gets_no_token_from_a_variable(
    execute: Execute, tmp_path: Path, cloud_storage: CloudStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in cloud_storage.proxy.items():
        monkeypatch.setenv(name, value)
    assert execute(reads, {"program": READ, "path": str(tmp_path / "read")})["state"] == "SUCCEEDED"
    assert (tmp_path / "read").read_text() not in ("True", "False"), "the server answers only with a token"


@pytest.mark.slow
@needs_tensorflow
def test_an_emulator_on_this_machine_needs_no_credentials(
    execute: Execute, tmp_path: Path, cloud_storage: CloudStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    variables = cloud_storage.environment | {"STORAGE_EMULATOR_HOST": "http://127.0.0.1:9"}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert execute(reads, {"program": READ, "path": str(tmp_path / "read")})["state"] == "SUCCEEDED"
    assert (tmp_path / "read").read_text() in ("True", "False")


@pytest.mark.parametrize(
    "elsewhere",
    [
        {"STORAGE_EMULATOR_HOST": "https://storage.googleapis.com"},
        {"STORAGE_EMULATOR_HOST": "http://127.0.0.1.example.org"},
        {"https_proxy": "http://proxy.example.org:3128"},
    ],
)
def test_a_token_is_kept_only_for_an_emulator_on_this_machine(elsewhere: dict[str, str]) -> None:
    local = {"STORAGE_EMULATOR_HOST": "http://localhost:4443", "https_proxy": "http://127.0.0.1:1", "https": ""}
    credentials = isolation.NoCredentials()
    try:
        for variables, is_kept in ((local, True), (local | elsewhere, False)):
            env = credentials.environment(variables | {"GOOGLE_AUTH_TOKEN_FOR_TESTING": "token"})
            assert ("GOOGLE_AUTH_TOKEN_FOR_TESTING" in env) == is_kept
    finally:
        credentials.close()


VARIABLES = "import json, os; json.dump(dict(os.environ), open(os.environ['SEEN'], 'w'))"


@dsl.pipeline(name="metadata")
def asks(pools: list) -> None:
    CustomTrainingJobOp(display_name="j", worker_pool_specs=pools)


@pytest.mark.parametrize("with_credentials", [False, True])
def test_a_replica_with_credentials_finds_the_metadata_server_of_its_machine(
    execute: Execute, tmp_path: Path, metadata: Metadata, monkeypatch: pytest.MonkeyPatch, with_credentials: bool
) -> None:
    monkeypatch.setenv("GCE_METADATA_HOST", metadata.address)
    monkeypatch.delenv("NO_GCE_CHECK", raising=False)
    container = {"image_uri": "any", "command": ["python3", "-c", VARIABLES]}
    container["env"] = [{"name": "SEEN", "value": str(tmp_path / "seen")}]
    pool = {"machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 1, "container_spec": container}
    record = execute(asks, {"pools": [pool]}, with_credentials=with_credentials)
    assert record["state"] == "SUCCEEDED", record["error"]
    seen = json.loads((tmp_path / "seen").read_text())
    assert (seen["GCE_METADATA_HOST"] == metadata.address) == with_credentials
    assert ("NO_GCE_CHECK" in seen) != with_credentials
