"""A work folder that becomes read-only: a run that is running is not reported as killed."""

import subprocess
import sys
from pathlib import Path

import pytest
from localvertex_tests.support import run_records

from localvertex.store import record, run_folder

CODE = "import sys; from pathlib import Path; from localvertex.store import record; "
CODE += "print(record.is_running(Path(sys.argv[1])), record.read(Path(sys.argv[1]))['state'])"


def seen_read_only(run_dir: Path) -> str:
    """Return what a process sees of a run if it can write nowhere."""
    words = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", sys.executable, "-c", CODE, str(run_dir)]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """Return the folder of a run whose record has no end."""
    try:
        subprocess.run(["bwrap", "--ro-bind", "/", "/", "true"], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"bubblewrap cannot run: {error}")
    content = run_records.run_record(tmp_path, "held", "2026-01-01T00:00:00.000Z", state="RUNNING")
    run_records.write(tmp_path / "held" / record.FILE, content)
    return tmp_path / "held"


def test_the_lock_of_a_run_is_seen_on_a_read_only_file_system(run_dir: Path) -> None:
    with run_folder.lock(run_dir):
        assert seen_read_only(run_dir) == "True RUNNING"
    assert seen_read_only(run_dir) == "False FAILED"
