"""The wrapper around real commands: what must never happen first, then signals, exit codes and the result."""

import contextlib
import hashlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from exact_resume.checkpoints import result_file, seal
from exact_resume.events import log as event_log
from exact_resume.files import storage
from vertex_testing.cloud_storage.server import CloudStorage
from vertex_testing.forks import Process
from vertex_testing.processes import have_ended
from vertex_testing.programs import TRAININGS
from vertex_testing.small_disk import RunOnDisk, run_on_disk as run_on_disk

TRAIN = """
import glob, hashlib, os, sys, time
num_steps, seconds = int(sys.argv[1]), float(sys.argv[2])
os.makedirs("own", exist_ok=True)
found = [int(name[5:-4]) for name in os.listdir("own") if name.startswith("step-")]
step, state = max(found, default=0), b"start"
if step:
    with open(f"own/step-{step}.txt", "rb") as file:
        state = file.read()
print("resumed at", step, flush=True)
while step < num_steps:
    time.sleep(seconds)
    step += 1
    state = hashlib.sha256(state + bytes([step])).hexdigest().encode()
    print(f"step {step} loss {1 / step:.4f}", flush=True)
    if step % 5 == 0:
        with open("own/.new", "wb") as file:
            file.write(state)
        os.rename("own/.new", f"own/step-{step}.txt")
        hold = int(os.environ.get("HOLD", 0))
        while hold and os.path.isdir("kept") and not glob.glob(f"kept/*/files/step-{step}.txt"):
            time.sleep(0.02)
        time.sleep(600 * (step == hold))
print("ended as", state.decode())
"""
"""Writes a checkpoint every 5 steps and resumes from its newest; its last line depends on every step.

With the variable HOLD it waits until each checkpoint is committed, and at that step until it is killed.
"""


class Wrapped:
    """The wrapper in a folder with `train.py`, the command's folder `own` and the checkpoint folder `kept`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.options = ["--whole=rename:step-*.txt", "--progress=step (?P<step>\\d+) loss (?P<loss>\\S+)"]
        self.directory = "kept"
        self.environment: dict[str, str] = {}
        self._started: list[Process] = []
        (folder / "train.py").write_text(TRAIN)

    def start(self, *command: str) -> Process:
        words = ["-m", "exact_resume", "--checkpoint-directory", self.directory, "--watch=own"]
        process = TRAININGS.start(
            [*words, *self.options, "--", *(command or (sys.executable, "train.py", "20", "0.02"))],
            cwd=self.folder,
            env={**os.environ, "NO_GCE_CHECK": "1", **self.environment},
            stderr=subprocess.PIPE,
        )
        self._started.append(process)
        return process

    def hold(self, step: int) -> None:
        """Train up to a step, which is committed, and kill the wrapper."""
        self.environment["HOLD"] = str(step)
        process = self.start()
        until(lambda: any(f"files/step-{step}.txt" in files for files in self.committed().values()))
        process.kill()
        process.communicate()
        del self.environment["HOLD"]

    def run(self, *command: str) -> tuple[int, str, str]:
        """Return exit code, stdout and stderr."""
        process = self.start(*command)
        stdout, stderr = process.communicate(timeout=120)
        return process.returncode, stdout, stderr

    def program(self, text: str) -> list[str]:
        """Return the command of another script."""
        (self.folder / "program.py").write_text(text)
        return [sys.executable, "program.py"]

    def events(self, event: str = "") -> list[dict[str, Any]]:
        lines = (self.folder / "kept/events/workerpool0-0.jsonl").read_text().splitlines()
        return [found for found in map(json.loads, lines) if event in ("", found["event"])]

    def notices(self) -> str:
        return "\n".join(event["message"] for event in self.events("notice"))

    def committed(self) -> dict[str, list[str]]:
        """Return the names of the files in each committed checkpoint."""
        found = sorted((self.folder / "kept").glob("step-*/manifest.json"))
        return {path.parent.name: sorted(json.loads(path.read_text())["files"]) for path in found}

    def close(self) -> None:
        for process in self._started:
            if process.poll() is None:
                process.kill()
            process.communicate()


@pytest.fixture
def wrapped(tmp_path: Path) -> Iterator[Wrapped]:
    made = Wrapped(tmp_path)
    yield made
    made.close()


def until(condition: Callable[[], Any]) -> Any:
    """Wait for a condition; return its value."""
    deadline = time.monotonic() + 60
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return found


def children(process: Process) -> list[psutil.Process]:
    """Return the guard, the command and all that it started."""
    return psutil.Process(process.pid).children(recursive=True)


def wait_for_command(process: Process) -> list[psutil.Process]:
    """Return the guard and the command once both run; nothing if the run was finished before."""
    until(lambda: process.poll() is not None or len(children(process)) > 1)
    return [] if process.poll() is not None else children(process)


def wait_for_end(processes: list[psutil.Process]) -> None:
    until(lambda: have_ended(processes))


def expected_end(num_steps: int = 20) -> str:
    """Return the last line of an undisturbed training."""
    state = b"start"
    for number in range(1, num_steps + 1):
        state = hashlib.sha256(state + bytes([number])).hexdigest().encode()
    return f"ended as {state.decode()}"


def damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def test_an_undisturbed_run_is_as_without_the_wrapper_and_starts_only_once(wrapped: Wrapped) -> None:
    code, stdout, stderr = wrapped.run()
    bare = subprocess.run([sys.executable, "train.py", "20", "0"], cwd=wrapped.folder, capture_output=True, text=True)
    assert (code, stderr) == (0, "")
    # The bare run resumes at the wrapped one's last checkpoint.
    assert stdout.splitlines()[-1] == bare.stdout.splitlines()[-1] == expected_end()
    assert stdout.splitlines()[:2] == ["resumed at 0", "step 1 loss 1.0000"]
    result = result_file.read_result(str(wrapped.folder / "kept"))
    assert result
    assert (result["examples"], result["final_step"], result["metrics"]) == ("unknown", 20, {"step": 20, "loss": 0.05})
    assert result_file.is_finished(str(wrapped.folder / "kept"), expected_run_id=result["run_id"])
    assert [event["last_step"] for event in wrapped.events("steps")][-1] == 20
    (wrapped.folder / "train.py").write_text("raise SystemExit(5)")
    assert wrapped.run()[:2] == (0, "")


KILLS = [
    pytest.param(
        victim,
        is_new,
        seed,
        marks=[pytest.mark.slow, pytest.mark.soak] if seed or (victim == "wrapper") != is_new else [],
    )
    for victim in ("wrapper", "command")
    for is_new in (True, False)
    for seed in range(6)
]


@pytest.mark.parametrize(("victim", "is_new_machine", "seed"), KILLS)
def test_a_killed_run_ends_as_without_the_kill(wrapped: Wrapped, victim: str, seed: int, is_new_machine: bool) -> None:
    moments, lines = random.Random(f"{victim} {seed}"), []
    for _ in range(2):
        process = wrapped.start(sys.executable, "train.py", "40", "0.03")
        processes = wait_for_command(process)
        time.sleep(moments.uniform(0, 1.1))
        with contextlib.suppress(psutil.NoSuchProcess):
            for each in [psutil.Process(process.pid)] if victim == "wrapper" else processes[1:]:
                each.kill()
        lines += process.communicate(timeout=60)[0].splitlines()
        assert process.returncode in ({"wrapper": -9, "command": 137}[victim], 0)
        wait_for_end(processes)
        if is_new_machine:
            (wrapped.folder / "own").rename(wrapped.folder / f"lost-{time.monotonic_ns()}")
    code, stdout, stderr = wrapped.run(sys.executable, "train.py", "40", "0.03")
    assert (code, [*lines, *stdout.splitlines()][-1]) == (0, expected_end(40)), stderr


def test_no_process_stays_behind(wrapped: Wrapped) -> None:
    """Neither one in a session of its own that ignores signals, nor after the death of the wrapper or the guard."""
    stays = "import os, signal, time; os.setsid(); signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    leaves = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {stays!r}])\n"
    command = wrapped.program(f"{leaves}print('on', flush=True)\ntime.sleep(600 * (len(sys.argv) > 1))")
    assert wrapped.run(*command)[0] == 0
    for number in range(2):
        process = wrapped.start(*command, "stay")
        assert process.stdout
        assert process.stdout.readline() == "on\n"
        processes = children(process)
        assert len(processes) == 3
        (process if number == 0 else processes[0]).kill()
        process.communicate(timeout=60)
        assert process.returncode == (-9 if number == 0 else 137)
        wait_for_end(processes)


def test_a_file_that_the_run_did_not_write_is_neither_replaced_nor_restored_over(wrapped: Wrapped) -> None:
    own = wrapped.folder / "own"
    own.mkdir()
    (own / "step-3.txt").write_text("precious")
    code, stdout, stderr = wrapped.run()
    assert (code, stdout) == (2, "")
    assert "own' contains checkpoints that no wrapped run wrote" in stderr
    (own / "step-3.txt").rename(own / "notes.txt")
    wrapped.hold(5)
    assert (own / "notes.txt").read_text() == "precious"
    # The folder of another run, which has the same pattern.
    wrapped.directory = "other"
    code, _, stderr = wrapped.run(sys.executable, "train.py", "20", "0.03")
    assert (code, "contains another run: command is" in stderr) == (2, True)


def test_another_run_is_refused_by_the_field_that_differs(wrapped: Wrapped) -> None:
    assert wrapped.run(sys.executable, "train.py", "5", "0")[0] == 0
    code, stdout, stderr = wrapped.run(sys.executable, "train.py", "6", "0")
    assert (code, stdout) == (2, "")
    assert "'5', '0'] there and ['" in stderr


def test_a_torn_newest_checkpoint_is_passed_over(wrapped: Wrapped) -> None:
    wrapped.hold(10)
    newest = max(wrapped.committed())
    (before,) = wrapped.committed()[sorted(wrapped.committed())[-2]]
    damage(wrapped.folder / "kept" / newest / wrapped.committed()[newest][0])
    (wrapped.folder / "own").rename(wrapped.folder / "lost")
    code, stdout, stderr = wrapped.run()
    step = re.findall(r"\d+", before)[-1]
    assert (code, stdout.splitlines()[0], stdout.splitlines()[-1]) == (0, f"resumed at {step}", expected_end())
    assert f"{newest} is damaged and was skipped" in stderr


@pytest.mark.slow
def test_an_older_checkpoint_does_not_take_the_place_of_one_that_cannot_be_read(wrapped: Wrapped) -> None:
    wrapped.hold(10)
    newest = max(wrapped.committed())
    path = wrapped.folder / "kept" / newest / wrapped.committed()[newest][0]
    path.unlink()
    path.symlink_to("/proc/self/mem")
    (wrapped.folder / "own").rename(wrapped.folder / "lost")
    code, stdout, stderr = wrapped.run()
    assert (code, stdout) == (1, "")
    assert stderr.startswith("error: ")


@pytest.mark.slow
def test_a_machine_that_others_have_continued_starts_at_their_checkpoint(wrapped: Wrapped) -> None:
    wrapped.hold(5)
    (wrapped.folder / "own").rename(wrapped.folder / "first")
    wrapped.hold(10)
    (wrapped.folder / "own").rename(wrapped.folder / "second")
    (wrapped.folder / "first").rename(wrapped.folder / "own")
    code, stdout, stderr = wrapped.run()
    assert (code, stdout.splitlines()[0], stdout.splitlines()[-1]) == (0, "resumed at 10", expected_end())
    assert "step-5.txt was moved to" in stderr


@pytest.mark.slow
def test_a_command_that_is_killed_after_its_last_save_keeps_its_figures(wrapped: Wrapped) -> None:
    """Otherwise the finished run has no metric to be compared by, and is not trained again."""
    wrapped.hold(20)
    code, stdout, _ = wrapped.run()
    assert (code, stdout.splitlines()[0]) == (0, "resumed at 20")
    result = json.loads((wrapped.folder / "kept/result.json").read_text())
    assert (result["final_step"], result["metrics"]) == (20, {"step": 20, "loss": 0.05})


def test_only_the_first_machine_commits(wrapped: Wrapped) -> None:
    def versions() -> dict[Path, int]:
        return {
            path: path.stat().st_mtime_ns for path in (wrapped.folder / "kept").rglob("*") if "events" not in path.parts
        }

    wrapped.hold(5)
    before = versions()
    (wrapped.folder / "own").rename(wrapped.folder / "lost")
    wrapped.environment |= {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "first"}
    code, stdout, _ = wrapped.run()
    assert (code, stdout.splitlines()[0], stdout.splitlines()[-1]) == (0, "resumed at 5", expected_end())
    assert versions() == before
    assert (wrapped.folder / "kept/events/workerpool1-0.jsonl").exists()


HALF = """
import os, signal, sys, time
os.makedirs("own/step-1.txt", exist_ok=True)
os.makedirs("own/step-2.txt", exist_ok=True)
for name in ("a", "done"):
    open(f"own/step-1.txt/{name}", "w").write("1")
open("own/step-2.txt/a", "w").write("2")
time.sleep(1)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_checkpoint_without_its_marker_is_neither_committed_nor_left_for_the_command(wrapped: Wrapped) -> None:
    wrapped.options = ["--whole=marker:step-*.txt/done"]
    assert wrapped.run(*wrapped.program(HALF))[0] == 137
    assert list(wrapped.committed().values()) == [["files/step-1.txt/a", "files/step-1.txt/done"]]
    code, stdout, stderr = wrapped.run(*wrapped.program("import os; print(sorted(os.listdir('own')))"))
    assert (code, stdout) == (0, "['.exact_resume', 'step-1.txt']\n")
    assert "step-2.txt was moved to" in stderr
    assert [path.read_text() for path in (wrapped.folder / "own/.exact_resume").glob("aside-*/step-2.txt/a")] == ["2"]


COMMITTED = """
import glob, os, signal, time
os.makedirs("own", exist_ok=True)
def wait_for_commit(count):
    while len(glob.glob("kept/step-*/manifest.json")) < count:
        time.sleep(0.05)
"""
HALF_REMOVED = f"""{COMMITTED}
os.makedirs("own/.new")
for name in "abc":
    open("own/.new/" + name, "w").write(name)
os.rename("own/.new", "own/step-1.txt")
wait_for_commit(1)
os.unlink("own/step-1.txt/b")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_a_checkpoint_that_the_command_was_removing_when_it_was_killed_is_restored_whole(wrapped: Wrapped) -> None:
    assert wrapped.run(*wrapped.program(HALF_REMOVED))[0] == 137
    assert sorted(path.name for path in (wrapped.folder / "own/step-1.txt").iterdir()) == ["a", "c"]
    code, stdout, _ = wrapped.run(*wrapped.program("import os; print(sorted(os.listdir('own/step-1.txt')))"))
    assert (code, stdout) == (0, "['a', 'b', 'c']\n")
    moved = (wrapped.folder / "own/.exact_resume").glob("aside-*/step-1.txt/*")
    assert sorted(path.name for path in moved) == ["a", "c"]


REMOVES = f"""{COMMITTED}
for step in (1, 2):
    os.makedirs("own/.new")
    for name in "abc":
        open("own/.new/" + name, "w").write(name * step)
    os.rename("own/.new", "own/step-%d.txt" % step)
    wait_for_commit(step)
for name in "abc":
    os.unlink("own/step-1.txt/" + name)
    time.sleep(0.3)
"""


def test_a_checkpoint_that_the_command_removes_file_by_file_is_not_committed_again(wrapped: Wrapped) -> None:
    assert wrapped.run(*wrapped.program(REMOVES))[0] == 0
    assert [len(files) for files in wrapped.committed().values()] == [3, 3]
    assert result_file.is_finished(str(wrapped.folder / "kept"))


SAVED = """
import glob, os, signal, sys, time
os.makedirs("own", exist_ok=True)
def wait_for_commit(number):
    while not os.path.exists(f"kept/step-{number:09d}/manifest.json"):
        time.sleep(0.02)
def wait_for_notice(text):
    while not any(text in open(path).read() for path in glob.glob("kept/events/*.jsonl")):
        assert not os.path.exists("kept/step-000000002/manifest.json")
        time.sleep(0.02)
def save(name, text):
    with open("own/.new", "w") as file:
        file.write(text)
    os.rename("own/.new", "own/" + name)
def rewrite(name, text, ends=True):
    file = open("own/" + name, "w")
    file.write(text)
    file.flush()
    if ends:
        file.close()
    return file
def read():
    return {name: open("own/" + name).read() for name in sorted(os.listdir("own")) if not name.startswith(".")}
if read():
    print(read())
    sys.exit()
"""


@pytest.mark.parametrize("torn", ["", "hal"])
@pytest.mark.parametrize("name", ["last.txt", "best.txt"])
def test_a_file_that_is_killed_while_it_is_written_in_place_is_restored_whole(
    wrapped: Wrapped, name: str, torn: str
) -> None:
    wrapped.options = ["--whole=rename:last.txt", "--also=best.txt"]
    program = f"""{SAVED}
rewrite("best.txt", "whole best")
rewrite("last.txt", "whole last")
wait_for_commit(1)
file = rewrite({name!r}, {torn!r}, ends=False)
wait_for_notice("{name} is written in place: it had 10 bytes and has {len(torn)}")
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert wrapped.run(*wrapped.program(program))[0] == 137
    code, stdout, stderr = wrapped.run(*wrapped.program(program))
    assert (code, stdout.splitlines()) == (0, [str({"best.txt": "whole best", "last.txt": "whole last"})]), stderr


def test_a_larger_file_that_is_killed_while_it_is_written_in_place_is_restored_whole(wrapped: Wrapped) -> None:
    wrapped.options = ["--whole=rename:last.txt"]
    program = f"""{SAVED}
rewrite("last.txt", "whole last")
wait_for_commit(1)
file = rewrite("last.txt", "half of a larger checkpoint", ends=False)
wait_for_notice("last.txt is written in place")
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert wrapped.run(*wrapped.program(program))[0] == 137
    code, stdout, stderr = wrapped.run(*wrapped.program(program))
    assert (code, stdout.splitlines()) == (0, [str({"last.txt": "whole last"})]), stderr


def test_a_file_counts_when_its_writer_has_closed_it(wrapped: Wrapped) -> None:
    wrapped.options = ["--whole=closed:last.*"]
    program = f"""{SAVED}
rewrite("last.txt", "first")
wait_for_commit(1)
file = rewrite("last.txt", "half", ends=False)
time.sleep(2)
assert not os.path.exists("kept/step-000000002/manifest.json")
file.write(" and half")
file.close()
wait_for_commit(2)
file = rewrite("last.txt", "half of the third", ends=False)
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert wrapped.run(*wrapped.program(program))[0] == 137
    code, stdout, stderr = wrapped.run(*wrapped.program(program))
    assert (code, stdout.splitlines()) == (0, [str({"last.txt": "half and half"})]), stderr


def test_a_model_of_keras_counts_when_it_is_closed(wrapped: Wrapped) -> None:
    pytest.importorskip("keras")
    wrapped.options = ["--whole=closed:last.keras"]
    program = """
import glob, os, time
import keras, numpy as np
os.makedirs("own", exist_ok=True)
path = "own/last.keras"
if os.path.exists(path):
    model = keras.models.load_model(path)
    print("resumed", flush=True)
else:
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
save = keras.callbacks.ModelCheckpoint(path)
save.set_model(model)
save.on_epoch_end(0, {})
while not os.path.exists("kept/step-000000001/manifest.json"):
    time.sleep(0.02)
"""
    assert wrapped.run(*wrapped.program(program + "os.kill(os.getpid(), 9)"))[0] == 137
    assert wrapped.committed() == {"step-000000001": ["files/last.keras"]}
    (wrapped.folder / "own/last.keras").write_bytes(b"PK half")
    assert "resumed" in wrapped.run(*wrapped.program(program + "os.kill(os.getpid(), 9)"))[1]


@pytest.mark.slow
@pytest.mark.soak
def test_a_file_of_torch_counts_when_it_is_closed(wrapped: Wrapped) -> None:
    python = os.environ.get("TORCHRUN_PYTHON", sys.executable)
    if subprocess.run([python, "-c", "import torch"], capture_output=True).returncode:
        pytest.skip("torch is not in TORCHRUN_PYTHON")
    wrapped.options = ["--whole=closed:last.pt"]
    program = """
import os, time
import torch
os.makedirs("own", exist_ok=True)
print(torch.load("own/last.pt")["step"] if os.path.exists("own/last.pt") else 0, flush=True)
torch.save({"step": 7, "weights": torch.zeros(1000)}, "own/last.pt")
while not os.path.exists("kept/step-000000001/manifest.json"):
    time.sleep(0.02)
os.kill(os.getpid(), 9)
"""
    wrapped.program(program)
    assert wrapped.run(python, "program.py")[0] == 137
    (wrapped.folder / "own/last.pt").write_bytes(b"PK half")
    assert wrapped.run(python, "program.py")[1].splitlines() == ["7"]


UNLOADABLE = f"""{SAVED.partition("if read()")[0]}
print("resumed with", *read(), flush=True)
if "step-2.txt" in read() or os.path.exists("always"):
    sys.exit(3)
print("step 1 loss 1", flush=True)
if os.path.exists("own/step-1.txt"):
    sys.exit()
save("step-1.txt", "1")
wait_for_commit(1)
save("step-2.txt", "2")
wait_for_commit(2)
sys.exit(4)
"""


def test_a_checkpoint_that_the_command_cannot_load_twice_is_passed_over_once(wrapped: Wrapped) -> None:
    wrapped.program(UNLOADABLE)
    found = [wrapped.run(sys.executable, "program.py") for _ in range(4)]
    assert [code for code, _, _ in found] == [4, 3, 3, 0]
    assert found[3][1].splitlines()[0] == "resumed with step-1.txt"


def test_the_newest_checkpoint_is_restored_again_if_the_one_before_fails_too(wrapped: Wrapped) -> None:
    wrapped.program(UNLOADABLE)
    assert wrapped.run(sys.executable, "program.py")[0] == 4
    (wrapped.folder / "always").touch()
    found = [wrapped.run(sys.executable, "program.py") for _ in range(4)]
    assert [code for code, _, _ in found] == [3, 3, 3, 3]
    names = [stdout.splitlines()[0].rpartition(" ")[2] for _, stdout, _ in found]
    assert names == ["step-2.txt", "step-2.txt", "step-1.txt", "step-2.txt"]
    assert "the failure is its own" in wrapped.notices()
    assert "step-000000002" in wrapped.committed()


def test_a_command_that_ignores_what_was_restored_is_reported(wrapped: Wrapped) -> None:
    program = f"""{SAVED.partition("if read()")[0]}
for step in range(1, 6):
    print(f"step {{step}} loss 1", flush=True)
time.sleep(1)
save(f"step-{{len(os.listdir('own'))}}.txt", "1")
wait_for_commit(1)
time.sleep(1)
sys.exit(1)
"""
    assert wrapped.run(*wrapped.program(program))[0] == 1
    assert wrapped.events("notice") == []
    assert wrapped.run(*wrapped.program(program))[0] == 1
    assert "the command's first step is 1, as at its first start" in wrapped.notices()


@pytest.mark.parametrize("save", ["save", "rewrite"])
def test_a_checkpoint_that_becomes_smaller_is_committed_once_it_is_complete(wrapped: Wrapped, save: str) -> None:
    """However it was written, a smaller `best.json` is none the less whole."""
    wrapped.options = ["--whole=rename:best.json"]
    program = (
        f'{SAVED}\n{save}("best.json", "0.123")\nwait_for_commit(1)\n{save}("best.json", "0.1")\nwait_for_commit(2)'
    )
    assert wrapped.run(*wrapped.program(program))[0] == 0
    assert (wrapped.folder / "kept/step-000000002/files/best.json").read_text() == "0.1"


def test_the_last_checkpoint_of_a_command_that_succeeds_counts_even_if_it_is_smaller(wrapped: Wrapped) -> None:
    wrapped.options = ["--whole=rename:last.txt"]
    wrapped.environment["EXACT_RESUME_PORTABLE"] = "1"
    program = f'{SAVED}\nrewrite("last.txt", "12")\nwait_for_commit(1)\nrewrite("last.txt", "3")'
    assert wrapped.run(*wrapped.program(program))[0] == 0
    assert (wrapped.folder / "kept/step-000000002/files/last.txt").read_text() == "3"


def test_an_empty_file_counts_in_a_folder_but_not_by_itself(wrapped: Wrapped) -> None:
    wrapped.options = ["--whole=rename:step-*"]
    program = f"""{SAVED}
save("step-1", "")
os.makedirs("own/.folder")
open("own/.folder/empty", "w").close(), open("own/.folder/weights", "w").write("w")
os.rename("own/.folder", "own/step-2")
wait_for_commit(1)
"""
    assert wrapped.run(*wrapped.program(program))[0] == 0
    assert [*wrapped.committed().values()] == [["files/step-2/empty", "files/step-2/weights"]]


def test_what_belongs_to_a_checkpoint_comes_with_it_to_another_machine(wrapped: Wrapped) -> None:
    wrapped.options = ["--whole=rename:*.npz", "--also=best.*", "--also=history.csv"]
    program = f"""{SAVED}
save("last.npz", "1"), save("best.npz", "best of 1"), save("best.json", "1")
wait_for_commit(1)
save("last.npz", "2"), open("own/history.csv", "a").write("1\\n2\\n")
wait_for_commit(2)
# After the checkpoint that it belongs to.
save("best.npz", "best of 2")
wait_for_commit(3)
os.kill(os.getpid(), signal.SIGKILL)
"""
    wanted = {"best.json": "1", "best.npz": "best of 2", "history.csv": "1\n2\n", "last.npz": "2"}
    assert wrapped.run(*wrapped.program(program))[0] == 137
    (wrapped.folder / "own").rename(wrapped.folder / "lost")
    code, stdout, stderr = wrapped.run(*wrapped.program(SAVED))
    assert (code, stdout) == (0, f"{wanted}\n"), stderr


def test_what_belongs_to_a_later_checkpoint_is_set_aside(wrapped: Wrapped) -> None:
    wrapped.options = ["--whole=rename:last.txt", "--also=best.*"]
    program = f'{SAVED}\nsave("last.txt", "1")\nwait_for_commit(1)\nos.kill(os.getppid(), signal.SIGKILL)'
    assert wrapped.run(*wrapped.program(program))[0] == 137
    (wrapped.folder / "own/best.txt").write_text("of another machine's later steps")
    assert wrapped.run(*wrapped.program(SAVED))[1] == "{'last.txt': '1'}\n"
    assert len([*wrapped.folder.glob("own/.exact_resume/aside-*/best.txt")]) == 1


def test_files_of_the_user_that_match_also_are_refused_at_the_first_start(wrapped: Wrapped) -> None:
    wrapped.options.append("--also=best.*")
    (wrapped.folder / "own").mkdir()
    (wrapped.folder / "own/best.txt").write_text("mine")
    assert wrapped.run()[0] == 2
    assert (wrapped.folder / "own/best.txt").read_text() == "mine"


def test_a_success_without_a_checkpoint_is_passed_on_and_not_finished(wrapped: Wrapped) -> None:
    code, _, stderr = wrapped.run(*wrapped.program("print('done')"))
    assert (code, "has no whole checkpoint, so there is no result.json" in stderr) == (0, True)
    assert not (wrapped.folder / "kept/result.json").exists()


def test_a_start_that_wrote_nothing_does_not_bind_the_folders(wrapped: Wrapped) -> None:
    assert wrapped.run("false")[0] == 1
    assert wrapped.run(sys.executable, "train.py", "5", "0")[0] == 0


def test_another_process_cannot_use_the_same_folders(wrapped: Wrapped) -> None:
    process = wrapped.start(sys.executable, "train.py", "200", "0.1")
    wait_for_command(process)
    before = (wrapped.folder / "kept/owner.json").read_bytes()
    other = wrapped.start(sys.executable, "train.py", "200", "0.1")
    assert other.stderr
    assert "holds 'kept'; watching its heartbeat" in other.stderr.readline()
    other.send_signal(signal.SIGTERM)
    other.communicate(timeout=60)
    assert other.returncode == 143
    assert json.loads((wrapped.folder / "kept/owner.json").read_bytes())["token"] == json.loads(before)["token"]
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 143


def test_a_wrapper_whose_folder_was_taken_over_commits_nothing_more_and_ends_its_command(wrapped: Wrapped) -> None:
    process = wrapped.start(sys.executable, "train.py", "200", "0.02")
    until(wrapped.committed)
    processes = wait_for_command(process)
    process.send_signal(signal.SIGSTOP)
    until(lambda: psutil.Process(process.pid).status() == psutil.STATUS_STOPPED)
    owner = wrapped.folder / "kept/owner.json"
    owner.write_bytes(storage.encode_json(seal.add_seal({**seal.without(json.loads(owner.read_text())), "token": "b"})))
    before = wrapped.committed()
    process.send_signal(signal.SIGCONT)
    stderr = process.communicate(timeout=60)[1]
    assert process.returncode == 1
    assert "has taken over the run in 'kept'; stopping this one" in stderr
    assert wrapped.committed() == before
    assert json.loads(owner.read_text())["token"] == "b"
    wait_for_end(processes)


@pytest.mark.slow
def test_a_second_ctrl_c_kills_a_command_that_ignores_the_first(wrapped: Wrapped) -> None:
    ignores = (
        "import signal, time; signal.signal(2, lambda *_: print('ignored', flush=True)); print('ready', flush=True)"
    )
    process = wrapped.start(*wrapped.program(f"{ignores}; time.sleep(600)"))
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    processes = wait_for_command(process)
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "ignored\n"
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    wait_for_end(processes)


SAVES = """
import os, signal, sys, time
def save(*_):
    os.makedirs("own", exist_ok=True)
    open("own/.new", "w").write("at the end")
    os.rename("own/.new", "own/step-7.txt")
    sys.exit(int(sys.argv[1]))
signal.signal(signal.SIGTERM, save)
signal.signal(signal.SIGINT, save)
print("ready", flush=True)
while True:
    # Python calls no handler for a signal that arrives just before it begins to sleep.
    time.sleep(0.02)
"""


@pytest.mark.parametrize(("number", "code", "expected"), [(15, 0, 143), (2, 0, 130), (15, 3, 3)])
def test_a_signal_is_passed_on_and_what_the_command_saves_then_is_committed(
    wrapped: Wrapped, number: int, code: int, expected: int
) -> None:
    process = wrapped.start(*wrapped.program(SAVES), str(code))
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == expected
    assert list(wrapped.committed().values()) == [["files/step-7.txt"]]
    assert not (wrapped.folder / "kept/result.json").exists()
    assert wrapped.events("exit")[0]["code"] == expected
    assert ("the exit code is 1" in wrapped.notices()) is (code == 0)


SLOW_GUARD = """
import os, subprocess, sys
from exact_resume.wrapper import guard
class Slow(subprocess.Popen):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        sys.stdin.readline()
subprocess.Popen = Slow
sys.exit(guard._main(os.getppid(), sys.argv[1:]))
"""
"""A guard that gets no processor time between the start of the command and its next line."""


def test_a_signal_reaches_the_command_even_if_its_guard_has_only_just_started_it(wrapped: Wrapped) -> None:
    words = [sys.executable, "-c", SLOW_GUARD, *wrapped.program(SAVES), "3"]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, cwd=wrapped.folder, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        process.communicate("\n", timeout=60)
    assert (process.returncode, [path.name for path in wrapped.folder.glob("own/step-*")]) == (3, ["step-7.txt"])


FAILS = """
import json, os, sys
if sys.argv[1]:
    with open(os.environ["TORCHELASTIC_ERROR_FILE"], "w") as file:
        json.dump({"message": {"message": sys.argv[1], "extraInfo": {"timestamp": "1"}}}, file)
sys.exit(1)
"""


@pytest.mark.parametrize(
    ("error", "expected"),
    [("RuntimeError: [gloo] Connection closed by peer [10.0.0.2]", 134), ("ValueError: shapes", 1), ("", 1)],
)
def test_a_lost_peer_is_read_from_the_error_file_of_torchrun(wrapped: Wrapped, error: str, expected: int) -> None:
    wrapped.options.append("--exit-code=1=134:lost-peer")
    code, _, stderr = wrapped.run(*wrapped.program(FAILS), error)
    assert (code, wrapped.events("exit")[0]["code"]) == (expected, expected)
    reason = "--exit-code 1=134:lost-peer, and the error file says 'Connection closed"
    assert (f"ended with 1, the exit code is 134: {reason}" in stderr) is (code > 1)
    assert (code == 1) is (wrapped.notices() == "")


def test_an_error_file_of_an_earlier_start_does_not_count(wrapped: Wrapped) -> None:
    wrapped.options.append("--exit-code=1=134:lost-peer")
    program = f"{FAILS.replace('sys.argv[1]', 'not os.path.exists(sys.argv[1])', 1)}".replace(
        "sys.argv[1],", "'broken pipe',"
    )
    command = [*wrapped.program(program), "started"]
    assert wrapped.run(*command)[0] == 134
    (wrapped.folder / "started").touch()
    assert wrapped.run(*command)[0] == 1


@pytest.mark.parametrize(
    ("program", "expected"), [("exit(77)", 77), ("os.kill(os.getpid(), 11)", 139), ("os.abort()", 134)]
)
def test_an_exit_code_without_an_entry_is_passed_on(wrapped: Wrapped, program: str, expected: int) -> None:
    code, _, stderr = wrapped.run(*wrapped.program(f"import os; {program}"))
    assert (code, stderr) == (expected, "")


def test_a_command_that_cannot_be_started_has_the_exit_code_of_shells(wrapped: Wrapped) -> None:
    code, _, stderr = wrapped.run("no-such-program")
    assert (code, "error: cannot run 'no-such-program': No such file" in stderr) == (127, True)


def test_output_passes_through_byte_by_byte_and_garbage_is_no_progress(wrapped: Wrapped) -> None:
    data = bytes(range(256)) + b"step 1 loss nan\nstep -3 loss 1\nstep 1e999 loss 2\r" + b"x" * 200_000 + b"step 9"
    program = f"import sys; sys.stdout.buffer.write({data!r}); sys.stderr.buffer.write(b'step 4 loss 0.5')"
    wrapped.folder.joinpath("program.py").write_text(program)
    words = ["--checkpoint-directory=kept", "--watch=own", *wrapped.options, "--", sys.executable, "program.py"]
    done = subprocess.run([sys.executable, "-m", "exact_resume", *words], cwd=wrapped.folder, capture_output=True)
    assert (done.returncode, done.stdout) == (0, data)
    assert done.stderr.startswith(b"step 4 loss 0.5")
    assert {event["last_step"] for event in wrapped.events("steps")} <= {1, 4}


FULL = """
import os, subprocess, sys, tempfile
disk = sys.argv[1]
write = '''
import os, sys, time
for size in map(int, sys.argv[1:]):
    open("own/.new", "wb").write(bytes(size))
    os.rename("own/.new", f"own/step-{time.monotonic_ns()}.txt")
    time.sleep(1)
'''
with tempfile.TemporaryDirectory() as folder:
    os.mkdir(f"{folder}/own")
    for sizes, num_kept in ((["150000"] * 3, 2), (["500000"], 0)):
        kept = f"{disk}/kept-{num_kept}"
        words = [sys.executable, "-m", "exact_resume", "--checkpoint-directory", kept, "--watch=own"]
        words += ["--whole=rename:step-*.txt", "--", sys.executable, "-c", write, *sizes]
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
        found = [name for name in os.listdir(kept) if name.startswith("step-")]
        print(done.stderr, found, file=sys.stderr)
        assert (done.returncode, len(found)) == (1, num_kept)
        assert "No space left" in done.stderr
        assert not os.path.exists(f"{kept}/result.json")
        subprocess.run(["rm", "-r", kept])
        subprocess.run(["rm", "-r", "own/.exact_resume"], cwd=folder)
        for name in os.listdir(f"{folder}/own"):
            os.unlink(f"{folder}/own/{name}")
"""


@pytest.mark.slow
def test_a_full_disk_is_no_success_and_keeps_what_is_committed(run_on_disk: RunOnDisk) -> None:
    done = run_on_disk(FULL)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_checkpoints_on_gs(wrapped: Wrapped, server: CloudStorage) -> None:
    wrapped.directory = "gs://b/kept"
    wrapped.environment |= server.environment
    wrapped.environment["HOLD"] = "10"
    process = wrapped.start()
    until(lambda: storage.exists("gs://b/kept/step-000000001/manifest.json"))
    process.kill()
    process.communicate()
    del wrapped.environment["HOLD"]
    (wrapped.folder / "own").rename(wrapped.folder / "lost")
    code, stdout, stderr = wrapped.run()
    assert (code, stdout.splitlines()[-1]) == (0, expected_end()), stderr
    assert stdout.splitlines()[0] != "resumed at 0"
    assert result_file.is_finished("gs://b/kept")
    assert [event["event"] for event in event_log.read("gs://b/kept")][-1] == "exit"
    assert wrapped.run()[:2] == (0, "")


@pytest.mark.slow
def test_a_command_whose_last_checkpoint_does_not_reach_the_bucket_is_not_finished(
    wrapped: Wrapped, server: CloudStorage
) -> None:
    wrapped.directory = "gs://b/kept"
    wrapped.environment |= server.environment
    server.faults.fail(10_000, 403, matching="step-0000")
    code, stdout, stderr = wrapped.run()
    assert (code, stdout.splitlines()[-1]) == (1, expected_end())
    assert "the command ended with 0, the exit code is 1: its end could not be committed" in stderr
    assert not storage.exists("gs://b/kept/result.json")
    server.faults.clear()
    code, stdout, _ = wrapped.run()
    assert (code, stdout.splitlines()[0], stdout.splitlines()[-1]) == (0, "resumed at 0", expected_end())
