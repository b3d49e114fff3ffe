"""A forked step finds, leaves and ends exactly what one with its own interpreter does."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest
from kfp import dsl

from localvertex.processes import forking
from localvertex.processes.forking import program_of
from localvertex.values.configuration import Configuration
from vertex_testing.processes import command_line, working_in
from vertex_testing.runs import STEP, Compile, Execute, FindTask, ReadLog, StartRun
from vertex_testing.server import wait_until


@pytest.fixture(params=["a mask", "none"])
def configuration(request: pytest.FixtureRequest) -> Configuration:
    """Return the settings of a run with and without a mask."""
    if request.param == "none":
        return Configuration(sandbox="none")
    request.getfixturevalue("mask")
    return Configuration()


@dsl.component(**STEP)
def interpreter() -> dict:
    """Collect all that a program can find out about its interpreter."""
    import os
    import sys

    modules = sorted(sys.modules)
    import gc
    import locale
    import signal
    import tempfile
    import threading
    import warnings

    def plain(text: str) -> str:
        for name, value in (("temporary", os.environ["TMPDIR"]), ("cwd", os.getcwd())):
            text = text.replace(value, name)
        return text

    main, module = sys.modules["__main__"], os.path.dirname(__file__)
    # A shell sets some, depending on which it is. The last are different for each step, or the difference itself.
    ignored = ["_", "SHLVL", "OLDPWD", "PYTHON_NEW"]
    with open("/proc/self/status") as file:
        lines = [line.partition(":") for line in file]
        status = {name: text.strip() for name, _, text in lines}
    # glibc handles two signals itself in a process that has ever had a thread.
    status["SigCgt"] = hex(int(status["SigCgt"], 16) & ~(3 << 31))
    with open("/proc/self/mountinfo") as file:
        mounts = sorted(plain(line.split()[4]) for line in file)
    kept = "Uid Gid Groups NoNewPrivs Seccomp Threads SigBlk SigIgn SigCgt".split()
    return {
        "main": [main.__name__, main.__spec__.name, os.path.basename(main.__file__), sorted(vars(main))],
        "arguments": [plain(sys.argv[0]), sys.argv[1], len(sys.argv), sys.argv[3:5:2], plain(sys.argv[2])[:14]],
        "original": [sys.orig_argv[0], sys.orig_argv[1:4], len(sys.orig_argv)],
        "path": [plain(each) for each in sys.path if each != module],
        "executable": [plain(each) for each in (sys.executable, sys.prefix, sys.exec_prefix, sys.base_prefix)],
        "site": [plain(each) for each in sys.modules["site"].PREFIXES],
        "flags": list(sys.flags),
        "modules": modules,
        "environment": {name: plain(text) for name, text in os.environ.items() if name not in ignored},
        "temporary": [tempfile.gettempdir() == os.environ["TMPDIR"], oct(os.stat(module).st_mode), len(module)],
        "signals": [str(signal.getsignal(number)) for number in sorted(signal.valid_signals())],
        "wakeup": signal.set_wakeup_fd(-1),
        "descriptors": sorted(plain(os.readlink(f"/proc/self/fd/{fd}")) for fd in os.listdir("/proc/self/fd")[:-1]),
        "streams": [
            [each.name, each.encoding, each.errors, each.line_buffering, each.write_through, each.isatty()]
            for each in (sys.stdin, sys.stdout, sys.stderr)
        ],
        "locale": [locale.getlocale(), sys.getfilesystemencoding(), os.environ.get("TZ")],
        "threads": [threading.active_count(), threading.current_thread() is threading.main_thread()],
        "collector": [gc.isenabled(), gc.get_threshold()],
        "warnings": [str(each[:1] + each[2:3]) for each in warnings.filters],
        "process": [oct(os.umask(0o22)), os.getpriority(os.PRIO_PROCESS, 0), os.getsid(0) != os.getpgid(0)],
        "hooks": [sys.excepthook is sys.__excepthook__, sys.gettrace() is None, len(sys.meta_path)],
        "status": {name: status[name] for name in kept} | {k: v for k, v in status.items() if k.startswith("Cap")},
        "namespaces": [os.readlink(f"/proc/self/ns/{each}") for each in ("user", "net", "ipc", "uts")],
        "mounts": mounts,
        "process ids": os.getpid() < 200,
    }


@dsl.component(**STEP)
def is_forked() -> bool:
    with open("/proc/self/cmdline") as file:
        return "fork_server.py" in file.read()


@dsl.pipeline(name="interpreters")
def interpreters() -> None:
    interpreter()
    interpreter().set_env_variable("PYTHON_NEW", "1")
    is_forked()
    is_forked().set_env_variable("PYTHON_NEW", "1")


def test_a_forked_step_finds_what_a_step_with_its_own_interpreter_finds(
    execute: Execute, configuration: Configuration, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_VARIABLE", "with ' and \udce4")
    record = execute(interpreters, max_parallel=1, use_cache=False, configuration=configuration)
    found = {each["name"]: each["outputs"]["parameters"]["Output"] for each in record["tasks"]}
    assert [found["is-forked"], found["is-forked-2"]] == [True, False]
    forked, executed = found["interpreter"], found["interpreter-2"]
    assert forked.keys() == executed.keys()
    assert {name: each for name, each in forked.items() if each != executed[name]} == {}


@dsl.component(**STEP)
def leave(how: str) -> None:
    import os
    import signal
    import sys

    with open("/proc/self/cmdline") as file:
        print("forked:", "fork_server.py" in file.read(), flush=True)
    if how == "exit":
        sys.exit(7)
    if how == "exit with a text":
        sys.exit("a text")
    if how == "raise":
        raise ValueError("wrong")
    if how == "interrupt":
        raise KeyboardInterrupt
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "abort":
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.abort()
    if how == "at exit":
        import atexit

        atexit.register(print, "the last line")
    if how == "background":
        import subprocess

        left = subprocess.Popen(["sleep", "600"], start_new_session=True)
        print("left", left.pid > 0)


@dsl.pipeline(name="leaves")
def leaves(how: str) -> None:
    leave(how=how)
    leave(how=how).set_env_variable("PYTHON_NEW", "1")


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ("exit", 7),
        ("exit with a text", 1),
        ("raise", 1),
        ("interrupt", 130),
        ("kill", 137),
        ("abort", 134),
        ("at exit", 0),
        ("background", 0),
    ],
)
def test_a_forked_step_ends_as_one_with_its_own_interpreter(
    execute: Execute, task: FindTask, log_text: ReadLog, configuration: Configuration, how: str, code: int
) -> None:
    record = execute(leaves, {"how": how}, configuration=configuration)
    steps = [task(record, name) for name in ("leave", "leave-2")]
    logs = [log_text(record, each) for each in steps]
    assert ["forked: True" in logs[0], "forked: False" in logs[1]] == [True, True]
    assert [each["exit_code"] for each in steps] == [code, code]
    # What a program prints after kfp's executor has printed the names of the step's own files.
    ends = [re.sub(r"/tmp\.\w+/", "/", each.partition("forked: ")[2].partition("\n")[2]) for each in logs]
    ends = [re.sub(r"localvertex-held-\w+|leave(-2)?/|\d\d:\d\d:\d\d,\d+", "", each) for each in ends]
    # A shell reports the signal that has ended its command.
    assert ends[0] == re.sub(r"(Killed|Aborted)\n$", "", ends[1])
    assert working_in(Path(record["work_dir"])) == []


@dsl.component(**STEP)
def change(what: str) -> str:
    """Change all that a process shares with its parent or its successors, and say what an earlier step has changed."""
    import builtins
    import os
    import random
    import re
    import signal
    import sys
    import tempfile

    found = [name for name in ("kfp_of_another_step", "colorsys") if name in sys.modules]
    found += [name for name in vars(builtins) if name.startswith("left_by")]
    found += [name for name in os.environ if name.startswith("LEFT_BY")]
    found += [name for name in os.listdir(tempfile.gettempdir()) if name.startswith("left_by")]
    found += [name for name in os.listdir() if name.startswith("left_by")]
    found += [each for each in sys.path if "left_by" in each]
    found += ["umask"] if os.umask(0o022) != 0o022 else []
    found += ["signal"] if signal.getsignal(signal.SIGUSR1) != signal.SIG_DFL else []
    found += ["argument"] if any("left_by" in each for each in sys.argv) else []
    found += ["recursion"] if sys.getrecursionlimit() == 4321 else []
    found += ["descriptor"] if len(os.listdir("/proc/self/fd")) > 4 else []
    found += ["process"] if sum(name.isdigit() for name in os.listdir("/proc")) > 6 else []
    number = str(random.random())
    # Its memory has the variables of this step, and of no other.
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb") as memory:
        for line in maps:
            area, access = line.split()[:2]
            if access.startswith("rw"):
                start, end = (int(each, 16) for each in area.split("-"))
                memory.seek(start)
                others = re.findall(rb"value-of-step-\d+!", memory.read(end - start))
                found += [each.decode() for each in others if each.decode() != os.environ["OF_STEP"]]

    import colorsys
    import subprocess

    sys.modules["kfp_of_another_step"] = colorsys
    vars(builtins)[f"left_by_{what}"] = 1
    os.environ[f"LEFT_BY_{what}"] = "1"
    for folder in (tempfile.gettempdir(), "."):
        open(os.path.join(folder, f"left_by_{what}"), "w").close()
    sys.path.append(f"/left_by_{what}")
    os.umask(0)
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    sys.argv.append("left_by")
    sys.setrecursionlimit(4321)
    for _ in range(8):
        os.open(os.devnull, os.O_RDONLY)
    subprocess.Popen(["sleep", "600"], start_new_session=True)
    with open("/proc/self/cmdline") as file:
        forked = "fork_server.py" in file.read()
    return f"{forked} {number} {' '.join(found)}".strip()


@dsl.pipeline(name="changes")
def changes() -> None:
    for number in range(12):
        change(what=str(number)).set_env_variable("OF_STEP", f"value-of-step-{number}!")


@dsl.pipeline(name="many-changes")
def many_changes() -> None:
    # 200 pairs of steps that follow each other.
    for number in range(201):
        change(what=str(number)).set_env_variable("OF_STEP", f"value-of-step-{number}!")


def check_changes(record: dict[str, Any], num_steps: int) -> None:
    found = [each["outputs"]["parameters"]["Output"].split(" ") for each in record["tasks"]]
    assert len(found) == num_steps
    assert {each[0] for each in found} == {"True"}
    assert [each[2:] for each in found] == [[]] * num_steps
    assert len({each[1] for each in found}) == num_steps
    assert working_in(Path(record["work_dir"])) == []


@pytest.mark.usefixtures("mask")
def test_no_step_finds_what_another_has_changed(execute: Execute) -> None:
    check_changes(execute(changes), 12)


@pytest.mark.slow
@pytest.mark.usefixtures("mask")
def test_no_step_of_200_pairs_finds_what_another_has_changed(execute: Execute) -> None:
    check_changes(execute(many_changes), 201)


@dsl.component(**STEP)
def hashed(text: str) -> list:
    return [len({text}), hash(text)]


@dsl.component(**STEP)
def with_variable() -> str:
    import os

    return os.environ["PYTHONHASHSEED"]


@dsl.pipeline(name="seeds")
def seeds() -> None:
    hashed(text="a")
    hashed(text="a")
    with_variable().set_env_variable("PYTHONHASHSEED", "7")


def test_steps_whose_code_uses_hashes_share_no_seed(
    execute: Execute, task: FindTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONHASHSEED")
    record = execute(seeds, use_cache=False)
    first, second = (task(record, name)["outputs"]["parameters"]["Output"] for name in ("hashed", "hashed-2"))
    assert first != second
    assert task(record, "with-variable")["outputs"]["parameters"]["Output"] == "7"


@pytest.mark.parametrize(
    "code", ["{1, 2}", "{each for each in x}", "set(x)", "frozenset()", "map(hash, x)", "sorted(x, key=hash)"]
)
def test_code_that_uses_hashes_is_not_forked(code: str, compiled: Compile) -> None:
    command = command_of(compiled)
    assert program_of(command, []) is not None
    assert program_of([*command[:3], f"def f(x):\n    return {code}\n", *command[4:]], []) is None


@pytest.mark.parametrize("name", ["PYTHONHASHSEED", "LD_PRELOAD", "OMP_NUM_THREADS", "LANG", "PATH"])
def test_a_step_with_variables_that_python_reads_at_its_start_is_not_forked(name: str, compiled: Compile) -> None:
    assert program_of(command_of(compiled), ["A_VARIABLE"]) is not None
    assert program_of(command_of(compiled), ["A_VARIABLE", name]) is None


@pytest.mark.usefixtures("mask")
@pytest.mark.parametrize(
    ("name", "value", "is_a_fork"),
    [
        ("PYTHONPATH", "/somewhere", True),
        # These lead to the working directory, which is another one for each step.
        ("PYTHONPATH", "modules", False),
        ("PYTHONPATH", "/somewhere:", False),
        # Start-up files of coverage, pytest-cov and setuptools read these.
        ("COVERAGE_PROCESS_START", "/somewhere", False),
        ("COV_CORE_SOURCE", "/somewhere", False),
        ("SETUPTOOLS_USE_DISTUTILS", "stdlib", False),
    ],
)
def test_no_step_is_forked_whose_start_depends_on_its_own_folder_or_variables(
    execute: Execute, task: FindTask, monkeypatch: pytest.MonkeyPatch, name: str, value: str, *, is_a_fork: bool
) -> None:
    monkeypatch.setenv(name, value)
    record = execute(is_forked_only, use_cache=False)
    assert task(record, "is-forked")["outputs"]["parameters"]["Output"] is is_a_fork


@pytest.mark.usefixtures("mask")
def test_warnings_in_the_log_of_a_forked_step_are_its_own(
    execute: Execute, task: FindTask, log_text: ReadLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONWARNINGS", "always")
    record = execute(is_forked_only, use_cache=False)
    step = task(record, "is-forked")
    assert step["outputs"]["parameters"]["Output"] is True
    assert "fork_server" not in log_text(record, step)


@pytest.mark.parametrize("change_script", ["echo first\n{}".format, "{}\nrm -rf /tmp/x".format])
def test_only_the_compilers_own_command_is_forked(change_script: Callable[[str], str], compiled: Compile) -> None:
    command = command_of(compiled)
    assert program_of([*command[:2], change_script(command[2]), *command[3:]], []) is None


def command_of(compiled: Compile) -> list[str]:
    executors = json.loads(compiled(leaves).read_text())["deploymentSpec"]["executors"]
    return [*executors["exec-leave"]["container"]["command"], "--function_to_execute", "leave"]


@dsl.component(**STEP)
def wait_for(path: str) -> bool:
    """Wait until there is a file, and return whether this is a fork."""
    import os
    import time

    print("waiting", flush=True)
    while not os.path.exists(path):
        time.sleep(0.05)
    with open("/proc/self/cmdline") as file:
        return "fork_server.py" in file.read()


@dsl.pipeline(name="waits")
def waits(path: str) -> None:
    first = wait_for(path=path)
    is_forked().after(first)


IMPATIENT = """
import sys
from localvertex.__main__ import main
from localvertex.processes import forking, processes
forking._MAX_SECONDS, processes._MAX_SECONDS_TO_END = 8, 2
sys.exit(main())
"""
"""The command line with shorter limits for what is frozen, which are 30 and 10 seconds."""


@pytest.fixture
def running(
    request: pytest.FixtureRequest, start_run: StartRun, tmp_path: Path
) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Start a run, without forks for False, whose first step waits for the file `go`; yield its process and folder."""
    variables = {"A_SECRET": "not for a server", "PYTHONFOO": "1"}
    variables |= {} if getattr(request, "param", True) else {"COVERAGE_PROCESS_START": "/somewhere"}
    process = start_run(waits, "--parameter", f"path={tmp_path / 'go'}", program=("-c", IMPATIENT), **variables)
    log = tmp_path / "runs" / "stopped" / "wait-for" / "log.txt"
    wait_until(lambda: log.is_file() and "waiting" in log.read_text())
    yield process, tmp_path / "runs" / "stopped"
    process.communicate(timeout=60)


def server_of(process: "subprocess.Popen[str]") -> psutil.Process:
    """Return the fork server of a run; its forks are children of bubblewrap."""
    return next(each for each in psutil.Process(process.pid).children() if is_of_server(each))


def is_of_server(process: psutil.Process) -> bool:
    return any(word.endswith("fork_server.py") for word in command_line(process))


def outputs(run_dir: Path) -> dict[str, Any]:
    tasks = json.loads((run_dir / "run.json").read_text())["tasks"]
    return {each["name"]: each["outputs"]["parameters"].get("Output") for each in tasks}


@pytest.mark.usefixtures("mask")
def test_the_server_has_no_variable_but_those_of_python_and_ends_with_its_run(
    running: tuple[subprocess.Popen[str], Path], tmp_path: Path
) -> None:
    process, run_dir = running
    server = server_of(process)
    variables = server.environ()
    assert {"PYTHONFOO", "TMPDIR"} <= variables.keys()
    assert "A_SECRET" not in variables
    assert not [name for name in variables if "LOCALVERTEX" in name or "TOKEN" in name]
    assert server.num_threads() == 1
    (tmp_path / "go").touch()
    assert process.wait(60) == 0
    assert outputs(run_dir) == {"wait-for": True, "is-forked": True}
    assert not server.is_running()


@pytest.mark.usefixtures("mask")
def test_steps_run_without_a_killed_server(running: tuple[subprocess.Popen[str], Path], tmp_path: Path) -> None:
    process, run_dir = running
    server_of(process).kill()
    (tmp_path / "go").touch()
    assert process.wait(60) == 0
    # The step that ran when its server was killed does not notice.
    assert outputs(run_dir) == {"wait-for": True, "is-forked": False}


@pytest.mark.usefixtures("mask")
def test_a_step_that_a_frozen_server_does_not_start_runs_once_and_nothing_waits_for_it(
    running: tuple[subprocess.Popen[str], Path], tmp_path: Path
) -> None:
    process, run_dir = running
    server = server_of(process)
    server.suspend()
    (tmp_path / "go").touch()
    assert process.wait(90) == 0
    assert outputs(run_dir) == {"wait-for": True, "is-forked": False}
    assert not server.is_running()


@pytest.mark.usefixtures("mask")
@pytest.mark.parametrize("running", [True, False], indirect=True)
@pytest.mark.parametrize("place", ["outside", "inside"])
def test_a_run_ends_with_a_frozen_mask(running: tuple[subprocess.Popen[str], Path], tmp_path: Path, place: str) -> None:
    process, run_dir = running
    mask = next(each for each in psutil.Process(process.pid).children() if "bwrap" in each.name())
    mask = mask.children()[0] if place == "inside" else mask
    mask.suspend()
    (tmp_path / "go").touch()
    assert process.wait(60) == 0
    assert len({*outputs(run_dir).values()}) == 1
    # The first process of a machine may not reap it.
    assert not mask.is_running() or mask.status() == psutil.STATUS_ZOMBIE


@pytest.mark.usefixtures("mask")
def test_a_stop_does_not_wait_for_a_frozen_server(tmp_path: Path) -> None:
    server = forking.ForkServer({"PATH": f"{Path(sys.executable).parent}", "TMPDIR": str(tmp_path)})
    psutil.Process(server._process.pid).suspend()
    asking = threading.Thread(target=server._ask, args=([],))
    asking.start()
    wait_until(server._lock.locked)
    start = time.monotonic()
    server.close()
    asking.join()
    assert time.monotonic() - start < forking._MAX_SECONDS / 2


@pytest.mark.usefixtures("mask")
def test_only_the_first_step_waits_for_a_server_that_does_not_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(forking, "_MAX_SECONDS", 0.01)
    server = forking.ForkServer({"PATH": f"{Path(sys.executable).parent}", "TMPDIR": str(tmp_path)})
    assert not server._ask([])
    assert server._is_usable is False
    assert server._process.wait(30) == -signal.SIGKILL
    server.close()


@pytest.mark.usefixtures("mask")
def test_a_killed_supervisor_takes_its_forked_step_with_it(running: tuple[subprocess.Popen[str], Path]) -> None:
    process, run_dir = running
    above, supervisor, step = server_of(process).children(recursive=True)
    assert [each.ppid() for each in (supervisor, step)] == [above.pid, supervisor.pid]
    supervisor.kill()
    assert process.wait(60) == 1
    assert not step.is_running()
    tasks = json.loads((run_dir / "run.json").read_text())["tasks"]
    assert next(each["exit_code"] for each in tasks if each["name"] == "wait-for") == 137


@pytest.mark.usefixtures("mask")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_outlives_a_killed_run(running: tuple[subprocess.Popen[str], Path], number: signal.Signals) -> None:
    process, _ = running
    every = psutil.Process(process.pid).children(recursive=True)
    assert len(every) == 7
    process.send_signal(number)
    process.wait(60)
    assert psutil.wait_procs(every, timeout=30)[1] == []


@pytest.mark.usefixtures("mask")
def test_a_process_with_other_rights_than_its_mask_runs_no_step(
    execute: Execute, task: FindTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    rights = forking.linux.rights
    monkeypatch.setattr(forking.linux, "rights", lambda pid: rights(pid) | {"NoNewPrivs": "0"})
    record = execute(is_forked_only, use_cache=False)
    assert record["state"] == "SUCCEEDED"
    assert task(record, "is-forked")["outputs"]["parameters"]["Output"] is False


@dsl.pipeline(name="is-forked")
def is_forked_only() -> None:
    is_forked()


@pytest.mark.usefixtures("mask")
def test_namespaces_that_cannot_be_opened_leave_no_descriptor(monkeypatch: pytest.MonkeyPatch) -> None:
    before = set(os.listdir("/proc/self/fd"))
    # No file system has this number for a request.
    monkeypatch.setattr(forking.linux, "_NS_GET_USERNS", 0xB7FF)
    with pytest.raises(OSError, match="Inappropriate ioctl"), ExitStack() as opened:
        forking.linux.namespaces(os.getpid(), opened)
    assert set(os.listdir("/proc/self/fd")) == before
