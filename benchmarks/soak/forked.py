"""A program as a fork of this process, which has imported the libraries: an import takes longer than the training."""

import os
import runpy
import signal
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path


class Forked:
    """A running program, with what soaks use of `subprocess.Popen`."""

    def __init__(self, words: Sequence[str], variables: Mapping[str, str], output: int, *, before: Path | None) -> None:
        """Start it.

        Args:
            words: The program's file and its arguments.
            variables: Of the environment, beside those of this process.
            output: Descriptor of the file for both streams.
            before: A file to run before the program.
        """
        self.returncode: int | None = None
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid:
            return
        code = 1
        try:
            os.dup2(output, 1)
            os.dup2(output, 2)
            os.environ.update(variables)
            sys.argv = [*words]
            if before:
                runpy.run_path(str(before))
            runpy.run_path(words[0], run_name="__main__")
            code = 0
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else int(error.code is not None)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def poll(self) -> int | None:
        """Return the exit code, or None while it runs."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal if it still runs."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)
