"""The trials of a real tuning job have a common goodput: while they run, and after the last one."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from localvertex_tests.support.tuning import KIND, NAME, pool, tune

from localvertex.show.view import shape
from localvertex.show.view.live import LiveJob
from localvertex.store import record
from vertex_testing.html import report_data
from vertex_testing.runs import Execute, FindTask
from vertex_testing.server import wait_until

TRAIN = """
log = pathlib.Path(os.environ["AIP_CHECKPOINT_DIR"]) / "events" / "workerpool0-0.jsonl"
log.parent.mkdir(parents=True)

def event(name, **fields):
    with log.open("a") as file:
        file.write(json.dumps({"time": time.time(), "event": name, **fields}) + "\\n")

event("start")
for step in range(1, 6):
    time.sleep(0.05)
    event("steps", first_step=step, last_step=step, num_steps=5, seconds=0.05)
report("accuracy", 0.5, 5)
(folder / f"trained-{trial}").touch()
wait_for(folder / f"end-{trial}")
"""


def job_of(run_dir: Path) -> dict[str, Any]:
    """Return the message about the job as a stream that begins now sends it."""
    try:
        content = shape.read(run_dir)
    except FileNotFoundError:
        return {}
    status = next((each["custom_job"] for each in content["tasks"] if each["path"] == NAME), None)
    messages = LiveJob(NAME).poll(status, is_running=record.is_running(run_dir))
    return dict(messages).get("job", {})


def trials_and_steps(run_dir: Path) -> tuple[int, int, list[str]]:
    """Return the number of trials and of their steps, and the names of the replicas."""
    found = job_of(run_dir)
    goodput = found.get("goodput", {})
    return goodput.get("num_trials", 0), goodput.get("num_steps", 0), sorted(found.get("timeline", {}))


def test_the_goodput_of_running_and_ended_trials_is_added_up(
    execute: Execute, task: FindTask, work_dir: Path, tmp_path: Path
) -> None:
    run_dir, names = work_dir / "tuned", [f"trials/{number}/workerpool0-0" for number in (1, 2)]
    given = {"pools": [pool(TRAIN, tmp_path)], "parameters": [KIND], "base": f"{tmp_path}/out", "trials": 2}
    with ThreadPoolExecutor(1) as thread:
        run = thread.submit(execute, tune, given, run_id="tuned")
        try:
            wait_until(lambda: run.done() or trials_and_steps(run_dir) == (2, 10, names))
            (tmp_path / "end-1").touch()
            # The first one no longer has a lane, but its steps still count.
            wait_until(lambda: run.done() or trials_and_steps(run_dir) == (2, 10, names[1:]))
            assert not run.done(), run.result()["error"]
        finally:
            (tmp_path / "end-1").touch()
            (tmp_path / "end-2").touch()
        content = run.result()
    assert content["state"] == "SUCCEEDED", content["error"]
    assert trials_and_steps(run_dir) == (2, 10, [])
    goodput = task(content, NAME)["custom_job"]["goodput"]
    assert goodput["total_seconds"] == pytest.approx(sum(goodput["seconds"].values()), abs=0.1)
    assert goodput["fraction"] == pytest.approx(goodput["seconds"]["productive"] / goodput["total_seconds"], abs=1e-3)
    assert goodput["seconds"]["productive"] >= 0.4
    (shown,) = [each for name, each in report_data(run_dir / record.PAGE)["events"] if name == "job"]
    assert (shown["goodput"]["num_trials"], shown["goodput"]["num_steps"]) == (2, 10)
    assert json.loads((run_dir / record.FILE).read_text())["tasks"][0]["custom_job"]["replicas"] == []
