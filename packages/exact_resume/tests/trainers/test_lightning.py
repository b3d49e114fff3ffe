"""Lightning's `fit`: killed and stopped at any point, it ends with the bits of an undisturbed one."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from exact_resume.checkpoints import result_file

PROGRAM, REFUSALS = (Path(__file__).with_name(f"lightning_{name}.py") for name in ("cases", "refusals"))
ROOT = Path(__file__).parents[4]
TORCH = ROOT / ".venv-torch" / "bin" / "python"
"""The interpreter of `make venv-torch`."""
EXAMPLE = Path(__file__).parents[2] / "examples" / "lightning_digits.py"
USUAL = ("on_train_batch_start:9:9", "on_train_batch_end:16:15")
FAULTS = {
    # In the first second, in a save, in a validation.
    "plain": ("on_train_batch_start:0:9", "write:6:9", "on_validation_batch_end:13:9", "torn:17:9"),
    # The second is between the two batches of an update.
    "accumulate": ("on_train_batch_start:9:9", "on_train_batch_start:17:15"),
    "checkpoint": ("on_train_batch_start:9:9", "on_validation_batch_end:20:15"),
    # A finished run is started again: it trains no step, and gives the same model.
    "ema": (*USUAL, "none:0:0"),
    "early": (*USUAL, "none:0:0"),
    "manual": ("on_train_batch_start:9:9", "on_train_batch_start:17:15"),
    **dict.fromkeys(
        (
            *("step", "epoch", "plateau", "clip", "bf16", "interval", "iterations", "workers"),
            *("stream", "module", "attributes", "scaler", "compile"),
        ),
        USUAL,
    ),
}

pytestmark = [pytest.mark.slow, pytest.mark.soak, pytest.mark.timeout(3600)]


def run_torch(*words: object, timeout: float = 1800) -> "subprocess.CompletedProcess[str]":
    if not TORCH.exists():
        pytest.skip("needs Lightning in an environment of its own: make venv-torch")
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [str(TORCH), *map(str, words)], env=environment, capture_output=True, text=True, timeout=timeout
    )


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of all cases."""
    folder = tmp_path_factory.mktemp("lightning")
    done = run_torch(PROGRAM, "lightning", folder, *(",".join(each) for each in [(k, *v) for k, v in FAULTS.items()]))
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


def lines_of(path: Path) -> dict[tuple[str, ...], str]:
    """Return the lines of a log by kind, epoch and number; a repeated one was the same."""
    found: dict[tuple[str, ...], str] = {}
    for line in path.read_text().splitlines():
        words = line.split()
        assert found.setdefault(tuple(words[:3]), line) == line
    return found


def assert_equal(folder: Path, faults: Sequence[str]) -> None:
    expected = [{"9": -9, "15": 143, "0": 0}[each.rpartition(":")[2]] for each in faults]
    output = (folder / "disturbed.output").read_text()
    assert [*map(int, (folder / "codes").read_text().split())] == [0, *expected, 0], output[-3000:]
    whole, disturbed = (json.loads((folder / f"{name}.json").read_text()) for name in ("whole", "disturbed"))
    assert disturbed == whole
    logs = [lines_of(folder / f"{name}.log") for name in ("whole", "disturbed")]
    assert logs[0] == logs[1]
    assert {kind for kind, *_ in logs[0]} == {"batch", "validation", "start", "epoch"}
    results = [result_file.read_result(str(folder / name)) or {} for name in ("whole", "disturbed")]
    assert results[0]["metrics"] == results[1]["metrics"]
    assert [each["num_restarts"] for each in results] == [0, len([each for each in expected if each])]


@pytest.mark.parametrize("case", FAULTS)
def test_it_ends_as_without_faults(trained: Path, case: str) -> None:
    assert_equal(trained / case, FAULTS[case])
    # The first hooks of an epoch are called again where training resumes before it, and only there.
    output = (trained / case / "disturbed.output").read_text()
    _, *begins = [int(each or -1) for each in re.findall(r": run \w+ (?:resumes at step (\d+) of|starts at)", output)]
    for line, count in Counter((trained / case / "disturbed.log").read_text().splitlines()).items():
        if line.startswith("start "):
            epoch, step = map(int, line.split()[1:])
            # With manual optimization, a step of the run is a batch, of which an epoch has seven.
            num_done = 7 * epoch if case == "manual" else step
            assert count <= 1 + len([begin for begin in begins if begin < num_done]), line


def test_checkpoints_of_lightning_are_written_where_they_were_asked_for(trained: Path) -> None:
    assert len([*(trained / "checkpoint").glob("whole-own/epoch*.ckpt")]) == 2
    # Its default one, with the weights of the end, so that `test(ckpt_path="best")` works.
    (default,) = {each.name for each in (trained / "plain" / "checkpoints").glob("*.ckpt")}
    assert default == "epoch=4-step=28.ckpt"


def test_pytorch_lightning_is_the_same(tmp_path: Path) -> None:
    done = run_torch(PROGRAM, "pytorch_lightning", tmp_path, ",".join(["plateau", *USUAL]))
    assert done.returncode == 0, done.stderr[-3000:]
    assert_equal(tmp_path / "plateau", USUAL)


def test_what_cannot_be_resumed_is_refused_by_name(tmp_path: Path) -> None:
    done = run_torch(REFUSALS, "lightning", tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    found = dict(json.loads(each) for each in done.stdout.splitlines() if each.startswith('["'))
    expected = {
        "FSDPStrategy": "the trainer has a FSDPStrategy",
        "DeepSpeedStrategy": "the trainer has a DeepSpeedStrategy",
        "ModelParallelStrategy": "the trainer has a ModelParallelStrategy",
        "swa": "callback StochasticWeightAveraging",
        "finetuning": "callback BackboneFinetuning",
        "scheduler": "callback GradientAccumulationScheduler",
        "timer": "callback Timer",
        "exception": "callback OnExceptionCheckpoint",
        "rate": "callback LearningRateFinder",
        "reload": "reload_dataloaders_every_n_epochs",
        "ckpt_path": "leave ckpt_path out",
        "several": "Several trains with 2 loaders",
        "iterator": "Iterating trains with 1 loader",
        "length": "the number of steps is not known",
        "infinite": "the number of steps is not known",
        "manual": "the number of steps is not known",
        "early_stopping": "LightningCallback got early_stopping",
        "mode": "LightningCallback got mode='least'",
        # The attribute that another version has moved.
        "moved": "trainer.fit_loop.epoch_loop.advance does not exist in this version",
        "twice": "fit was called a second time",
    }
    assert {name: text for name, text in found.items() if expected[name] not in text} == {}
    assert found.keys() == expected.keys()


class Workers:
    """Starts of the example with several processes in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._processes: list[subprocess.Popen[str]] = []

    def start(self, count: int, *, until_step: int = 0, launcher: Sequence[str] = ()) -> "subprocess.Popen[str]":
        """Start the processes; return once the first one has begun a step, if there is one to wait for."""
        own = {"EXAMPLES_SEEN": f"{self.folder}.seen", "OMP_NUM_THREADS": "1"}
        words = [str(TORCH), *launcher, str(EXAMPLE), str(self.folder), str(count)]
        with Path(f"{self.folder}.output").open("a") as output:
            process = subprocess.Popen(
                words,
                env=os.environ | own,
                cwd=self.folder.parent,
                stdout=output,
                stderr=output,
                text=True,
                start_new_session=True,
            )
        self._processes.append(process)
        while until_step and until_step not in self.seen(count):
            assert process.poll() is None, Path(f"{self.folder}.output").read_text()[-3000:]
            time.sleep(0.05)
        return process

    def seen(self, count: int) -> dict[int, list[int]]:
        """Return the examples that all workers together had in each step; a repeated one had the same."""
        shards: list[dict[int, list[int]]] = []
        for rank in range(count):
            path = Path(f"{self.folder}.seen-{count}-{rank}")
            shards.append({})
            for line in path.read_text().rpartition("\n")[0].splitlines() if path.exists() else ():
                step, *rows = map(int, line.split())
                assert shards[-1].setdefault(step, rows) == rows
        return {
            step: [row for each in shards for row in each[step]]
            for step in shards[0]
            if all(step in each for each in shards)
        }

    def digests(self) -> set[str]:
        return {*re.findall(r"^[0-9a-f]{64}$", Path(f"{self.folder}.output").read_text(), re.M)}

    def kill(self) -> None:
        """Kill what is left."""
        for process in self._processes:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[list[Workers]]:
    """Return two runs."""
    if not TORCH.exists():
        pytest.skip("needs Lightning in an environment of its own: make venv-torch")
    found = [Workers(tmp_path / name) for name in ("whole", "disturbed")]
    yield found
    for each in found:
        each.kill()


def test_two_processes_of_either_launcher_end_as_without_interruption(runs: list[Workers]) -> None:
    whole, disturbed = runs
    assert whole.start(2).wait(900) == 0
    killed = disturbed.start(2, until_step=60)
    killed.kill()
    killed.wait()
    # Lightning's other process loses its peer, or is ended by the broken connection.
    disturbed.kill()
    stopped = disturbed.start(
        2, until_step=150, launcher=["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    )
    stopped.terminate()
    assert stopped.wait(300) != 0
    assert disturbed.start(2).wait(900) == 0
    assert len(whole.digests()) == 1
    assert disturbed.digests() == whole.digests()
    assert disturbed.seen(2) == whole.seen(2)
    result = result_file.read_result(str(disturbed.folder)) or {}
    assert (result["num_restarts"], result["final_step"]) == (2, 288)


def test_another_number_of_processes_continues_with_the_same_global_batches(runs: list[Workers]) -> None:
    whole, run = runs
    assert whole.start(1).wait(900) == 0
    stopped = run.start(1, until_step=60)
    stopped.terminate()
    assert stopped.wait(300) == 143
    assert run.start(2).wait(900) == 0
    alone, together = run.seen(1), run.seen(2)
    expected = whole.seen(1)
    assert together.items() <= expected.items()
    assert alone.items() <= expected.items()
    assert {*alone} | {*together} == {*range(288)}
    events = "".join(each.read_text() for each in run.folder.glob("events/*.jsonl"))
    assert "the run continues with 2 worker(s) instead of 1" in events


def test_the_example_is_rehearsed(tmp_path: Path) -> None:
    done = run_torch("-m", "exact_resume", "rehearse", "--", TORCH, EXAMPLE, tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert "resumes exactly: 10 steps with stops after 3, 4, 5" in done.stderr


def test_no_library_is_imported_before_the_program_does() -> None:
    program = "import sys, exact_resume; print({'torch', 'lightning', 'pytorch_lightning'} & {*sys.modules})\ntry:\n"
    program += "    exact_resume.LightningCallback('run')\nexcept exact_resume.InputError as error:\n    print(error)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.startswith("set()\nexact_resume.LightningCallback needs Lightning; import "), done.stderr


def test_the_example_is_short() -> None:
    assert len(EXAMPLE.read_text().splitlines()) < 60
