"""The live view on terminals of 80 and 60 columns, with real runs."""

import json
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from google_cloud_pipeline_components.v1.custom_job import CustomTrainingJobOp
from kfp import dsl
from rich.cells import cell_len

from localvertex._base.compiled.spec import Component, Dag, TaskSpec
from localvertex.show.terminal import live
from localvertex.show.terminal.live import Live, replica_state
from localvertex.store.task import State, Task
from vertex_testing.runs import STEP, Compile
from vertex_testing.terminal import Terminal

TRAINING = Path(__file__).with_name("training.py")
RUN_ID = "a-run-whose-id-is-as-long-as-those-that-are-made-20261122030511"


@dsl.component(**STEP)
def measure() -> int:
    return 1


@dsl.pipeline(name="training")
def training(pools: list, base: str) -> None:
    job = CustomTrainingJobOp(display_name="train", worker_pool_specs=pools, base_output_directory=base)
    measure().after(job).set_display_name("measure the model that the training job has written")


@pytest.fixture
def words(compiled: Compile, tmp_path: Path) -> list[str]:
    """The command that runs a training job, which trains when `start` exists and ends when `end` does."""
    container = {"image_uri": "x", "command": ["python", str(TRAINING)], "args": [str(tmp_path)]}
    pools = [{"machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 1, "container_spec": container}]
    given = [f"--parameter=pools={json.dumps(pools)}", f"--parameter=base={tmp_path / 'out'}"]
    return [sys.executable, "-m", "localvertex", "run", str(compiled(training)), "--run-id", RUN_ID, *given]


@pytest.mark.parametrize("width", [80, 60])
def test_a_training_run_shows_ids_states_and_figures_whole(words: list[str], tmp_path: Path, width: int) -> None:
    terminal = Terminal(words, width=width, cwd=tmp_path)
    terminal.wait_for(r"^custom-training-job +RUNNING +\d.* s$")
    terminal.wait_for(r"^PENDING: measure the model that the training job has written$")
    (tmp_path / "start").touch()
    bar = terminal.wait_for(r"step 3 of 9")
    assert bar.startswith("  ━")
    assert bar.endswith("─  step 3 of 9, 10 min 0 s left")
    terminal.wait_for(r"^  loss 0\.1667, accuracy 0\.7500, 4,321 images/s$")
    (tmp_path / "end").touch()
    assert terminal.end() == 0, terminal.text
    drawn = [line for line in terminal.lines if any(word in line for word in ("RUNNING", "PENDING", "step ", "loss"))]
    assert max(map(cell_len, drawn)) <= width
    # The last line of a log may be cut, as that with the job's name is before the job has written one.
    assert "…" not in "".join(drawn)
    assert "oneDNN" not in terminal.text
    assert "cuFFT" not in terminal.text
    assert "absl" not in terminal.text
    assert f"run {RUN_ID} in {tmp_path}/runs/{RUN_ID}" in terminal.lines
    assert any(line.startswith(f"{RUN_ID}: SUCCEEDED after ") for line in terminal.lines)
    assert "\x1b[?25h" in terminal.written.decode(), "the cursor is shown again"


def test_without_a_terminal_it_prints_plain_lines(words: list[str], tmp_path: Path) -> None:
    for name in ("start", "end"):
        (tmp_path / name).touch()
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert "\x1b" not in done.stdout
    assert "custom-training-job: RUNNING" in lines
    assert f"report: {tmp_path}/runs/{RUN_ID}/run.html" in lines
    assert "━" not in done.stdout


def task_of(name: str, parent: Task | None = None, **values: Any) -> Task:
    """A step below its parent, or a root."""
    component = Component(name="c", executor="e") if parent else Component(name="d", dag=Dag(tasks={}))
    task = Task(
        spec=TaskSpec(name=name, display_name=name, component="c"),
        component=component,
        name=name,
        path=(name,) if parent else (),
        folder=Path("none"),
        parent=parent,
    )
    for field, value in values.items():
        setattr(task, field, value)
    if parent:
        parent.children[name] = task
    return task


@dsl.component(**STEP)
def wait(folder: str) -> bool:
    import pathlib
    import time

    while not pathlib.Path(f"{folder}/go").exists():
        time.sleep(0.05)
    return True


@dsl.pipeline(name="in-groups")
def in_groups(folder: str) -> None:
    waited = wait(folder=folder).set_caching_options(False)
    with dsl.If(waited.output == True):  # noqa: E712
        first = measure().set_caching_options(False)
        with dsl.If(first.output == 1):
            measure().set_caching_options(False)
            measure().set_caching_options(False)


def test_the_time_left_and_the_steps_that_follow_are_those_of_the_whole_pipeline(
    compiled: Compile, tmp_path: Path
) -> None:
    words = [sys.executable, "-m", "localvertex", "run", str(compiled(in_groups)), "-p", f"folder={tmp_path}"]
    terminal = Terminal([*words, "--run-id", "first"], width=80, cwd=tmp_path)
    # All that can follow is counted, even in groups that are not open yet; without an earlier run nothing is known.
    terminal.wait_for(r"^PENDING: up to 3 more$")
    assert " left, as in" not in terminal.text
    (tmp_path / "go").touch()
    assert terminal.end() == 0, terminal.text
    # After its first step, the earlier run went on for an hour.
    file = tmp_path / "runs" / "first" / "run.json"
    record = json.loads(file.read_text())
    ended = next(each["end_time"] for each in record["tasks"] if each["path"] == "wait")
    at = datetime.fromisoformat(ended) + timedelta(hours=1)
    record["tasks"][-1] |= {"end_time": at.isoformat(timespec="milliseconds").replace("+00:00", "Z")}
    file.write_text(json.dumps(record))
    (tmp_path / "go").unlink()
    terminal = Terminal([*words, "--run-id", "second"], width=80, cwd=tmp_path)
    terminal.wait_for(r"^about 1 h 0 min left, as in run first$")
    terminal.wait_for(r"^PENDING: up to 3 more$")
    (tmp_path / "go").touch()
    assert terminal.end() == 0, terminal.text


def test_the_replicas_of_a_job_have_one_form() -> None:
    root = task_of("root", state=State.RUNNING)
    replica = {"is_running": True, "exit_code": None, "num_steps": 9, "loss": 0.5, "seconds_left": 60.0}
    replicas = [
        replica | {"name": "workerpool0-0", "num_starts": 1, "step": 3},
        replica | {"name": "workerpool1-0", "num_starts": 2, "step": 6},
    ]
    task_of("train", root, state=State.RUNNING, started_at=1.0, custom_job={"replicas": replicas})
    _, *lines = [line.plain for line in live.Steps(root, 100, 20).lines]
    bars = [
        (f"  {name}: ", f"  {text}, 1 min 0 s left")
        for name, text in (("workerpool0-0", "step 3 of 9"), ("workerpool1-0", "step 6 of 9, start 2"))
    ]
    for line, (start, end) in zip(lines, bars, strict=False):
        assert line.startswith(f"{start}━")
        assert line.endswith(f"─{end}")
    assert lines[2:] == ["  loss 0.5"]


@pytest.mark.parametrize(("width", "height"), [(190, 50), (80, 24), (60, 10), (20, 5), (1, 1)])
def test_no_state_is_cut_however_small_the_terminal_is(width: int, height: int) -> None:
    root = task_of("root", state=State.RUNNING)
    replicas = [
        {"name": f"workerpool1-{number}", "is_running": True, "num_starts": 3, "exit_code": 9, "step": 7}
        | {"num_steps": 123456, "loss": 1.5, "accuracy": 0.5, "images_per_second": 12345.6, "seconds_left": 86400.0}
        for number in range(3)
    ]
    title = "a step whose name is far longer than any terminal of this test has columns to show, 你好"
    task_of(title, root, state=State.RUNNING, started_at=1.0, custom_job={"replicas": replicas})
    for number in range(100):
        task_of(f"step-{number}", root, state=State.RUNNING, started_at=1.0)
        task_of(f"waiting-{number}", root)
    lines = live.Steps(root, width, height).lines
    assert len(lines) <= max(height, 3)
    texts = [line.plain for line in lines]
    if width >= 60:
        assert texts[0].startswith(title)
        assert any(text.endswith(" more steps") for text in texts)
    if 60 <= width <= 80:
        assert texts[:2] == [title, texts[1]]
        assert texts[1].split()[0] == "RUNNING"
        assert max(map(cell_len, texts[1:])) <= width
    assert texts[-1].startswith("PENDING: waiting-0")
    assert texts[-1].endswith(" more")


def test_thousands_of_changes_cost_no_drawing_of_their_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(live, "_SECONDS_BETWEEN_DRAWINGS", 3600)
    drawings, steps = [], live.Steps
    monkeypatch.setattr(live, "Steps", lambda *given: drawings.append(given) or steps(*given))
    view, root = Live(), task_of("root")
    view.on_start(tmp_path, root)
    for number in range(2000):
        step = task_of(f"step-{number}", root)
        view.on_change(step)
        step.finish(State.SUCCEEDED)
        view.on_change(step)
    view.on_end({})
    printed = capsys.readouterr().out.splitlines()
    assert [line for line in printed if "SUCCEEDED" in line] == [f"step-{n}: SUCCEEDED" for n in range(2000)]
    assert len(drawings) == 1


def test_a_job_that_makes_no_progress_says_why_in_whole_words() -> None:
    root, said = task_of("root", state=State.RUNNING), "no step for 2 min: workerpool0-0 is frozen; workerpool1-0 waits"
    replica = {"name": "workerpool0-0", "is_running": True, "num_starts": 1, "exit_code": None, "step": 3}
    job = {"replicas": [replica | {"num_steps": 9}], "stalled": said}
    step = task_of("train", root, state=State.RUNNING, started_at=1.0, custom_job=job)
    lines = live.Steps(root, 40, 20).lines
    assert " ".join(" ".join(line.plain for line in lines).split()).endswith(said)
    assert all(cell_len(line.plain) <= 40 for line in lines)
    step.custom_job = job | {"stalled": ""}
    assert "no step" not in str(live.Steps(root, 40, 20).lines)


def test_the_live_view_shows_each_replica() -> None:
    running = {"name": "workerpool1-0", "is_running": True, "num_starts": 2, "exit_code": 9, "step": 3, "num_steps": 9}
    assert replica_state(running) == "step 3 of 9, start 2"
    assert replica_state(running | {"is_running": False}) == "exit code 9"
    assert replica_state(running | {"num_steps": 0, "num_starts": 1}) == "running"
