"""A run that was killed while its last step waited."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from localvertex_tests.support.journal import journaled, states

from localvertex.store import executor_files, record
from vertex_testing.runs import Compile


@pytest.fixture
def file(compiled: Compile) -> Path:
    return compiled(journaled)


@pytest.fixture
def killed(file: Path, tmp_path: Path) -> Path:
    """Return the folder of a run that was killed while its last step waited, long after the snapshot."""
    run_dir = tmp_path / "runs" / "killed"
    words = [sys.executable, "-m", "localvertex", "run", str(file), "--run-id", "killed", "--grace", "0.2"]
    words += ["--parameter", f"there={tmp_path / 'there'}", "--parameter", "numbers=[1, 2, 3]"]
    # Only the first snapshot is written, so that all the rest is in the journal.
    code = f"import sys; sys.argv[1:] = {words[3:]!r}; from localvertex.runner import run_record; "
    code += "run_record._SNAPSHOT_SECONDS = 3600; from localvertex.__main__ import main; sys.exit(main())"
    process = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.DEVNULL)
    while not (run_dir / record.FILE).exists() or states(record.read(run_dir)).get("wait-for") != "RUNNING":
        assert process.poll() is None
        time.sleep(0.02)
    # By this file `clean` knows the folder of a step when it cannot read the record.
    while not (run_dir / "wait-for" / executor_files.INPUT).exists():
        assert process.poll() is None
        time.sleep(0.02)
    process.kill()
    process.wait()
    while record.is_running(run_dir):
        time.sleep(0.02)
    return run_dir
