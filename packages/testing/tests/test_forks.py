"""A forked program is what one with its own interpreter is: its end, what it finds, and what it does not share."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from vertex_testing.forks import Forks

FORKS = Forks("numpy")
LOOK = """
import json, os, sys
print(json.dumps([sys.argv, sys.path[0], os.getcwd(), sorted(os.environ), os.listdir("/proc/self/fd"), input.__name__]))
print("to stderr", file=sys.stderr)
print(sys.stdin.read() == "", __name__, "numpy" in sys.modules)
"""


def run(*words: str | Path, **options: object) -> tuple[int, str, str]:
    process = FORKS.start(words, stderr=subprocess.PIPE, **options)
    stdout, stderr = process.communicate(timeout=60)
    return process.wait(), stdout, stderr


@pytest.mark.parametrize("kind", ["-c", "file"])
def test_it_finds_what_a_program_with_its_own_interpreter_finds(kind: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(LOOK)
    words = ("-c", LOOK, "word") if kind == "-c" else (str(tmp_path / "program.py"), "word")
    env = os.environ | {"OWN": "1"}
    found = [run(*words, cwd=tmp_path, env=env, has_own_interpreter=each) for each in (False, True)]
    (code, stdout, stderr), expected = found
    assert (code, stderr) == (0, "to stderr\n")
    assert stdout.replace("True __main__ True", "True __main__ False") == expected[1]


@pytest.mark.parametrize(
    ("program", "code"),
    [
        ("pass", 0),
        ("import sys; sys.exit(3)", 3),
        ("1 / 0", 1),
        ("import os; os._exit(134)", 134),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
        ("raise KeyboardInterrupt", -signal.SIGINT),
    ],
)
def test_it_ends_as_one_with_its_own_interpreter(program: str, code: int) -> None:
    assert [run("-c", program, has_own_interpreter=each)[0] for each in (False, True)] == [code, code]


def test_it_can_be_stopped_and_killed() -> None:
    begin = "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(7)); "
    process = FORKS.start(["-c", f"{begin}print(1, flush=True); time.sleep(60)"])
    assert process.stdout is not None
    assert process.stdout.readline() == "1\n"
    assert process.poll() is None
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == 7
    process = FORKS.start(["-c", "import time; time.sleep(60)"])
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.01)
    process.kill()
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL


def test_two_share_no_random_numbers() -> None:
    program = "import numpy, random, tempfile; print(numpy.random.random(), random.random(), tempfile.mktemp())"
    first, second = (run("-c", program)[1].split() for _ in range(2))
    assert all(one != other for one, other in zip(first, second, strict=True))


@pytest.mark.parametrize(("name", "is_a_fork"), [("PYTHONOPTIMIZE", False), ("LD_SOMETHING", False), ("OTHER", True)])
def test_variables_that_are_read_when_python_starts_need_an_interpreter(name: str, *, is_a_fork: bool) -> None:
    program = "import sys; print('numpy' in sys.modules)"
    assert run("-c", program, env=os.environ | {name: "1"})[1] == f"{is_a_fork}\n"


def test_the_process_that_forks_ends_with_the_test_run() -> None:
    program = """
import os, sys
from vertex_testing.forks import Forks
process = Forks().start(["-c", "import os; print(os.getppid())"])
print(process.communicate(60)[0])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == ""
