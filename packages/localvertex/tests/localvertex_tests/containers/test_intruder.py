"""A script that tries what a container command must not: in the sandbox nothing of it works, outside all of it does."""

import json
import os
import signal
import site
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from kfp import dsl

from localvertex.containers import sandbox
from localvertex.containers.options import ContainerOptions
from vertex_testing.runs import Execute, FindTask

PROGRAM = Path(__file__).with_name("intruder.py").read_text()
VARIABLES = ("MY_SESSION", "SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "HF_TOKEN", "GOOGLE_APPLICATION_CREDENTIALS")


@dsl.container_component
def intrude(program: str, target: str, found: dsl.OutputPath(str)) -> dsl.ContainerSpec:
    return dsl.ContainerSpec(image="python:3.11", command=["python3", "-c", program, found, target])


@dsl.pipeline(name="intrudes")
def intrudes(program: str, target: str) -> None:
    intrude(program=program, target=target)


Intrude = Callable[..., dict[str, Any]]


@pytest.fixture
def target(tmp_path: Path, work_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """Plant all that must not be found."""
    home = tmp_path / "home"
    for name in (".ssh/id_rsa", ".config/gcloud/credentials.db"):
        (home / name).parent.mkdir(parents=True)
        (home / name).write_text("planted")
    (work_dir / "other").mkdir(parents=True)
    (work_dir / "other" / "secret.txt").write_text("planted")
    (work_dir / ".localvertex" / "cache").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    for name in VARIABLES:
        monkeypatch.setenv(name, f"/planted/{name}")
    agent, temporary = tmp_path / "agent.sock", os.path.join(tempfile.gettempdir(), f"intruder-{uuid4().hex}")
    ignore = "import signal, time; signal.signal(signal.SIGUSR1, signal.SIG_IGN); print(flush=True); time.sleep(600)"
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_UNIX) as listener,
        subprocess.Popen([sys.executable, "-c", ignore], stdout=subprocess.PIPE) as other,
    ):
        assert other.stdout is not None
        other.stdout.readline()
        listener.bind(str(agent))
        listener.listen()
        yield {
            "work_dir": str(work_dir),
            "run": "r",
            "outside": str(tmp_path / "outside.txt"),
            "packages": site.getsitepackages()[0],
            "port": server.getsockname()[1],
            "agent": str(agent),
            "pid": other.pid,
            "variables": VARIABLES,
            "temporary": temporary,
        }
        Path(temporary).unlink(missing_ok=True)
        other.send_signal(signal.SIGKILL)


@pytest.fixture
def result(execute: Execute, task: FindTask, target: dict[str, Any]) -> Intrude:
    """Run the intruder and return what it has found."""

    def run(program: str = PROGRAM, **options: bool) -> dict[str, Any]:
        inputs = {"program": program, "target": json.dumps(target)}
        record = execute(intrudes, inputs, run_id="r", containers=ContainerOptions(**options))
        assert record["state"] == "SUCCEEDED", record["error"]
        found: dict[str, Any] = json.loads(task(record, "intrude")["outputs"]["parameters"]["found"])
        return found

    return run


@pytest.mark.usefixtures("sandbox")
def test_the_sandbox_shows_nothing_and_changes_nothing(result: Intrude, tmp_path: Path, target: dict[str, Any]) -> None:
    found = result()
    assert found.pop("number of processes") < 6
    # A write to the temporary files of this machine ends in those of the sandbox.
    del found["outside"]
    assert not (tmp_path / "outside.txt").exists()
    assert found == {
        "ssh key": "FileNotFoundError",
        "gcloud": "FileNotFoundError",
        "home": [],
        "other run": "FileNotFoundError",
        "cache": "FileNotFoundError",
        "record": "OSError",
        "etc": "OSError",
        "usr": "OSError",
        "packages": "OSError",
        "metadata": "OSError",
        "this machine": "ConnectionRefusedError",
        "agent": "FileNotFoundError",
        "process": "ProcessLookupError",
        "variables of others": "FileNotFoundError",
        "own loopback": "connected",
        "variables": [],
        "own folder": "written",
        "temporary": "written",
        "temporary of the step": "written",
    }
    assert (tmp_path / "runs" / "r" / "intrude" / "own.txt").read_text() == "intruder"
    assert sorted(os.listdir(tmp_path / "home")) == [".config", ".ssh"]
    assert not os.path.exists(target["temporary"])


@pytest.mark.usefixtures("sandbox")
def test_the_network_is_there_only_when_allowed(result: Intrude) -> None:
    found = result(allow_network=True)
    assert (found["this machine"], found["ssh key"]) == ("connected", "FileNotFoundError")


def test_the_planted_things_would_be_found(result: Intrude, target: dict[str, Any]) -> None:
    places = ('"/etc/intruder"', '"/usr/intruder"', 'Path(target["packages"], "intruder.py")')
    harmless = PROGRAM
    for each in places:
        assert each in harmless
        harmless = harmless.replace(each, 'target["outside"]')
    found = result(harmless, allow_host_commands=True)
    assert found["ssh key"] == found["gcloud"] == found["other run"] == "planted"
    assert found["cache"] == found["record"] == found["outside"] == "written"
    assert found["this machine"] == found["agent"] == "connected"
    assert (found["process"], found["variables of others"]) == (None, True)
    assert found["variables"] == ["MY_SESSION", "SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS"]
    assert Path(target["outside"]).read_text() == "intruder"


@dsl.container_component
def install_itself(out: dsl.OutputPath(str)) -> dsl.ContainerSpec:
    script = (
        'mkdir -p /app /home/user && cp "$0" /app/tool && echo kept > /home/user/x\n'
        'cat /app/tool /home/user/x > "$1"\n'
        "head -c 2000000000 /dev/zero > /app/large && exit 3\n"
        "rm /app/large\n"
        "! touch /usr/lib/x && ! touch /etc/x\n"
    )
    return dsl.ContainerSpec(image="debian", command=["sh", "-euc", script, "/etc/hostname", out])


@dsl.pipeline(name="installs-itself")
def installs_itself() -> None:
    install_itself()


@pytest.mark.usefixtures("sandbox")
def test_a_command_may_add_to_its_root_which_is_limited_and_thrown_away(execute: Execute, task: FindTask) -> None:
    record = execute(installs_itself)
    assert record["state"] == "SUCCEEDED", record["error"]
    assert task(record, "install-itself")["outputs"]["parameters"]["out"].endswith("kept\n")
    assert not os.path.exists("/app")
    assert not os.path.exists("/home/user")


def test_a_hidden_folder_that_has_gone_since_it_was_found_stops_no_command(
    monkeypatch: pytest.MonkeyPatch, execute: Execute, target: dict[str, Any]
) -> None:
    """A server looks for them once, and runs for weeks."""
    monkeypatch.setattr(sandbox, "_only_roots", lambda: ("/usr/no-such-folder/of-root",))
    record = execute(intrudes, {"program": "open(__import__('sys').argv[1], 'w').write('{}')", "target": "{}"})
    assert record["state"] == "SUCCEEDED", record["error"]
