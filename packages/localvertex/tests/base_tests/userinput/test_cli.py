"""Errors of every command line are one line on stderr, and the exit code shows what kind they are."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from localvertex._base.userinput import cli
from localvertex._base.userinput.errors import UserError


class Refused(Exception):
    """A failure that a program expects."""


def raising(error: BaseException) -> Callable[[], int]:
    def main() -> int:
        raise error

    return main


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (UserError("x is 1; expected 2"), cli.WRONG_INPUT, "error: x is 1; expected 2\n"),
        (Refused("quota"), cli.FAILED, "error: quota\n"),
        (KeyboardInterrupt(), cli.STOPPED, ""),
    ],
)
def test_expected_errors_become_one_line_and_an_exit_code(
    capsys: pytest.CaptureFixture[str], error: BaseException, code: int, text: str
) -> None:
    assert cli.run(raising(error), failures=(Refused,)) == code
    assert capsys.readouterr().err == text


def test_any_other_error_passes_with_its_traceback() -> None:
    with pytest.raises(ZeroDivisionError):
        cli.run(raising(ZeroDivisionError()), failures=(Refused,))


def test_the_code_of_a_command_is_returned() -> None:
    assert cli.run(lambda: 7) == 7


@pytest.mark.parametrize("words", [["--nope"], ["--num", "x"], []])
def test_a_wrong_argument_is_one_line_and_exit_code_2(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    parser = cli.Parser("python -m program", description="Do it.")
    parser.add_argument("--number", type=int, required=True)
    with pytest.raises(SystemExit) as caught:
        parser.parse_args(words)
    assert caught.value.code == cli.WRONG_INPUT
    text = capsys.readouterr().err
    assert text.startswith("error: ")
    assert text.endswith("; python -m program --help lists the valid options\n")
    assert text.count("\n") == 1


@pytest.mark.parametrize(("if_closed", "code"), [(cli.DONE, 0), (cli.FAILED, 1)])
def test_a_reader_that_closes_the_output_early_causes_no_traceback(
    python: str, package: Path, if_closed: int, code: int
) -> None:
    program = (
        "from localvertex._base.userinput import cli; "
        f"raise SystemExit(cli.run(lambda: print('x') or 0, if_closed={if_closed}))"
    )
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [python, "-c", program], stdout=writing, stderr=subprocess.PIPE, text=True, check=False, cwd=package
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (code, "")


@pytest.mark.parametrize("columns", ["40", "200"])
def test_help_is_as_wide_as_the_terminal(monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    parser = cli.Parser("program", description="Do it.")
    parser.add_argument("--option", help=" ".join(["word"] * 60))
    longest = max(len(line) for line in parser.format_help().splitlines())
    assert int(columns) - 30 < longest < int(columns)
