"""Runs gcloud: commands that only read, and commands that change something, with one-line errors."""

import json
import re
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
"""The folder of the project, where every command runs."""
_SHOWN = 600
"""Maximum characters of a message from gcloud."""
_MISSING = re.compile(
    r"^ERROR: \(gcloud[\w.-]*\) (NOT_FOUND: |gs://\S+ not found: 404|Image not found\.)", re.MULTILINE
)
"""Message of gcloud 528 if the resource of a `describe` does not exist; any other failure proves nothing."""
_INCOMPLETE = re.compile(r"^WARNING: (Failed to list .*)", re.MULTILINE)
"""If a region answers 503, gcloud 528 omits its resources, prints this line, and exits with 0."""
_DENIED = re.compile(r"PERMISSION_DENIED|does not have permission")


class CloudError(Exception):
    """A command failed, or an existing resource is not as expected; the message is one line."""


class AccessDenied(CloudError):
    """The user may not read a resource, which may not even exist."""


class Gcloud:
    """Runs commands, and prints those that change something."""

    def __init__(self, *, dry_run: bool) -> None:
        """Run the commands that change something, or only print them."""
        self.dry_run = dry_run

    def read(self, *words: str) -> dict[str, Any] | None:
        """Return the JSON object that a command prints; None if the resource does not exist.

        Raises:
            AccessDenied: The user may not read the resource.
            CloudError: The command failed for another reason, or printed something else.
        """
        done = _run([*words, "--format=json"], stdout=subprocess.PIPE)
        if done.returncode and _MISSING.search(done.stderr):
            return None
        found: dict[str, Any] = _parse(words, done, dict, "an object")
        return found

    def read_list(self, *words: str) -> list[Any]:
        """Return the JSON list that a command prints.

        Raises:
            CloudError: The command failed, listed only some of the resources, or printed unexpected output.
        """
        done = _run([*words, "--format=json"], stdout=subprocess.PIPE)
        if incomplete := _INCOMPLETE.search(done.stderr):
            raise _failure(words, incomplete[1])
        found: list[Any] = _parse(words, done, list, "a list")
        return found

    def change(self, *words: str) -> None:
        """Print a command and, except in a dry run, run it.

        Raises:
            CloudError: The command failed.
        """
        print(shlex.join(words), flush=True)
        if not self.dry_run and (done := _run(words)).returncode:
            raise _failure(words, done.stderr)


class EmptyProject(Gcloud):
    """Prints the commands for a project in which nothing exists, without running gcloud."""

    def __init__(self) -> None:
        """Run nothing."""
        super().__init__(dry_run=True)

    def read(self, *words: str) -> dict[str, Any] | None:
        """Return None: the resource does not exist."""
        return None

    def read_list(self, *words: str) -> list[Any]:
        """Return an empty list."""
        return []


def field(found: object, name: str, of: str) -> str:
    """Return a text field of gcloud's description of a resource.

    Raises:
        CloudError: The field is missing or not text.
    """
    value = found.get(name) if isinstance(found, dict) else None
    if isinstance(value, str) and value:
        return value
    raise CloudError(f"gcloud shows no {name} of {of}; update gcloud: gcloud components update")


def _run(words: Sequence[str], stdout: int | None = None) -> subprocess.CompletedProcess[str]:
    # Without a terminal gcloud asks nothing: its questions go to stderr, which is not shown.
    streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": stdout, "stderr": subprocess.PIPE}
    try:
        return subprocess.run(words, **streams, encoding="utf-8", errors="replace", cwd=ROOT, check=False)
    except FileNotFoundError:
        raise CloudError(f"{words[0]} is not installed; see https://cloud.google.com/sdk/docs/install") from None
    except OSError as error:
        raise CloudError(f"{words[0]} cannot be run: {error.strerror}; install it again") from None


def _parse(words: Sequence[str], done: subprocess.CompletedProcess[str], kind: type, expected: str) -> Any:
    if done.returncode:
        raise _failure(words, done.stderr)
    try:
        found = json.loads(done.stdout)
    except ValueError:
        found, expected = None, "JSON"
    if isinstance(found, kind):
        return found
    shown = f"expected {expected}, found {_line(done.stdout)[:80]!r}"
    raise CloudError(f"{shown}; run it yourself: {shlex.join(words)}")


def _failure(words: Sequence[str], stderr: str) -> CloudError:
    kind = AccessDenied if _DENIED.search(stderr) else CloudError
    return kind(f"{_line(stderr) or 'the command gave no reason'} (from: {shlex.join(words)})")


def _line(text: str) -> str:
    return " ".join(text.split())[:_SHOWN]
