"""Several workers start together with equal flags, or not at all."""

import contextlib
import json
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.job import EXACT_RUN, Job, kill
from tests.support.modules import start_module

pytestmark = pytest.mark.slow
FREQUENT_REPORTS = """
import sys
from exact_resume.workers import deadline
from trainer import command_line, task
deadline.SECONDS_BETWEEN_REPORTS = 3.0
sys.exit(command_line.run(task.main))
"""


def test_a_worker_with_another_flag_ends_all_with_2_before_anything_is_written(
    digits_directory: Path, tmp_path: Path
) -> None:
    arguments = [f"--dataset={digits_directory}", f"--checkpoint-directory={tmp_path / 'run'}"]
    job = Job(tmp_path / "run", arguments, 2)
    job.arguments_of = lambda place: ["--learning-rate=0.5"] if place else []
    job.start()
    codes = job.wait_for_all()
    job.end()
    assert codes == [2, 2], job.logs()
    for place in (0, 1):
        log = (tmp_path / f"run-{place}.log").read_text()
        assert "error: the workers differ: learning_rate is 0.002 on chief 0 and 0.5 on worker 0" in log
    assert not (tmp_path / "run").exists()


def test_workers_without_all_peers_follow_sigterm_or_give_up(digits_directory: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as one:
        port = one.getsockname()[1]
    machines = {"chief": [f"127.0.0.1:{port}"], "worker": ["127.0.0.1:2", "127.0.0.1:3"]}
    arguments = [f"--dataset={digits_directory}", f"--checkpoint-directory={tmp_path / 'run'}"]

    def start(kind: str, *flags: str) -> "subprocess.Popen[str]":
        config = {"cluster": machines, "task": {"type": kind, "index": 0}}
        return start_module("trainer.task", *arguments, *flags, TF_CONFIG=json.dumps(config))

    # Before the chief, which a worker that has met it would count as lost after a second.
    with start("worker", "--peer-timeout-seconds=1") as worker:
        stdout, stderr = worker.communicate(timeout=300)
        assert worker.returncode == 134, stderr
        assert "gave up after" in stdout
    with start("chief") as chief:
        while chief.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.1)
        chief.send_signal(signal.SIGTERM)
        stdout, stderr = chief.communicate(timeout=300)
        assert chief.returncode == 143, stderr
        assert "SIGTERM: stopped while waiting for worker 0 (127.0.0.1:2), worker 1 (127.0.0.1:3)" in stdout
    assert not (tmp_path / "run").exists()


@pytest.mark.soak
def test_a_chief_that_is_frozen_while_the_job_restarts_is_given_up(
    digits_directory: Path, tmp_path: Path, uninterrupted: Callable[[int], Path]
) -> None:
    folder = tmp_path / "run"
    arguments = [f"--dataset={digits_directory}", f"--checkpoint-directory={folder}", *EXACT_RUN]
    job = Job(folder, arguments, 2)
    job.run_until_step(8, kill(1))
    # Longer than the time between two reports.
    job.script, job.arguments_of = ["-c", FREQUENT_REPORTS], lambda place: ["--peer-timeout-seconds=8"]
    job.start()
    job.workers[0].send_signal(signal.SIGSTOP)
    code = job.workers[1].wait(300)
    job.end()
    assert code == 134, job.logs()
    job.script, job.arguments_of = [], lambda place: []
    log = (tmp_path / "run-1.log").read_text()
    chief = r"chief 0 \(127\.0\.0\.1:\d+\)"
    assert re.search(rf"^waiting for {chief} for [3-7] s$", log, re.MULTILINE), log
    assert re.search(
        rf"^gave up after (8|9|1\d) s \(--peer-timeout-seconds\), still waiting for {chief}; exiting", log, re.M
    )
    job.run()
    wanted = json.loads((uninterrupted(2) / "result.json").read_text())
    assert job.result()["weights_sha256"] == wanted["weights_sha256"]
