"""The trial of an exported model before it is registered: the server in a fresh process answers as the network.

The process starts with the trial, so that it imports TensorFlow while its parent writes the model.
"""

import base64
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt

from exact_resume.files.overlap import batched
from trainer.command_line import TrainingError

Probabilities = npt.NDArray[np.float32]
_COMMAND = (sys.executable, "-m", "trainer.serve", "-", "--port=0")
"""Reads the name of the model from standard input, and prints its address."""
_TOLERANCE = 1e-4
"""Largest difference of a probability for stored images, whose pixels are equal on both sides."""
_LIMIT_SECONDS = 300.0
"""Time from the name of the model to the last answer."""
_POLL_SECONDS = 0.02
_IMAGES_PER_REQUEST = 8
_MAX_PRINTED = 2**20
_ROOT = Path(__file__).resolve().parents[2]


class TrialServer:
    """A server in a process of its own, which loads a model when it gets its name."""

    def __init__(self, process: "subprocess.Popen[bytes]", printed: tuple[IO[bytes], IO[bytes]]) -> None:
        self._process = process
        self._stdout, self._stderr = printed
        self._deadline = time.monotonic() + _LIMIT_SECONDS

    def load(self, directory: str) -> None:
        """Let it load a model, without waiting for it."""
        self._deadline = time.monotonic() + _LIMIT_SECONDS
        # A process that has ended is noticed by the check.
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.write(f"{directory}\n".encode())
                self._process.stdin.flush()

    def check(self, stored: Sequence[bytes], expected: Probabilities) -> float:
        """Compare its answers with the probabilities of the network.

        Args:
            stored: Image files of the dataset, in the order of the probabilities.
            expected: Probabilities [B, K] of the trained network, at the temperature of the exported model.

        Returns:
            The largest difference of a probability.

        Raises:
            TrainingError: An answer differs, or the server ends, fails or is not ready in time.
        """
        try:
            url = f"{self._ready_url()}/predict"
            parts = batched(stored, _IMAGES_PER_REQUEST)
            answers = np.asarray([row for part in parts for row in self._predict(url, part)], np.float32)
            if answers.shape != expected.shape:
                raise TrainingError(f"it answers with probabilities of shape {answers.shape}, not {expected.shape}")
        except urllib.error.HTTPError as error:
            raise self._failure(f"it answers {error.code}: {error.read()[:300].decode(errors='replace')}") from error
        # This includes an answer that is not JSON of the right form.
        except (TrainingError, OSError, ValueError, LookupError, TypeError) as error:
            raise self._failure(f"{type(error).__name__}: {error}") from error
        difference = float(np.abs(answers - expected).max())
        # Also false for NaN.
        if not difference <= _TOLERANCE:
            raise self._failure(f"its probabilities differ from the network's by {difference:g}, not {_TOLERANCE:g}")
        return difference

    def _ready_url(self) -> str:
        """Return the address of the server when it has loaded its model."""
        while time.monotonic() < self._deadline:
            has_ended = self._process.poll() is not None
            # Not by the position of the file, which the process shares: it would write there.
            printed = os.pread(self._stdout.fileno(), _MAX_PRINTED, 0)
            if found := re.match(rb"listening on (http://[\w.]+:\d+)\nready\n", printed):
                return found[1].decode()
            if has_ended:
                raise TrainingError("it ended")
            time.sleep(_POLL_SECONDS)
        raise TrainingError(f"it was not ready {_LIMIT_SECONDS:g} s after the export")

    def _predict(self, url: str, files: Sequence[bytes]) -> list[list[float]]:
        instances = [{"b64": base64.b64encode(data).decode()} for data in files]
        seconds = max(_POLL_SECONDS, self._deadline - time.monotonic())
        body = json.dumps({"instances": instances}).encode()
        # Without the environment's proxy, which cannot reach this machine.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(urllib.request.Request(url, body), timeout=seconds) as response:  # noqa: S310
            return [each["probabilities"] for each in json.load(response)["predictions"]]

    def _failure(self, reason: str) -> TrainingError:
        """Return the error with the reason, how the process ended, if it has, and the last line that it printed."""
        # A process that was killed closes its connections a moment before it can be waited for.
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(0.2)
        code = self._process.returncode
        printed = os.pread(self._stderr.fileno(), _MAX_PRINTED, 0).decode(errors="replace")
        lines = [line for line in printed.splitlines() if line.strip()]
        ended = [] if code is None else [f"exit code {code}"]
        details = "; ".join([reason, *ended, *(line.strip()[:300] for line in lines[-1:])])
        return TrainingError(f"the server fails in its trial ({details}); the model was not exported")


@contextlib.contextmanager
def start_server() -> Iterator[TrialServer]:
    """Start a server, which is killed at the end of the block; it also ends if this process is killed."""
    # None of Vertex AI's variables, and no GPU, which this process may fill.
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AIP_")}
    path = os.pathsep.join(filter(None, [str(_ROOT), kept.get("PYTHONPATH", "")]))
    environment = kept | {"CUDA_VISIBLE_DEVICES": "-1", "PYTHONPATH": path}
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        process = subprocess.Popen(_COMMAND, stdin=subprocess.PIPE, stdout=stdout, stderr=stderr, env=environment)
        try:
            yield TrialServer(process, (stdout, stderr))
        finally:
            process.kill()
            # A request to a process that has ended is of no use.
            with contextlib.suppress(BrokenPipeError):
                process.communicate()
