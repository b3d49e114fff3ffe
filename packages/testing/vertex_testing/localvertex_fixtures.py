"""A pytest plugin: fixtures that compile pipelines with kfp's compiler and run or serve them in real processes."""

import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import localvertex
from localvertex.__main__ import main
from localvertex.containers.choice import Choice
from localvertex.containers.options import ContainerOptions
from vertex_testing.forks import Process
from vertex_testing.in_process import call
from vertex_testing.programs import LOCALVERTEX
from vertex_testing.runs import Command, Compile, Execute, FindTask, ReadLog, StartRun
from vertex_testing.server import Server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One `localvertex serve` for all tests that leave it running; each process of pytest-xdist has its own."""
    with Server(tmp_path_factory.mktemp("served") / "runs") as server:
        yield server


@pytest.fixture(scope="session")
def compile_pipeline() -> Callable[[Any, Path], Path]:
    """Compile a kfp pipeline function to a file of the given name."""

    def compile_(pipeline: Any, path: Path) -> Path:
        from kfp import compiler

        with warnings.catch_warnings():
            # kfp 2.17 deprecates JSON output; Vertex AI accepts it.
            warnings.simplefilter("ignore")
            compiler.Compiler().compile(pipeline, str(path))
        return path

    return compile_


@pytest.fixture
def compiled(compile_pipeline: Callable[[Any, Path], Path], tmp_path: Path) -> Compile:
    """Compile a pipeline into the test's folder."""
    return lambda pipeline, name="pipeline.json": compile_pipeline(pipeline, tmp_path / name)


@pytest.fixture
def work_dir(tmp_path: Path) -> Path:
    """Return the work folder of the test's runs."""
    return tmp_path / "runs"


@pytest.fixture
def execute(compiled: Compile, work_dir: Path) -> Execute:
    """Compile and run a pipeline function, or run a file, and return the record."""

    def execute_(pipeline: Any, parameters: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
        file = pipeline if isinstance(pipeline, Path) else compiled(pipeline)
        # Where the sandbox cannot run, tests of other things run without it.
        is_missing = bool(Choice().how.problem)
        options.setdefault("containers", ContainerOptions(allow_host_commands=is_missing))
        how = localvertex.Options(work_dir=work_dir, max_backoff_seconds=0.05, grace_seconds=5, **options)
        return localvertex.run(file, parameters=parameters, options=how)

    return execute_


@pytest.fixture
def task() -> FindTask:
    """Find a task of a record by name or path."""

    def find(record: dict[str, Any], name: str) -> dict[str, Any]:
        found: list[dict[str, Any]] = [each for each in record["tasks"] if name in (each["name"], each["path"])]
        assert len(found) == 1, (name, [each["path"] for each in record["tasks"]])
        return found[0]

    return find


@pytest.fixture
def log_text() -> ReadLog:
    """Read the log of a task."""

    def read(record: dict[str, Any], task: dict[str, Any]) -> str:
        return Path(record["work_dir"], record["run_id"], task["log"]).read_text()

    return read


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """Call `python -m localvertex ...` in the test's folder, in this process."""

    def run(*arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {"COLUMNS": "160"} | variables
        return call(main, arguments, cwd=tmp_path, environment=environment, program="localvertex")

    return run


@pytest.fixture
def command_process(tmp_path: Path) -> Command:
    """Run `python -m localvertex ...` in the test's folder, in a separate process."""

    def run(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, "-m", "localvertex", *map(str, arguments)]
        env = os.environ | {"COLUMNS": "160"}
        return subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120, **options)

    return run


@pytest.fixture
def start_run(compiled: Compile, tmp_path: Path) -> Iterator[StartRun]:
    """Run a pipeline function in the test's folder, in a process that the test may stop."""
    started: list[Process] = []

    def start(
        pipeline: Any, *options: str, program: tuple[str, ...] = ("-m", "localvertex"), **variables: str
    ) -> Process:
        new = [str(compiled(pipeline)), "--run-id", "stopped"] if pipeline else []
        words = [*program, "run", *new, *options]
        started.append(LOCALVERTEX.start(words, cwd=tmp_path, env=os.environ | variables))
        return started[-1]

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
            process.communicate()
