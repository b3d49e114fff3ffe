"""The real TensorBoard as a process on the loopback interface, and what it answers."""

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

_SECONDS = 400.0


class TensorBoard:
    """A client of a TensorBoard server."""

    def __init__(self, url: str) -> None:
        """Talk to the server at a URL."""
        self._url = url

    def ask(self, path: str, **query: Any) -> Any:
        """Return the JSON answer to a GET."""
        url = f"{self._url}/data/{path}" + (f"?{urllib.parse.urlencode(query)}" if query else "")
        with urllib.request.urlopen(url, timeout=60) as response:
            return json.loads(response.read())

    def runs(self) -> list[str]:
        """Return the names of the runs."""
        return sorted(self.ask("runs"))

    def scalars(self, run: str, tag: str) -> list[tuple[int, float]]:
        """Return the points (step, value) of a curve, as they are stored."""
        return [(step, value) for _, step, value in self.ask("plugin/scalars/scalars", run=run, tag=tag)]

    def has_read(self, run: str, last_step: int) -> bool:
        """Return whether the curves of a run are there to the last step."""
        try:
            ends = {self.scalars(f"{run}/{part}", "accuracy")[-1][0] for part in ("train", "validation")}
        except urllib.error.HTTPError:
            # There is no such run or curve yet.
            return False
        return ends == {last_step}


@contextlib.contextmanager
def tensorboard(arguments: Sequence[str], *runs: str, last_step: int, **environment: str) -> Iterator[TensorBoard]:
    """Start TensorBoard, and wait until it has read some runs to their end.

    Args:
        arguments: Words after `python`.
        *runs: Names of the runs, without `train` and `validation`.
        last_step: Their last step.
        **environment: More variables.
    """
    with tempfile.TemporaryDirectory() as folder, open(Path(folder) / "log", "wb") as log:
        process = subprocess.Popen(
            [sys.executable, *arguments, "--host=127.0.0.1", "--port=0"],
            env={**os.environ, **environment},
            stdout=log,
            stderr=log,
        )
        try:
            deadline = time.monotonic() + _SECONDS
            while not (found := re.search(r"http://127\.0\.0\.1:\d+", (text := Path(log.name).read_text()))):
                assert process.poll() is None, text
                assert time.monotonic() < deadline, text
                time.sleep(0.05)
            board = TensorBoard(found[0])
            while not all(board.has_read(run, last_step) for run in runs):
                assert time.monotonic() < deadline, board.runs()
                time.sleep(0.1)
            yield board
        finally:
            process.terminate()
            process.wait(timeout=60)
