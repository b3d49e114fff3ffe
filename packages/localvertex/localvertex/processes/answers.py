"""Programs that are asked something and answer at once, such as an interpreter for its version."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


def ask(
    words: Sequence[str | Path], *, seconds: float | None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program without input, and return its answer.

    A program that cannot be started, or does not end in time, gets the exit code -1; its errors are the reason.
    """
    try:
        return subprocess.run(
            words,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or str(error)
        return subprocess.CompletedProcess(words, -1, "", reason)
