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
        ([*RIGHT, "--watch=gs://b/x"], "--watch='gs://b/x' is not a local folder"),
        (["--checkpoint-directory=own/kept"], "or contains --checkpoint-directory"),
        ([*RIGHT, "--whole=*.pt"], "expected rename:PATTERN"),
        ([*RIGHT, "--progress=step (\\d+)"], "has the groups []; expected step"),
        ([*RIGHT, "--progress=(?P<step>"], "is not a regular expression"),
        ([*RIGHT, "--progress=(?P<step>a{99999999999})"], "is not a regular expression"),
        ([*RIGHT, "--progress=(?P<step>.)(?P<time>.)"], "has the groups ['step', 'time']; expected step and others"),
        ([*RIGHT, "--exit-code=1"], "expected one CODE=CODE per code"),
        ([*RIGHT, "--exit-code=1=2", "--exit-code=1=3"], "expected one CODE=CODE per code"),
        ([*RIGHT, "--exit-code=256=1"], "from 1 to 255"),
        ([*RIGHT, "--exit-code=1=0"], "which would hide a failure"),
        ([*RIGHT, "--exit-code=0=134"], "0 stays 0"),
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


@pytest.mark.parametrize("words", [RIGHT, ["python", "train.py"], [*RIGHT, "--wrong", "--", "true"]])
def test_words_that_are_missing_or_unknown_are_named(words: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(words)
    stderr = capfd.readouterr()[1]
    assert (left.value.code, stderr.startswith("error: "), stderr.count("\n")) == (2, True, 1)


@pytest.mark.parametrize("content", ["", "{", "[1]", '{"message": 3}', '{"message": {"message": []}}', "[" * 10**5])
def test_an_error_file_of_any_other_shape_says_nothing(tmp_path: Path, content: str) -> None:
    path = tmp_path / "error.json"
    table = exit_codes.parse(["1=134:lost-peer"])
    path.write_text(content)
    assert exit_codes.translate(1, table, stop_signal=0, error_file=path) == (1, "")
    path.write_text('{"message": "Connection reset by peer"}')
    assert exit_codes.translate(1, table, stop_signal=0, error_file=path)[0] == 134
    assert exit_codes.translate(1, table, stop_signal=0, error_file=tmp_path / "missing") == (1, "")
    path.write_text('{"message": {"message": "SignalException: Process 7 got signal: 15"}}')
    assert exit_codes.translate(1, table, stop_signal=15, error_file=path)[0] == 143
    assert exit_codes.translate(1, table, stop_signal=0, error_file=path) == (1, "")
