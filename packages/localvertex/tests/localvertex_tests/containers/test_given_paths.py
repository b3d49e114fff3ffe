"""What a user gives as a parameter is shown to container commands, unless it shows all files of the user."""

import os
import tempfile
from pathlib import Path

import pytest
from kfp import dsl

import localvertex
from localvertex._base.userinput.errors import UserError
from localvertex.containers.mounts import output_folders
from vertex_testing.runs import Execute, FindTask


@dsl.container_component
def use(script: str, text: str) -> dsl.ContainerSpec:
    return dsl.ContainerSpec(image="alpine", command=["sh", "-ec", 'eval "$0"'], args=[script, text])


@dsl.pipeline(name="uses")
def uses(script: str, text: str) -> None:
    use(script=script, text=text)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "users" / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id_rsa").write_text("planted")
    (home / "data").mkdir()
    (home / "data" / "a").write_text("given")
    monkeypatch.setenv("HOME", str(home))
    return home


@pytest.mark.usefixtures("sandbox")
@pytest.mark.parametrize("text", ["/", "{home}", "{home}/..", "{runs}", "{runs}/..", "/tmp", "/proc", "/run"])
def test_no_parameter_shows_everything(
    execute: Execute, task: FindTask, home: Path, work_dir: Path, tmp_path: Path, text: str
) -> None:
    (work_dir / "other").mkdir(parents=True)
    (work_dir / "other" / "secret").write_text("planted")
    with tempfile.NamedTemporaryFile() as file:
        hidden = f"{home}/.ssh/id_rsa {work_dir}/other/secret {file.name} /proc/{os.getpid()}/environ"
        script = f"for each in {hidden}; do if cat $each; then exit 7; fi; done; echo x > /tmp/x"
        record = execute(uses, {"script": script, "text": text.format(home=home, runs=work_dir)})
    assert task(record, "use")["exit_code"] == 0, record["error"]


@pytest.mark.usefixtures("sandbox")
@pytest.mark.parametrize("text", ["{api}", "{api}/token", "{api}/../api/token", "{api}/customJobs/../token"])
def test_the_token_of_the_endpoint_is_never_shown(execute: Execute, task: FindTask, work_dir: Path, text: str) -> None:
    (work_dir / "api" / "customJobs").mkdir(parents=True)
    (work_dir / "api" / "token").write_text("planted")
    script = f"if cat {work_dir}/api/token; then exit 7; fi; true {work_dir}/api/token"
    record = execute(uses, {"script": script, "text": text.format(api=work_dir / "api")})
    assert task(record, "use")["exit_code"] == 0, record["error"]


@pytest.mark.usefixtures("sandbox")
@pytest.mark.parametrize("text", ["/dev/null", "/dev/stdout", "/proc/self/status"])
def test_devices_stay_those_of_the_sandbox(execute: Execute, text: str) -> None:
    record = execute(uses, {"script": "echo x > /dev/null; echo x > /dev/stdout; cat /proc/self/status", "text": text})
    assert record["state"] == "SUCCEEDED", record["error"]


@pytest.mark.usefixtures("sandbox")
def test_a_folder_in_the_home_directory_is_shown(execute: Execute, home: Path) -> None:
    script = f"test $(cat {home}/data/a) = given; test ! -e {home}/.ssh"
    record = execute(uses, {"script": script, "text": str(home / "data")})
    assert record["state"] == "SUCCEEDED", record["error"]


def test_the_buckets_do_not_contain_the_user(home: Path, work_dir: Path, tmp_path: Path) -> None:
    work_dir.mkdir()
    for root in (home, home.parent, tmp_path, work_dir, Path("/")):
        with pytest.raises(UserError, match=r"--gcs-root .*: this folder contains .*; give a folder"):
            localvertex.Options(work_dir=work_dir, gcs_root=root)


def test_a_job_does_not_write_over_the_registry_or_the_endpoint(tmp_path: Path) -> None:
    for name in ("models", "models/flowers/1/model", "api"):
        base = tmp_path / name
        base.mkdir(parents=True, exist_ok=True)
        found = output_folders(str(base), ("model",), folder=tmp_path / "r" / "step", work_dir=tmp_path, gcs_root=None)
        assert found is None, name
