"""A forked step behaves like one in its own Python process."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest
from kfp import dsl

from localvertex.processes import forked_steps
from vertex_testing.processes import command_line
from vertex_testing.runs import STEP, Compile, Execute, FindTask, ReadLog


@dsl.component(**STEP)
def interpreter(seen: str) -> str:
    """Collect all that a program can find out about its interpreter."""
    import gc
    import json
    import locale
    import os
    import signal
    import sys
    import tempfile
    import threading
    import warnings

    main = sys.modules["__main__"]
    ignored = ["_", "SHLVL", "OLDPWD", "PWD", "TMPDIR"]  # set by a shell in between, or different by nature
    ignored += (each_run := ["CLOUDSDK_CONFIG", "GCE_METADATA_HOST", "GCE_METADATA_IP", "LOCALVERTEX_ENDPOINT"])
    facts = {
        "main": [main.__name__, main.__spec__.name, os.path.basename(main.__file__)],
        "arguments": [os.path.basename(sys.argv[0]), sys.argv[3::2], len(sys.argv)],
        "original arguments": sys.orig_argv[1:3],
        # First the folder of the component's module, added by kfp; then the working directory.
        "path": [
            path.replace(os.environ["TMPDIR"], "TMPDIR").replace(os.getcwd(), "cwd")[:60] for path in sys.path[1:]
        ],
        "executable": [sys.executable, sys.prefix],
        "flags": list(sys.flags),
        "environment": {
            k: v.replace(os.environ["TMPDIR"], "TMPDIR").replace(os.getcwd(), "cwd")
            for k, v in os.environ.items()
            if k not in ignored
        },
        "credentials": [[name in os.environ for name in each_run], os.listdir(os.environ["CLOUDSDK_CONFIG"])],
        "temporary": [tempfile.gettempdir() == os.environ["TMPDIR"], __file__.startswith(tempfile.gettempdir())],
        "signals": [str(signal.getsignal(number)) for number in sorted(signal.valid_signals())],
        "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
        "wakeup": signal.set_wakeup_fd(-1),
        "descriptors": len([fd for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}")]),
        "standard": [
            os.readlink("/proc/self/fd/0"),
            [os.path.basename(os.readlink(f"/proc/self/fd/{n}")) for n in (1, 2)],
        ],
        "streams": [
            [each.name, each.encoding, each.errors, each.line_buffering, each.write_through]
            for each in (sys.stdin, sys.stdout, sys.stderr)
        ],
        "locale": [locale.getlocale(), sys.getfilesystemencoding()],
        "threads": threading.active_count(),
        "collector": [gc.isenabled(), gc.get_threshold()],
        "warnings": [str(each[:1] + each[2:3]) for each in warnings.filters],
        "umask": [os.umask(0o22), os.getpriority(os.PRIO_PROCESS, 0), os.getsid(0) != os.getpgid(0)],
        "modules": sorted(name for name in sys.modules if name.startswith(("kfp", "localvertex", "supervisor"))),
        "terminal": os.isatty(0) or os.isatty(1),
    }
    with open(seen, "w") as file:
        json.dump(facts, file, indent=1)
    return "seen"


@dsl.pipeline(name="interpreter")
def once(seen: str) -> None:
    interpreter(seen=seen)


@pytest.fixture
def forks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the forked steps, filled during a run."""
    names: list[str] = []
    start = forked_steps.ForkServer.start

    def spy(self: Any, program: Any, **options: Any) -> Any:
        process = start(self, program, **options)
        names.extend([program.arguments[-1]] if process else [])
        return process

    monkeypatch.setattr(forked_steps.ForkServer, "start", spy)
    return names


def test_a_forked_step_finds_what_a_step_with_its_own_interpreter_finds(
    execute: Execute, forks: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert execute(once, {"seen": str(tmp_path / "forked")})["state"] == "SUCCEEDED"
    assert forks == ["interpreter"]
    monkeypatch.setattr(forked_steps, "SERVER", os.devnull)  # ends immediately and serves no step
    assert execute(once, {"seen": str(tmp_path / "executed")}, use_cache=False)["state"] == "SUCCEEDED"
    assert forks == ["interpreter"]
    forked, executed = (json.loads((tmp_path / name).read_text()) for name in ("forked", "executed"))
    assert forked == executed


@dsl.component(**STEP)
def leave(how: str) -> None:
    import os
    import signal
    import sys

    print("last line", flush=True)
    if how == "exit":
        sys.exit(7)
    if how == "raise":
        raise ValueError("wrong")
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "abort":
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.abort()
    if how == "background":
        import subprocess

        left = subprocess.Popen(["sleep", "600"], start_new_session=True)
        with open("left", "w") as file:
            file.write(str(left.pid))


@dsl.pipeline(name="leaves")
def leaves(how: str) -> None:
    leave(how=how)


@pytest.mark.parametrize(
    ("how", "code"), [("exit", 7), ("raise", 1), ("kill", 137), ("abort", 134), ("return", 0), ("background", 0)]
)
def test_a_forked_step_ends_as_it_would_by_itself(
    execute: Execute, task: FindTask, log_text: ReadLog, forks: list[str], how: str, code: int
) -> None:
    record = execute(leaves, {"how": how})
    step = task(record, "leave")
    assert forks == ["leave"]
    assert step["exit_code"] == code
    assert "last line" in log_text(record, step)
    if how == "background":
        assert not psutil.pid_exists(int((Path(record["work_dir"]) / record["run_id"] / "leave" / "left").read_text()))


@dsl.component(**STEP)
def random_number() -> float:
    import random

    return random.random()


@dsl.component(**STEP)
def with_variable() -> str:
    import os

    return os.environ["PYTHONHASHSEED"]


@dsl.pipeline(name="several")
def several() -> None:
    random_number()
    random_number()
    with_variable().set_env_variable("PYTHONHASHSEED", "7")


def test_forked_steps_share_no_state_and_a_step_with_variables_is_not_forked(
    execute: Execute, task: FindTask, forks: list[str]
) -> None:
    record = execute(several)
    assert record["state"] == "SUCCEEDED"
    numbers = [task(record, name)["outputs"]["parameters"]["Output"] for name in ("random-number", "random-number-2")]
    assert numbers[0] != numbers[1]
    assert sorted(forks) == ["random_number", "random_number"]


def test_steps_run_without_a_killed_server(
    execute: Execute, task: FindTask, forks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    find = forked_steps.ForkServers.find

    def kill_and_find(self: Any, *arguments: Any) -> Any:
        server = find(self, *arguments)
        server._process.send_signal(signal.SIGKILL)
        server._process.wait()
        return server

    monkeypatch.setattr(forked_steps.ForkServers, "find", kill_and_find)
    record = execute(several)
    assert record["state"] == "SUCCEEDED"
    assert forks == []


def test_no_server_outlives_its_run(execute: Execute, forks: list[str]) -> None:
    execute(several)
    assert forks
    servers = [each for each in psutil.Process().children(recursive=True) if forked_steps.SERVER in command_line(each)]
    assert servers == []


def test_a_relative_import_path_depends_on_the_folder() -> None:
    assert [forked_steps.depends_on_folder(path) for path in ("", "/a:/b", "/a:", ".", "/a:b")] == [
        False,
        False,
        True,
        True,
        True,
    ]


@pytest.mark.parametrize("extra", ["echo first\n", "\nrm -rf /tmp/x"])
def test_only_the_compilers_own_command_counts_as_a_program(extra: str, compiled: Compile) -> None:
    spec = json.loads(compiled(once).read_text())
    command = spec["deploymentSpec"]["executors"]["exec-interpreter"]["container"]["command"]
    assert forked_steps.program_of([*command, "--function_to_execute", "f"]) is not None
    changed = [*command[:2], extra + command[2] if extra.endswith("\n") else command[2] + extra, command[3]]
    assert forked_steps.program_of(changed) is None
