"""What steps and replicas cannot read or write behind the mask, and what they do as without it."""

import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google_cloud_pipeline_components.v1.custom_job import CustomTrainingJobOp
from kfp import dsl

from localvertex.processes.masks import secret_places
from localvertex.processes.masks.mask import Mask
from localvertex.store import registry
from localvertex.store.model_versions import ModelVersions
from localvertex.values.configuration import Configuration
from vertex_testing.runs import STEP, Command, Compile, Execute, FindTask

PROGRAM = Path(__file__).with_name("intruder.py").read_text()

SECRETS = (
    ".ssh/id_rsa",
    ".config/gcloud/credentials.db",
    ".netrc",
    ".aws/credentials",
    ".docker/config.json",
    ".bash_history",
    ".python_history",
    ".cache/huggingface/token",
    ".kaggle/kaggle.json",
    ".local/share/keyrings/login.keyring",
    ".config/google-chrome/Default/Cookies",
)


@dsl.component(**STEP)
def intrude(program: str, target: str) -> str:
    import json

    space: dict = {"__name__": "intruder"}
    exec(program, space)
    return json.dumps(space["attempts"](json.loads(target)))


@dsl.pipeline(name="step-intrudes")
def step_intrudes(program: str, target: str) -> str:
    return intrude(program=program, target=target).output


@dsl.pipeline(name="replica-intrudes")
def replica_intrudes(pools: list) -> None:
    CustomTrainingJobOp(display_name="train", worker_pool_specs=pools)


@dsl.component(**STEP)
def write(out: dsl.Output[dsl.Dataset]) -> None:
    from pathlib import Path

    Path(out.path).mkdir()
    Path(out.path, "rows").write_text("first")


@dsl.component(**STEP)
def change(data: dsl.Input[dsl.Dataset], root: str) -> str:
    import os
    from pathlib import Path

    found = Path(data.path, "rows").read_text()
    Path(data.path, "rows").write_text("second")
    Path(root, "new.txt").write_text("new")
    os.makedirs(f"{root}/training/deep", exist_ok=True)
    return found


@dsl.pipeline(name="changes")
def changes() -> str:
    return change(data=write().outputs["out"], root=dsl.PIPELINE_ROOT_PLACEHOLDER).set_caching_options(False).output


@dsl.component(**STEP)
def look(place: str) -> str:
    import os

    return str(os.path.exists(place))


@dsl.pipeline(name="looks")
def looks(place: str) -> str:
    return look(place=place).output


@dsl.component(**STEP)
def link(place: str, out: dsl.OutputPath(str)) -> None:
    import os

    os.symlink(place.removeprefix("to "), out)


@dsl.pipeline(name="links")
def links(place: str) -> None:
    look(place=link(place=place).outputs["out"])


def plant(folder: Path, work_dir: Path) -> dict[str, Any]:
    """Write everything that must not be found."""
    home = folder / "home"
    others = (
        "api/token",
        "other/run.json",
        "other/step/log.txt",
        ".localvertex/cache/key",
        "models/m/1/files/model.txt",
    )
    for path in (folder / "key.json", *(home / each for each in SECRETS), *(work_dir / each for each in others)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("planted")
    return {
        "secrets": [*SECRETS, ".ssh", ".config/gcloud", ".aws", ".docker", ".local/share/keyrings"],
        "home": str(home),
        "work_dir": str(work_dir),
        "run": "r",
        "key": str(folder / "key.json"),
        "agent": str(folder / "agent.sock"),
    }


@pytest.fixture
def target(tmp_path: Path, work_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """Plant everything, with a process and an agent of the user."""
    found = plant(tmp_path, work_dir)
    monkeypatch.setenv("HOME", found["home"])
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", found["key"])
    monkeypatch.setenv("SSH_AUTH_SOCK", found["agent"])
    ignore = "import signal, time; signal.signal(signal.SIGUSR1, signal.SIG_IGN); print(flush=True); time.sleep(600)"
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_UNIX) as agent,
        subprocess.Popen([sys.executable, "-c", ignore], stdout=subprocess.PIPE) as other,
    ):
        assert other.stdout is not None
        other.stdout.readline()
        agent.bind(found["agent"])
        agent.listen()
        yield found | {"port": server.getsockname()[1], "pid": other.pid}
        other.send_signal(signal.SIGKILL)


def check(found: dict[str, Any], folder: Path, work_dir: Path) -> None:
    """Nothing planted was found or changed, and everything else works."""
    works = {
        "own model": "planted",
        "cache of the home folder": "written",
        "shared": "written",
        "new folder": None,
        "new file": "written",
        "own folder": "written",
        "this machine": "connected",
        "shared memory": "written",
        "remove": None,
        "terminal": "opened",
    }
    assert {name: found.pop(name) for name in works} == works
    # What is written there is lost.
    lost = {"new key", "new token", "new record of another run", "own record", "model"}
    for name in lost:
        assert found.pop(name) in ("written", "OSError", "FileNotFoundError", "PermissionError", "IsADirectoryError")
    nothing = (False, "", [], *(name for name in ("FileNotFoundError", "PermissionError", "ProcessLookupError")))
    refused = ("OSError", "NotADirectoryError", "ConnectionRefusedError", "IsADirectoryError", "FileExistsError")
    reached = {name: value for name, value in found.items() if value not in (*nothing, *refused)}
    assert reached == {}
    assert len(found) > 20
    assert "planted" not in json.dumps(found)
    assert not (folder / "home" / ".ssh" / "authorized_keys").exists()
    planted = ("api/token", "other/run.json", "models/m/1/files/model.txt")
    assert {(work_dir / each).read_text() for each in planted} == {"planted"}
    assert json.loads((work_dir / "r" / "run.json").read_text())["run_id"] == "r"
    assert (work_dir / "training" / "checkpoint").read_text() == "intruder"
    assert (work_dir / "mine" / "deep" / "file").read_text() == "intruder"
    assert not any((work_dir / ".localvertex" / "masks").iterdir())


@pytest.mark.usefixtures("mask")
def test_a_step_finds_and_changes_nothing(
    execute: Execute, task: FindTask, target: dict[str, Any], tmp_path: Path, work_dir: Path
) -> None:
    record = execute(step_intrudes, {"program": PROGRAM, "target": json.dumps(target)}, run_id="r")
    assert record["state"] == "SUCCEEDED", record["error"]
    check(json.loads(task(record, "intrude")["outputs"]["parameters"]["Output"]), tmp_path, work_dir)


@pytest.mark.usefixtures("mask")
def test_a_replica_finds_and_changes_nothing(
    execute: Execute, target: dict[str, Any], tmp_path: Path, work_dir: Path
) -> None:
    record = execute(replica_intrudes, {"pools": pools(target)}, run_id="r")
    assert record["state"] == "SUCCEEDED", record["error"]
    check(json.loads(next(work_dir.glob("r/*/found.json")).read_text()), tmp_path, work_dir)


def pools(target: dict[str, Any]) -> list[dict[str, Any]]:
    container = {
        "image_uri": "gcr.io/x/y:1",
        "command": ["python", "-c", PROGRAM],
        "args": ["found.json", json.dumps(target)],
    }
    return [{"machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 1, "container_spec": container}]


@pytest.mark.usefixtures("mask")
@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="only root runs as another user")
def test_a_step_of_an_ordinary_user_finds_nothing_either(compiled: Compile, target: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder, work_dir = Path(name), Path(name, "runs")
        mine = target | plant(folder, work_dir)
        shutil.copy(compiled(step_intrudes), folder / "pipeline.yaml")
        (folder / "parameters.json").write_text(json.dumps({"program": PROGRAM, "target": json.dumps(mine)}))
        folder.chmod(0o755)
        for path in (folder, *folder.rglob("*")):
            os.chown(path, 65534, 65534)
        # This Python may be in the home folder of root.
        python = f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"
        words = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", python]
        options = ["run", "pipeline.yaml", "--run-id", "r", "--parameter-file", "parameters.json"]
        env = os.environ | {"HOME": mine["home"], "GOOGLE_APPLICATION_CREDENTIALS": mine["key"]}
        env |= {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONDONTWRITEBYTECODE": "1"}
        if subprocess.run(
            [*words, "-c", "import kfp, localvertex, os; os.stat('runs')"],
            cwd=folder,
            env=env,
            capture_output=True,
            check=False,
        ).returncode:
            pytest.skip("another user cannot use these packages or this folder")
        command = [*words, "-m", "localvertex", *options]
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        record = json.loads((work_dir / "r" / "run.json").read_text())
        check(json.loads(record["tasks"][0]["outputs"]["parameters"]["Output"]), folder, work_dir)


@pytest.mark.usefixtures("mask")
def test_a_secret_that_is_moved_between_two_steps_stays_covered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, first, second = (tmp_path / name for name in ("home", "first", "second"))
    monkeypatch.setenv("HOME", str(home))
    for path in (home, first):
        path.mkdir()
    (home / ".aws").symlink_to(first)
    mask = Mask()
    assert str(first) in mask.cover(["true"], cwd=tmp_path, env={}).words
    # The folder is the same one, at another place.
    first.rename(second)
    (home / ".aws").unlink()
    (home / ".aws").symlink_to(second)
    words = mask.cover(["true"], cwd=tmp_path, env={}).words
    assert str(second) in words
    assert str(first) not in words


def test_without_a_mask_all_of_it_is_found(execute: Execute, task: FindTask, target: dict[str, Any]) -> None:
    inputs = {"program": PROGRAM, "target": json.dumps(target | {"secrets": []})}
    configuration = Configuration(sandbox="none")
    record = execute(step_intrudes, inputs, run_id="r", configuration=configuration)
    found = json.loads(task(record, "intrude")["outputs"]["parameters"]["Output"])
    assert (found["token"], found["key of a variable"]) == ("planted", "planted")
    assert found["agent"] == found["this machine"] == "connected"
    assert found["new token"] == found["new record of another run"] == "written"
    assert record["warnings"] == [each for each in record["warnings"] if "mask" not in each]


def test_a_machine_without_bubblewrap_says_once_what_is_readable(
    compiled: Compile, command: Command, work_dir: Path
) -> None:
    done = command("run", str(compiled(looks)), "--parameter", "place=/", LOCALVERTEX_PORTABLE="1")
    assert done.returncode == 0, done.stderr
    assert len(re.findall("without a mask", done.stdout + done.stderr)) == 1
    record = json.loads(next(work_dir.glob("looks-*/run.json")).read_text())
    assert len([each for each in record["warnings"] if "without a mask" in each]) == 1


def test_inputs_of_the_run_can_be_changed_and_new_files_of_the_work_folder_stay(
    execute: Execute, work_dir: Path
) -> None:
    record = execute(changes, run_id="r")
    assert record["state"] == "SUCCEEDED", record["error"]
    assert (work_dir / "r" / "write" / "out" / "rows").read_text() == "second"
    assert (work_dir / "new.txt").read_text() == "new"
    assert (work_dir / "training" / "deep").is_dir()


def test_outputs_of_another_run_are_found_by_their_names(execute: Execute, task: FindTask, work_dir: Path) -> None:
    execute(changes, run_id="r")
    # Taken from the cache: the path is in the first run.
    record = execute(changes, run_id="s")
    assert (record["state"], task(record, "write")["state"]) == ("SUCCEEDED", "SKIPPED")


@pytest.mark.usefixtures("mask")
@pytest.mark.parametrize("name", ["home/.netrc", "runs/api/token"])
def test_localvertex_follows_no_link_to_a_secret(
    name: str, execute: Execute, target: dict[str, Any], tmp_path: Path
) -> None:
    record = execute(links, {"place": f"to {tmp_path / name}"}, run_id="r")
    assert record["state"] == "FAILED"
    assert "planted" not in json.dumps(record)


def test_what_the_user_gives_is_shown(execute: Execute, task: FindTask, target: dict[str, Any], tmp_path: Path) -> None:
    given = str(tmp_path / "home" / ".kaggle" / "kaggle.json")
    record = execute(looks, {"place": given})
    assert task(record, "look")["outputs"]["parameters"]["Output"] == "True"
    record = execute(looks, {"place": f"{target['home']}/.netrc"}, with_credentials=True)
    assert task(record, "look")["outputs"]["parameters"]["Output"] == "True"


def test_the_page_lists_every_place(package: Path) -> None:
    page = (package / "docs" / "access.md").read_text().partition("What a step can reach")[2]
    listed = {each.removeprefix("~/") for each in re.findall("`([^`]+)`", page)}
    tables = (*secret_places.HOME.values(), secret_places.VARIABLES, secret_places.SOCKETS, secret_places.SYSTEM)
    assert {name for text in tables for name in text.split()} - listed == set()


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone reads them")
def test_the_only_files_of_root_are_found(tmp_path: Path) -> None:
    for name, mode in (("open", 0o644), ("closed", 0o640), ("folder/inner", 0o600)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch(mode)
        (tmp_path / name).chmod(mode)
    tmp_path.chmod(tmp_path.stat().st_mode | stat.S_IXOTH)
    found = secret_places.only_roots(str(tmp_path))
    assert found == (str(tmp_path / "closed"), str(tmp_path / "folder" / "inner"))


@dsl.component(**STEP)
def hide(place: str, how: str, out: dsl.Output[dsl.Model]) -> str:
    import os

    folder = f"{place}/training/model"
    os.makedirs(folder)
    os.symlink("../../api/token", f"{folder}/weights")
    paths = {"link": folder, "path": f"{place}/api/token", "relative": "../../api/token"}
    out.custom_path = paths[how]
    return folder


@dsl.component(**STEP)
def read(model: dsl.Input[dsl.Model]) -> str:
    import subprocess

    return subprocess.run(["grep", "-r", "", model.path], capture_output=True, text=True, check=False).stdout


@dsl.pipeline(name="hides")
def hides(place: str, how: str) -> None:
    read(model=hide(place=place, how=how).outputs["out"])


@pytest.mark.usefixtures("mask")
@pytest.mark.parametrize("how", ["link", "path", "relative"])
def test_localvertex_copies_nothing_that_is_hidden(
    how: str, execute: Execute, target: dict[str, Any], work_dir: Path
) -> None:
    record = execute(hides, {"place": str(work_dir), "how": how}, run_id="r")
    assert record["state"] == "FAILED"
    assert "planted" not in json.dumps(record)


@pytest.mark.usefixtures("mask")
def test_the_files_of_a_model_do_not_lead_to_the_token(target: dict[str, Any], work_dir: Path) -> None:
    folder = work_dir / "training" / "model"
    folder.mkdir(parents=True)
    (folder / "weights").symlink_to(work_dir / "api" / "token")
    with pytest.raises(PermissionError):
        registry.add_version(ModelVersions.of(work_dir, "2"), {"display_name": "m", "artifact_uri": str(folder)})
