"""`python cloud.py` with the gcloud of tests/support/gcloud.py first in PATH, and the state of its world."""

import json
import os
import pathlib
import shlex
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from cloud import main
from tests.support.gcloud import empty
from vertex_testing.in_process import call
from vertex_testing.shared import locked, make_once, run_folder

Script = Callable[..., subprocess.CompletedProcess[str]]


class World:
    """Resources in Google Cloud according to the fake gcloud."""

    def __init__(self, file: pathlib.Path) -> None:
        self.file = file

    def read(self) -> dict[str, Any]:
        """Return the state."""
        return json.loads(self.file.read_text()) if self.file.exists() else empty()

    def add(self, kind: str, name: str, **content: Any) -> None:
        """Add a bucket, a repository or an account that another program made."""
        state = self.read()
        state[kind][name] = content
        self.file.write_text(json.dumps(state))

    def add_policy(self, name: str, bindings: list[dict[str, Any]]) -> None:
        """Replace the policy of a resource, e.g. `project my-project`."""
        state = self.read()
        state["policies"][name] = bindings
        self.file.write_text(json.dumps(state))

    @property
    def things(self) -> dict[str, Any]:
        """Everything that exists: without the calls and the enabled APIs."""
        state = self.read()
        state["policies"] = {name: policy for name, policy in state["policies"].items() if policy}
        return {kind: content for kind, content in state.items() if kind not in ("calls", "services")}

    @property
    def changes(self) -> list[str]:
        """The commands so far that change something, each as one line."""
        reads = {"describe", "list", "get-iam-policy"}
        return [shlex.join(words) for words in self.read()["calls"] if not reads & set(words)]


def environment(gcloud_folder: pathlib.Path, state: pathlib.Path) -> dict[str, str]:
    """Return the environment of `cloud.py` with the fake gcloud."""
    return dict(os.environ) | {"PATH": f"{gcloud_folder}:{os.environ['PATH']}", "GCLOUD_STATE": str(state)}


@pytest.fixture
def variables(gcloud_folder: pathlib.Path, tmp_path: pathlib.Path) -> dict[str, str]:
    """The environment of `cloud.py` in this test."""
    return environment(gcloud_folder, tmp_path / "state.json")


@pytest.fixture(scope="session")
def state_after_up(
    repository: pathlib.Path, gcloud_folder: pathlib.Path, tmp_path_factory: pytest.TempPathFactory
) -> str:
    """The state of the fake gcloud after `up` in an empty project."""

    def make(folder: pathlib.Path) -> None:
        given = environment(gcloud_folder, folder / "state.json")
        with locked(run_folder(tmp_path_factory) / "build.lock"):
            done = call(main, ["up", "--project", "my-project"], cwd=repository, environment=given, program="cloud.py")
        assert done.returncode == 0, done.stderr

    return (make_once(tmp_path_factory, "state-after-up", make) / "state.json").read_text()


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    """Resources in Google Cloud."""
    return World(tmp_path / "state.json")


@pytest.fixture
def cloud(repository: pathlib.Path, variables: dict[str, str]) -> Script:
    """Calls `python cloud.py ...` for one project; standard input is no terminal."""

    def run(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        words = [*arguments, "--project", "my-project"]
        return call(main, words, cwd=repository, environment=variables | more, program="cloud.py")

    return run


@pytest.fixture
def terminal(repository: pathlib.Path, variables: dict[str, str]) -> Script:
    """Runs `python cloud.py ...` for one project with an answer typed at a terminal."""

    def run(*arguments: str, typed: str, **more: str) -> subprocess.CompletedProcess[str]:
        ours, its = os.openpty()
        words = [sys.executable, "cloud.py", *arguments, "--project", "my-project"]
        try:
            # The line discipline keeps what is typed until it is read.
            os.write(ours, typed.encode())
            return subprocess.run(
                words, cwd=repository, env=variables | more, stdin=its, capture_output=True, text=True
            )
        finally:
            os.close(ours)
            os.close(its)

    return run
