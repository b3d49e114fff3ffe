"""The soaks with a few faults: nothing differs from undisturbed runs, and a killed soak resumes with the next part."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

SECONDS = 1800
"""Longer than any of these takes, even on a loaded machine."""


def start(repository: Path, *words: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "benchmarks.soak.prepare", "--seed=1", *words]
    return subprocess.Popen(
        command, cwd=repository, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )


def lines_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for path in folder.glob("*.jsonl") for line in path.read_text().splitlines()]


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.timeout(SECONDS)
def test_a_killed_soak_resumes_after_the_last_finished_part(repository: Path, tmp_path: Path) -> None:
    words = ("--num-images=300", "--num-faults=4", f"--output-dir={tmp_path}")
    process = start(repository, *words)
    deadline = time.monotonic() + SECONDS
    while len(lines_of(tmp_path)) < 2:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    [record] = tmp_path.glob("*.jsonl")
    before = record.read_text()
    # A kill while the next line is written.
    record.write_text(f'{before}{{"part": 1, "beg')

    process = start(repository, *words)
    output, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, output
    assert "finished parts, which are skipped" in output
    assert "part 0: " not in output
    assert record.read_text().startswith(before)
    about, *parts = lines_of(tmp_path)
    assert [part["part"] for part in parts] == list(range(len(parts)))
    num_faults = sum(len(part["faults"]) for part in parts)
    assert 4 <= num_faults <= 6
    [table] = tmp_path.glob("*.md")
    [row] = [line for line in table.read_text().splitlines() if line.startswith(f"| prepare | 1 | {about['revision']}")]
    assert about["machine"] in row
    assert row.endswith(f"| {len(parts)} | {num_faults} | 0 |")
    assert f"| prepare | 1 | SIGKILL of prepare | {num_faults} | resumed ({num_faults}) |" in table.read_text()
    assert not list(tmp_path.glob("work/*/*"))

    # Nothing is left to do, and nothing is done.
    process = start(repository, *words)
    output, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, output
    assert lines_of(tmp_path) == [about, *parts]


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.timeout(SECONDS)
def test_a_few_faults_of_each_kind_change_nothing(repository: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.soak", "--smoke", "--seed=1", f"--output-dir={tmp_path}"]
    done = subprocess.run(command, cwd=repository, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    assert "load average" in done.stdout
    assert "processor" in done.stdout
    [table] = tmp_path.glob("*.md")
    rows = [line for line in table.read_text().splitlines() if "smoke" in line]
    assert [row.split(" | ")[0] for row in rows] == [
        f"| {proof}" for proof in ("examples", "prepare", "recipes", "release", "training")
    ]
    assert all(row.endswith(" | 0 |") for row in rows)
    assert ", two workers | " in table.read_text()
    assert "Failures: none" in table.read_text()
