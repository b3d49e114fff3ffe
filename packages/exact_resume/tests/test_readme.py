"""The program of the quick start, as the README has it: killed and stopped, it ends as without interruption."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

PAGES = Path(__file__).parents[1]


@pytest.fixture
def program(tmp_path: Path) -> str:
    (text,) = re.findall(r"^```python\n(.*?)^```$", (PAGES / "README.md").read_text(encoding="utf-8"), re.M | re.S)
    (tmp_path / "line.py").write_text(text)
    return str(tmp_path / "line.py")


def start(program: str, directory: Path) -> "subprocess.Popen[str]":
    words = [sys.executable, program, str(directory)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def interrupt(program: str, directory: Path, number: int, after: str) -> tuple[int, str]:
    """Send a signal after a line; return the exit code and all lines."""
    process = start(program, directory)
    assert process.stdout
    before = [process.stdout.readline()]
    while before[-1] not in (after, ""):
        before.append(process.stdout.readline())
    assert before[-1], process.communicate()
    process.send_signal(number)
    stdout, _ = process.communicate(timeout=300)
    return process.returncode, "".join(before) + stdout


SHORT_WATCH = "from exact_resume.checkpoints import lease\nlease.WATCH_SECONDS = 2\n"


@pytest.mark.parametrize("is_portable", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_quick_start_ends_as_without_interruption(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_portable: bool
) -> None:
    """Elsewhere than on Linux, a restart first watches the heartbeat of the killed process."""
    whole, _ = start(program, tmp_path / "whole").communicate(timeout=300)
    assert whole.startswith("starting at step 0\n")
    if is_portable:
        monkeypatch.setenv("EXACT_RESUME_PORTABLE", "1")
        Path(program).write_text(SHORT_WATCH + Path(program).read_text())
    folder = tmp_path / "interrupted"
    assert interrupt(program, folder, signal.SIGKILL, "step 60\n")[0] == -signal.SIGKILL
    code, stdout = interrupt(program, folder, signal.SIGTERM, "step 100\n")
    assert ("the heartbeat of another process" in stdout) is is_portable
    assert (code, "after step 1" in stdout) == (143, True)
    process = start(program, folder)
    stdout, stderr = process.communicate(timeout=300)
    assert (process.returncode, stderr) == (0, "")
    assert re.match(r"starting at step 1\d\d\n", stdout)
    assert stdout.splitlines()[-1] == whole.splitlines()[-1]


def test_another_run_in_the_folder_of_the_quick_start_is_refused(program: str, tmp_path: Path) -> None:
    interrupt(program, tmp_path / "run", signal.SIGKILL, "step 20\n")
    Path(program).write_text(Path(program).read_text().replace('"seed": 0', '"seed": 1'))
    _, stderr = start(program, tmp_path / "run").communicate(timeout=300)
    assert "contains another run: seed is 0 there and 1 here" in stderr.splitlines()[-1]


@pytest.mark.parametrize("page", ["README.md", "docs/checkpoints.md", "docs/keras.md"])
def test_links_between_the_pages_resolve(page: str) -> None:
    """Within the package; the repository's own tests follow the rest."""
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", (PAGES / page).read_text(encoding="utf-8"))
    inside = [each for each in targets if "://" not in each and not each.startswith("../../")]
    assert [each for each in inside if not (PAGES / page).parent.joinpath(each).exists()] == []
