"""A user's mistake is a single line and exit code 2; a defect keeps its traceback."""

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from localvertex_base.userinput.errors import UserError
from trainer import command_line
from trainer.command_line import describe_path_error, reported


def test_a_mistake_is_a_single_line_and_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
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


@pytest.mark.parametrize(
    ("path", "named", "exit_code"),
    [
        ("/data/set", "/data/set", 2),
        ("/data/set/shard-1", "/data/set", 2),
        # A folder above the named one cannot be made.
        ("/data", "/data/set", 2),
        ("/data/.set.0123abcd.partial", "/data/set", 2),
        ("/data/other", "/data/set", None),
        ("/proc/meminfo", "/data/set", None),
        ("/usr/lib/python3/some-library/data.json", "", None),
        ("relative/report.html", "", 2),
        ("gs://bucket/x", "", 2),
        (3, "3", None),
        (None, "/data/set", None),
    ],
)
def test_only_errors_about_paths_of_the_user_are_mistakes(path: str | None, named: str, exit_code: int | None) -> None:
    error = OSError(errno.EACCES, "Permission denied", path)
    expected = exit_code and (exit_code, f"error: {path}: Permission denied; give a path that can be used")
    assert describe_path_error(error, [named] if named else []) == expected


def test_a_bucket_or_a_disk_that_fails_is_one_line() -> None:
    error = OSError(errno.EIO, "HTTP 503", "gs://bucket/x")
    assert describe_path_error(error, []) == (1, "failed: gs://bucket/x: HTTP 503")
    full = OSError(errno.ENOSPC, "No space left on device", "/data/x")
    line = "failed: /data/x: No space left on device; free some space and run again"
    assert describe_path_error(full, ["/data"]) == (1, line)
    unread = OSError(errno.EIO, "Input/output error")
    assert describe_path_error(unread, []) == (1, "failed: Input/output error; run again")


def test_a_command_knows_the_paths_from_its_arguments(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def open_missing() -> int:
        with open(tmp_path / "missing"):
            return 0

    for name in ("KERAS_BACKEND", "TF_CPP_MIN_LOG_LEVEL"):
        monkeypatch.setenv(name, "")
    monkeypatch.setattr(sys, "argv", ["command", f"--dataset={tmp_path}", "--seed=1"])
    assert command_line.run(open_missing) == 2
    assert capsys.readouterr().err.startswith(f"error: {tmp_path}/missing: No such file or directory")
    monkeypatch.setattr(sys, "argv", ["command", "--dataset=/elsewhere"])
    with pytest.raises(FileNotFoundError):
        command_line.run(open_missing)
