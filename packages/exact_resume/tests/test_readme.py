"""The program of the quick start, as the README has it: killed and stopped, it ends as without interruption."""

import inspect
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import exact_resume

PAGES = Path(__file__).parents[1]


@pytest.fixture
def program(tmp_path: Path) -> str:
    (text,) = re.findall(r"^```python\n(.*?)^```$", (PAGES / "README.md").read_text(encoding="utf-8"), re.M | re.S)
    (tmp_path / "line.py").write_text(text)
    return str(tmp_path / "line.py")


def start(program: str, directory: Path) -> "subprocess.Popen[str]":
    words = [sys.executable, program, str(directory)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def num_starts(directory: Path) -> int:
    return sum(path.read_text().count('"event": "start"') for path in directory.glob("events/*.jsonl"))


def interrupt(program: str, directory: Path, number: int) -> tuple[int, str, str]:
    """Send a signal some steps after the start; return the exit code, stdout and stderr."""
    before = num_starts(directory)
    process = start(program, directory)
    while num_starts(directory) == before:
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    time.sleep(0.3)
    process.send_signal(number)
    return process.wait(300), *process.communicate()


SHORT_WATCH = "from exact_resume.checkpoints import lease\nlease.WATCH_SECONDS = 2\n"


@pytest.mark.slow
@pytest.mark.parametrize("is_portable", [False, True])
def test_the_quick_start_ends_as_without_interruption(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_portable: bool
) -> None:
    """Elsewhere than on Linux, a restart first watches the heartbeat of the killed process."""
    whole, _ = start(program, tmp_path / "whole").communicate(timeout=300)
    assert whole.endswith(" after 300 steps\n")
    if is_portable:
        monkeypatch.setenv("EXACT_RESUME_PORTABLE", "1")
        Path(program).write_text(SHORT_WATCH + Path(program).read_text())
    folder = tmp_path / "interrupted"
    assert interrupt(program, folder, signal.SIGTERM)[:2] == (143, "")
    assert interrupt(program, folder, signal.SIGKILL)[0] == -signal.SIGKILL
    code, stdout, stderr = interrupt(program, folder, signal.SIGINT)
    assert ("the heartbeat of another process" in stderr) is is_portable
    assert (code, stdout) == (130, "")
    process = start(program, folder)
    stdout, stderr = process.communicate(timeout=300)
    assert (process.returncode, stdout) == (0, whole)
    assert "resumes at step" in stderr


def test_the_quick_start_continues_after_kill_9(program: str, tmp_path: Path) -> None:
    """A save is there after 2 seconds, which the page promises."""
    process = start(program, tmp_path / "run")
    while not [*(tmp_path / "run").glob("step-*/manifest.json")]:
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    process.kill()
    process.communicate()
    _, stderr = start(program, tmp_path / "run").communicate(timeout=300)
    assert int(re.findall(r"resumes at step (\d+) of 300", stderr)[0]) > 0


def test_another_run_in_the_folder_of_the_quick_start_is_refused(program: str, tmp_path: Path) -> None:
    interrupt(program, tmp_path / "run", signal.SIGTERM)
    Path(program).write_text(Path(program).read_text().replace("seed=0", "seed=1"))
    _, stderr = start(program, tmp_path / "run").communicate(timeout=300)
    assert "contains another run: code.line.py is" in stderr.splitlines()[-1]
    assert "sampler.seed is 0 there and 1 here" in stderr.splitlines()[-1]


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "docs/blocks.md",
        "docs/boosting.md",
        "docs/checkpoints.md",
        "docs/ends.md",
        "docs/hugging-face.md",
        "docs/jax.md",
        "docs/keras.md",
        "docs/lightning.md",
        "docs/rehearsal.md",
        "docs/resuming.md",
        "docs/state.md",
        "docs/wrapper.md",
    ],
)
def test_links_between_the_pages_resolve(page: str) -> None:
    """Within the package; the repository's own tests follow the rest."""
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", (PAGES / page).read_text(encoding="utf-8"))
    inside = [each for each in targets if "://" not in each and not each.startswith("../../")]
    assert [each for each in inside if not (PAGES / page).parent.joinpath(each).exists()] == []


def test_the_table_of_arguments_is_that_of_the_program() -> None:
    page = (PAGES / "docs" / "checkpoints.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (?:`(.*?)`)? ?\| \S.* \|$", page.partition("## Files")[0], re.M)
    declared = inspect.signature(exact_resume.run).parameters.values()
    assert rows == [(each.name, "" if each.default is each.empty else repr(each.default)) for each in declared]
