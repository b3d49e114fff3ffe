"""The examples: killed and stopped at any step, each ends with the same bits, after the same examples per step."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from exact_resume.checkpoints import result_file
from exact_resume.sampler import order

EXAMPLES = Path(__file__).parents[1] / "examples"
MAX_LINES = 100
TORCH = Path(__file__).parents[3] / ".venv-torch" / "bin" / "python"
"""The interpreter of `make venv-torch`."""


def seen(folder: Path) -> dict[int, str]:
    """Return the examples of each step; a step that was repeated had the same ones."""
    found: dict[int, str] = {}
    for line in folder.with_name(f"{folder.name}.seen").read_text().splitlines():
        step, _, examples = line.partition(" ")
        assert found.setdefault(int(step), examples) == examples
    return found


@pytest.mark.parametrize(
    ("name", "modules", "faults"),
    [
        ("numpy_softmax.py", "", ["__next__:437:9", "__next__:612:15", "__next__:999:9"]),
        pytest.param(
            "sklearn_table.py",
            "sklearn",
            ["__next__:137:9", "__next__:301:15"],
            marks=[pytest.mark.slow, pytest.mark.soak],
            id="sklearn",
        ),
        # The last step of an epoch, with its validation, is 30 steps after that of the one before.
        pytest.param(
            "keras_fit.py",
            "keras,tensorflow,sklearn",
            ["__next__:41:9", "evaluation:119:15"],
            marks=pytest.mark.slow,
            id="keras",
        ),
        pytest.param(
            "keras_fit.py",
            "keras,tensorflow,sklearn",
            ["__next__:41:9", "__next__:74:15", "evaluation:119:9", "evaluation:149:15"],
            marks=[pytest.mark.slow, pytest.mark.soak],
            id="keras-often",
        ),
    ],
)
def test_an_example_ends_as_without_interruption(name: str, modules: str, faults: list[str], tmp_path: Path) -> None:
    for module in filter(None, modules.split(",")):
        pytest.importorskip(module)
    script = Path(__file__).with_name("disturbed.py")
    words = [sys.executable, str(script), str(EXAMPLES / name), modules, str(tmp_path), *faults]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    whole, *ended, disturbed, _ = re.split(r"^exit (.*)\n", done.stdout, flags=re.M)[::2]
    codes = [int(code) for code in re.findall(r"^exit (.*)$", done.stdout, re.M)]
    signals = [int(fault.rpartition(":")[2]) for fault in faults]
    assert codes == [0, *(-9 if number == 9 else 128 + number for number in signals), 0], done.stderr
    assert re.fullmatch(r"[0-9a-f]{64}", whole.splitlines()[-1])
    assert disturbed.splitlines()[-1] == whole.splitlines()[-1]
    assert whole.splitlines()[-1] not in "".join(ended)
    assert seen(tmp_path / "disturbed") == seen(tmp_path / "whole")
    results = [result_file.read_result(str(tmp_path / each)) or {} for each in ("whole", "disturbed")]
    assert results[0]["metrics"] == results[1]["metrics"]
    assert [each["num_restarts"] for each in results] == [0, len(faults)]


def program_of(page: str, module: str) -> str:
    """Return the program of a page that uses a module."""
    text = (EXAMPLES.parent / "docs" / page).read_text(encoding="utf-8")
    programs = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
    (program,) = [each for each in programs if f"import {module}\n" in each]
    return str(program)


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize(
    ("page", "module", "faults"),
    [
        ("boosting.md", "xgboost", ["__next__:17:15", "__next__:40:9"]),
        ("boosting.md", "lightgbm", ["__next__:17:15", "__next__:40:9"]),
        ("jax.md", "jax", ["__next__:4000:15", "__next__:9001:9"]),
    ],
)
def test_a_program_of_a_page_ends_as_without_interruption(
    page: str, module: str, faults: list[str], tmp_path: Path
) -> None:
    python = TORCH if page == "boosting.md" else Path(sys.executable)
    if not python.exists() or subprocess.run([str(python), "-c", f"import {module}"], capture_output=True).returncode:
        pytest.skip(f"needs {module}: make venv-torch")
    (tmp_path / "program.py").write_text(program_of(page, module))
    script = Path(__file__).with_name("disturbed.py")
    words = [str(python), str(script), str(tmp_path / "program.py"), module, str(tmp_path), *faults]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    whole, _, _, last, _ = re.split(r"^exit .*\n", done.stdout, flags=re.M)
    assert re.findall(r"^exit (.*)$", done.stdout, re.M) == ["0", "143", "-9", "0"]
    assert whole == last != ""
    stopped_in = int(faults[0].split(":")[1])
    assert f"resumes at step {stopped_in + 1} of" in done.stderr


@pytest.mark.slow
@pytest.mark.soak
def test_a_snapshot_of_catboost_is_restored_on_another_machine(tmp_path: Path) -> None:
    if not TORCH.exists():
        pytest.skip("needs CatBoost: make venv-torch")
    (tmp_path / "train.py").write_text(program_of("boosting.md", "catboost"))
    wrapper = ["-m", "exact_resume", "--checkpoint-directory", "../RUN", "--watch", "saves"]
    program = [str(TORCH), "../train.py"]
    words = [str(TORCH), *wrapper, "--whole", "rename:snapshot-*", "--", *program]
    lines = []
    for name in ("whole", "killed", "another"):
        folder = tmp_path / name
        (folder / "saves").mkdir(parents=True)
        if name == "killed":
            with (folder / "output").open("w") as output:
                process = subprocess.Popen(words, cwd=folder, stdout=output, stderr=output, start_new_session=True)
            while not [*tmp_path.glob("RUN/step-*/manifest.json")]:
                assert process.poll() is None, (folder / "output").read_text()
                time.sleep(0.01)
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            continue
        done = subprocess.run(
            program if name == "whole" else words, cwd=folder, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
        lines.append(done.stdout.splitlines()[-1])
    assert lines[0] == lines[1]
    assert "\n0:" not in f"\n{done.stdout}"


class TorchRun:
    """Starts of an example with PyTorch in one folder."""

    def __init__(self, example: str, folder: Path) -> None:
        self.example, self.folder = example, folder
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self._port = listener.getsockname()[1]
        self._processes: list[subprocess.Popen[str]] = []

    def start(self, count: int, *, until_step: int = 0) -> list["subprocess.Popen[str]"]:
        """Start workers; return once the first one has done a step, if there is one to wait for."""
        started = []
        for rank in range(count):
            own = {"RANK": str(rank), "WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1"}
            own |= {"MASTER_PORT": str(self._port), "EXAMPLES_SEEN": f"{self.folder}.seen"}
            words = [str(TORCH), str(EXAMPLES / self.example), str(self.folder)]
            pipe = subprocess.PIPE
            started.append(subprocess.Popen(words, env=os.environ | own, stdout=pipe, stderr=pipe, text=True))
        self._processes += started
        while until_step and f"\n{until_step} " not in self._text(count, 0):
            assert started[0].poll() is None, started[0].communicate()
            time.sleep(0.01)
        return started

    def _text(self, count: int, rank: int) -> str:
        path = self.folder.with_name(f"{self.folder.name}.seen-{count}-{rank}")
        return path.read_text() if path.exists() else ""

    def seen(self, count: int) -> dict[int, list[int]]:
        """Return the examples that all workers together had in each step; a repeated one had the same."""
        shards: dict[tuple[int, int], str] = {}
        for rank in range(count):
            for line in self._text(count, rank).splitlines():
                step, _, examples = line.partition(" ")
                assert shards.setdefault((int(step), rank), examples) == examples
        steps = {step for step, _ in shards if all((step, rank) in shards for rank in range(count))}
        return {step: [int(row) for rank in range(count) for row in shards[step, rank].split()] for step in steps}

    def kill(self) -> None:
        """Kill what is left."""
        for process in self._processes:
            process.kill()
            process.communicate()


def codes(processes: list["subprocess.Popen[str]"]) -> list[int]:
    """Wait; return exit codes, with 134 for SIGABRT."""
    found = [process.wait(300) for process in processes]
    return [134 if code == -signal.SIGABRT else code for code in found]


@pytest.fixture
def torch_runs(example: str, tmp_path: Path) -> Iterator[list[TorchRun]]:
    """Return two runs."""
    if not TORCH.exists():
        pytest.skip("needs PyTorch in an environment of its own: make venv-torch")
    runs = [TorchRun(example, tmp_path / name) for name in ("whole", "disturbed")]
    yield runs
    for run in runs:
        run.kill()


def all_steps(num_steps: int, num_examples: int, batch_size: int, seed: int) -> dict[int, list[int]]:
    """Return the examples of each step; a short batch at the end of an epoch is left out."""
    per_epoch = num_examples // batch_size
    firsts = [(step // per_epoch, step % per_epoch * batch_size) for step in range(num_steps)]
    return {
        step: order(first, first + batch_size, seed, epoch, num_examples).tolist()
        for step, (epoch, first) in enumerate(firsts)
    }


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize(
    ("example", "steps"),
    [("torch_ddp.py", (130, 310)), ("hugging_face_digits.py", (40, 75)), ("accelerate_digits.py", (70, 190))],
)
def test_two_processes_of_pytorch_end_as_without_interruption(
    torch_runs: list[TorchRun], steps: tuple[int, int]
) -> None:
    """A real DataLoader reads ahead in two processes of each worker; the model drops out units."""
    whole, disturbed = torch_runs
    started = whole.start(2)
    expected = {process.communicate(timeout=300)[0].splitlines()[-1] for process in started}
    assert codes(started) == [0, 0]
    killed = disturbed.start(2, until_step=steps[0])
    killed[1].kill()
    assert codes(killed) == [134, -9]
    assert "lost a peer worker (worker 1: its connection ended)" in killed[0].communicate()[1]
    stopped = disturbed.start(2, until_step=steps[1])
    stopped[1].terminate()
    assert codes(stopped) == [143, 143]
    last = disturbed.start(2)
    assert {process.communicate(timeout=300)[0].splitlines()[-1] for process in last} == expected
    assert len(expected) == 1


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize(
    ("example", "steps", "expected"),
    [
        ("torch_ddp.py", (130, 310), all_steps(600, 3000, 64, 0)),
        ("hugging_face_digits.py", (40, 75), all_steps(120, 1500, 50, 42)),
        ("accelerate_digits.py", (70, 190), all_steps(300, 1500, 64, 0)),
    ],
    ids=["torch_ddp", "hugging_face", "accelerate"],
)
def test_with_one_two_and_one_processes_of_pytorch_the_batches_are_equal(
    torch_runs: list[TorchRun], steps: tuple[int, int], expected: dict[int, list[int]]
) -> None:
    """The steps are in mid-epoch: an epoch has 46, or 30."""
    _, run = torch_runs
    for count, step in zip((1, 2), steps, strict=True):
        started = run.start(count, until_step=step)
        started[0].terminate()
        assert codes(started) == [143] * count
    last = run.start(1)
    assert codes(last) == [0]
    assert "the run continues with 1 worker(s) instead of 2" in last[0].communicate()[1]
    alone, together = run.seen(1), run.seen(2)
    assert steps[1] in together
    assert steps[1] not in alone
    assert alone | together == expected
    assert not alone.keys() & together.keys()
    metrics = (result_file.read_result(str(run.folder)) or {})["metrics"]
    assert metrics.get("accuracy", 1) > 0.95


def test_examples_are_short() -> None:
    lines = {path.name: len(path.read_text().splitlines()) for path in EXAMPLES.glob("*.py")}
    assert lines
    assert max(lines.values()) < MAX_LINES
