"""A user's mistake is one line and exit code 2; a defect keeps its traceback."""

import subprocess

import pytest

from trainer.command_line import reported
from userinput.errors import UserError


def test_a_mistake_is_one_line_and_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    def wrong(value: int) -> None:
        raise UserError(f"found {value}, expected 1")

    with pytest.raises(SystemExit) as left:
        reported(wrong)(7)
    assert left.value.code == 2
    assert capsys.readouterr().err == "error: found 7, expected 1\n"


def test_a_defect_keeps_its_traceback(python: str) -> None:
    code = "from trainer.command_line import reported; reported(int)('x')"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert "Traceback" in done.stderr


def test_the_result_passes_through() -> None:
    assert reported(divmod)(7, 2) == (3, 1)
