"""Wrong trainings as people reported them, written from the reports alone: each is found, and none when repaired.

Whoever wrote them (reported/) hadn't read how `prove` finds defects.
"""

import pathlib
import subprocess
import sys

import pytest

_REPORTED = pathlib.Path(__file__).parent / "reported"
_TRAININGS = sorted(_REPORTED.glob("*.py"))


def _exit_code(folder: pathlib.Path, *command: str, seed: int) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "localvertex", "prove", "--seed", str(seed), "--", sys.executable, *command],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=900,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("training", _TRAININGS, ids=lambda training: training.stem)
def test_a_reported_defect_is_found(training: pathlib.Path, seed: int, tmp_path: pathlib.Path) -> None:
    code, output = _exit_code(tmp_path, str(training), seed=seed)
    assert code == 1, output


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("training", _TRAININGS, ids=lambda training: training.stem)
def test_its_repaired_twin_is_not_accused(training: pathlib.Path, seed: int, tmp_path: pathlib.Path) -> None:
    code, output = _exit_code(tmp_path, str(training), "REPAIRED=1", seed=seed)
    assert code == 0, output


@pytest.mark.slow
@pytest.mark.soak
def test_a_right_training_with_a_wrong_line_in_its_log_is_not_accused(tmp_path: pathlib.Path) -> None:
    code, output = _exit_code(tmp_path, str(_REPORTED / "right" / "resumed_log.py"), seed=0)
    assert code == 0, output


def test_there_are_six_reports() -> None:
    sources = {line for file in _TRAININGS for line in file.read_text().splitlines() if line.startswith("https://")}
    assert len(sources) == len(_TRAININGS) == 6
