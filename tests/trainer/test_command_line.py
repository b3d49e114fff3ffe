"""A user's mistake is a single line and exit code 2; a defect keeps its traceback."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from exact_resume.checkpoints.lease import NotHolder
from exact_resume.errors import InputError, RunError
from exact_resume.files import storage
from localvertex._base.userinput.errors import UserError
from trainer import command_line
from trainer.command_line import describe_path_error, report_errors
from vertex_testing.cloud_storage.server import CloudStorage


def test_a_mistake_is_a_single_line_and_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    def wrong(value: int) -> None:
        raise UserError(f"found {value}, expected 1")

    with pytest.raises(SystemExit) as left:
        report_errors(wrong)(7)
    assert left.value.code == 2
    assert capsys.readouterr().err == "error: found 7, expected 1\n"


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("path", ["/service/dataset/part", None])
def test_a_step_on_a_full_or_failing_disk_is_a_single_line(
    capsys: pytest.CaptureFixture[str], code: int, path: str | None
) -> None:
    def write() -> None:
        raise OSError(code, os.strerror(code), path)

    with pytest.raises(SystemExit) as left:
        report_errors(write)()
    assert left.value.code == 1
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_missing_file_in_a_step_is_a_defect(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        report_errors(open)(tmp_path / "missing")


def test_a_defect_keeps_its_traceback(python: str) -> None:
    code = "from trainer.command_line import report_errors; report_errors(int)('x')"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert "Traceback" in done.stderr


def test_the_result_passes_through() -> None:
    assert report_errors(divmod)(7, 2) == (3, 1)


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


@pytest.mark.parametrize(
    ("status", "exit_code", "message"),
    [
        (403, 2, "Cloud Storage refused access"),
        (401, 2, "no valid credentials"),
        (503, 1, "failed after several attempts (HTTP 503"),
    ],
)
def test_a_bucket_that_refuses_access_is_a_mistake_and_one_that_fails_is_not(
    server: CloudStorage, status: int, exit_code: int, message: str
) -> None:
    server.faults.fail(1000, status)
    with pytest.raises(OSError, match="gs://b/") as caught:
        storage.read_bytes("gs://b/x")
    code, line = describe_path_error(caught.value, []) or (0, "")
    assert (code, message in line, "\n" in line) == (exit_code, True, False)


def test_a_missing_bucket_is_a_mistake(server: CloudStorage) -> None:
    with pytest.raises(OSError, match="bucket 'none' does not exist") as caught:
        storage.names("gs://none/f")
    assert (describe_path_error(caught.value, []) or [0])[0] == 2


@pytest.mark.parametrize(
    ("error", "exit_code", "line"),
    [
        (InputError("'place' contains another run"), 2, "error: 'place' contains another run\n"),
        (RunError("another process has taken over"), 1, "failed: another process has taken over\n"),
        (NotHolder("another process has taken over"), 1, "failed: another process has taken over\n"),
    ],
)
def test_a_refusal_of_exact_resume_ends_a_command_and_a_step_like_one_of_the_trainer(
    capsys: pytest.CaptureFixture[str], error: Exception, exit_code: int, line: str
) -> None:
    def refuse() -> int:
        raise error

    assert command_line.run(refuse) == exit_code
    assert capsys.readouterr().err == line
    with pytest.raises(SystemExit) as left:
        report_errors(refuse)()
    assert (left.value.code, capsys.readouterr().err) == (exit_code, line)


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
