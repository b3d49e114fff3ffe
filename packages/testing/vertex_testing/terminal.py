"""A program in a pseudo terminal of a given width, as a user sees it."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from pathlib import Path

from vertex_testing.forks import Process
from vertex_testing.programs import LOCALVERTEX

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_LINE_END = re.compile(r"\r*\n|\r")
_HEIGHT = 30


class Terminal:
    """A running program and all lines that it has drawn so far, including those that it has overwritten."""

    def __init__(self, words: Sequence[str | Path], *, width: int, cwd: Path, **variables: str) -> None:
        self._parent, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", _HEIGHT, width, 0, 0))
        env = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        env |= {"TERM": "xterm"} | variables
        self.process: Process
        if [*words[:3]] == [sys.executable, "-m", "localvertex"]:
            self.process = LOCALVERTEX.start(words[1:], cwd=cwd, env=env, stdin=child, stdout=child)
        else:
            given = [*map(str, words)]
            self.process = subprocess.Popen(given, cwd=cwd, env=env, stdin=child, stdout=child, stderr=child, text=True)
        os.close(child)
        self.written = b""

    @property
    def text(self) -> str:
        """Everything that was drawn, without colours and movements of the cursor."""
        return _CONTROL.sub("", self.written.decode(errors="replace"))

    @property
    def lines(self) -> list[str]:
        """Every line that was drawn, as the program wrote it."""
        return [line.rstrip() for line in _LINE_END.split(self.text)]

    def wait_for(self, pattern: str, seconds: float = 300) -> str:
        """Read until a line matches, and return it."""
        deadline = time.monotonic() + seconds
        while True:
            # The last line may still be growing.
            found = next((line for line in self.lines[:-1] if re.search(pattern, line)), None)
            if found is not None:
                return found
            assert time.monotonic() < deadline, self.text
            assert self._read(), f"it ended without {pattern!r}:\n{self.text}"

    def end(self) -> int:
        """Read to the end and return the exit code."""
        while self._read():
            pass
        os.close(self._parent)
        return self.process.wait(timeout=300)

    def _read(self) -> bool:
        if not select.select([self._parent], [], [], 1)[0]:
            return True
        try:
            piece = os.read(self._parent, 65536)
        except OSError:
            return False
        self.written += piece
        return bool(piece)
