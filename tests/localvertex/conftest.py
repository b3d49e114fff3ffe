"""Fixtures that compile pipelines with kfp's compiler and run them in real processes."""

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
from tests.support.in_process import call
from tests.support.runs import Command, Compile, Execute, FindTask, ReadLog, StartRun

_SANDBOXED = (
    "checks/test_before_start.py::test_a_value_with_nul_is_refused",
    "checks/test_before_start.py::test_all_reasons_are_given_at_once",
    "checks/test_before_start.py::test_the_unchanged_file_runs",
    "constructs/older/test_older_files.py::test_container_commands",
    "constructs/older/test_older_files.py::test_container_commands_of_kfp_1_8",
    "constructs/test_constructs.py::test_a_construct_gives_its_values[concatenation]",
    "constructs/test_constructs.py::test_a_construct_gives_its_values[escaped_placeholders]",
    "constructs/test_constructs.py::test_a_construct_gives_its_values[executor_input_of_a_command]",
    "constructs/test_constructs.py::test_a_construct_gives_its_values[executor_output_of_a_command]",
    "constructs/test_constructs.py::test_a_construct_gives_its_values[files_of_commands]",
    "constructs/test_constructs.py::test_a_construct_gives_its_values[metadata_in_a_command]",
    "constructs/test_constructs.py::test_a_construct_gives_its_values[present_inputs]",
    "constructs/test_constructs.py::test_a_construct_gives_its_values[values_in_a_command]",
    "constructs/test_constructs.py::test_a_construct_gives_its_values[variables_of_a_command]",
    "constructs/test_constructs.py::test_a_construct_is_refused_before_anything_runs[containerized_component]",
    "constructs/test_constructs.py::test_a_construct_is_refused_before_anything_runs[image_without_a_command]",
    "constructs/test_operations.py::test_the_page_is_what_localvertex_decides",
    "credentials/test_gcs_root.py::test_a_bucket_without_a_folder_is_named",
    "credentials/test_gcs_root.py::test_a_resumed_run_uses_the_buckets_that_it_was_started_with",
    "credentials/test_gcs_root.py::test_no_address_leads_out_of_its_bucket",
    "credentials/test_gcs_root.py::test_the_server_maps_buckets_for_pipelines",
    "credentials/test_gcs_root.py::test_without_the_option_importers_and_commands_are_refused_too",
    "executors/test_container_command.py::test_all_containers_without_a_local_program_are_refused_at_once",
    "processes/test_masker.py::test_a_kill_of_localvertex_leaves_a_whole_log_without_the_secret",
    "test_damaged_files.py::test_damaged_files_that_are_accepted_run_to_an_end",
    "test_hostile.py::test_a_hostile_file_is_refused_on_the_command_line[a null byte in a program]",
    "test_hostile.py::test_a_hostile_file_is_refused_on_the_command_line[a program in its image]",
    "test_malformed.py::test_an_invalid_spec_is_refused_with_the_path_of_the_field[foreign container]",
    "test_malformed.py::test_an_invalid_spec_is_refused_with_the_path_of_the_field[no command]",
    "test_malformed.py::test_everything_that_is_refused_is_named_at_once_on_the_command_line",
)
"""Tests of the command line or of checks that meet container commands, so they need a sandbox."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs a sandbox where bubblewrap is missing or does not work."""
    names = tuple(f"tests/localvertex/{each}" for each in _SANDBOXED)
    found = [each for each in items if each.nodeid.startswith(names)]
    if found and (problem := Choice().how.problem):
        for each in found:
            each.add_marker(pytest.mark.skip(reason=problem))


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
    """Return the work directory of the test's runs."""
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
        found = [each for each in record["tasks"] if name in (each["name"], each["path"])]
        assert len(found) == 1, (name, [each["path"] for each in record["tasks"]])
        return found[0]

    return find


@pytest.fixture
def log_text() -> ReadLog:
    """Read the log of a task."""

    def read(record: dict[str, Any], task: dict[str, Any]) -> str:
        return (Path(record["work_dir"]) / record["run_id"] / task["log"]).read_text()

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
    started: list[subprocess.Popen[str]] = []

    def start(pipeline: Any, *options: str, **variables: str) -> subprocess.Popen[str]:
        new = [str(compiled(pipeline)), "--run-id", "stopped"] if pipeline else []
        words = [sys.executable, "-m", "localvertex", "run", *new, *options]
        started.append(
            subprocess.Popen(
                words,
                cwd=tmp_path,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                env=os.environ | variables,
            )
        )
        return started[-1]

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
            process.communicate()
