"""The supervisor: the small process above every command."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import localvertex
from localvertex._base import linux
from localvertex.errors import Cancelled, TaskFailed
from localvertex.processes.processes import MAX_ARGUMENT_BYTES, Processes

SUPERVISOR = Path(localvertex.__file__).parent / "processes" / "supervisor.py"

RunCommand = Callable[..., tuple[int, str]]


@pytest.fixture
def run(tmp_path: Path) -> RunCommand:
    """Run a command under the supervisor; return its exit code and output."""

    def run_(*command: str) -> tuple[int, str]:
        log = tmp_path / "log"
        code = Processes(grace_seconds=1).run(list(command), cwd=tmp_path, env=dict(os.environ), log=log)
        return code, log.read_text()

    return run_


def test_output_is_in_order_and_the_exit_code_is_that_of_the_command(run: RunCommand) -> None:
    code = (
        "import sys; print('one', flush=True); print('two', file=sys.stderr, flush=True); print('three'); sys.exit(7)"
    )
    assert run(sys.executable, "-c", code) == (7, "one\ntwo\nthree\n")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGABRT, signal.SIGSEGV])
def test_a_death_by_signal_is_reported_as_a_container_does(run: RunCommand, number: int) -> None:
    code = f"import os, resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); os.kill(os.getpid(), {int(number)})"
    assert run(sys.executable, "-c", code)[0] == 128 + number


def test_a_missing_program_is_reported_in_the_log(run: RunCommand) -> None:
    code, log = run("no-such-program", "x")
    assert code == 127
    assert log == "no-such-program: No such file or directory\n"


def test_arguments_arrive_as_they_are(run: RunCommand) -> None:
    words = ["", " ", "it's", '"q"', "$HOME", "a\nb", "--", "-x", "ümlaut"]
    assert run(sys.executable, "-c", "import sys; print(sys.argv[1:])", *words)[1] == f"{words}\n"


def test_the_command_reads_nothing_and_gets_ordinary_signal_handling(run: RunCommand) -> None:
    code = (
        "import signal as s, sys; print(repr(sys.stdin.read()), "
        "s.getsignal(s.SIGTERM) is s.SIG_DFL, s.getsignal(s.SIGINT) is s.default_int_handler)"
    )
    assert run(sys.executable, "-c", code)[1] == "'' True True\n"


@pytest.mark.parametrize(
    ("command", "env", "message"),
    [
        (["true", "x" * MAX_ARGUMENT_BYTES], {}, "the system allows 131072; pass large values as artifacts"),
        (["true", "\ud800"], {}, "contains an unpaired surrogate"),
        (["true", "a\0b"], {}, "embedded null byte"),
        (["true"], {"A=B": "c"}, "illegal environment variable name"),
    ],
)
def test_what_cannot_be_started_fails_with_the_reason(
    tmp_path: Path, command: list[str], env: dict[str, str], message: str
) -> None:
    with pytest.raises(TaskFailed, match=message):
        Processes(grace_seconds=1).run(command, cwd=tmp_path, env=env, log=tmp_path / "log")


def test_nothing_starts_after_a_stop(tmp_path: Path) -> None:
    processes = Processes(grace_seconds=1)
    processes.stop()
    with pytest.raises(Cancelled):
        processes.run(["touch", "x"], cwd=tmp_path, env={}, log=tmp_path / "log")
    assert not (tmp_path / "x").exists()


def test_a_signal_reaches_the_running_command(tmp_path: Path) -> None:
    code = "import signal, sys, time; signal.signal(signal.SIGUSR1, lambda *_: sys.exit(9)); "
    command = [sys.executable, "-c", code + "print('up', flush=True); time.sleep(60)"]
    log = tmp_path / "log"
    process = Processes(grace_seconds=1).start(command, cwd=tmp_path, env=dict(os.environ), log=log)
    while not log.exists() or not log.read_text():
        time.sleep(0.01)
    process.signal(signal.SIGUSR1)
    assert process.wait() == 9


SLOW_CHILD = """
import _signal, os, runpy, sys, time

def delayed(owner, name, seconds, is_in_child):
    original, own = getattr(owner, name), os.getpid()
    def slow(*arguments):
        if (os.getpid() != own) == is_in_child:
            time.sleep(seconds)
        return original(*arguments)
    setattr(owner, name, slow)

delayed({"os": os, "_signal": _signal}[sys.argv[1]], sys.argv[2], 0.2, True)
delayed(os, "getpgid", 0.4, False)
file = sys.argv[3]
del sys.argv[:3]
runpy.run_path(file, run_name="__main__")
"""
"""The supervisor, on a machine that is slow to run a new process: MODULE FUNCTION FILE, and its arguments."""


@pytest.mark.parametrize(
    ("where", "number"),
    [
        # Its group would exist after the signal to the group, and before the signals to all outside the group.
        (("os", "setpgid"), signal.SIGKILL),
        # It would ignore what its supervisor ignores.
        (("_signal", "signal"), signal.SIGTERM),
    ],
)
def test_a_signal_reaches_a_command_that_has_just_been_forked(where: tuple[str, str], number: int) -> None:
    own_end, other_end = socket.socketpair()
    with own_end, other_end:
        own_end.send(bytes([number]))
        words = [sys.executable, "-I", "-S", "-c", SLOW_CHILD, *where, str(SUPERVISOR), str(other_end.fileno())]
        process = subprocess.Popen([*words, "1", "0", "sleep", "60"], pass_fds=[other_end.fileno()])
        assert process.wait() == 128 + number


def test_a_program_in_a_shell_has_its_grace_time_although_the_shell_ends_at_once(tmp_path: Path) -> None:
    """kfp starts each step through a shell, which does not replace itself."""
    code = (
        "import signal, sys, time\n"
        "def end(*_): time.sleep(1); print('saved', flush=True); sys.exit()\n"
        "signal.signal(signal.SIGTERM, end); print('up', flush=True); time.sleep(60)"
    )
    log = tmp_path / "log"
    command = ["sh", "-c", '"$@"; true', "sh", sys.executable, "-c", code]
    process = Processes(grace_seconds=30).start(command, cwd=tmp_path, env=dict(os.environ), log=log)
    while not log.exists() or not log.read_text():
        time.sleep(0.01)
    process.stop()
    assert process.wait() == 128 + signal.SIGTERM
    assert log.read_text() == "up\nsaved\n"


def test_it_needs_only_the_standard_library() -> None:
    reader, writer = os.pipe()
    words = [sys.executable, "-I", "-S", str(SUPERVISOR), str(reader), "1", "0", "true"]
    assert subprocess.run(words, pass_fds=[reader], cwd="/").returncode == 0
    os.close(reader)
    os.close(writer)


@pytest.mark.skipif(not linux.is_used(), reason="only Linux shows processes outside of the group")
@pytest.mark.parametrize(("code", "num_left"), [("", 0), ("killed", 0), ("left", 2)])
def test_processes_that_a_command_leaves_are_counted(tmp_path: Path, code: str, num_left: int) -> None:
    commands = {
        "": ":",
        "killed": "setsid sleep 60 & kill -9 $$",
        "left": "setsid sleep 60 & sleep 60 & exit 0",
    }
    processes = Processes(grace_seconds=1)
    process = processes.start(["sh", "-c", commands[code]], cwd=tmp_path, env=dict(os.environ), log=tmp_path / "log")
    processes.wait(process)
    assert processes.num_left == num_left
