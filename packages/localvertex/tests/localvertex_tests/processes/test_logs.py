"""The reason of an exit is taken from a log only where the log contains one."""

import os
from pathlib import Path

import pytest

from localvertex.processes import logs, sinks

TRACEBACK = 'Traceback (most recent call last):\n  File "x.py", line 1, in <module>\n    raise error\n'
STARTUP = """\
WARNING: All log messages before absl::InitializeLog() is called are written to STDERR
I0000 00:00:1795315715.065645   17468 port.cc:153] oneDNN custom operations are on. You may see slightly different
E0000 00:00:1795315755.779577   18814 util.cc:131] oneDNN supports DT_UINT8 only on platforms with AVX-512.
E0000 00:00:1795315755.779577 18814 cuda_dnn.cc:8579] Unable to register cuDNN factory: Attempting to register factory
W0000 00:00:1795315755.779577 18814 computation_placer.cc:177] computation placer already registered.
2026-11-22 03:00:00.123456: I tensorflow/core/platform/cpu_feature_guard.cc:210] This TensorFlow binary is optimized
To enable the following instructions: AVX2 FMA, in other operations, rebuild TensorFlow with the appropriate flags.
2026-11-22 03:00:00.123456: E external/local_xla/xla/stream_executor/cuda/cuda_fft.cc:467] Unable to register cuFFT
2026-11-22 03:00:00.123456: W tensorflow/compiler/tf2tensorrt/utils/py_utils.cc:38] TF-TRT Warning: not found
2026-11-22 03:00:00.1: E external/local_xla/xla/stream_executor/cuda/cuda_platform.cc:51] failed call to cuInit: (303)
"""


@pytest.mark.parametrize(
    ("code", "log", "expected"),
    [
        (1, f"step 1\n{TRACEBACK}ValueError: no images\n", "exit code 1: ValueError: no images"),
        (1, f"{TRACEBACK}package.errors_impl.NotFound\n{STARTUP}", "exit code 1: package.errors_impl.NotFound"),
        (2, "error: no images in gs://b/x\n", "exit code 2: error: no images in gs://b/x"),
        (2, "usage: x [-h]\nprog: error: bad\n", "exit code 2: prog: error: bad"),
        (127, "sh: 1: prog: not found\n", "exit code 127: sh: 1: prog: not found"),
        (127, "bash: line 1: prog: command not found\n", "exit code 127: bash: line 1: prog: command not found"),
        (1, "cat: /x: No such file or directory\n", "exit code 1: cat: /x: No such file or directory"),
        (3, "epoch 1\nlast words\n", "exit code 3; last line of its log: last words"),
        (1, f"{TRACEBACK}Bad: one\ntwo\nthree\n", "exit code 1; last exception in its log: Bad: one"),
        (1, f"{TRACEBACK}Bad: handled\nall is well\n", "exit code 1; last exception in its log: Bad: handled"),
        (1, "ValueError: without a traceback\n", "exit code 1; last line of its log: ValueError: without a traceback"),
        (1, TRACEBACK, "exit code 1; last line of its log: raise error"),
        (137, "step 7 of 9\n", "exit code 137 (SIGKILL); last line of its log: step 7 of 9"),
        (137, f"{TRACEBACK}Bad: one\n", "exit code 137 (SIGKILL); last exception in its log: Bad: one"),
        (143, "", "exit code 143 (SIGTERM), and its log is empty"),
        (200, "x\n", "exit code 200; last line of its log: x"),
        (1, STARTUP, "exit code 1, and its log contains no reason"),
        (1, f"loading\n{STARTUP}", "exit code 1; last line of its log: loading"),
        (1, f"x\n{'F'}{STARTUP.splitlines()[1][1:]}\n", f"exit code 1: F{STARTUP.splitlines()[1][1:]}"),
        (1, "x" * 900, f"exit code 1; last line of its log: {'x' * 500}"),
    ],
)
def test_a_last_line_is_the_reason_only_if_it_is_an_error(code: int, log: str, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text(log)
    assert logs.failure_text(code, path) == expected


@pytest.mark.parametrize("line", STARTUP.splitlines())
def test_what_tensorflow_prints_when_it_starts_is_never_news(line: str, tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text(f"{line}\n")
    assert logs.last_line(path) == ""
    path.write_text(f"step 3\n{line}\n")
    assert logs.last_line(path) == "step 3"


@pytest.mark.parametrize(
    "line",
    [
        "E0000 00:00:1795315755.779577   18814 gpu_device.cc:99] CUDA_ERROR_OUT_OF_MEMORY",
        "INFO: step 3",
        "I think: yes",
        "2026-11-22 03:00:00 step 3",
        "WARNING: the data is old",
        "[KFP executor is my own prefix",
    ],
)
def test_everything_else_is(line: str, tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text(f"{line}\n{STARTUP}")
    assert logs.last_line(path) == line


@pytest.mark.parametrize(
    ("log", "news"),
    [
        (f"step 3\n{TRACEBACK}ValueError: no images\n", "step 3"),
        (f"step 3\n{TRACEBACK}", "step 3"),
        (TRACEBACK, ""),
        (f"{TRACEBACK}ValueError: handled\nstep 4\n", "step 4"),
        ("step 3\nerror: no images\n", ""),
    ],
)
def test_the_error_of_a_step_that_is_failing_is_not_news(log: str, news: str, tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text(log)
    assert logs.last_line(path) == news


def test_without_a_log_there_is_no_news(tmp_path: Path) -> None:
    assert logs.last_line(tmp_path / "absent") == ""
    assert logs.failure_text(1, tmp_path / "absent") == "exit code 1, and its log is empty"


def test_a_link_or_a_pipe_in_place_of_a_log_is_neither_read_nor_written(tmp_path: Path) -> None:
    secret, log, pipe = tmp_path / "secret", tmp_path / "log.txt", tmp_path / "pipe"
    secret.write_text("secret words\n")
    log.symlink_to(secret)
    os.mkfifo(pipe)
    assert logs.failure_text(1, log) == "exit code 1, and its log is empty"
    assert logs.last_line(log) == ""
    assert logs.tail(pipe, 1) == []
    for each in (log, pipe):
        with pytest.raises(OSError, match=r"symbolic|No such device"), sinks.opened(each, [], []):
            pass
    assert secret.read_text() == "secret words\n"
