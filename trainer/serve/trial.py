"""The trial of an exported model before it is registered: the server in a fresh process answers as the network.

The process starts with the trial, so that it imports TensorFlow while its parent writes the model.
"""

import base64
import contextlib
import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from trainer.command_line import TrainingError
from trainer.serve import trial_images

Pixels = npt.NDArray[np.uint8]
Probabilities = npt.NDArray[np.float32]
Network = Callable[[Pixels], Probabilities]
"""Maps prepared images uint8 [B, S, S, 3] to probabilities float32 [B, K]."""
_COMMAND = (sys.executable, "-m", "trainer.serve", "-", "--port=0")
_STORED_TOLERANCE = 1e-4
"""Largest difference of a probability for stored images, whose pixels are equal on both sides."""
_OTHER_TOLERANCE = 0.1
"""The same for other images, which prepare resizes with Pillow and the server with TensorFlow: pixels differ by 1 of
255, and probabilities by at most 0.016 (docs/decisions, 0094)."""
_LIMIT_SECONDS = 300.0
_POLL_SECONDS = 0.02
_IMAGES_PER_REQUEST = 8
_REQUEST_BYTES = 2**24
"""Of the files of a request, unless it has only one."""
_NUM_ORIGINALS = 8
"""Stored images of which files of other kinds are made."""
_ROOT = Path(__file__).resolve().parents[2]


class TrialServer:
    """A server in a process of its own, which loads a model when it gets its name."""

    def __init__(
        self, process: "subprocess.Popen[bytes]", printed: tuple[IO[bytes], IO[bytes]], seconds: float
    ) -> None:
        self._process = process
        self._stdout, self._stderr = printed
        self._seconds = seconds
        self._deadline = time.monotonic() + seconds

    def load(self, directory: str) -> None:
        """Let it load a model, without waiting for it."""
        self._deadline = time.monotonic() + self._seconds
        # A process that has ended is noticed by the first request.
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.write(f"{directory}\n".encode())
                self._process.stdin.flush()

    def check(self, stored: Sequence[bytes], pixels: Pixels, network: Network) -> dict[str, float]:
        """Compare its answers with the probabilities of the network.

        Args:
            stored: Image files of the dataset.
            pixels: Their content, uint8 [B, S, S, 3].
            network: The trained one, of which the model was exported.

        Returns:
            The largest difference of a probability, of stored images and of all others, as metadata.

        Raises:
            TrainingError: An answer differs, or the server ends, fails or is not ready in time.
        """
        address = self._ready()
        of_stored = self._difference("stored images", address, stored, network(pixels), _STORED_TOLERANCE)
        others = [
            self._difference(
                kind, address, files, network(trial_images.prepare(files, pixels.shape[1])), _OTHER_TOLERANCE
            )
            for kind, files in trial_images.variants(pixels[:_NUM_ORIGINALS]).items()
        ]
        return {"served_difference": of_stored, "served_difference_other_images": max(others)}

    def _ready(self) -> str:
        """Return the address, HOST:PORT, of the server that has loaded its model."""
        address = ""
        while True:
            if self._process.poll() is not None:
                raise TrainingError(f"the server ended in its trial ({self._last_words()}); the model was not exported")
            if time.monotonic() > self._deadline:
                reason = f"the server was not ready {self._seconds:g} s after the export ({self._last_words()})"
                raise TrainingError(f"{reason}; the model was not exported")
            if not address:
                self._stdout.seek(0)
                found = re.match(rb"listening on http://([\w.]+:\d+)\n", self._stdout.read())
                address = found[1].decode() if found else ""
            elif self._is_healthy(address):
                return address
            time.sleep(_POLL_SECONDS)

    def _is_healthy(self, address: str) -> bool:
        try:
            return self._call(address, "GET", "/health")[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def _difference(
        self, kind: str, address: str, files: Sequence[bytes], expected: Probabilities, tolerance: float
    ) -> float:
        size = max(1, min(_IMAGES_PER_REQUEST, _REQUEST_BYTES // max(map(len, files))))
        parts = [files[start : start + size] for start in range(0, len(files), size)]
        answers = np.concatenate([self._predict(kind, address, part) for part in parts])
        if answers.shape != expected.shape:
            found = f"shape {answers.shape}, expected {expected.shape}"
            raise TrainingError(f"the server answers {kind} with probabilities of {found}; the model was not exported")
        difference = float(np.abs(answers - expected).max())
        # Also false for NaN.
        if not difference <= tolerance:
            raise TrainingError(
                f"the server's probabilities differ from the network's by {difference:g} for {kind}, more than"
                f" {tolerance:g}; the model was not exported"
            )
        return difference

    def _predict(self, kind: str, address: str, files: Sequence[bytes]) -> Probabilities:
        instances = [{"b64": base64.b64encode(data).decode()} for data in files]
        try:
            status, body = self._call(address, "POST", "/predict", json.dumps({"instances": instances}))
            if status != 200:
                raise TrainingError(f"the server answers {kind} with {status}: {body[:300].decode(errors='replace')}")
            predictions: list[dict[str, Any]] = json.loads(body)["predictions"]
            return np.asarray([each["probabilities"] for each in predictions], np.float32)
        except (OSError, http.client.HTTPException, ValueError, LookupError, TypeError) as error:
            if isinstance(error, ConnectionError):
                # A process that was killed closes its connections a moment before it can be waited for.
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(1.0)
            reason = f"{type(error).__name__}: {error}; {self._last_words()}"
            raise TrainingError(f"the server fails for {kind} ({reason}); the model was not exported") from error

    def _call(self, address: str, method: str, path: str, body: str | None = None) -> tuple[int, bytes]:
        seconds = max(_POLL_SECONDS, self._deadline - time.monotonic())
        with contextlib.closing(http.client.HTTPConnection(address, timeout=seconds)) as connection:
            connection.request(method, path, body)
            response = connection.getresponse()
            return response.status, response.read()

    def _last_words(self) -> str:
        """Return how the process ended, if it has, and the last line that it printed."""
        code = self._process.poll()
        ended = "it still runs" if code is None else f"exit code {code}"
        self._stderr.seek(0)
        lines = [line for line in self._stderr.read().decode(errors="replace").splitlines() if line.strip()]
        return f"{ended}, {lines[-1].strip()[:300]}" if lines else ended


@contextlib.contextmanager
def start_server(*, command: Sequence[str] = _COMMAND, seconds: float = _LIMIT_SECONDS) -> Iterator[TrialServer]:
    """Start a server, which is killed at the end of the block; it also ends if this process is killed.

    Args:
        command: Reads the name of the model from standard input, and prints its address.
        seconds: Longest time from the name of the model to the last answer.
    """
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=stdout, stderr=stderr, env=_environment())
        try:
            yield TrialServer(process, (stdout, stderr), seconds)
        finally:
            process.kill()
            # A request to a process that has ended is of no use.
            with contextlib.suppress(BrokenPipeError):
                process.communicate()


def _environment() -> dict[str, str]:
    """Return the variables of the process: none of Vertex AI's, and no GPU, which its parent may fill."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AIP_")}
    path = os.pathsep.join(filter(None, [str(_ROOT), kept.get("PYTHONPATH", "")]))
    return kept | {"CUDA_VISIBLE_DEVICES": "-1", "PYTHONPATH": path}
