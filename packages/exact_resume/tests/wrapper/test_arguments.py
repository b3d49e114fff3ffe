"""Wrong arguments are refused in one line before the command starts, and so is a table that would hide an outcome."""

from pathlib import Path

import pytest

from exact_resume.__main__ import main
from exact_resume.wrapper import exit_codes

RIGHT = ["--checkpoint-directory=kept", "--watch=own", "--whole=rename:*.pt"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "--checkpoint-directory is missing, and AIP_CHECKPOINT_DIR is not set; give a folder"),
        ([*RIGHT, "--watch=gs://b/x"], "is not a local folder"),
        (["--checkpoint-directory=own/kept"], "is --watch or within it"),
        ([*RIGHT, "--whole=*.pt"], "expected rename:PATTERN"),
        ([*RIGHT, "--keep=0"], "--keep=0 is too small; expected at least 1"),
        ([*RIGHT, "--progress=step (\\d+)"], "has no group step"),
        ([*RIGHT, "--progress=(?P<step>"], "is not a regular expression"),
        ([*RIGHT, "--progress=(?P<step>.)(?P<time>.)"], "has a group 'time', which the event log uses itself"),
        ([*RIGHT, "--exit-code=1"], "expected one CODE=CODE per code"),
        ([*RIGHT, "--exit-code=1=2", "--exit-code=1=3"], "expected one CODE=CODE per code"),
        ([*RIGHT, "--exit-code=256=1"], "from 0 to 255"),
        ([*RIGHT, "--exit-code=1=0"], "would hide a failure"),
        ([*RIGHT, "--exit-code=0=134"], "would hide a success"),
        ([*RIGHT, "--config=lr"], "expected NAME=VALUE"),
        ([*RIGHT, "--code=missing.py"], "missing.py"),
    ],
)
def test_wrong_arguments_are_refused_before_the_command_starts(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AIP_CHECKPOINT_DIR", raising=False)
    given = words if len(words) > len(RIGHT) else ["--watch=own", "--whole=rename:*.pt", *words]
    assert main([*given, "--", "touch", "started"]) == 2
    _, stderr = capfd.readouterr()
    assert message in stderr
    assert (stderr.startswith("error: "), stderr.count("\n")) == (True, 1)
    assert list(tmp_path.iterdir()) == []


def test_a_command_is_needed(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(RIGHT) == 2
    assert "there is no command to wrap; give it after --" in capfd.readouterr()[1]
    with pytest.raises(SystemExit):
        main(["python", "train.py"])
    assert capfd.readouterr()[1].startswith("error: ")


@pytest.mark.parametrize("content", ["", "{", "[1]", '{"message": 3}', '{"message": {"message": []}}', "[" * 10**5])
def test_an_error_file_of_any_other_shape_says_nothing(tmp_path: Path, content: str) -> None:
    path = tmp_path / "error.json"
    path.write_text(content)
    assert exit_codes.read_error(path, since=0) == ""
    path.write_text('{"message": "text"}')
    assert exit_codes.read_error(path, since=0) == "text"
    assert exit_codes.read_error(tmp_path, since=0) == ""
