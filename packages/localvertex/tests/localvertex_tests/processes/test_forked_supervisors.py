"""A command finds, leaves and ends under a forked supervisor exactly what it does under one that was executed."""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import psutil
import pytest

from localvertex._base import linux
from localvertex.processes import forking
from localvertex.processes.forking import ForkServer
from localvertex.processes.masks.mask import Mask
from localvertex.processes.processes import Processes
from vertex_testing.processes import command_line

pytestmark = pytest.mark.skipif(not linux.is_used(), reason="only Linux has forked supervisors")

FIND = """
import json, os, resource, signal, sys
def read(path):
    with open(path) as file:
        return file.read()
status = dict(line.split(":\\t", 1) for line in read("/proc/self/status").splitlines() if ":\\t" in line)
kept = [name for name in status if name.startswith(("Sig", "Cap")) and name != "SigQ"]
limits = [name for name in dir(resource) if name.startswith("RLIMIT_")]
found = {
    "arguments": sys.orig_argv,
    "environment": dict(os.environ),
    "folder": os.getcwd(),
    "descriptors": sorted(os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")[:-1]),
    "status": {name: status[name] for name in (*kept, "Uid", "Gid", "Groups", "NoNewPrivs", "Seccomp", "Umask")},
    "limits": {name: resource.getrlimit(getattr(resource, name)) for name in limits},
    "namespaces": [os.readlink(f"/proc/self/ns/{each}") for each in ("net", "ipc", "uts")],
    "mounts": sorted(line.split()[4] for line in read("/proc/self/mountinfo").splitlines()),
    "process": [os.getpgid(0) == os.getpid(), os.getsid(0) != os.getpgid(0), os.getpriority(os.PRIO_PROCESS, 0)],
    "modules": [name for name in sys.modules if "supervisor" in name or "localvertex" in name],
    "input": sys.stdin.read(),
}
print(json.dumps(found))
with open("supervisor", "w") as file:
    file.write(read(f"/proc/{os.getppid()}/cmdline"))
"""


@pytest.fixture
def server() -> Iterator[ForkServer]:
    with closing(ForkServer({})) as server_:
        yield server_


@pytest.fixture
def start() -> Iterator[Callable[..., Processes]]:
    """Make processes, which are stopped at the end of the test."""
    with ExitStack() as stack:

        def make(mask: Mask | None = None) -> Processes:
            processes_ = Processes(grace_seconds=1, mask=mask)
            stack.callback(processes_.stop)
            return processes_

        yield make


@pytest.fixture(params=["a mask", "none"])
def processes(request: pytest.FixtureRequest, start: Callable[..., Processes], tmp_path: Path) -> Processes:
    """Return the processes of a run with and without a mask."""
    if request.param == "none":
        return start()
    request.getfixturevalue("mask")
    return start(Mask(work_dir=tmp_path))


def run(processes: Processes, server: ForkServer | None, folder: Path, *code: str, **env: str) -> tuple[int, str, int]:
    """Run Python code; return its exit code, its output, and how many processes it has left."""
    folder.mkdir(exist_ok=True)
    log = folder / "log"
    log.unlink(missing_ok=True)
    command = [sys.executable, "-c", *code]
    process = processes.start(command, cwd=folder, env=os.environ | env, log=log, supervisors=server)
    return processes.wait(process), log.read_text(), process.num_left


def test_a_command_finds_the_same_under_both(processes: Processes, server: ForkServer, tmp_path: Path) -> None:
    found: list[dict[str, Any]] = []
    for each in (None, server):
        variables = {"A_VARIABLE": "with ' and \udce4", "LANG": "C"}
        code, text, _ = run(processes, each, tmp_path / "step", FIND, "an ä", **variables)
        assert code == 0
        found.append(json.loads(text))
        assert ("fork_server.py" in (tmp_path / "step" / "supervisor").read_text()) == (each is not None)
    executed, forked = found
    assert {name: each for name, each in forked.items() if each != executed[name]} == {}
    assert [forked["input"], forked["modules"]] == ["", []]


@pytest.mark.parametrize(
    "code",
    [
        "raise SystemExit(7)",
        "import os; print('half', end='', flush=True); os.kill(os.getpid(), 9)",
        "import os, resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); os.abort()",
        "import subprocess; subprocess.Popen(['sleep', '600'], start_new_session=True)",
        "import os; os.execvp('not-a-program', ['not-a-program'])",
    ],
)
def test_a_command_ends_alike_under_both(processes: Processes, server: ForkServer, tmp_path: Path, code: str) -> None:
    executed, forked = (run(processes, each, tmp_path / "step", code) for each in (None, server))
    assert forked == executed


def test_a_program_that_is_not_there_is_reported_alike(
    processes: Processes, server: ForkServer, tmp_path: Path
) -> None:
    found = []
    for name, each in (("a", None), ("b", server)):
        process = processes.start(
            ["not-a-program"], cwd=tmp_path, env=dict(os.environ), log=tmp_path / name, supervisors=each
        )
        found.append((processes.wait(process), (tmp_path / name).read_text()))
    assert found == [(127, "not-a-program: No such file or directory\n")] * 2


def test_the_server_has_no_variable_thread_or_descriptor_of_a_command(
    server: ForkServer, start: Callable[..., Processes], tmp_path: Path
) -> None:
    run(start(), server, tmp_path / "step", "pass", A_SECRET="not for a server")
    process = psutil.Process(server._process.pid)
    assert not [name for name in process.environ() if name not in ("_KFP_RUNTIME", "LC_CTYPE")]
    assert process.num_threads() == 1
    assert [name for name in process.open_files() if "step" in name.path] == []
    assert b"not for a server" not in memory(process.pid)
    server.close()
    assert not process.is_running()


def memory(pid: int) -> bytes:
    """Return all that a process can write to in its memory."""
    parts = []
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb") as file:
        for line in maps:
            area, access = line.split()[:2]
            if access.startswith("rw"):
                start, end = (int(each, 16) for each in area.split("-"))
                file.seek(start)
                parts.append(file.read(end - start))
    return b"".join(parts)


@pytest.mark.parametrize("how", ["killed", "closed"])
def test_a_command_runs_without_a_server_that_has_ended(
    server: ForkServer, start: Callable[..., Processes], tmp_path: Path, how: str
) -> None:
    processes = start()
    assert run(processes, server, tmp_path / "step", "print(1)") == (0, "1\n", 0)
    server._process.kill() if how == "killed" else server.close()
    assert run(processes, server, tmp_path / "step", "print(2)") == (0, "2\n", 0)


@pytest.mark.usefixtures("mask")
def test_no_command_is_forked_whose_process_would_have_other_rights_than_its_mask(
    server: ForkServer, start: Callable[..., Processes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rights = forking.linux.rights
    monkeypatch.setattr(forking.linux, "rights", lambda pid: rights(pid) | {"NoNewPrivs": "0"})
    processes = start(Mask(work_dir=tmp_path))
    assert run(processes, server, tmp_path / "step", FIND)[0] == 0
    assert "supervisor.py" in (tmp_path / "step" / "supervisor").read_text()


def test_a_stop_ends_a_forked_command_and_what_it_started(server: ForkServer, tmp_path: Path) -> None:
    processes = Processes(grace_seconds=30)
    code = "import subprocess, sys; subprocess.run(['sleep', '600'])"
    process = processes.start(
        [sys.executable, "-c", code], cwd=tmp_path, env=dict(os.environ), log=tmp_path / "log", supervisors=server
    )
    every = psutil.Process(process._pid).children(recursive=True)
    assert any("fork_server.py" in word for word in command_line(every[0]))
    processes.stop()
    assert processes.wait(process) == 128 + signal.SIGTERM
    assert psutil.wait_procs(every, timeout=30)[1] == []
