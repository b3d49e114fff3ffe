"""Real servers in their own processes, the real SDK as their client, and which tests need a sandbox."""

import json
import signal
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from localvertex import client
from localvertex.containers.choice import Choice
from vertex_testing.server import Server

_SANDBOXED = (
    "runner/checks/test_before_start.py::test_a_value_with_nul_is_refused",
    "runner/checks/test_before_start.py::test_all_reasons_are_given_at_once",
    "runner/checks/test_before_start.py::test_the_unchanged_file_runs",
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
    names = tuple(f"localvertex_tests/{each}" for each in _SANDBOXED)
    found = [each for each in items if each.nodeid[each.nodeid.find("localvertex_tests/") :].startswith(names)]
    if found and (problem := Choice().how.problem):
        for each in found:
            each.add_marker(pytest.mark.skip(reason=problem))


@pytest.fixture
def start_server(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Start servers on the test's own work folder."""
    servers: list[Server] = []

    def start(*options: str, **more: Any) -> Server:
        servers.append(Server(tmp_path / "runs", *options, **more))
        return servers[-1]

    yield start
    for each in servers:
        each.end(signal.SIGKILL)


@pytest.fixture(scope="session")
def sdk() -> Iterator[Callable[[Server], Any]]:
    """Point the real google-cloud-aiplatform at a server, by REST: gRPC trusts one server in a process."""
    with warnings.catch_warnings():
        # Deprecations in what Google's packages import are not this project's.
        warnings.simplefilter("ignore")
        from google.cloud import aiplatform
        from google.cloud.aiplatform import jobs, pipeline_jobs, training_jobs

    polling = pytest.MonkeyPatch()
    for module in (pipeline_jobs, jobs, training_jobs):
        # The SDK polls every 5 s, which is too slow for a test.
        polling.setattr(module, "_JOB_WAIT_TIME", 0.2)

    def point_at(server: Server) -> Any:
        client.init(server.work_dir, api_transport="rest")
        return aiplatform

    yield point_at
    polling.undo()


@pytest.fixture(scope="session")
def small_pipeline(compile_pipeline: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile two steps: one computes, the other waits for the given time and writes a dataset."""
    from kfp import dsl

    @dsl.component(base_image="python:3.11", install_kfp_package=False)
    def double(n: int) -> int:
        return 2 * n

    @dsl.component(base_image="python:3.11", install_kfp_package=False)
    def wait(seconds: float, scheduled: str, data: dsl.Output[dsl.Dataset]) -> None:
        import time
        from pathlib import Path

        time.sleep(seconds)
        Path(data.path).write_text("rows")
        data.metadata.update(rows=3, scheduled=scheduled)

    @dsl.pipeline(name="small")
    def small(n: int = 3, seconds: float = 0.0) -> int:
        doubled = double(n=n)
        wait(seconds=seconds, scheduled=dsl.PIPELINE_JOB_SCHEDULE_TIME_UTC_PLACEHOLDER).set_caching_options(False)
        return doubled.output

    return compile_pipeline(small, tmp_path_factory.mktemp("compiled") / "small.json")


@pytest.fixture(scope="session")
def light_pipeline(compile_pipeline: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Compile a pipeline that starts no process, so that its runs end at once."""
    from kfp import dsl

    @dsl.pipeline(name="light")
    def light(x: str = "y") -> None:
        dsl.importer(artifact_uri="/tmp", artifact_class=dsl.Dataset, metadata={"x": x})

    content: dict[str, Any] = json.loads(
        compile_pipeline(light, tmp_path_factory.mktemp("compiled") / "light.json").read_text()
    )
    return content


@pytest.fixture
def new_job(small_pipeline: Path, tmp_path: Path, sdk: Any) -> Callable[..., Any]:
    """Build a PipelineJob of the SDK without submitting it."""

    def new(server: Server, **options: Any) -> Any:
        defaults = {"display_name": "small run", "template_path": str(small_pipeline), "pipeline_root": str(tmp_path)}
        return sdk(server).PipelineJob(**(defaults | options))

    return new
