"""The trainer's programs as forks of a server that has imported TensorFlow, which is half of a short training.

Each is a process of its own, which runs the same program with the same arguments and variables, and can be killed.
"""

import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

from tests.support.modules import variables

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.support.preloaded"])


class Fork:
    """A forked `python -m NAME`, with the methods of `subprocess.Popen` that tests call."""

    def __init__(self, module: str, words: Sequence[str], environment: dict[str, str], *outputs: Path) -> None:
        """Start it.

        Args:
            module: Name of the program.
            words: Its arguments.
            environment: All its variables; of Python's own ones, only PYTHONPATH has an effect.
            outputs: The files for stdout and stderr, which it continues.
        """
        # An exact run sets this before it imports TensorFlow.
        with mock.patch.dict(os.environ, TF_ENABLE_ONEDNN_OPTS="0"):
            self._process = _CONTEXT.Process(target=_run, args=(module, words, environment, *outputs), daemon=True)
            self._process.start()
        self.pid, self._outputs = self._process.pid, outputs

    @property
    def returncode(self) -> int | None:
        """The exit code, None while it runs; minus the number of a signal."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """Return the exit code, None while it runs."""
        return self.returncode

    def wait(self, timeout: float | None = None) -> int | None:
        """Wait for the end and return the exit code."""
        self._process.join(timeout)
        return self.poll()

    def communicate(self, timeout: float | None = None) -> list[str]:
        """Wait for the end and return the content of the outputs."""
        code = self.wait(timeout)
        assert code is not None, f"still running after {timeout} s"
        return self.printed()

    def printed(self) -> list[str]:
        """Return the present content of the outputs."""
        return [path.read_text() if path.exists() else "" for path in self._outputs]

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.pid and self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it, unless it has ended."""
        self.send_signal(signal.SIGKILL)


def fork_module(module: str, *words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run a program to its end, as `run_module` does."""
    with tempfile.TemporaryDirectory() as folder:
        outputs = Path(folder, "stdout"), Path(folder, "stderr")
        process = Fork(module, words, variables() | environment, *outputs)
        printed = process.communicate(timeout=300)
        return subprocess.CompletedProcess([module, *words], process.poll() or 0, *printed)


def _run(module: str, words: Sequence[str], environment: dict[str, str], *outputs: Path) -> None:
    os.environ.clear()
    os.environ.update(environment)
    for number, path in enumerate(outputs, 1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    # Of the variables of the server.
    tempfile.tempdir = None
    sys.argv = [module, *words]
    sys.path[:0] = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    runpy.run_module(module, run_name="__main__", alter_sys=True)
