"""A program with `exact_resume.run`: killed, stopped and damaged at any moment, it ends as without interruption."""

import collections
import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import exact_resume
from exact_resume import InputError, Sampler, Stopped
from exact_resume.checkpoints import checkpoints, result_file
from exact_resume.events import log as event_log
from vertex_testing.forks import Process
from vertex_testing.programs import TRAININGS
from vertex_testing.small_disk import RunOnDisk, run_on_disk as run_on_disk

PROGRAM = """
import random, sys, time
import numpy as np
import exact_resume

folder, seconds = sys.argv[1], float(sys.argv[2])
weights, noise = np.zeros(3), np.random.default_rng(1)
history = {"norms": [], "momentum": np.zeros(3)}
data = np.random.default_rng(0).normal(size=(100, 3))
sampler = exact_resume.Sampler(num_examples=100, global_batch_size=8, seed=5)
with exact_resume.run(folder, steps=60, config={"rate": 0.1}, sampler=sampler, code=[__file__], save_every_steps=4,
                      state={"weights": weights, "noise": noise, "history": history}) as run, \\
        open(folder + ".seen", "a") as seen:
    for step in run:
        indices = sampler.shard(step, run)
        print(step, *indices, file=seen, flush=True)
        time.sleep(seconds)
        draws = noise.normal() + random.random() + np.random.random()
        history["momentum"] += data[indices].mean(axis=0) - weights + 0.01 * draws
        weights += 0.1 * history["momentum"]
        history["norms"].append(float(weights @ weights))
        run.log(loss=history["norms"][-1])
    with run.evaluation():
        random.seed(), np.random.seed()
    run.result(metrics={"norm": history["norms"][-1]})
print(weights.tobytes().hex(), sum(history["norms"]).hex(), noise.random().hex(), random.random(), np.random.random())
"""


@pytest.fixture(autouse=True)
def generators() -> None:
    """Each program of these tests starts with the same global random numbers, as one that seeds them does."""
    random.seed(3)
    np.random.seed(3)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("program") / "train.py"
    path.write_text("import random, numpy\nrandom.seed(3), numpy.random.seed(3)\n" + PROGRAM)
    return path


def start(program: Path, folder: Path, seconds: float = 0.0) -> Process:
    return TRAININGS.start([program, folder, str(seconds)], stderr=subprocess.PIPE)


def finish(process: Process) -> tuple[int, str, str]:
    stdout, stderr = process.communicate(timeout=120)
    return process.returncode, stdout, stderr


@pytest.fixture(scope="module")
def undisturbed(program: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[int, str]]:
    """The last line of the program, and the examples of each step."""
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    code, stdout, stderr = finish(start(program, folder))
    assert code == 0, stderr
    return stdout, seen(folder)


def seen(folder: Path) -> dict[int, str]:
    """Return the examples of each step; a step that was repeated had the same ones."""
    found: dict[int, str] = {}
    for line in folder.with_name(folder.name + ".seen").read_text().splitlines():
        step, _, examples = line.partition(" ")
        assert found.setdefault(int(step), examples) == examples
    return found


def wait_for_step(folder: Path, step: int, process: Process, num_seen: int = 0) -> None:
    """Wait until a step is reached, not counting the first `num_seen` characters of what earlier starts noted."""
    path = folder.with_name(folder.name + ".seen")
    for _ in range(12_000):
        lines = path.read_text()[num_seen:].splitlines() if path.exists() else []
        if any(int(line.partition(" ")[0]) >= step for line in lines):
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.005)
    raise AssertionError(f"step {step} was not reached")


@pytest.mark.parametrize("seed", [0, *(pytest.param(each, marks=pytest.mark.slow) for each in range(1, 4))])
def test_sigkill_at_any_moment_changes_nothing(
    program: Path, undisturbed: tuple[str, dict[int, str]], tmp_path: Path, seed: int
) -> None:
    rng, folder = random.Random(seed), tmp_path / "run"
    for step in sorted(rng.sample(range(1, 60), 3)):
        noted = folder.with_name("run.seen")
        num_seen = len(noted.read_text()) if noted.exists() else 0
        process = start(program, folder, 0.01)
        wait_for_step(folder, step, process, num_seen)
        time.sleep(rng.random() * 0.01)
        process.kill()
        finish(process)
    code, stdout, stderr = finish(start(program, folder))
    assert (code, stdout, seen(folder)) == (0, *undisturbed), stderr
    assert "exact_resume: run" in stderr
    assert "resumes at step" in stderr
    result = result_file.read_result(str(folder))
    assert result
    assert (result["final_step"], result["num_restarts"]) == (60, 3)
    assert result_file.is_finished(str(folder))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_saves_the_step_and_nothing_after_the_loop_runs(
    program: Path, undisturbed: tuple[str, dict[int, str]], tmp_path: Path, number: signal.Signals
) -> None:
    folder = tmp_path / "run"
    process = start(program, folder, 0.01)
    wait_for_step(folder, 21, process)
    process.send_signal(number)
    code, stdout, stderr = finish(process)
    assert (code, stdout) == (128 + number, ""), stderr
    last = max(seen(folder))
    # The step that was under way is done and saved.
    assert checkpoints.steps(str(folder))[0] == last + 1
    assert (
        f"exact_resume: {number.name}: stopped after step {last + 1}; the checkpoint of step {last + 1} is saved"
        in (stderr.splitlines())
    )
    assert not (folder / "result.json").exists()
    code, stdout, stderr = finish(start(program, folder))
    assert (code, stdout, seen(folder)) == (0, *undisturbed), stderr
    assert len(folder.with_name("run.seen").read_text().splitlines()) == 60


@pytest.mark.slow
def test_a_damaged_checkpoint_is_never_restored(
    program: Path, undisturbed: tuple[str, dict[int, str]], tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    process = start(program, folder, 0.01)
    wait_for_step(folder, 30, process)
    process.send_signal(signal.SIGTERM)
    finish(process)
    newest = folder / f"step-{checkpoints.steps(str(folder))[0]:09d}" / "variables.npz"
    content = bytearray(newest.read_bytes())
    content[len(content) // 2] ^= 1
    newest.write_bytes(content)
    code, stdout, stderr = finish(start(program, folder))
    assert (code, stdout, seen(folder)) == (0, *undisturbed), stderr
    assert "is damaged and was skipped" in stderr


def test_a_finished_run_gives_the_same_again_and_trains_no_step(program: Path, tmp_path: Path) -> None:
    first = finish(start(program, tmp_path / "run"))
    before = (tmp_path / "run" / "result.json").read_bytes()
    second = finish(start(program, tmp_path / "run"))
    assert first[:2] == second[:2]
    assert len((tmp_path / "run.seen").read_text().splitlines()) == 60
    assert (tmp_path / "run" / "result.json").read_bytes() == before


RESULT = """
import os, sys
import numpy as np
import exact_resume
weights = np.zeros(2)
with exact_resume.run(sys.argv[1], steps=3, state={"weights": weights}) as run:
    for step in run:
        weights += 0.1
        loss = (weights - step).sum()
        run.log(loss=loss, ratio=float("nan") if step == 1 else step)
    if sys.argv[2:]:
        os.kill(os.getpid(), 9)
    run.result(metrics={"loss": run.logged["loss"]})
"""


def test_a_result_of_logged_numbers_is_right_after_a_kill_before_it_and_in_a_finished_run(tmp_path: Path) -> None:
    """A name that only the loop sets does not exist then."""
    (tmp_path / "train.py").write_text(RESULT)
    words = [sys.executable, str(tmp_path / "train.py"), str(tmp_path / "run")]
    codes = [subprocess.run([*words, *more], capture_output=True).returncode for more in (["kill"], [], [])]
    assert codes == [-9, 0, 0]
    result = result_file.read_result(str(tmp_path / "run")) or {}
    assert result["metrics"] == {"loss": float((np.array([0.1, 0.1]) + 0.1 + 0.1 - 2).sum())}


def _seconds_of_first_save(folder: Path, state: dict[str, Any]) -> float:
    with make(folder, steps=10**6, state=state) as run:
        for _ in run:
            time.sleep(0.02)
            if checkpoints.steps(str(folder)):
                run.finish("saved")
    events = {event["event"]: event["time"] for event in reversed(event_log.read(str(folder)))}
    return float(events["save"] - events["start"])


def test_the_first_save_comes_after_two_seconds_or_ten_copies(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The default alone decides; a copy of the second state takes 0.3 s."""
    slow = exact_resume.saved(None, save=lambda _: time.sleep(0.3), load=lambda _: None)
    assert _seconds_of_first_save(tmp_path / "fast", {"weights": np.zeros(2)}) >= 2
    assert _seconds_of_first_save(tmp_path / "slow", {"weights": np.zeros(2), "slow": slow}) >= 3
    assert f"starts at step 0: no checkpoint in {str(tmp_path / 'slow')!r}" in capsys.readouterr().err


@pytest.mark.parametrize("value", [collections.deque([1]), 1j, {(1, 2): 3}])
def test_a_kind_that_cannot_be_saved_is_refused_after_the_step_that_brings_it(tmp_path: Path, value: Any) -> None:
    held: dict[str, Any] = {}
    with pytest.raises(InputError, match=r"state 'held\.recent' "), make(tmp_path / "run", state={"held": held}) as run:  # noqa: PT012
        for _ in run:
            held["recent"] = value
    assert run.step == 1


class Tensor(float):
    """As one of PyTorch that keeps the memory of its step until it is detached."""

    def detach(self) -> float:
        return 2.5


def test_a_logged_tensor_is_detached(tmp_path: Path) -> None:
    with make(tmp_path / "run", steps=1) as run:
        for _ in run:
            run.log(loss=Tensor(1))
    assert run.logged == {"loss": 2.5}


def make(folder: Path | str, **arguments: Any) -> exact_resume.Run:
    given: dict[str, Any] = {"steps": 10, "state": {"weights": np.zeros(2)}, "config": {"lr": 0.1}}
    return exact_resume.run(folder, **given | arguments)


def test_an_exception_never_saves(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), make(tmp_path / "run", save_every_steps=4) as run:  # noqa: PT012
        for step in run:
            if step == 6:
                1 / 0  # noqa: B018
    assert checkpoints.steps(str(tmp_path / "run")) == [4]
    assert not (tmp_path / "run" / "result.json").exists()
    assert event_log.read(str(tmp_path / "run"))[-1]["code"] == 1


def test_break_without_finish_exits_with_1_and_is_not_finished(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left, make(tmp_path / "run") as run:  # noqa: PT012
        for step in run:
            if step == 3:
                break
    assert left.value.code == 1
    assert "the loop was left after step 3 of 10, so the run is not finished" in capsys.readouterr().err
    assert not (tmp_path / "run" / "result.json").exists()


@pytest.mark.parametrize("code", [None, 0])
def test_an_exit_with_0_before_the_end_becomes_1(tmp_path: Path, code: int | None) -> None:
    """A job that the service takes for done would never be finished."""
    with pytest.raises(SystemExit) as left, make(tmp_path / "run") as run:  # noqa: PT012
        next(run)
        sys.exit(code)
    assert left.value.code == 1
    assert event_log.read(str(tmp_path / "run"))[-1]["code"] == 1


def test_a_loop_without_with_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"write `with exact_resume\.run"):
        list(make(tmp_path / "run"))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("value", ["text", [1, 2], np.zeros(3), None])
def test_a_logged_value_that_is_not_a_number_is_refused_by_name(tmp_path: Path, value: Any) -> None:
    with pytest.raises(InputError, match=r"run\.log: loss is .*; expected numbers"), make(tmp_path / "run") as run:  # noqa: PT012
        for _ in run:
            run.log(loss=value)


def test_the_watchdog_waits_for_evaluations_and_for_what_follows_the_loop(tmp_path: Path) -> None:
    """It would abort these tests."""
    with make(tmp_path / "run", watchdog_seconds=0.4) as run:
        for step in run:
            if step == 3:
                with run.evaluation():
                    time.sleep(1)
        with run.evaluation():
            time.sleep(1)
        time.sleep(1)


def test_a_run_that_finishes_early_is_not_continued(tmp_path: Path) -> None:
    """Not even if it was killed between the last step and the result."""
    weights = np.zeros(2)
    with contextlib.suppress(ZeroDivisionError), make(tmp_path / "run", state={"weights": weights}) as run:
        for step in run:
            weights += 1
            if step == 3:
                run.finish("the loss no longer falls")
                break
        1 / 0  # noqa: B018
    assert not (tmp_path / "run" / "result.json").exists()
    weights = np.zeros(2)
    with make(tmp_path / "run", state={"weights": weights}) as run:
        assert list(run) == []
        assert weights.tolist() == [4, 4]
    result = result_file.read_result(str(tmp_path / "run"))
    assert result
    assert (result["final_step"], result["stop_reason"]) == (4, "the loss no longer falls")


def test_result_is_refused_while_steps_remain(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="7 of 10 steps remain; call result after the loop"):  # noqa: PT012
        with make(tmp_path / "run") as run:
            for step in run:
                if step == 3:
                    run.result()
    assert not (tmp_path / "run" / "result.json").exists()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), True, "0.5", None])
def test_a_metric_that_is_not_a_finite_number_is_refused(tmp_path: Path, value: Any) -> None:
    with pytest.raises(InputError, match="metric 'accuracy' is .*; expected a finite number"):  # noqa: PT012, RUF043
        with make(tmp_path / "run") as run:
            list(run)
            run.result(metrics={"accuracy": value})
    assert not (tmp_path / "run" / "result.json").exists()


def test_a_model_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist; write it before"), make(tmp_path / "run") as run:  # noqa: PT012
        list(run)
        run.result(model=tmp_path / "missing")


def files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("other", "named"),
    [
        ({"steps": 11}, "steps is 10 there and 11 here"),
        ({"config": {"lr": 0.2}}, "config.lr is 0.1 there and 0.2 here"),
        ({"config": {"lr": 0.1, "layers": [1]}}, "config.layers.0 is None there and 1 here"),
        ({"state": {"weights": np.zeros(3)}}, r"state.weights is '\(2,\) float64' there and '\(3,\) float64' here"),
        ({"state": {"weights": np.zeros(2, np.float32)}}, "float64' there and '.* float32' here"),
        ({"state": {"weights": np.zeros(2), "more": np.zeros(1)}}, "state.more is None there"),
        ({"sampler": Sampler(num_examples=9, global_batch_size=2)}, "sampler.global_batch_size is None there and 2"),
        ({"code": [__file__]}, "code.test_loop.py is None there"),
    ],
)
def test_another_run_in_the_folder_is_refused_by_name(tmp_path: Path, other: dict[str, Any], named: str) -> None:
    with make(tmp_path / "run") as run:
        list(run)
    before = files(tmp_path)
    with pytest.raises(InputError, match=named), make(tmp_path / "run", **other):
        pass
    assert files(tmp_path) == before


def test_code_that_changed_is_another_run(tmp_path: Path) -> None:
    code = tmp_path / "model.py"
    code.write_text("a = 1\n")
    with make(tmp_path / "run", code=[code]) as run:
        list(run)
    code.write_text("a = 2\n")
    with (
        pytest.raises(InputError, match=r"code\.model\.py is '[0-9a-f]+' there and"),
        make(tmp_path / "run", code=[code]),
    ):
        pass


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"steps": 0}, "steps is 0; expected a whole number, at least 1"),
        ({"steps": True}, "steps is True"),
        ({"steps": 1.5}, "steps is 1.5"),
        ({"save_every_seconds": -1}, "save_every_seconds is -1; expected a number of seconds"),
        ({"watchdog_seconds": float("nan")}, "watchdog_seconds is nan"),
        ({"keep_checkpoints": 0}, "keep_checkpoints is 0"),
        ({"peer_timeout_seconds": 0}, "peer_timeout_seconds is 0; expected a number of seconds, at least 1"),
        ({"state": {}}, "state is {}; expected a dict of objects"),
        ({"state": np.zeros(1)}, "state is array"),
        ({"config": {"lr": float("nan")}}, "config.lr is nan, a float; expected finite numbers"),
        ({"config": {"lr": np.float32(1)}}, r"config.lr is np.float32\(1.0\), a float32"),
        ({"config": {"a": [object]}}, "config.a.0 is <class 'object'>, a type"),
        ({"code": ["missing.py"]}, r"code 'missing.py' cannot be read \(No such file or directory\)"),
    ],
)
def test_a_wrong_argument_is_refused_by_name(tmp_path: Path, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make(tmp_path / "run", **arguments)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("directory", ["", "/"])
def test_an_empty_directory_does_not_fill_the_root_of_the_disk(directory: str) -> None:
    with pytest.raises(InputError, match="directory is empty or /; expected a folder"):
        make(directory)


def test_a_thread_is_refused_because_it_receives_no_signals(tmp_path: Path) -> None:
    found: list[BaseException] = []

    def work() -> None:
        try:
            with make(tmp_path / "run"):
                pass
        except InputError as error:
            found.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert "is used in a thread" in str(found[0])
    assert not (tmp_path / "run").exists()


def test_a_second_process_is_kept_out(program: Path, tmp_path: Path) -> None:
    with make(tmp_path / "run") as run:
        next(run)
        code, stdout, stderr = finish(start(program, tmp_path / "run"))
        assert (code, stdout) == (1, "")
        assert "contains another run" in stderr.splitlines()[-1]
        list(run)


def test_what_follows_the_loop_is_stopped_at_once(tmp_path: Path) -> None:
    with pytest.raises(Stopped) as stopped, make(tmp_path / "run") as run:  # noqa: PT012
        list(run)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)
    assert stopped.value.code == 143
    assert checkpoints.steps(str(tmp_path / "run"))[0] == 10


def test_handlers_of_signals_are_restored(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    with make(tmp_path / "run") as run:
        assert signal.getsignal(signal.SIGTERM) != before[0]
        list(run)
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before


def test_an_evaluation_changes_no_random_numbers(tmp_path: Path) -> None:
    with make(tmp_path / "run") as run:
        next(run)
        before = random.getstate(), np.random.get_state()[1].tolist()  # type: ignore[index]
        with run.evaluation():
            random.random(), np.random.random(1000)
        assert (random.getstate(), np.random.get_state()[1].tolist()) == before  # type: ignore[index]
        list(run)


def test_logged_numbers_are_means_in_the_event_log(tmp_path: Path) -> None:
    with make(tmp_path / "run") as run:
        for step in run:
            run.log(loss=np.float32(step), bad=float("inf"))
        with pytest.raises(InputError, match="has a field 'seconds' of its own"):
            run.log(seconds=1)
    events, num_skipped = event_log.read_complete(str(tmp_path / "run"))
    (steps,) = [event for event in events if event["event"] == "steps"]
    assert (steps["first_step"], steps["last_step"], steps["num_steps"], steps["loss"]) == (1, 10, 10, 4.5)
    assert "bad" not in steps
    assert [event["message"] for event in events if event["event"] == "notice"] == ["bad is inf in the steps 1 to 10"]
    assert num_skipped == 0


DISK = """
import os, sys
import numpy as np
import exact_resume
weights = np.zeros(int(sys.argv[2]) // 8)
with exact_resume.run(sys.argv[1] + "/run", steps=6, save_every_steps=1, keep_checkpoints=100,
                      state={"weights": weights}) as run:
    for step in run:
        weights += 1
        run._writer.close()
        if step == 3:
            with open(sys.argv[1] + "/filler", "wb", buffering=0) as file:
                try:
                    while True:
                        file.write(bytes(4096))
                except OSError:
                    pass
    # The last step is saved by now; the result needs room, too.
    os.remove(sys.argv[1] + "/filler")
print(weights[0])
"""


@pytest.mark.parametrize(("num_bytes", "code"), [(64_000, 0), (300_000, 1)])
def test_a_full_disk_costs_old_checkpoints_but_never_the_last_one(
    run_on_disk: RunOnDisk, num_bytes: int, code: int
) -> None:
    ended = run_on_disk(DISK, str(num_bytes))
    assert ended.returncode == code, ended.stderr
    if code:
        assert "exact_resume: the checkpoint of step 6 could not be saved" in ended.stderr
        assert "Traceback" not in ended.stderr
        assert "run again to resume from step 1" in ended.stderr
    else:
        assert ended.stdout == "6.0\n"
        assert "the disk is full: step-000000001 was removed for room" in ended.stderr


def test_a_run_in_a_bucket_resumes(server: Any) -> None:
    """Through the real client, against a server on loopback."""
    folder, weights = "gs://b/run", np.zeros(2)
    with pytest.raises(ZeroDivisionError), make(folder, state={"w": weights}, save_every_steps=2) as run:  # noqa: PT012
        for step in run:
            weights += 1
            run._writer.close()
            if step == 5:
                1 / 0  # noqa: B018
    with make(folder, state={"w": weights}, save_every_steps=2) as run:
        assert (run.step, weights.tolist()) == (4, [4, 4])
        for _ in run:
            weights += 1
    assert weights.tolist() == [10, 10]
    result = result_file.read_result(folder)
    assert result
    assert result["final_step"] == 10


ENDS = """
import sys
import numpy as np
import exact_resume

folder, rate, error = sys.argv[1], float(sys.argv[2]), sys.argv[3:]
try:
    exact_resume.run(folder, steps=0, state={})
except exact_resume.InputError:
    print("caught")
with exact_resume.run(folder, steps=3, config={"rate": rate}, state={"weights": np.zeros(1)}) as run:
    for step in run:
        if error:
            raise getattr(exact_resume, error[0], ValueError)("at fault")
"""


@pytest.mark.parametrize(
    ("words", "num_lines", "last"),
    [
        (["0.2"], 1, "contains another run: config.rate is 0.1 there and 0.2 here; give another folder, or restore"),
        (["0.1", "RunError"], 2, "exact_resume: error: at fault"),
        (["0.1", "ValueError"], 0, "ValueError: at fault"),
    ],
)
def test_a_refusal_that_a_script_does_not_catch_is_one_line_and_a_defect_keeps_its_traceback(
    tmp_path: Path, words: list[str], num_lines: int, last: str
) -> None:
    program, folder = tmp_path / "train.py", tmp_path / "run"
    program.write_text(ENDS)
    if words == ["0.2"]:
        subprocess.run([sys.executable, program, folder, "0.1"], check=True, capture_output=True)
    done = subprocess.run([sys.executable, program, folder, *words], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "caught\n")
    assert last in done.stderr.splitlines()[-1]
    assert ("Traceback" in done.stderr) == (num_lines == 0)
    assert num_lines == 0 or len(done.stderr.splitlines()) == num_lines
