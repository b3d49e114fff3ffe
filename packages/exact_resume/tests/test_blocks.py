"""Blocks of steps with validations, the best step and early stopping, ended at any moment."""

import contextlib
import http.server
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import exact_resume
from exact_resume import EarlyStopping, InputError, RunError
from exact_resume.checkpoints import checkpoints, manifest, result_file
from exact_resume.checkpoints.checkpoints import Best
from exact_resume.events import log as event_log
from vertex_testing.forks import Process
from vertex_testing.programs import TRAININGS

PROGRAM = """
import os, random, signal, sys
import numpy as np
import exact_resume

folder, *faults = sys.argv[1:]
random.seed(3), np.random.seed(3)
weights, num_parts = np.zeros(2), 5


def fault(*where):
    if ":".join(map(str, where)) in faults:
        os.kill(os.getpid(), getattr(signal, faults[-1]))


with exact_resume.run(folder, steps=40, state={"weights": weights}, validate_every_steps=7, save_every_steps=3,
                      early_stopping=exact_resume.EarlyStopping(patience=3),
                      save_every_seconds=0, peer_timeout_seconds=20) as run:
    run.boundary(10)
    for block in run.blocks():
        for step in range(block.first_step, block.first_step + block.num_steps):
            weights += random.random() + np.random.random() + step
            fault("step", step)
        if block.num_steps:
            run.log(loss=weights.sum())
        if run.is_validation_due:
            losses = []
            for part in run.validation(num_parts):
                fault("part", run.step, part)
                losses.append(random.random() + part)
            # The best is that of step 14.
            run.score(loss=abs(run.step - 14) + 1 + sum(losses) * 1e-6)
        fault("end", run.step)
    fault("after", 0)
    run.result(metrics={"sum": float(weights.sum())})
print(weights.tobytes().hex(), random.random(), np.random.random())
"""


def start(program: Path, folder: Path, *faults: str, **environment: str) -> Process:
    env = {**os.environ, **environment}
    return TRAININGS.start([program, folder, *faults], env=env, stderr=subprocess.PIPE)


def ended(process: Process) -> tuple[int, str, str]:
    stdout, stderr = process.communicate(timeout=120)
    return process.returncode, stdout, stderr


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("program") / "train.py"
    path.write_text(PROGRAM)
    return path


def outcome(folder: Path) -> dict[str, Any]:
    """Return what an undisturbed run has as well."""
    result = result_file.read_result(str(folder))
    assert result
    newest = checkpoints.load(str(folder), checkpoints.steps(str(folder))[0])
    fields = ("run_id", "final_step", "stop_reason", "best_step", "validation_loss", "metrics")
    return {name: result[name] for name in fields} | {"history": newest.validations, "best": newest.best}


@pytest.fixture(scope="module")
def undisturbed(program: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    code, stdout, stderr = ended(start(program, folder))
    assert code == 0, stderr
    found = outcome(folder)
    assert (found["final_step"], found["best_step"]) == (35, 14)
    assert found["stop_reason"] == "no improvement in 3 validations"
    assert [score.step for score in found["history"]] == [7, 14, 21, 28, 35]
    return stdout, found


FAULTS = [
    ("step:4", "SIGKILL"),
    ("step:5", "SIGTERM"),
    ("part:7:0", "SIGTERM"),
    ("part:14:2", "SIGKILL"),
    ("part:14:4", "SIGTERM"),
    ("end:14", "SIGKILL"),
    ("step:20", "SIGTERM"),
    ("part:35:1", "SIGINT"),
    ("end:35", "SIGTERM"),
    ("after:0", "SIGKILL"),
]
"""Where a signal comes, and which."""


def test_a_run_that_is_ended_anywhere_ends_as_an_undisturbed_one(
    program: Path, undisturbed: tuple[str, dict[str, Any]], tmp_path: Path
) -> None:
    stdout, expected = undisturbed
    codes = []
    for where, number in FAULTS:
        code, _, stderr = ended(start(program, tmp_path / "run", where, number))
        codes.append(code)
        assert code in (-signal.SIGKILL, 130, 143), stderr
        if where.startswith("part") and number != "SIGKILL":
            _, step, part = map(str, where.split(":"))
            newest = checkpoints.load(str(tmp_path / "run"), int(step))
            # After its last part, a validation counts.
            assert newest.is_validated == (part == "4")
            assert (newest.validations[-1:] or (Best(),))[0].step == int(step) - 7 * (part != "4")
    code, found, stderr = ended(start(program, tmp_path / "run"))
    assert code == 0, stderr
    assert (found, outcome(tmp_path / "run")) == (stdout, expected)
    # A finished run computes nothing, and keeps its result.
    assert ended(start(program, tmp_path / "run"))[0] == 0
    assert outcome(tmp_path / "run") == expected


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.slow
def test_kills_at_random_moments_change_nothing(
    program: Path, undisturbed: tuple[str, dict[str, Any]], tmp_path: Path, seed: int
) -> None:
    rng, stdout = random.Random(seed), ""
    for attempt in range(40):
        process = start(program, tmp_path / "run")
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.15 + rng.random() * 0.4 + attempt / 20)
        if process.poll() is None:
            process.send_signal(rng.choice([signal.SIGKILL, signal.SIGTERM]))
        code, stdout, stderr = ended(process)
        assert code in (0, -signal.SIGKILL, -signal.SIGTERM, 143), stderr
        if code == 0:
            break
    assert (stdout, outcome(tmp_path / "run")) == undisturbed


@pytest.mark.parametrize("place", range(2))
def test_two_workers_stop_in_a_validation_with_one_step_and_end_as_undisturbed_ones(
    program: Path, undisturbed: tuple[str, dict[str, Any]], tmp_path: Path, place: int
) -> None:
    def started(*faults: str) -> list[tuple[int, str, str]]:
        addresses = [f"127.0.0.1:{port}" for port in free_ports(2)]
        processes = []
        for index in range(2):
            config = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}}
            own = faults if index == place else ()
            processes.append(start(program, tmp_path / "run", *own, TF_CONFIG=json.dumps(config)))
        return [ended(process) for process in processes]

    assert [code for code, _, _ in started("part:14:0", "SIGTERM")] == [143, 143]
    newest = checkpoints.load(str(tmp_path / "run"), 14)
    assert not newest.is_validated
    done = started()
    assert [code for code, _, _ in done] == [0, 0], done
    stdout, expected = undisturbed
    assert [found for _, found, _ in done] == [stdout, stdout]
    assert outcome(tmp_path / "run") == expected


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in sockets]


def make(folder: Path, weights: Any, **options: Any) -> exact_resume.Run:
    return exact_resume.run(folder, state={"weights": weights}, **{"steps": 20, "save_every_seconds": 0} | options)


def test_no_block_crosses_a_save_a_validation_or_a_boundary(tmp_path: Path) -> None:
    weights, ends = np.zeros(1), []
    with make(tmp_path / "run", weights, steps=10_000, save_every_steps=900, validate_every_steps=1000) as run:
        run.boundary(3333)
        for block in run.blocks():
            ends.append(block.first_step + block.num_steps)
            assert block.num_steps > 0
            if run.is_validation_due:
                assert list(run.validation(3)) == [0, 1, 2]
                assert not run.is_validation_due
                run.score(accuracy=run.step / 1e5)
            assert list(run.validation(3)) == []
    assert run.step == 10_000
    assert {*range(900, 10_000, 900), *range(1000, 10_001, 1000), 3333} <= {*ends}
    # Steps without any work fill long blocks, which grow by a factor of 4.
    assert len(ends) < 40
    assert result_file.read_result(str(tmp_path / "run"))["best_step"] == 10_000  # type: ignore[index]


def test_the_program_of_the_page_runs_and_stops_early(tmp_path: Path) -> None:
    page = (Path(__file__).parents[1] / "docs" / "blocks.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)
    weights = np.zeros(1)

    def train(first_step: int, num_steps: int) -> float:
        weights[:] = first_step + num_steps
        return 1.0

    names = {"state": {"weights": weights}, "folder": tmp_path / "run", "train": train}
    exec(text, {"exact_resume": exact_resume, "validate": lambda part: abs(weights[0] - 300) + part, **names})
    result = result_file.read_result(str(tmp_path / "run"))
    assert result
    assert (result["best_step"], result["final_step"]) == (300, 800)


def test_a_validation_that_is_left_out_or_cut_short_is_refused(tmp_path: Path) -> None:
    def train(num_parts: int) -> None:
        with make(tmp_path / str(num_parts), np.zeros(1), validate_every_steps=5) as run:
            for _ in run.blocks():
                for _ in zip(range(num_parts), run.validation(3), strict=False):
                    run.score(accuracy=1.0)

    for num_parts in range(2):
        with pytest.raises(InputError, match="the validation after step 5 was left out"):
            train(num_parts)
        events = event_log.read(str(tmp_path / str(num_parts)))
        assert not [event for event in events if event["event"] == "evaluate"]


def test_what_has_no_validation_is_refused_by_name(tmp_path: Path) -> None:
    with make(tmp_path / "a", np.zeros(1)) as run:
        for _ in run.blocks():
            with pytest.raises(InputError, match="validate_every_steps=N"):
                run.score(accuracy=1.0)
    with make(tmp_path / "b", np.zeros(1), validate_every_steps=5) as run:
        with pytest.raises(InputError, match=r"run\.blocks"):
            iter(run)
        with pytest.raises(InputError, match=r"run\.blocks"):
            list(run.validation(3))
        run._reason = "enough"
    for value in (-1, 1.5, True):
        with pytest.raises(InputError, match="validate_every_steps"):
            make(tmp_path / "c", np.zeros(1), validate_every_steps=value)


@pytest.mark.parametrize("numbers", [{}, {"loss": float("nan")}, {"accuracy": float("inf"), "loss": 0.0}])
def test_scores_that_are_no_numbers_are_refused(tmp_path: Path, numbers: dict[str, float]) -> None:
    with make(tmp_path / "run", np.zeros(1), steps=1) as run:
        for _ in run:
            with pytest.raises(RunError, match="expected finite numbers"):
                run.score(**numbers)  # type: ignore[arg-type]


def test_a_loop_of_single_steps_has_a_best_step_and_ends_early_too(tmp_path: Path) -> None:
    weights = np.zeros(1)
    rule = EarlyStopping(patience=2, minimum_gain=0.5)
    with make(tmp_path / "run", weights, keep_checkpoints=1, early_stopping=rule) as run:
        for step in run:
            weights += 1
            if step % 3 == 2:
                run.score(score=-abs(step - 5.0), metric="closeness")
    result = result_file.read_result(str(tmp_path / "run"))
    assert result
    assert (result["best_step"], result["final_step"], result["score"]) == (6, 12, 0.0)
    assert result["stop_reason"] == "no improvement of 0.5 in 2 validations"
    assert checkpoints.load(str(tmp_path / "run"), 6).arrays[0].tolist() == [6.0]
    scores = [event for event in event_log.read(str(tmp_path / "run")) if event["event"] == "evaluate"]
    assert [(each["step"], each["metric"], each["is_best"]) for each in scores] == [
        (3, "closeness", True),
        (6, "closeness", True),
        (9, "closeness", False),
        (12, "closeness", False),
    ]


def test_a_lost_best_checkpoint_ends_the_run_with_an_error_and_the_next_start_makes_it_again(tmp_path: Path) -> None:
    def train(*, is_lost: bool) -> float:
        weights = np.zeros(1)
        with make(tmp_path / "run", weights, save_every_steps=4) as run:
            for step in run:
                weights += 1
                if (step + 1) % 4 == 0:
                    run.score(accuracy=1 - abs(step - 7) / 100)
                if is_lost and step == 15:
                    shutil.rmtree(tmp_path / "run" / manifest.name(8))
            run.result(metrics={"sum": float(weights.sum())})
        return float(weights.sum())

    with pytest.raises(RunError, match="the best checkpoint, of step 8, was lost"):
        train(is_lost=True)
    result = result_file.read_result(str(tmp_path / "run"))
    assert result
    assert (result["lost_best_step"], result["metrics"]) == (8, {"sum": 20.0})
    assert not result_file.is_finished(str(tmp_path / "run"))
    assert train(is_lost=False) == 20.0
    result = result_file.read_result(str(tmp_path / "run"))
    assert result
    assert (result["best_step"], result["lost_best_step"]) == (8, None)


class _Metadata(http.server.BaseHTTPRequestHandler):
    """Announces a preemption once it is due."""

    is_due = threading.Event()

    def do_GET(self) -> None:
        is_asked = "preempted" in self.path and "last_etag=0" in self.path
        if not is_asked or not self.is_due.wait(30):
            time.sleep(30)
        text = b"TRUE"
        self.send_response(200)
        for name, value in {"Metadata-Flavor": "Google", "ETag": "1", "Content-Length": str(len(text))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *arguments: Any) -> None:
        """Print nothing."""


@pytest.fixture
def preempt(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Metadata)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("GCE_METADATA_HOST", f"127.0.0.1:{server.server_port}")
    yield _Metadata.is_due.set
    server.shutdown()
    server.server_close()
    _Metadata.is_due.clear()


def test_a_notice_in_a_validation_saves_within_one_part_and_the_validation_goes_to_its_end(
    preempt: Callable[[], None], tmp_path: Path
) -> None:
    folder, seen, drawn = str(tmp_path / "run"), list[int](), list[float]()
    random.seed(1)
    with make(tmp_path / "run", np.zeros(1), steps=5, validate_every_steps=5) as run:
        for block in run.blocks():
            drawn += [random.random() for _ in range(block.num_steps)]
            if not run.is_validation_due:
                continue
            for part in run.validation(100_000):
                preempt()
                random.random()
                time.sleep(0.01)
                seen.append(part)
                if checkpoints.steps(folder):
                    break
            else:
                raise AssertionError("nothing was saved")
            saved = checkpoints.load(folder, 5)
            assert (saved.step, saved.is_validated) == (5, False)
            for _ in run.validation(2):
                pass
            run.score(loss=1.0)
    assert len(seen) < 1000
    last, drawn = checkpoints.load(folder, 5), [*drawn, random.random()]
    assert last.is_validated
    # The checkpoint within the validation has the generators of before it, and so has what follows.
    assert all(map(np.array_equal, saved.arrays, last.arrays))
    random.seed(1)
    assert drawn == [random.random() for _ in range(6)]
